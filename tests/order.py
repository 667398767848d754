"""The order in which tests run."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest


def deal(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """These tests in an order whose equal pieces, one for each worker, all begin with slow tests, the slowest first.

    So no worker is left with a slow test when the others have ended. A file's slow tests stay together, for they share
    fixtures. `slow(seconds=...)` says how long a test takes that is slower than others.
    """
    files: dict[Path, list[pytest.Item]] = {}
    seconds: Counter[Path] = Counter()
    quick = []
    for item in items:
        marker = item.get_closest_marker("slow")
        if marker is None:
            quick.append(item)
        else:
            files.setdefault(item.path, []).append(item)
            seconds[item.path] += marker.kwargs.get("seconds", 5)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    taken = [0] * workers
    for path, length in seconds.most_common():
        least = taken.index(min(taken))
        shares[least] += files[path]
        taken[least] += length
    rest, dealt = iter(quick), list[pytest.Item]()
    for left, share in zip(range(workers, 0, -1), shares, strict=True):
        size = (len(items) - len(dealt)) // left
        dealt += share + list(islice(rest, max(0, size - len(share))))
    return [*dealt, *rest]
