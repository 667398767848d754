"""What every kind of data promises: text, music, whatever else a network is trained on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from hornn.checks import require_positive
from hornn.metrics import Units

SPLITS = ("train", "valid", "test")
IGNORE = -1  # the target of a position where a column has already ended


class Chunk(NamedTuple):
    """T successive steps of B columns.

    `count` and `width` speak of the whole stream, so that the loss of a process that holds only some of the
    columns can be divided by what all processes see together.
    """

    inputs: Tensor  # (T, B) int64 ids, or (T, B, I) vectors in fp32
    targets: Tensor  # (T, B) int64 classes, or (T, B, V) keys in fp32, IGNORE where the column has ended
    count: int  # type: ignore[assignment]  # targets of this chunk over the columns of all ranks
    width: int  # columns of all ranks
    first: bool  # the carried state must be reset before this chunk


class Judgement(NamedTuple):
    """Figures of a trained network beside its score, by the keys of a result, and the same in lines for a person."""

    figures: dict[str, Any]
    lines: list[str]


class Stream(Protocol):
    """A loader with a position: `state_dict` names the next chunk, `load_state_dict` has the iteration start there."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Chunk]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Data(ABC):
    """Three splits as streams of chunks, and what the network reads and predicts at each step.

    name: as results show it. batch_size: columns of the training stream, over all processes.
    seq_len: steps of a chunk. eval_batch_size: columns for validation and test.

    units: how a score is read. predicts: `classes` or `keys`, as `hornn.heads.base.Head` has it. input_width: of the
    vectors that the network reads; None where it reads ids of the classes. counted: what a model of counts must
    predict, where that is something else. eos_id: the class that ends a sentence.

    `prepare_data` downloads and checks; `setup` makes the data ready. Both may be called again.
    Raises ValueError for a size below 1.
    """

    name: str
    units: Units
    predicts: str = "classes"
    input_width: int | None = None
    counted: str | None = None
    eos_id: int | None = None

    def __init__(self, batch_size: int, seq_len: int, eval_batch_size: int) -> None:
        sizes = {"batch_size": batch_size, "seq_len": seq_len, "eval_batch_size": eval_batch_size}
        require_positive(**{f"data.{key}": size for key, size in sizes.items()})
        self.batch_size = batch_size
        self.seq_len = seq_len
        self.eval_batch_size = eval_batch_size

    @abstractmethod
    def prepare_data(self) -> None: ...

    @abstractmethod
    def setup(self) -> None: ...

    @property
    @abstractmethod
    def counts(self) -> Sequence[int]:
        """How often each of the V outcomes occurs in the training data."""

    @abstractmethod
    def stream(self, split: str, rank: int = 0, world_size: int = 1, seed: int = 0) -> Stream:
        """A loader of `train`, `valid` or `test`: the share of one process, of one that is alone by default.

        seed: of the order of training sequences, where they have none of their own.
        """

    @abstractmethod
    def whole(self, split: str) -> Any:
        """All of a split at once, as models of counts read it."""

    @abstractmethod
    def size(self, split: str) -> int:
        """Targets of a split."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What a result says about its data, in plain values: `name`, `text_checksum` of the content, and more."""

    @abstractmethod
    def baselines(self) -> dict[str, dict[str, float]]:
        """Simple predictors by name: the figures of each on validation and test."""

    def judge(self, log_probs: Callable[[str], list[np.ndarray]]) -> Judgement:
        """What a trained network is worth beside its score: nothing is known, unless the data say more.

        log_probs: of a split's sequences (N, V) each, ln P of each outcome at each step; text is one sequence, too long
        for that, and raises ValueError.
        """
        return Judgement({}, [])

    def examine(self, split: str, log_probs: Callable[[str], list[np.ndarray]]) -> Judgement:
        """What a trained network is worth on one split, with examples for a person. log_probs: as for `judge`."""
        return Judgement({}, [])

    def remarks(self) -> list[str]:
        """What a person must know to read the score of the test split, in lines as `summary` has them."""
        return []

    @abstractmethod
    def interface(self) -> dict[str, Any]:
        """What a checkpoint must hold, in plain values, for the network to be used without this data."""

    @abstractmethod
    def summary(self) -> list[str]:
        """The data in a few lines, for a person who is about to train; a line that warns begins with `warning: `."""
