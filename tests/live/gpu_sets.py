# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Sets of nanoseconds, as sorted lists of disjoint (start, end)."""


def union(intervals):
    result = []
    for start, end in sorted(x for x in intervals if x[1] > x[0]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def both(a, b):
    result, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            result.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return result


def without(a, b):
    result = []
    for start, end in a:
        for cut_start, cut_end in both([(start, end)], b):
            if start < cut_start:
                result.append((start, cut_start))
            start = cut_end
        if start < end:
            result.append((start, end))
    return result


def length(a):
    return sum(end - start for start, end in a)


def overlaps(row, start, end):
    return row.start < end and row.stop > start
