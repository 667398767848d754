"""Losses of updates that are looked at later."""

import itertools
import math

import pytest

from hornn.optim.divergence import DivergenceError, LossWatch


@pytest.mark.parametrize(
    ("updates", "before", "says"),
    [
        ([(9.0, 1.0, 3), (math.nan, 1.0, 3), (3.0, 1.0, 3)], 1, "the loss is nan nats per word"),
        ([(9.0, 1.0, 3), (9.0, 2.0, 3), (9.0, math.inf, 3)], 2, "the gradient is not finite"),
        ([(9.0, 1.0, 3)] * 98 + [(9.1, 1.0, 1)] * 101, 197, "for 100 updates in a row"),
    ],
)
def test_the_first_update_at_fault_is_found(
    updates: list[tuple[float, float, int]], before: int, says: str
) -> None:
    taken = LossWatch(2.0, "word").checked(updates)
    assert list(itertools.islice(taken, before)) == updates[:before]
    with pytest.raises(DivergenceError, match=says) as caught:
        next(taken)
    assert caught.value.behind == len(updates) - before


def test_updates_that_go_well_are_all_taken() -> None:
    updates = [(9.0, 1.0, 3)] * 150
    assert list(LossWatch(2.0, "word").checked(updates)) == updates
