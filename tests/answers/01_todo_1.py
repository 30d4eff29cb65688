# Answers to TODO 1 of lesson 01, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · binary_search_then_recursion
from functools import cache


def split_layers(costs, stages):
    def fits(limit):
        needed, used = 1, 0
        for cost in costs:
            if used + cost > limit:
                needed, used = needed + 1, 0
            used += cost
        return needed <= stages

    low, high = max(costs), sum(costs)
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1

    @cache
    def best(start, left):
        if left == 0:
            return (0, ()) if start == len(costs) else (float("inf"), ())
        found, cost = (float("inf"), ()), 0
        for size in range(1, len(costs) - start - left + 2):
            cost += costs[start + size - 1]
            if cost > low:
                break
            squares, sizes = best(start + size, left - 1)
            found = min(found, (squares + cost**2, (size,) + sizes))
        return found

    return list(best(0, stages)[1])


# %% right · two_tables
def split_layers(costs, stages):
    n = len(costs)
    total = [0]
    for cost in costs:
        total.append(total[-1] + cost)
    inf = float("inf")
    # the slowest stage of the best split of the first j layers
    slow = [0] + [inf] * n
    for k in range(1, stages + 1):
        new = [inf] * (n + 1)
        for j in range(k, n + 1):
            for i in range(j - 1, k - 2, -1):
                cost = total[j] - total[i]
                if cost >= new[j]:
                    break
                new[j] = min(new[j], max(slow[i], cost))
        slow = new
    limit = slow[n]
    # from the back, so that the first sizes are decided last
    squares = [[inf] * (n + 1) for _ in range(stages + 1)]
    choice = [[0] * (n + 1) for _ in range(stages + 1)]
    squares[0][n] = 0
    for k in range(1, stages + 1):
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n + 1):
                cost = total[j] - total[i]
                if cost > limit:
                    break
                value = squares[k - 1][j] + cost * cost
                if value < squares[k][i]:  # strictly: the smaller size stays
                    squares[k][i], choice[k][i] = value, j - i
    sizes, start = [], 0
    for k in range(stages, 0, -1):
        sizes.append(choice[k][start])
        start += choice[k][start]
    return sizes


# %% right · tries_limits_upwards
import itertools


def split_layers(costs, stages):
    prefix = [0] + list(itertools.accumulate(costs))
    pairs = itertools.combinations(range(len(costs) + 1), 2)
    limits = sorted({prefix[b] - prefix[a] for a, b in pairs})

    def within(limit):
        table = {len(costs): (0, [])}
        for _ in range(stages):
            fresh = {}
            for a in range(len(costs)):
                options = []
                for b in range(a + 1, len(costs) + 1):
                    if prefix[b] - prefix[a] > limit:
                        break
                    if b in table:
                        options.append(
                            ((prefix[b] - prefix[a]) ** 2 + table[b][0], [b - a] + table[b][1])
                        )
                if options:
                    fresh[a] = min(options)
            table = fresh
            if not table:
                return None
        return table.get(0)

    low, high = 0, len(limits) - 1
    while low < high:
        middle = (low + high) // 2
        if within(limits[middle]):
            high = middle
        else:
            low = middle + 1
    return within(limits[low])[1]


