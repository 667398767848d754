"""Frequencies of keys by hand."""

from typing import Any

import numpy as np
import pytest

from hornn.baselines.key_counts import KeyCounts

FRAMES = np.array([[1, 0], [1, 0], [0, 0], [1, 0]], dtype=np.uint8)


def test_keys_alone_and_given_the_last_frame_by_hand() -> None:
    alone, given = KeyCounts(2, order=1), KeyCounts(2, order=2)
    for model in (alone, given):
        model.fit([FRAMES], [])
    assert (alone.num_parameters, given.num_parameters) == (2, 4)
    for history in (FRAMES[:0], FRAMES[:1]):
        assert alone.distribution(history).tolist() == pytest.approx([4 / 6, 1 / 6])
    # key 0 sounds behind two silent frames, and behind one of two in which it sounds
    assert given.distribution(FRAMES[:0]).tolist() == pytest.approx([3 / 4, 1 / 6])
    assert given.distribution(FRAMES[:2]).tolist() == pytest.approx([2 / 4, 1 / 6])
    assert given.distribution(FRAMES[:3]).tolist() == pytest.approx([3 / 4, 1 / 6])  # the last frame decides


@pytest.mark.parametrize("p", [["a", "b"], [0.5, 0.0], [1.0, 0.5], [0.5, np.nan], [0.5 + 0j, 0.5]])
def test_refuses_what_is_no_probability(p: list[Any]) -> None:
    with pytest.raises(ValueError, match="p holds something else than probabilities between 0 and 1"):
        KeyCounts(2).load_state({"p": np.array([p, p])})
