"""The two loops of the compiled engine, as plain Python that Numba turns into machine code.

Everything here is written for pointers: an array is an address that is indexed, `out` is written to, and nothing is
allocated, raised or imported. So the compiled code refers to no symbol of Python or Numba and can be kept as a plain
object file (`native_code`). The same functions run unchanged, and slowly, on numpy arrays, which is how they can be
debugged.

A tree is stored in one of two ways (`CompiledEngine` chooses):

- heap (`linked == 0`): padded to a full binary tree of `steps` levels. `nodes[root + k]` is the split of node k,
  counted from 1 as in a binary heap; `values[root + k]` is the value of leaf k, counted from 0. 2 bytes a node.
- linked (`linked == 1`): node n is the pair `nodes[2 * n]` (distance to its left child, 0 for a leaf) and
  `nodes[2 * n + 1]` (its split); the right child follows the left one; `values[n]` is the value of leaf n.

`goes[s]` is 1 if the row goes right at split s, so that a step down is one addition without a branch. Eight trees
descend together, to hide the latency of memory; the eight of a group share the number of steps.

The functions are long and flat on purpose: a call or an array for the eight positions would cost what they save.
"""

# ruff: noqa: PLR0912, PLR0915, PLR0917

from __future__ import annotations

from typing import Any

BLOCK = 16
LANES = 8
NOT_A_NUMBER = 1
NOT_MONOTONE = 2


# Any: an address under Numba, a numpy array in plain Python; the types are in `native_code`.
def answer_rows(
    X: Any,  # float32 (n_rows, n_features)
    n_rows: int,
    n_features: int,
    chosen: Any,  # int64 (n_chosen,): which forests answer
    n_chosen: int,
    feature_first: Any,  # int64 (n_features + 1,): splits of feature f are feature_first[f] up to feature_first[f + 1]
    threshold: Any,  # float32 (n_splits,)
    first_tree: Any,  # int64 (n_forests + 1,)
    root: Any,  # int64 (n_trees,)
    steps: Any,  # int64 (n_trees,)
    linked: int,
    nodes: Any,  # uint16
    values: Any,  # float32
    base: Any,  # float32 (n_forests,)
    goes: Any,  # uint8 (BLOCK, n_splits + 1): scratch
    out: Any,  # float32 (n_rows, n_chosen): the answers
) -> int:
    """Answer row by row; blocks of rows share the trees that are in the cache. Returns 0 or `NOT_A_NUMBER`."""
    n_splits = feature_first[n_features]
    width = n_splits + 1
    for block in range(0, n_rows, BLOCK):
        n_block = min(BLOCK, n_rows - block)
        for r in range(n_block):
            row = (block + r) * n_features
            for f in range(n_features):
                x = X[row + f]
                if x != x:  # noqa: PLR0124
                    return NOT_A_NUMBER
                for s in range(feature_first[f], feature_first[f + 1]):
                    goes[r * width + s] = x >= threshold[s]
            goes[r * width + n_splits] = 0
        for c in range(n_chosen):
            forest = chosen[c]
            for r in range(n_block):
                out[(block + r) * n_chosen + c] = base[forest]
            tree = first_tree[forest]
            last = first_tree[forest + 1]
            while tree + LANES <= last:
                b0 = root[tree]
                b1 = root[tree + 1]
                b2 = root[tree + 2]
                b3 = root[tree + 3]
                b4 = root[tree + 4]
                b5 = root[tree + 5]
                b6 = root[tree + 6]
                b7 = root[tree + 7]
                n_steps = steps[tree]
                for r in range(n_block):
                    g = r * width
                    if linked != 0:
                        n0 = b0
                        n1 = b1
                        n2 = b2
                        n3 = b3
                        n4 = b4
                        n5 = b5
                        n6 = b6
                        n7 = b7
                        for _ in range(n_steps):
                            n0 = n0 + nodes[2 * n0] + goes[g + nodes[2 * n0 + 1]]
                            n1 = n1 + nodes[2 * n1] + goes[g + nodes[2 * n1 + 1]]
                            n2 = n2 + nodes[2 * n2] + goes[g + nodes[2 * n2 + 1]]
                            n3 = n3 + nodes[2 * n3] + goes[g + nodes[2 * n3 + 1]]
                            n4 = n4 + nodes[2 * n4] + goes[g + nodes[2 * n4 + 1]]
                            n5 = n5 + nodes[2 * n5] + goes[g + nodes[2 * n5 + 1]]
                            n6 = n6 + nodes[2 * n6] + goes[g + nodes[2 * n6 + 1]]
                            n7 = n7 + nodes[2 * n7] + goes[g + nodes[2 * n7 + 1]]
                    else:
                        n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = 1
                        for _ in range(n_steps):
                            n0 = n0 + n0 + goes[g + nodes[b0 + n0]]
                            n1 = n1 + n1 + goes[g + nodes[b1 + n1]]
                            n2 = n2 + n2 + goes[g + nodes[b2 + n2]]
                            n3 = n3 + n3 + goes[g + nodes[b3 + n3]]
                            n4 = n4 + n4 + goes[g + nodes[b4 + n4]]
                            n5 = n5 + n5 + goes[g + nodes[b5 + n5]]
                            n6 = n6 + n6 + goes[g + nodes[b6 + n6]]
                            n7 = n7 + n7 + goes[g + nodes[b7 + n7]]
                        size = 1 << n_steps
                        n0 = n0 + b0 - size
                        n1 = n1 + b1 - size
                        n2 = n2 + b2 - size
                        n3 = n3 + b3 - size
                        n4 = n4 + b4 - size
                        n5 = n5 + b5 - size
                        n6 = n6 + b6 - size
                        n7 = n7 + b7 - size
                    # One by one, in the order of the trees: XGBoost's float32 sum, bit for bit.
                    at = (block + r) * n_chosen + c
                    total = out[at]
                    total = total + values[n0]
                    total = total + values[n1]
                    total = total + values[n2]
                    total = total + values[n3]
                    total = total + values[n4]
                    total = total + values[n5]
                    total = total + values[n6]
                    total = total + values[n7]
                    out[at] = total
                tree += LANES
            while tree < last:
                b0 = root[tree]
                n_steps = steps[tree]
                for r in range(n_block):
                    g = r * width
                    if linked != 0:
                        n0 = b0
                        for _ in range(n_steps):
                            n0 = n0 + nodes[2 * n0] + goes[g + nodes[2 * n0 + 1]]
                    else:
                        n0 = 1
                        for _ in range(n_steps):
                            n0 = n0 + n0 + goes[g + nodes[b0 + n0]]
                        n0 = n0 + b0 - (1 << n_steps)
                    at = (block + r) * n_chosen + c
                    out[at] = out[at] + values[n0]
                tree += 1
    return 0