# %% wrong · even_numbers_of_layers · 规则 1
def split_layers(costs, stages):
    n = len(costs)
    return [n // stages + (stage < n % stages) for stage in range(stages)]


# %% wrong · remainder_to_the_last · 规则 1
def split_layers(costs, stages):
    n = len(costs)
    return [n // stages] * (stages - 1) + [n - n // stages * (stages - 1)]


# %% wrong · fills_up_to_the_mean · 规则 1
def split_layers(costs, stages):
    mean, sizes, size, used = sum(costs) / stages, [], 0, 0
    for place, cost in enumerate(costs):
        left = len(costs) - place
        full = size and used + cost > mean
        if len(sizes) < stages - 1 and size and (full or left <= stages - 1 - len(sizes)):
            sizes.append(size)
            size, used = 0, 0
        size, used = size + 1, used + cost
    return sizes + [size]


# %% wrong · first_split_within_the_limit · 规则 2
def split_layers(costs, stages):
    for limit in range(max(costs), sum(costs) + 1):
        sizes, size, used = [], 0, 0
        for place, cost in enumerate(costs):
            left = len(costs) - place
            if size and (used + cost > limit or left < stages - len(sizes)):
                sizes.append(size)
                size, used = 0, 0
            size, used = size + 1, used + cost
        sizes.append(size)
        if len(sizes) == stages:
            return sizes


# %% wrong · squares_only · 规则 1
def split_layers(costs, stages):
    n, inf = len(costs), float("inf")
    best = {n: (0, ())}
    for _ in range(stages):
        longer = {}
        for a in range(n):
            found = (inf, ())
            for b in range(a + 1, n + 1):
                if b in best:
                    cost = sum(costs[a:b])
                    found = min(found, (cost * cost + best[b][0], (b - a, *best[b][1])))
            if found[0] < inf:
                longer[a] = found
        best = longer
    return list(best[0][1])


# %% wrong · best_of_each_part · 规则 2
from functools import cache


def split_layers(costs, stages):
    @cache
    def best(start, left):
        if left == 1:
            cost = sum(costs[start:])
            return cost, cost**2, (len(costs) - start,)
        found = []
        for end in range(start + 1, len(costs) - left + 2):
            cost = sum(costs[start:end])
            slowest, squares, sizes = best(end, left - 1)
            found.append((max(cost, slowest), cost**2 + squares, (end - start, *sizes)))
        return min(found)

    return list(best(0, stages)[2])


# %% wrong · last_in_the_dictionary · 规则 3
from functools import cache
from itertools import accumulate


def split_layers(costs, stages):
    n, sums = len(costs), [0, *accumulate(costs)]

    def needed(limit):
        count, start = 1, 0
        for end in range(1, n + 1):
            if sums[end] - sums[start] > limit:
                count, start = count + 1, end - 1
        return count

    limit = max(costs)
    while needed(limit) > stages:
        limit += 1

    @cache
    def best(start, left):
        if left == 0:
            return (0, ()) if start == n else (float("inf"), ())
        found = [(float("inf"), ())]
        for end in range(start + 1, n + 1):
            cost = sums[end] - sums[start]
            if cost > limit:
                break
            squares, sizes = best(end, left - 1)
            found.append((cost * cost + squares, (end - start, *sizes)))
        least = min(squares for squares, _ in found)
        return least, max(sizes for squares, sizes in found if squares == least)

    return list(best(0, stages)[1])


# %% wrong · every_split · 每次调用都要在 3 秒内结束
from itertools import combinations


def split_layers(costs, stages):
    n = len(costs)

    def key(cuts):
        edges = [0, *cuts, n]
        parts = [sum(costs[a:b]) for a, b in zip(edges, edges[1:])]
        return max(parts), sum(c * c for c in parts), [b - a for a, b in zip(edges, edges[1:])]

    return min(key(cuts) for cuts in combinations(range(1, n), stages - 1))[2]


# %% wrong · stage_costs · 每个阶段的层数
def split_layers(costs, stages):
    n = len(costs)
    sizes = [n // stages + (stage < n % stages) for stage in range(stages)]
    ends = [sum(sizes[: stage + 1]) for stage in range(stages)]
    return [sum(costs[end - size : end]) for end, size in zip(ends, sizes)]


# %% wrong · boundaries · 每个阶段的层数
def split_layers(costs, stages):
    n = len(costs)
    return [n * stage // stages for stage in range(1, stages)]


# %% wrong · a_constant · 每个阶段的层数
def split_layers(costs, stages):
    return [8] * 16


# %% wrong · as_many_stages_as_fit · 规则 2
def split_layers(costs, stages):
    limit = max(max(costs), -(-sum(costs) // stages))
    sizes, used = [0], 0
    for cost in costs:
        if used + cost > limit:
            sizes.append(0)
            used = 0
        sizes[-1] += 1
        used += cost
    return sizes


# %% wrong · empty_stages · 规则 2
def split_layers(costs, stages):
    limit = max(max(costs), -(-sum(costs) // stages))
    sizes, used = [0], 0
    for cost in costs:
        if used + cost > limit and len(sizes) < stages:
            sizes.append(0)
            used = 0
        sizes[-1] += 1
        used += cost
    return sizes + [0] * (stages - len(sizes))


# %% wrong · a_tuple · 每个阶段的层数
def split_layers(costs, stages):
    return tuple([len(costs) // stages] * stages)


# %% wrong · forgets_embedding_and_head · 每个阶段的层数
def split_layers(costs, stages):
    n = len(costs) - 2
    return [n // stages + (stage < n % stages) for stage in range(stages)]


# %% wrong · sorts_the_layers · 规则 1
def split_layers(costs, stages):
    loads, sizes = [0] * stages, [0] * stages
    for cost in sorted(costs, reverse=True):
        least = loads.index(min(loads)) if min(sizes) else sizes.index(0)
        loads[least] += cost
        sizes[least] += 1
    return sizes
