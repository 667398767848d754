"""Pieces of music as they were read once, kept in one file."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hornn.data.base import SPLITS
from hornn.data.kept_arrays import KeptArrays
from hornn.data.midi import KEYS

FORMAT = 3  # raise it when the way from files to frames changes


class Pieces(NamedTuple):
    """The pieces (N, 88) of 0 and 1 of each split, and how many notes were left out of all."""

    splits: Mapping[str, list[np.ndarray]]
    left_out: int


class PieceCache:
    """One file for the content of a folder and the length of a frame, eight keys a byte."""

    def __init__(self, folder: Path, name: str, checksum: str, frame_length: float) -> None:
        key = {"format": FORMAT, "content": checksum, "frame_length": frame_length}
        self.kept = KeptArrays(folder, name, key)

    def read(self) -> Pieces | None:
        """What is kept, or None where it is absent or damaged."""
        if (found := self.kept.read()) is None:
            return None
        about, packed = found
        try:
            splits = {}
            for split in SPLITS:
                lengths = about["lengths"][split]
                frames = np.unpackbits(packed[split], axis=1, count=KEYS)
                if len(frames) != sum(lengths):
                    return None
                splits[split] = np.split(frames, np.cumsum(lengths)[:-1])
            return Pieces(splits, int(about["left_out"]))
        except (ValueError, KeyError, TypeError):
            return None

    def write(self, pieces: Pieces) -> None:
        """Raises OSError where the file cannot be written."""
        lengths = {split: [len(piece) for piece in pieces.splits[split]] for split in SPLITS}
        packed = {split: np.packbits(np.concatenate(pieces.splits[split]), axis=1) for split in SPLITS}
        about = {"lengths": lengths, "left_out": pieces.left_out}
        self.kept.write("pieces that were read", about, packed)
