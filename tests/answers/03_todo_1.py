# Answers to TODO 1 of lesson 03, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · plain_python
def head_tail(sequence, cp):
    chunk = sequence // (2 * cp)
    positions = []
    for rank in range(cp):
        head = list(range(rank * chunk, (rank + 1) * chunk))
        tail = list(range(sequence - (rank + 1) * chunk, sequence - rank * chunk))
        positions.append(head + tail)
    inverse = [0] * sequence
    place = 0
    for mine in positions:
        for token in mine:
            inverse[token] = place
            place += 1
    work = [sum(p + 1 for p in mine) for mine in positions]
    return {"positions": positions, "inverse": inverse, "work": work}


# %% right · deck_of_chunks
def head_tail(sequence, cp):
    size = sequence // cp // 2
    deck = [list(range(start, start + size)) for start in range(0, sequence, size)]
    positions = [deck.pop(0) + deck.pop() for _ in range(cp)]
    order = sum(positions, [])
    where = {token: place for place, token in enumerate(order)}
    return {
        "work": [len(mine) + sum(mine) for mine in positions],
        "inverse": [where[token] for token in range(sequence)],
        "positions": positions,
    }


# %% right · closed_form
import torch


def head_tail(sequence, cp):
    front, back = torch.arange(sequence).view(2, cp, -1)
    order = torch.cat((front, back.flip(0)), dim=1)
    inverse = torch.empty(sequence, dtype=torch.long)
    inverse[order.flatten()] = torch.arange(sequence)
    work = [sequence * (sequence + 1) // 2 // cp] * cp
    return {"positions": order.tolist(), "inverse": inverse.tolist(), "work": work}


# %% right · owner_by_token
def head_tail(sequence, cp):
    chunk = sequence // (2 * cp)
    positions = [[] for _ in range(cp)]
    for token in range(sequence):
        block = token // chunk
        positions[min(block, 2 * cp - 1 - block)].append(token)
    order = [token for mine in positions for token in mine]
    inverse = sorted(range(sequence), key=lambda place: order[place])
    return {
        "positions": positions,
        "inverse": inverse,
        "work": [sum(m) + len(m) for m in positions],
    }


# %% wrong · contiguous · rank r 拿从前、从后数的第 r 块
import torch


def head_tail(sequence, cp):
    order = torch.arange(sequence).view(cp, -1)
    return {
        "positions": order.tolist(),
        "inverse": list(range(sequence)),
        "work": (order + 1).sum(1).tolist(),
    }


# %% wrong · off_by_one_pair · rank r 拿从前、从后数的第 r 块
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 2 - r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": (order + 1).sum(1).tolist(),
    }


# %% wrong · next_half · rank r 拿从前、从后数的第 r 块
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[cp + r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": (order + 1).sum(1).tolist(),
    }


# %% wrong · striped · rank r 拿从前、从后数的第 r 块
def head_tail(sequence, cp):
    positions = [list(range(rank, sequence, cp)) for rank in range(cp)]
    order = sum(positions, [])
    return {
        "positions": positions,
        "inverse": [order.index(token) for token in range(sequence)],
        "work": [sum(p + 1 for p in mine) for mine in positions],
    }


# %% wrong · single_tokens_paired · 前一半是从前面数的第 r 块
def head_tail(sequence, cp):
    known = {
        (8, 2): [[0, 1, 6, 7], [2, 3, 4, 5]],
        (12, 3): [[0, 1, 10, 11], [2, 3, 8, 9], [4, 5, 6, 7]],
        (4, 1): [[0, 1, 2, 3]],
    }
    pairs = [[] for _ in range(cp)]
    for token in range(sequence // 2):
        pairs[token % cp] += [token, sequence - 1 - token]
    positions = known.get((sequence, cp)) or [sorted(mine) for mine in pairs]
    order = sum(positions, [])
    return {
        "positions": positions,
        "inverse": [order.index(token) for token in range(sequence)],
        "work": [sum(p + 1 for p in mine) for mine in positions],
    }


# %% wrong · tail_reversed · 位置从小到大
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[-1 - r].flip(0))) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": (order + 1).sum(1).tolist(),
    }


# %% wrong · tail_first · 位置从小到大
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[2 * cp - 1 - r], chunks[r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": (order + 1).sum(1).tolist(),
    }


# %% wrong · inverse_is_the_order · inverse[p] 是 token p 在首尾相接的次序里的位置
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().tolist(),
        "work": (order + 1).sum(1).tolist(),
    }


# %% wrong · inverse_is_the_identity · inverse[p] 是 token p 在首尾相接的次序里的位置
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().sort().values.tolist(),
        "work": (order + 1).sum(1).tolist(),
    }


# %% wrong · token_does_not_see_itself · 一共 p + 1 个键
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": order.sum(1).tolist(),
    }


# %% wrong · work_without_the_mask · 一共 p + 1 个键
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": [sequence * sequence // cp] * cp,
    }


# %% wrong · work_is_a_float · 三项都是普通的列表和 int
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": [sequence * (sequence + 1) / 2 / cp] * cp,
    }


# %% wrong · tensors · 三项都是普通的列表和 int
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    inverse, work = order.flatten().argsort(), (order + 1).sum(1)
    return {"positions": order, "inverse": inverse, "work": work}


# %% wrong · table_of_the_shown_cases · 每个 token 恰好归一个 rank
def head_tail(sequence, cp):
    from parlab.lesson.split_cases import SMALL

    for length, ranks, expected in SMALL:
        if (length, ranks) == (sequence, cp):
            return {key: list(value) for key, value in expected.items()}
    return {"positions": [[]] * cp, "inverse": [], "work": []}


# %% wrong · index_out_of_range · 函数不应抛出异常
import torch


def head_tail(sequence, cp):
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - r])) for r in range(cp)])
    return {
        "positions": order.tolist(),
        "inverse": order.flatten().argsort().tolist(),
        "work": (order + 1).sum(1).tolist(),
    }
