"""A text as B parallel columns, cut into chunks for truncated back-propagation through time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from hornn.checks import require_positive
from hornn.columns import share
from hornn.data.base import IGNORE, Chunk


class ChunkStream:
    """Every token of a text as a target exactly once, in `batch_size` columns and chunks of `seq_len` tokens.

    The N targets form B = `batch_size` contiguous columns, the first N mod B of them one token longer than the
    others. The inputs are the column delayed by one token, `start_id` before the first: each column begins as a text
    does. (An initial state that reads a word from the midst of a sentence is met nowhere else, and a model need not
    bear it: an LSTM without biases can be trapped there for the whole column.) Chunk k holds the positions from
    k*seq_len on of every column, so a state carried from chunk to chunk has read its column's whole past. The last
    chunk may be shorter; in its last row the columns that have ended read `start_id` and have the target IGNORE.

    Rank r of `world_size` gets the columns of `hornn.columns.share`; all ranks get equally many chunks.

    A loader with a position: `state_dict` names the next chunk, and the iteration that follows
    `load_state_dict` starts there; any other iteration starts at the first chunk.
    ValueError: a size below 1, or fewer tokens than columns.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        start_id: int,
        batch_size: int,
        seq_len: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        require_positive(batch_size=batch_size, seq_len=seq_len)
        if len(tokens) < batch_size:
            raise ValueError(
                f"{len(tokens):,} tokens cannot fill {batch_size} columns: "
                "choose a smaller batch or give more text"
            )
        self.tokens = np.asarray(tokens)
        self.start_id = start_id
        self.seq_len = seq_len
        self.width = batch_size
        self.rows = -(-len(tokens) // batch_size)
        self.ragged = len(tokens) % batch_size  # how many columns reach the last row; 0: all do
        own = share(batch_size, rank, world_size)
        columns = np.arange(batch_size)[own.read]
        self.scores = own.held > 0
        self.starts = columns * (len(tokens) // batch_size) + np.minimum(columns, self.ragged)
        self.ended = columns >= self.ragged if self.ragged else np.zeros(len(columns), dtype=bool)
        self.position = 0
        self.resumed = False

    def __len__(self) -> int:
        return -(-self.rows // self.seq_len)

    def __iter__(self) -> Iterator[Chunk]:
        if not self.resumed:
            self.position = 0
        self.resumed = False
        while self.position < len(self):
            # Counted before the yield: a state taken while this chunk is in use names the next one.
            self.position += 1
            yield self._chunk(self.position - 1)

    def _chunk(self, index: int) -> Chunk:
        top = index * self.seq_len
        bottom = min(top + self.seq_len, self.rows)
        # One row more than the chunk: row t holds the input of t, row t + 1 its target.
        places = self.starts + np.arange(top - 1, bottom)[:, None]
        window = self.tokens[np.clip(places, 0, len(self.tokens) - 1)].astype(np.int64)
        if top == 0:
            window[0] = self.start_id
        inputs, targets = window[:-1].copy(), window[1:]
        count = (bottom - top) * self.width
        if self.ragged and bottom == self.rows:
            inputs[-1, self.ended] = self.start_id
            targets[-1, self.ended] = IGNORE
            count -= self.width - self.ragged
        if not self.scores:
            targets[:] = IGNORE
        return Chunk(torch.from_numpy(inputs), torch.from_numpy(targets), count, self.width, index == 0)

    def state_dict(self) -> dict[str, Any]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # Taken after the last chunk: the epoch is over, and the next iteration is a whole one.
        self.position = state["position"] % len(self)
        self.resumed = True
