# Answers to TODO 2 of lesson 01, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · three_parts
def one_f_one_b(rank, stages, microbatches):
    w = min(stages - rank, microbatches)
    warm = [("F", rank, j) for j in range(w)]
    steady = []
    for j in range(w, microbatches):
        steady += [("B", rank, j - w), ("F", rank, j)]
    drain = [("B", rank, j) for j in range(microbatches - w, microbatches)]
    return warm + steady + drain


# %% right · counts_what_is_in_flight
def one_f_one_b(rank, stages, microbatches):
    order, f, b = [], 0, 0
    while b < microbatches:
        if f < microbatches and f - b < stages - rank:
            order.append(("F", rank, f))
            f += 1
        else:
            order.append(("B", rank, b))
            b += 1
    return order


# %% right · sorted_by_slot
def one_f_one_b(rank, stages, microbatches):
    steps = []
    for j in range(microbatches):
        steps.append((2 * max(0, j - (stages - rank) + 1), 0 if j < stages - rank else 1, j, "F"))
        steps.append((2 * j + 1, 0, j, "B"))
    steps.sort()
    return [(kind, rank, j) for *_, j, kind in steps]


# %% right · forward_then_backward_pairs
def one_f_one_b(rank, stages, microbatches):
    ahead = min(stages - rank - 1, microbatches)
    steps = ["F"] * ahead + ["F", "B"] * (microbatches - ahead) + ["B"] * ahead
    number = {"F": 0, "B": 0}
    order = []
    for kind in steps:
        order.append((kind, rank, number[kind]))
        number[kind] += 1
    return order


# %% wrong · gpipe · 第一个反向之前的前向
def one_f_one_b(rank, stages, microbatches):
    return [(kind, rank, j) for kind in "FB" for j in range(microbatches)]


# %% wrong · one_forward_more · 第一个反向之前的前向
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank + 1)
    order = [("F", rank, j) for j in range(w)]
    for j in range(microbatches):
        order.append(("B", rank, j))
        if w + j < microbatches:
            order.append(("F", rank, w + j))
    return order


# %% wrong · one_forward_less · 第一个反向之前的前向
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank - 1)
    order = [("F", rank, j) for j in range(w)]
    for j in range(microbatches):
        order.append(("B", rank, j))
        if w + j < microbatches:
            order.append(("F", rank, w + j))
    return order


# %% wrong · ranks_counted_from_the_end · 第一个反向之前的前向
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, rank + 1)
    order = [("F", rank, j) for j in range(w)]
    for j in range(microbatches):
        order.append(("B", rank, j))
        if w + j < microbatches:
            order.append(("F", rank, w + j))
    return order


# %% wrong · every_rank_alike · 第一个反向之前的前向
def one_f_one_b(rank, stages, microbatches):
    order = []
    for j in range(microbatches):
        order += [("F", rank, j), ("B", rank, j)]
    return order


# %% wrong · too_few_microbatches_forgotten · 每个微批次恰好一个前向
def one_f_one_b(rank, stages, microbatches):
    w = stages - rank
    order = [("F", rank, j) for j in range(w)]
    for j in range(microbatches):
        order.append(("B", rank, j))
        if w + j < microbatches:
            order.append(("F", rank, w + j))
    return order


# %% wrong · drain_forgotten · 每个微批次恰好一个前向
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank)
    order = [("F", rank, j) for j in range(w)]
    for j in range(w, microbatches):
        order += [("B", rank, j - w), ("F", rank, j)]
    return order


# %% wrong · last_in_first_out · 反向也一样
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank)
    order, open_ = [("F", rank, j) for j in range(w)], list(range(w))
    for j in range(w, microbatches):
        order += [("B", rank, open_.pop()), ("F", rank, j)]
        open_.append(j)
    return order + [("B", rank, j) for j in reversed(open_)]


# %% wrong · two_forwards_two_backwards · 一个前向、一个反向地交替
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank)
    order = [("F", rank, j) for j in range(w)]
    b, f = 0, w
    while b < microbatches:
        for _ in range(2):
            if b < min(f, microbatches):
                order.append(("B", rank, b))
                b += 1
        for _ in range(2):
            if f < microbatches:
                order.append(("F", rank, f))
                f += 1
    return order


# %% wrong · no_stage · 返回列表，每一步是元组
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank)
    order = [("F", j) for j in range(w)]
    for j in range(microbatches):
        order.append(("B", j))
        if w + j < microbatches:
            order.append(("F", w + j))
    return order


# %% wrong · words · 返回列表，每一步是元组
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank)
    order = [f"F{j}" for j in range(w)]
    for j in range(microbatches):
        order.append(f"B{j}")
        if w + j < microbatches:
            order.append(f"F{w + j}")
    return order


# %% wrong · stage_and_microbatch_swapped · 这个 rank 只做自己的阶段
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank)
    order = [("F", j, rank) for j in range(w)]
    for j in range(microbatches):
        order.append(("B", j, rank))
        if w + j < microbatches:
            order.append(("F", w + j, rank))
    return order


# %% wrong · all_ranks_at_once · 返回列表，每一步是元组
def one_f_one_b(rank, stages, microbatches):
    orders = []
    for r in range(stages):
        w = min(microbatches, stages - r)
        order = [("F", r, j) for j in range(w)]
        for j in range(microbatches):
            order.append(("B", r, j))
            if w + j < microbatches:
                order.append(("F", r, w + j))
        orders.append(order)
    return orders


# %% wrong · forwards_on_the_wrong_side · 反向不能在它的前向之前
def one_f_one_b(rank, stages, microbatches):
    order = []
    for j in range(microbatches):
        order += [("B", rank, j), ("F", rank, j)]
    return order


# %% wrong · counted_from_one · 编号从 0 到 microbatches − 1
def one_f_one_b(rank, stages, microbatches):
    w = min(microbatches, stages - rank)
    order = [("F", rank, j + 1) for j in range(w)]
    for j in range(microbatches):
        order.append(("B", rank, j + 1))
        if w + j < microbatches:
            order.append(("F", rank, w + j + 1))
    return order


# %% wrong · never_ends · 每次调用都要在 3 秒内结束
def one_f_one_b(rank, stages, microbatches):
    order, f, b = [], 0, 0
    while b < microbatches:
        if f < min(microbatches, stages - rank):
            order.append(("F", rank, f))
            f += 1
        elif b < f - (stages - rank) + 1:
            order.append(("B", rank, b))
            b += 1
    return order


# %% wrong · the_table_of_the_text · 函数不应抛出异常
def one_f_one_b(rank, stages, microbatches):
    table = {
        (0, 3, 5): "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4",
        (1, 3, 5): "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4",
        (2, 3, 5): "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4",
    }
    return [(word[0], rank, int(word[1])) for word in table[rank, stages, microbatches].split()]