def answer_walk(
    X: Any,  # float32 (n_rows, n_features), each column rising, falling or constant
    n_rows: int,
    n_features: int,
    chosen: Any,  # from here on as in answer_rows
    n_chosen: int,
    feature_first: Any,
    threshold: Any,
    first_tree: Any,
    root: Any,
    steps: Any,
    linked: int,
    nodes: Any,
    values: Any,
    base: Any,
    turn: Any,  # int64 (n_splits + 1,): scratch
    before: Any,  # int64 (n_splits + 1,): scratch
    items: Any,  # int64 (8 * (LANES * n_rows + 1),): scratch
    out: Any,  # float32 (n_chosen, n_rows): the answers
) -> int:
    """Walk each tree once with the interval of rows [lo, hi) that share the path, and fork where they part.

    At a split all rows before `turn` go one way, `before`, and the others the other way. Returns 0, `NOT_A_NUMBER`
    or `NOT_MONOTONE`.
    """
    n_splits = feature_first[n_features]
    for f in range(n_features):
        rises = 0
        falls = 0
        previous = X[f]
        for r in range(n_rows):
            x = X[r * n_features + f]
            if x != x:  # noqa: PLR0124
                return NOT_A_NUMBER
            if x > previous:
                rises = 1
            if x < previous:
                falls = 1
            previous = x
        if rises + falls == 2:
            return NOT_MONOTONE
        for s in range(feature_first[f], feature_first[f + 1]):
            first = 1 if X[f] >= threshold[s] else 0
            lo = 0
            hi = n_rows
            if first != (1 if X[(n_rows - 1) * n_features + f] >= threshold[s] else 0):
                while hi - lo > 1:
                    middle = (lo + hi) >> 1
                    if (1 if X[middle * n_features + f] >= threshold[s] else 0) == first:
                        lo = middle
                    else:
                        hi = middle
            turn[s] = hi
            before[s] = first
    turn[n_splits] = n_rows
    before[n_splits] = 0
    for c in range(n_chosen):
        forest = chosen[c]
        for r in range(n_rows):
            out[c * n_rows + r] = base[forest]
        tree = first_tree[forest]
        last = first_tree[forest + 1]
        while tree < last:
            # The intervals of up to LANES trees go down level by level. Each writes two, the second of which is
            # overwritten unless there was a fork: no branch for the processor to guess wrong.
            n_steps = steps[tree]
            n_items = 0
            while tree < last and n_items < LANES and steps[tree] == n_steps:
                items[4 * n_items] = root[tree]
                items[4 * n_items + 1] = root[tree] if linked != 0 else 1
                items[4 * n_items + 2] = 0
                items[4 * n_items + 3] = n_rows
                n_items += 1
                tree += 1
            old = 0
            new = 4 * (LANES * n_rows + 1)
            for _ in range(n_steps):
                end = new
                for item in range(old, old + 4 * n_items, 4):
                    b = items[item]
                    node = items[item + 1]
                    lo = items[item + 2]
                    hi = items[item + 3]
                    if linked != 0:
                        left = node + nodes[2 * node]
                        s = nodes[2 * node + 1]
                    else:
                        left = node + node
                        s = nodes[b + node]
                    k = turn[s]
                    side = before[s]
                    is_fork = (lo < k) & (k < hi)
                    items[end] = b
                    items[end + 1] = left + (side if lo < k else 1 - side)
                    items[end + 2] = lo
                    items[end + 3] = k if is_fork else hi
                    end += 4
                    items[end] = b
                    items[end + 1] = left + 1 - side
                    items[end + 2] = k
                    items[end + 3] = hi
                    end += 4 if is_fork else 0
                n_items = (end - new) >> 2
                old, new = new, old
            for item in range(old, old + 4 * n_items, 4):
                b = items[item]
                node = items[item + 1]
                value = values[node if linked != 0 else b + node - (1 << n_steps)]
                for r in range(items[item + 2], items[item + 3]):
                    out[c * n_rows + r] = out[c * n_rows + r] + value
    return 0
