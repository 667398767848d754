"""Interpolated modified Kneser-Ney by dictionaries, one word at a time (Chen & Goodman 1999; Heafield et al. 2013).

    P(w | h) = (a(h w) - D(a(h w))) / a(h .) + (D1 N1(h .) + D2 N2(h .) + D3 N3+(h .)) / a(h .) P(w | h')

straight from the counts: no back-off form, no tables of probabilities. An order without usable discounts has
`fallback`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache

BEGIN = -1


def sentences(ids: Sequence[int], eos_id: int | None) -> list[list[int]]:
    cut: list[list[int]] = [[]]
    for i in ids:
        cut[-1].append(i)
        if i == eos_id:
            cut.append([])
    return [[BEGIN, *sentence] for sentence in cut if sentence]


def kneser_ney(
    ids: Sequence[int],
    eos_id: int | None,
    vocab_size: int,
    order: int,
    fallback: Sequence[float] = (),
) -> Callable[[int, Sequence[int]], float]:
    """P(w, words before it in its sentence, BEGIN the first of them)."""
    occurs: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order + 1)]
    before: defaultdict[tuple[int, ...], set[int]] = defaultdict(set)
    for sentence in sentences(ids, eos_id):
        for end in range(1, len(sentence)):
            for n in range(1, min(order, end + 1) + 1):
                gram = tuple(sentence[end - n + 1 : end + 1])
                occurs[n][gram] += 1
                if end >= n:
                    before[gram].add(sentence[end - n])

    adjusted: list[dict[tuple[int, ...], int]] = [{}]
    follow: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    discount: list[list[float]] = [[]]
    for n in range(1, order + 1):
        a = {
            gram: count if n == order or gram[0] == BEGIN else len(before[gram])
            for gram, count in occurs[n].items()
        }
        for gram, count in a.items():
            follow[gram[:-1]].append(count)
        values = list(a.values())
        n1, n2, n3, n4 = (values.count(i) for i in (1, 2, 3, 4))
        own = [0.0, 0.0, 0.0, 0.0]
        if n1 and n2 and n3:
            y = n1 / (n1 + 2 * n2)
            own = [0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
        usable = all(0 < own[i] <= i for i in (1, 2, 3))
        discount.append(own if usable else [0, *fallback])
        adjusted.append(a)

    @cache
    def after(h: tuple[int, ...]) -> tuple[int, float]:
        """The sum of the adjusted counts after h, and the share of it that the discounts free."""
        total = sum(follow[h])
        return total, sum(discount[len(h) + 1][min(a, 3)] for a in follow[h]) / total

    def p(w: int, h: Sequence[int]) -> float:
        h = tuple(h)[-(order - 1) :] if order > 1 else ()
        lower = p(w, h[1:]) if h else 1 / vocab_size
        if h not in follow:
            return lower
        n = len(h) + 1
        total, left = after(h)
        a = adjusted[n].get((*h, w), 0)
        return (a - discount[n][min(a, 3)]) / total + left * lower

    return p
