"""Separate sequences as padded batches: every step a target once, whatever the batch, the chunk and the process."""

import numpy as np
import pytest
import torch

from hornn.data.base import IGNORE, Chunk
from hornn.data.sequences import Example, SequenceStream, cut

LENGTHS = [7, 1, 4, 9, 4, 2]


def examples(lengths: list[int] = LENGTHS) -> list[Example]:
    """Classes that count through all sequences, and vectors of two numbers that say the class and its negative."""
    starts = np.cumsum([0, *lengths])
    classes = [np.arange(start, start + length) for start, length in zip(starts, lengths, strict=False)]
    return [Example(np.stack([each, -each], axis=1), each) for each in classes]


def pairs(chunks: list[Chunk]) -> list[tuple[int, int, int]]:
    """The scored steps of some chunks: each target with its input."""
    found = []
    for chunk in chunks:
        scored = chunk.targets != IGNORE
        inputs, targets = chunk.inputs[scored].tolist(), chunk.targets[scored].tolist()
        found += [(target, *map(int, read)) for target, read in zip(targets, inputs, strict=True)]
    return found


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(("batch_size", "seq_len"), [(1, 1), (2, 3), (4, 4), (10, 100)])
def test_every_step_is_a_target_once_beside_its_own_input(
    batch_size: int, seq_len: int, seed: int | None
) -> None:
    stream = SequenceStream(examples(), batch_size, seq_len, seed)
    chunks = list(stream)
    assert len(chunks) == len(stream)
    assert sorted(pairs(chunks)) == [(step, step, -step) for step in range(sum(LENGTHS))]
    assert [chunk.count for chunk in chunks] == [int((chunk.targets >= 0).sum()) for chunk in chunks]
    assert all(len(chunk.inputs) <= seq_len and chunk.width <= batch_size for chunk in chunks)
    assert sum(chunk.first for chunk in chunks) == -(-len(LENGTHS) // batch_size)


def test_a_sequence_goes_on_in_its_column_from_chunk_to_chunk() -> None:
    chunks = list(SequenceStream(examples([5, 5]), 2, 2))
    whole = torch.cat([chunk.targets for chunk in chunks])
    assert whole.T.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert [chunk.first for chunk in chunks] == [True, False, False]


def test_each_epoch_has_an_order_of_its_own_that_the_seed_decides() -> None:
    lengths = list(range(1, 30))
    stream, same, other = (SequenceStream(examples(lengths), 2, 50, seed) for seed in (1, 1, 2))
    first, second = pairs(list(stream)), pairs(list(stream))
    assert first != second
    assert sorted(first) == sorted(second)
    assert pairs(list(same)) == first != pairs(list(other))


@pytest.mark.parametrize("after", range(1, 12))
def test_the_iteration_goes_on_where_a_state_was_taken(after: int) -> None:
    stream = SequenceStream(examples(), 2, 3, seed=1)
    whole = [chunk.targets.tolist() for _ in range(2) for chunk in stream]
    begun = SequenceStream(examples(), 2, 3, seed=1)
    seen = 0
    for _ in range(2):
        for _ in begun:
            seen += 1
            if seen == after:
                state = begun.state_dict()
    fresh = SequenceStream(examples(), 2, 3, seed=1)
    fresh.load_state_dict(state)
    rest = [chunk.targets.tolist() for _ in range(2) for chunk in fresh]
    assert rest[: len(whole) - after] == whole[after:]


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_processes_share_the_columns_of_every_batch(world_size: int) -> None:
    alone = list(SequenceStream(examples(), 4, 3, seed=1))
    ranks = [list(SequenceStream(examples(), 4, 3, 1, rank, world_size)) for rank in range(world_size)]
    for number, chunk in enumerate(alone):
        parts = [chunks[number] for chunks in ranks]
        assert {(part.count, part.width, part.first) for part in parts} == {
            (chunk.count, chunk.width, chunk.first)
        }
        assert sorted(pairs(parts)) == sorted(pairs([chunk]))


def test_cut_sequences_hold_the_same_steps() -> None:
    parts = cut(examples(), 3)
    assert max(len(part.targets) for part in parts) == 3
    assert np.concatenate([part.targets for part in parts]).tolist() == list(range(sum(LENGTHS)))


def test_no_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no sequences"):
        SequenceStream([], 2, 3)


def test_which_sequences_of_one_length_share_a_batch_is_for_the_seed_to_say() -> None:
    shared = [SequenceStream(examples([3] * 12), 2, 5, seed).batches for seed in (1, 2, None)]
    first, second, unmixed = ([{*map(int, batch)} for batch in batches] for batches in shared)
    assert first != second
    assert unmixed not in (first, second)


def test_a_state_after_the_last_chunk_begins_a_whole_epoch() -> None:
    examples = [Example(np.ones((n, 2), np.float32), np.zeros(n, np.int64)) for n in (2, 3, 5)]
    stream, again = (SequenceStream(examples, 2, 2, seed=1) for _ in range(2))
    assert len(list(stream)) == len(stream)
    again.load_state_dict(stream.state_dict())
    assert len(list(again)) == len(stream)
