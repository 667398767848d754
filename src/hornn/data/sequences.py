"""Separate sequences of unequal length as padded batches, cut into chunks: each begins in the initial state."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hornn.columns import share
from hornn.data.base import IGNORE, Chunk, Data


class Example(NamedTuple):
    """One sequence of N steps, N >= 1."""

    inputs: np.ndarray  # (N, I) vectors
    targets: np.ndarray  # (N,) classes, or (N, V) keys, each 0 or 1; IGNORE where a step has no target


class SequenceStream:
    """Every target of every sequence exactly once, `batch_size` sequences side by side.

    A batch holds sequences of similar length. Its chunks are of `seq_len` steps, the last as long as the batch's
    longest sequence needs; the state is carried from chunk to chunk, and begins anew with each batch. Where a sequence
    has ended, the inputs are 0 and the targets IGNORE. The last batch may hold fewer sequences.

    seed: the batches come in an order of their own in each epoch, drawn from it, and sequences of one length are shared
    out at random; None: always in one order, the shortest first.

    Rank r of `world_size` gets the columns of `hornn.columns.share`; all ranks get equally many chunks. As a loader: as
    `hornn.data.base.Stream`. ValueError: no sequence.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        batch_size: int,
        seq_len: int,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if not examples:
            raise ValueError("there are no sequences: give data that has some")
        self.examples = examples
        self.seq_len = seq_len
        self.seed = seed
        self.rank, self.world_size = rank, world_size
        self.lengths = np.array([len(example.targets) for example in examples])
        mixed = np.arange(len(examples)) if seed is None else rng(seed).permutation(len(examples))
        order = mixed[np.argsort(self.lengths[mixed], kind="stable")]
        self.batches = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
        self.chunks = [-(-int(self.lengths[batch].max()) // seq_len) for batch in self.batches]
        self.epoch = -1  # of the iteration that is under way
        self.position = 0
        self.resumed = False

    def __len__(self) -> int:
        return sum(self.chunks)

    def __iter__(self) -> Iterator[Chunk]:
        if not self.resumed:
            self.epoch, self.position = self.epoch + 1, 0
        self.resumed = False
        places = [(number, part) for number in self.order() for part in range(self.chunks[number])]
        while self.position < len(self):
            # Counted before the yield: a state taken while this chunk is in use names the next one.
            self.position += 1
            yield self._chunk(*places[self.position - 1])

    def order(self) -> np.ndarray:
        """The batches in the order of the epoch under way."""
        number = len(self.batches)
        return np.arange(number) if self.seed is None else rng(self.seed, self.epoch).permutation(number)

    def _chunk(self, number: int, part: int) -> Chunk:
        batch, start = self.batches[number], part * self.seq_len
        rows = min(int(self.lengths[batch].max()) - start, self.seq_len)
        count = sum(scored(self.examples[column].targets[start : start + self.seq_len]) for column in batch)
        own = share(len(batch), self.rank, self.world_size)
        columns = batch[own.read]
        read = [
            (example.inputs[start : start + self.seq_len], example.targets[start : start + self.seq_len])
            for example in (self.examples[column] for column in columns)
        ]
        inputs = pad([each for each, _ in read], rows, 0)
        targets = pad([each for _, each in read], rows, IGNORE)
        if not own.held:
            targets.fill_(IGNORE)
        return Chunk(inputs, targets, count, len(batch), part == 0)

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.position = state["epoch"], state["position"]
        # Before the first epoch, or after the last chunk of one: the next iteration is a whole epoch.
        self.resumed = self.epoch >= 0 and self.position < len(self)


class SequenceData(Data):
    """Data of separate sequences."""

    @abstractmethod
    def examples(self, split: str) -> list[Example]:
        """The sequences of a split, each of them whole."""

    def training_examples(self) -> list[Example]:
        """The sequences of an epoch of training. Raises ValueError where nothing can be learned of them."""
        return self.examples("train")

    def stream(self, split: str, rank: int = 0, world_size: int = 1, seed: int = 0) -> SequenceStream:
        if split == "train":
            parts = self.training_examples()
            return SequenceStream(parts, self.batch_size, self.seq_len, seed, rank, world_size)
        return SequenceStream(
            self.examples(split), self.eval_batch_size, self.seq_len, None, rank, world_size
        )

    def scored_stream(self, split: str) -> SequenceStream:
        """A split as it is scored: `eval_batch_size` whole sequences side by side, in one order, the training's too."""
        return SequenceStream(self.examples(split), self.eval_batch_size, self.seq_len)


def cut(examples: Sequence[Example], longest: int) -> list[Example]:
    """The steps of the examples, in order, in sequences of at most `longest` steps."""
    return [
        Example(example.inputs[start : start + longest], example.targets[start : start + longest])
        for example in examples
        for start in range(0, len(example.targets), longest)
    ]


def scored(targets: np.ndarray) -> int:
    """How many steps have a target."""
    return int(((targets if targets.ndim == 1 else targets[:, 0]) != IGNORE).sum())


def pad(columns: Sequence[np.ndarray], rows: int, filler: int) -> Tensor:
    """Columns (N, ...) of at most `rows` steps side by side, (rows, B, ...): vectors in fp32, classes in int64."""
    shape, dtype = columns[0].shape[1:], np.float32 if columns[0].ndim > 1 else np.int64
    padded = np.full((rows, len(columns), *shape), filler, dtype=dtype)
    for number, column in enumerate(columns):
        padded[: len(column), number] = column
    return torch.from_numpy(padded)


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
