"""Music of one's own: MIDI files in three folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hornn.checks import require_file_name, require_package
from hornn.data.base import SPLITS
from hornn.data.content import folder_checksum
from hornn.data.midi import read_midi, require_frame_length
from hornn.data.music import MusicData

ENDS = (".mid", ".midi")  # of the names of MIDI files


class MidiMusic(MusicData):
    """The MIDI files below folder/train, folder/valid and folder/test, a piece each.

    frame_length: of a frame, in quarter notes.
    Raises ValueError, from `prepare_data` on, for a folder without such files and for what `read_midi` refuses.
    """

    def __init__(
        self, folder: Path, cache_dir: Path, frame_length: float, max_len: int, sizes: tuple[int, int, int]
    ) -> None:
        require_frame_length("data.frame_length", frame_length)
        super().__init__(f"midi-{folder.name}", max_len, sizes)
        self.folder, self.cache_dir = folder, cache_dir
        self.frame_length = frame_length
        self.left_out = 0

    @property
    def path(self) -> Path:
        return self.folder

    def prepare_data(self) -> None:
        require_package("mido", "data=midi")
        for split in SPLITS:
            midi_files(self.folder / split)

    def read(self) -> dict[str, list[np.ndarray]]:
        pieces = {}
        for split in SPLITS:
            pieces[split], left_out = read_pieces(midi_files(self.folder / split), self.frame_length)
            self.left_out += left_out
        self.checksum = folder_checksum(self.folder, self.cache_dir)
        return pieces

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "frame_length": self.frame_length, "notes_left_out": self.left_out}

    def summary(self) -> list[str]:
        lines = super().summary()
        if self.left_out:
            lines.append(f"{self.left_out:,} notes left out: drums, and notes beyond the keys of a piano")
        known = {piece.tobytes() for piece in self.pieces["train"]}
        for split in ("valid", "test"):
            if twins := sum(piece.tobytes() in known for piece in self.pieces[split]):
                lines.append(f"warning: {twins} of the pieces in {split} are pieces of train, too")
        return lines


def midi_files(folder: Path) -> list[Path]:
    """The MIDI files of a folder and of the folders in it, in the order of their names.

    Raises FileNotFoundError where there is no folder, ValueError where it has no such file.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder}: data.root and data.name must lead to a folder with train, valid and test"
        )
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDS and path.is_file())
    if not found:
        raise ValueError(f"{folder} has no files that end in {' or '.join(ENDS)}: put some there")
    return found


def read_pieces(paths: Sequence[Path], frame_length: float) -> tuple[list[np.ndarray], int]:
    """The piece of each file, and how many notes of all are left out. Errors: as in `read_midi`."""
    read = [read_midi(path, frame_length) for path in paths]
    return [piece for piece, _ in read], sum(left_out for _, left_out in read)


def build_data(
    *,
    root: str,
    cache_dir: str,
    name: str,
    frame_length: float = 0.25,
    batch_size: int = 10,
    seq_len: int = 200,
    eval_batch_size: int = 20,
    max_len: int = 200,
) -> MidiMusic:
    """Music of one's own; the keys are explained in conf/data/midi.yaml."""
    require_file_name("data.name", name)
    return MidiMusic(
        Path(root).expanduser() / name,
        Path(cache_dir).expanduser(),
        frame_length,
        max_len,
        (batch_size, seq_len, eval_batch_size),
    )
