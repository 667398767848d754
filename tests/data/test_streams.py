import itertools

import numpy as np
import pytest
import torch

from hornn.data.base import IGNORE, Chunk
from hornn.data.streams import ChunkStream

START = 1000
SIZES = [
    (tokens, columns, length)
    for tokens, columns, length in itertools.product([1, 2, 7, 23, 60, 61], [1, 2, 3, 5, 7], [1, 2, 4, 30])
    if tokens >= columns
]


def stream(tokens: int, columns: int, length: int, rank: int = 0, world_size: int = 1) -> ChunkStream:
    return ChunkStream(np.arange(tokens, dtype=np.uint16), START, columns, length, rank, world_size)


def joined(chunks: list[Chunk]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.cat([chunk.inputs for chunk in chunks]), torch.cat([chunk.targets for chunk in chunks])


@pytest.mark.parametrize(("tokens", "columns", "length"), SIZES)
def test_each_target_once_after_the_token_before_it_in_its_column(
    tokens: int, columns: int, length: int
) -> None:
    loader = stream(tokens, columns, length)
    chunks = list(loader)
    inputs, targets = joined(chunks)
    valid = targets != IGNORE
    assert sorted(targets[valid].tolist()) == list(range(tokens))
    expected = targets - 1
    expected[0] = START  # of every column
    assert torch.equal(inputs[valid], expected[valid])
    assert (inputs[~valid] == START).all()
    assert len(chunks) == len(loader)
    assert all(len(chunk.inputs) == length for chunk in chunks[:-1])
    assert [chunk.count for chunk in chunks] == [int((chunk.targets != IGNORE).sum()) for chunk in chunks]
    assert [chunk.first for chunk in chunks] == [True] + [False] * (len(chunks) - 1)
    assert all(chunk.width == columns and chunk.inputs.dtype == torch.int64 for chunk in chunks)


@pytest.mark.parametrize(("tokens", "columns", "length"), SIZES)
def test_columns_are_contiguous_and_of_equal_length_but_for_one(
    tokens: int, columns: int, length: int
) -> None:
    targets = joined(list(stream(tokens, columns, length)))[1]
    texts = [column[column != IGNORE].tolist() for column in targets.T]
    assert list(itertools.chain(*texts)) == list(range(tokens))
    lengths = [len(text) for text in texts]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[-1] <= 1


@pytest.mark.parametrize(
    ("tokens", "length", "world_size"),
    [(61, 4, 2), (61, 4, 3), (61, 4, 4), (61, 4, 5), (13, 30, 6), (12, 1, 2)],
)
def test_ranks_share_the_columns_of_one_process(tokens: int, length: int, world_size: int) -> None:
    alone = list(stream(tokens, 6, length))
    ranks = [list(stream(tokens, 6, length, rank, world_size)) for rank in range(world_size)]
    for together, *parts in zip(alone, *ranks, strict=True):
        assert torch.equal(together.inputs, torch.cat([part.inputs for part in parts], dim=1))
        assert torch.equal(together.targets, torch.cat([part.targets for part in parts], dim=1))
        assert {part[2:] for part in parts} == {together[2:]}


def test_a_rank_without_columns_reads_the_first_and_scores_nothing() -> None:
    alone = list(stream(61, 2, 4))
    idle = list(stream(61, 2, 4, rank=2, world_size=3))
    assert len(idle) == len(alone)
    for together, part in zip(alone, idle, strict=True):
        assert torch.equal(part.inputs, together.inputs[:, :1])
        assert (part.targets == IGNORE).all()
        assert part[2:] == together[2:]


@pytest.mark.parametrize("seen", range(6))
def test_resumes_after_the_chunk_in_use(seen: int) -> None:
    loader = stream(61, 4, 3)
    whole = [chunk.targets.tolist() for chunk in loader]
    assert len(whole) == 6
    running = iter(loader)
    for _ in range(seen):
        next(running)
    state = loader.state_dict() if seen else {"position": 0}
    resumed = stream(61, 4, 3)
    resumed.load_state_dict(state)
    # After the last chunk an epoch is over: what follows is a whole one.
    expected = whole[seen % 6 :]
    chunks = list(resumed)
    assert [chunk.targets.tolist() for chunk in chunks] == expected
    assert chunks[0].first == (seen == 0)
    assert [chunk.targets.tolist() for chunk in resumed] == whole


def test_state_after_the_last_chunk_starts_a_new_epoch() -> None:
    loader = stream(61, 4, 3)
    assert len(list(loader)) == 6
    resumed = stream(61, 4, 3)
    resumed.load_state_dict(loader.state_dict())
    assert len(list(resumed)) == 6


def test_an_abandoned_iteration_does_not_move_the_next_one() -> None:
    loader = stream(61, 4, 3)
    next(iter(loader))
    assert next(iter(loader)).first
    assert len(list(loader)) == 6


def test_inputs_and_targets_share_no_memory() -> None:
    chunk = next(iter(stream(61, 4, 3)))
    before = chunk.targets.clone()
    chunk.inputs.zero_()
    assert torch.equal(chunk.targets, before)


@pytest.mark.parametrize(
    ("tokens", "columns", "length", "message"),
    [
        (9, 0, 3, "batch_size must be a whole number >= 1, got 0"),
        (9, 3, 0, "seq_len must be a whole number >= 1, got 0"),
        (2, 3, 3, "2 tokens cannot fill 3 columns"),
    ],
)
def test_impossible_sizes(tokens: int, columns: int, length: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream(tokens, columns, length)
