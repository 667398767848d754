"""Piano rolls: what is read, what is predicted, and what is refused in one line."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hornn.baselines.key_counts import KeyCounts
from hornn.data.base import IGNORE
from hornn.data.midi import KEYS
from hornn.data.music import SETS, PublishedMusic, build_data, key_nll, key_probabilities, read_rolls

savemat = pytest.importorskip("scipy.io").savemat


def roll(length: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random((length, KEYS)) < 0.1).astype(np.uint8)


def write(path: Path, **changed: Any) -> Path:
    """A file as the published ones are: for each split a row of cells, each a matrix."""
    splits = {f"{split}data": [roll(5), roll(1), roll(12)] for split in ("train", "valid", "test")}
    cells = {}
    for name, pieces in {**splits, **changed}.items():
        if pieces is None:
            continue
        cells[name] = np.empty((1, len(pieces)), dtype=object)
        for number, piece in enumerate(pieces):
            cells[name][0, number] = piece
    savemat(path, cells)
    return path


def data_of(path: Path, **sizes: int) -> PublishedMusic:
    given = {"batch_size": 2, "seq_len": 4, "eval_batch_size": 2, **sizes}
    data = PublishedMusic(path, "", "", "music-mine", 6, tuple(given.values()))  # type: ignore[arg-type]
    data.setup()
    return data


def test_the_input_is_the_frame_before_and_silence_before_the_first(tmp_path: Path) -> None:
    data = data_of(write(tmp_path / "m.mat", testdata=[roll(9)]), seq_len=100)
    (chunk,) = data.stream("test")
    assert (chunk.inputs[0] == 0).all()
    assert (chunk.inputs[1:] == chunk.targets[:-1]).all()
    assert (chunk.targets[:, 0].numpy() == roll(9)).all()


def test_training_pieces_are_cut_and_go_on_from_the_frame_before(tmp_path: Path) -> None:
    piece = roll(12)
    data = data_of(write(tmp_path / "m.mat", traindata=[piece]), seq_len=100, batch_size=1)
    chunks = list(data.stream("train"))
    assert [chunk.count for chunk in chunks] == [6, 6]
    begins = sorted(chunk.inputs[0, 0].tolist() for chunk in chunks)
    assert begins == sorted([[0.0] * KEYS, piece[5].tolist()])


def test_every_frame_counts_once(tmp_path: Path) -> None:
    data = data_of(write(tmp_path / "m.mat"))
    for split in ("train", "valid", "test"):
        chunks = list(data.stream(split))
        assert sum(chunk.count for chunk in chunks) == data.size(split) == 18
        assert sum(int((chunk.targets[..., 0] != IGNORE).sum()) for chunk in chunks) == 18
    assert data.counts == np.concatenate(data.whole("train")).sum(0).tolist()


def test_frequencies_of_keys_by_hand() -> None:
    pieces = [np.zeros((3, KEYS), dtype=np.uint8), np.zeros((1, KEYS), dtype=np.uint8)]
    pieces[0][1:, 7] = 1  # sounds in 2 of 4 frames, once after a frame in which it sounded
    p = key_probabilities(pieces, given_last=False)
    assert p[0, 7] == p[1, 7] == pytest.approx(3 / 6)
    assert p[0, 0] == pytest.approx(1 / 6)
    given = key_probabilities(pieces, given_last=True)
    assert given[:, 7].tolist() == pytest.approx([2 / 5, 2 / 3])
    rest = -(KEYS - 1) * math.log(5 / 6)
    assert key_nll(given, pieces).tolist() == pytest.approx(
        [rest - math.log(p) for p in (3 / 5, 2 / 5, 2 / 3, 3 / 5)]
    )


def test_accuracy_of_frequencies_by_hand() -> None:
    pieces = [np.zeros((3, KEYS), dtype=np.uint8), np.zeros((1, KEYS), dtype=np.uint8)]
    pieces[0][1:, 7] = 1
    model = KeyCounts(KEYS, order=2)
    model.fit(pieces, [])
    assert model.hits(pieces) == (1, 2)  # key 7 is said once, where it sounded before; it sounds twice
    model.load_state({"p": np.full((2, KEYS), 0.6)})
    assert model.hits(pieces) == (2, 4 * KEYS)


def test_key_counts_come_back_from_their_state() -> None:
    model, again = KeyCounts(KEYS, order=2), KeyCounts(KEYS, order=2)
    pieces = [roll(20)]
    model.fit(pieces, [])
    again.load_state(model.state())
    assert again.score(pieces).tolist() == model.score(pieces).tolist()
    assert model.distribution(pieces[0]).shape == (KEYS,)
    with pytest.raises(ValueError, match="order must be 1 or 2, got 3"):
        KeyCounts(KEYS, order=3)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"testdata": None}, "has no testdata"),
        ({"validdata": [roll(4)[:, :87]]}, r"piece 1 of validdata must be frames of 88 keys, got \(4, 87\)"),
        ({"traindata": [roll(4), roll(3) * 2]}, "piece 2 of traindata must hold 0 and 1 alone"),
        ({"traindata": [np.zeros((0, KEYS))]}, "piece 1 of traindata must be frames of 88 keys"),
    ],
)
def test_what_is_no_roll_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    path = write(tmp_path / "m.mat", **changed)
    with pytest.raises(ValueError, match=said):
        read_rolls(path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.mat")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(
        ValueError, match=r"m.mat is no file of MATLAB's that can be read .*: give the published"
    ):
        read_rolls(path)


def test_an_unknown_set_and_another_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"data\.set must be one of nottingham, jsb_chorales, muse_data, piano"
    ):
        build_data(root=str(tmp_path), cache_dir="", set="bach")
    (tmp_path / "music").mkdir()
    write(tmp_path / "music" / SETS["nottingham"][0])
    with pytest.raises(ValueError, match="has the checksum md5:"):
        build_data(root=str(tmp_path), cache_dir="", set="nottingham").prepare_data()


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "steps", "parts"),
    [
        ("nottingham", (176_561, 45_513, 44_463), 1166),
        ("jsb_chorales", (13_807, 4_602, 4_725), 387),
        ("muse_data", (245_202, 82_755, 64_339), 1478),
        ("piano_midi", (75_911, 8_540, 19_036), 419),
    ],
)
def test_the_published_sets(corpus_root: Any, name: str, steps: tuple[int, ...], parts: int) -> None:
    root = corpus_root(f"music/{SETS[name][0]}")
    data = build_data(root=root, cache_dir="", set=name, batch_size=1)
    data.prepare_data()
    data.setup()
    assert tuple(map(data.size, ("train", "valid", "test"))) == steps
    # Of at most 200 frames, or 50: as many as the paper's rates imply.
    assert len(data.stream("train")) == parts


def test_baselines_are_of_training_on_validation_and_test(tmp_path: Path) -> None:
    data = data_of(
        write(tmp_path / "m.mat", traindata=[roll(9, 1)], validdata=[roll(7, 2)], testdata=[roll(8, 3)])
    )
    found = data.baselines()
    for name, given_last in (("key frequencies", False), ("keys given the last frame", True)):
        p = key_probabilities([roll(9, 1)], given_last)
        expected = {
            f"{s}_nll": key_nll(p, [piece]).mean()
            for s, piece in (("valid", roll(7, 2)), ("test", roll(8, 3)))
        }
        assert found[name] == pytest.approx(expected)


def test_a_longest_sequence_of_0_frames_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data\.max_len"):
        build_data(root=str(tmp_path), cache_dir=str(tmp_path), set="nottingham", max_len=0)
