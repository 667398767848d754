"""Music of one's own: MIDI files in three folders."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from hornn.checks import in_home, require_file_name, require_package
from hornn.data.base import SPLITS
from hornn.data.content import CHANGED, files_below, folder_checksum
from hornn.data.kept_pieces import PieceCache, Pieces
from hornn.data.midi import describe_left_out, read_midi, require_frame_length
from hornn.data.music import MusicData

ENDS = (".mid", ".midi")  # of the names of MIDI files
EXPLAINED, NAMED = (
    5,
    500,
)  # files that cannot be read, in one line: with their faults, and by their names alone


class MidiMusic(MusicData):
    """The MIDI files below folder/train, folder/valid and folder/test, a piece each.

    They are read once and kept in `cache_dir`. frame_length: of a frame, in quarter notes.
    Raises ValueError, from `prepare_data` on, for a folder without such files and for what `read_midi` refuses.
    """

    def __init__(
        self, folder: Path, cache_dir: Path, frame_length: float, max_len: int, sizes: tuple[int, int, int]
    ) -> None:
        require_frame_length("data.frame_length", frame_length)
        super().__init__(f"midi-{folder.name}", max_len, sizes)
        self.path, self.cache_dir = folder, cache_dir
        self.frame_length = frame_length
        self._kept: Pieces | None = None

    def prepare_data(self) -> None:
        require_package("mido", "data=midi")
        self.checksum = folder_checksum(self.path, self.cache_dir)
        found = {split: midi_files(self.path / split) for split in SPLITS}
        self.files = {split: files for split, (files, _) in found.items()}
        self.others = sum(others for _, others in found.values())
        cache = PieceCache(self.cache_dir, self.name, self.checksum, self.frame_length)
        self._kept = cache.read()
        if self._kept is None:
            self._kept = self._read_all()
            cache.write(self._kept)

    def _read_all(self) -> Pieces:
        files = [path for split in SPLITS for path in self.files[split]]
        pieces, left_out = read_pieces(files, self.frame_length)
        rest = iter(pieces)
        splits = {split: [*islice(rest, len(self.files[split]))] for split in SPLITS}
        if folder_checksum(self.path, self.cache_dir) != self.checksum:
            raise ValueError(f"{self.path} {CHANGED}")
        return Pieces(splits, left_out)

    @property
    def kept(self) -> Pieces:
        if self._kept is None:
            raise RuntimeError("the pieces are not there yet: call prepare_data() and then setup()")
        return self._kept

    def setup(self) -> None:
        self.pieces = dict(self.kept.splits)

    def describe(self) -> dict[str, Any]:
        left_out = self.kept.left_out
        return {**super().describe(), "frame_length": self.frame_length, "notes_left_out": left_out}

    def summary(self) -> list[str]:
        lines = super().summary()
        if left_out := self.kept.left_out:
            lines.append(describe_left_out(left_out))
        if self.others:
            lines.append(f"{self.others:,} files left out: their names do not end in {' or '.join(ENDS)}")
        known: dict[bytes, Path] = {}
        for split in SPLITS:
            pairs = list(zip(self.pieces[split], self.files[split], strict=True))
            twins = [(path, known[key]) for piece, path in pairs if (key := piece.tobytes()) in known]
            if twins:
                names = " and ".join(str(path.relative_to(self.path)) for path in twins[0])
                lines.append(
                    f"warning: {len(twins)} of the pieces in {split} stand in another split, too, such as {names}"
                )
            known |= {piece.tobytes(): path for piece, path in pairs}
        return lines


def midi_files(folder: Path) -> tuple[list[Path], int]:
    """The MIDI files of a folder and of the folders in it, in the order of their names, and how many others lie there.

    Raises FileNotFoundError where there is no folder, ValueError where it has no such file.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder}: data.root and data.name must lead to a folder with train, valid and test"
        )
    files = list(files_below(folder))
    found = sorted(path for path in files if path.suffix.lower() in ENDS)
    if not found:
        raise ValueError(f"{folder} has no files that end in {' or '.join(ENDS)}: put some there")
    return found, len(files) - len(found)


def read_pieces(paths: Sequence[Path], frame_length: float) -> tuple[list[np.ndarray], int]:
    """The piece of each file, and how many notes of all are left out, with a bar that says how far it is.

    Raises ValueError for files that `read_midi` refuses, after all were read.
    """
    console = Console(stderr=True)
    read, wrong = [], dict[Path, str]()
    for path in track(paths, "MIDI files", console=console, transient=True, disable=not console.is_terminal):
        try:
            read.append(read_midi(path, frame_length))
        except ValueError as error:
            wrong[path] = str(error)
    if wrong:
        others = list(map(str, wrong))[EXPLAINED:]
        more = f"; and {len(others)} more: {', '.join(others[:NAMED])}" if others else ""
        raise ValueError("; ".join([*wrong.values()][:EXPLAINED]) + more + ", …" * (len(others) > NAMED))
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
        in_home(root) / name,
        in_home(cache_dir),
        frame_length,
        max_len,
        (batch_size, seq_len, eval_batch_size),
    )
