"""Music that a command is given as MIDI files, read as a trained model reads frames."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import ListConfig

from hornn.data.base import Judgement
from hornn.data.midi import KEYS, require_frame_length
from hornn.data.music import MusicData
from hornn.data.own_music import midi_files, read_pieces
from hornn.shown import shown
from hornn.use.figures import require_each_once

FRAME_LENGTH = 0.5  # quarter notes; where nobody says how long a frame is
# Sets whose frame length is known. JSB Chorales agree with another edition, in which a frame is a quarter note.
OF_SET = {"music-jsb_chorales": 1.0}


class GivenMusic(MusicData):
    """Pieces (N, 88), all of them in one split, as a trained model reads them."""

    def __init__(self, pieces: Sequence[np.ndarray], batch_size: int, seq_len: int) -> None:
        super().__init__("midi", 1, (1, seq_len, batch_size))
        self.pieces = {"test": list(pieces)}

    def prepare_data(self) -> None:
        """Nothing to do: they are at hand."""

    setup = prepare_data


class GivenFiles(GivenMusic):
    """The pieces of MIDI files: of one, of a list of them, or of all in a folder. card, name: of the model.

    Raises ValueError for a model of speech and for a length that is none, and what `read_midi` and `midi_files` raise.
    """

    def __init__(
        self, midi: Any, card: Mapping[str, Any], name: str, frame_length: Any, batch_size: int, seq_len: int
    ) -> None:
        require_music(card, name)
        self.frame_length = frame_length_of(card, frame_length)
        self.files = files_given(midi)
        pieces, self.left_out = read_pieces(self.files, self.frame_length)
        super().__init__(pieces, batch_size, seq_len)

    def described(self) -> dict[str, Any]:
        """What is scored, in figures for a person."""
        count = len(self.files)
        return {
            "scored": str(self.files[0]) if count == 1 else f"{count} MIDI files",
            "frame_length": f"{self.frame_length:g} quarter notes",
            **({"notes_left_out": self.left_out} if self.left_out else {}),
        }

    def piece_by_piece(self, nats: np.ndarray) -> Judgement:
        """The score of each piece, from the sum over its frames; in lines where there are several."""
        lengths = map(len, self.pieces["test"])
        means = [float(sum_) / length for sum_, length in zip(nats, lengths, strict=True)]
        scored = list(zip(map(str, self.files), means, strict=True))
        lines = [f"{self.units.show(mean):>18}  {shown(file)}" for file, mean in scored]
        pieces = [{"file": file, "nats_per_frame": mean} for file, mean in scored]
        return Judgement({"pieces": pieces}, lines if len(lines) > 1 else [])


def require_music(card: Mapping[str, Any], name: str) -> None:
    """Raise ValueError for a model of speech."""
    if card["input_width"] != KEYS:
        raise ValueError(f"{name} is no model of music: hornn.load_speech and transcribe take it")


def frame_length_of(card: Mapping[str, Any], given: Any) -> float:
    """The length of a frame in quarter notes: as given, as the card says, or 0.5. ValueError for what is no length."""
    if given is not None:
        require_frame_length("frame_length", given)
        return float(given)
    data = card["data"]
    known = data.get("frame_length", OF_SET.get(data["name"], FRAME_LENGTH))
    require_frame_length("frame_length of the checkpoint's data", known)
    return float(known)


def files_given(midi: Any) -> list[Path]:
    """The files that `midi=` names: one, a list of them, or all in a folder. ValueError where it names none."""
    named = [Path(str(each)) for each in (midi if isinstance(midi, ListConfig) else [midi]) if each]
    if not named:
        raise ValueError("midi= names no MIDI file: give the path of one")
    files = [file for path in named for file in (midi_files(path)[0] if path.is_dir() else [path])]
    require_each_once("midi", files)
    return files
