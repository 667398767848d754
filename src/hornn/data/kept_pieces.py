"""Pieces of music as they were read once, kept in one file."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hornn.data.base import SPLITS
from hornn.data.midi import KEYS
from hornn.result import replacing

FORMAT = 1  # raise it when the way from files to frames changes


class Pieces(NamedTuple):
    """The pieces (N, 88) of 0 and 1 of each split, and how many notes were left out of all."""

    splits: Mapping[str, list[np.ndarray]]
    left_out: int


class PieceCache:
    """One file for the content of a folder and the length of a frame.

    The file is a ZIP of arrays, eight keys a byte, without pickle: nothing in it is run. It is moved into place whole.
    """

    def __init__(self, folder: Path, name: str, checksum: str, frame_length: float) -> None:
        self.key = json.dumps({"format": FORMAT, "content": checksum, "frame_length": frame_length})
        self.path = folder / f"{name}-{hashlib.sha256(self.key.encode()).hexdigest()[:16]}.npz"

    def read(self) -> Pieces | None:
        """What is kept, or None where it is absent or damaged."""
        try:
            with np.load(self.path, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                packed = {split: file[split] for split in SPLITS}
            if about["key"] != self.key:
                return None
            splits = {}
            for split in SPLITS:
                lengths = about["lengths"][split]
                frames = np.unpackbits(packed[split], axis=1, count=KEYS)
                if len(frames) != sum(lengths):
                    return None
                splits[split] = np.split(frames, np.cumsum(lengths)[:-1])
            return Pieces(splits, int(about["left_out"]))
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error):
            return None

    def write(self, pieces: Pieces) -> None:
        """Raises OSError where the file cannot be written."""
        about = {
            "key": self.key,
            "lengths": {split: [len(piece) for piece in pieces.splits[split]] for split in SPLITS},
            "left_out": pieces.left_out,
        }
        packed = {split: np.packbits(np.concatenate(pieces.splits[split]), axis=1) for split in SPLITS}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as file:
                np.savez(file, about=np.array(json.dumps(about)), **packed)  # type: ignore[arg-type]
        except OSError as error:
            raise OSError(
                f"cannot write the pieces that were read into {self.path.parent} ({error}): "
                "set data.cache_dir to a folder that can be written"
            ) from error
