"""Frequencies of keys by hand, and what a cache counts."""

import numpy as np
import pytest

from hornn.baselines.cache import KneserNeyCache
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


def test_a_cache_of_one_length_has_two_weights_and_the_notes_of_its_counts() -> None:
    model = KneserNeyCache(4, None, order=1, lengths=[2, 5, 9])
    text = np.array([0, 1, 2, 3, 0, 0, 1, 1, 2])
    model.fit(text, text)
    assert model.num_parameters == model.ngram.num_parameters + 2
    assert model.notes == model.ngram.notes != []
