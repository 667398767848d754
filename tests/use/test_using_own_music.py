"""A network that is trained on MIDI files: their scores, what it writes, and the same in Python."""

import json
from pathlib import Path

import numpy as np
import pytest

import hornn
from hornn.data.midi import KEYS
from hornn.use.music import begun
from hornn.use.pieces import frame_length_of
from outcome import Command

pytest.importorskip("mido")
TUNE = [39, 43, 46, 43]


def tune(length: int, up: int = 0) -> np.ndarray:
    frames = np.zeros((length, KEYS), dtype=np.uint8)
    for step in range(length):
        frames[step, TUNE[step % 4] + up] = 1
    return frames


@pytest.fixture(scope="module")
def songs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("music") / "songs"
    for split, lengths in {"train": [20, 30, 9], "valid": [12], "test": [16, 8]}.items():
        (folder / split).mkdir(parents=True)
        for number, length in enumerate(lengths):
            hornn.write_midi(folder / split / f"{number}.mid", tune(length, number), 0.25)
    return folder


@pytest.fixture(scope="module")
def run(command: Command, songs: Path) -> Path:
    folder = songs.parent / "run"
    words = ["data=midi", f"data.root={songs.parent}", "data.name=songs", "model=gru", "model.hidden_size=12"]
    words += [
        "optimizer=adamw",
        "optimizer.lr=0.03",
        "schedule=constant",
        "loss_reduction=mean",
        "logger=csv",
    ]
    done = command("train", *words, "trainer.max_epochs=9", f"run_dir={folder}")
    assert done.code == 0, done.err
    assert "frames of 88 keys: train 59 in 3 pieces, valid 12 in 1 pieces, test 24 in 2 pieces" in done.out
    return folder


@pytest.fixture(scope="module")
def network(run: Path) -> hornn.MusicModel:
    return hornn.load_music(run / "best.ckpt")


def test_notes_of_the_prompt_are_not_counted_as_written() -> None:
    """Each frame of the tune begins a note; a key that is held begins none."""
    assert begun(tune(16), 8) == 8
    held = np.zeros((16, KEYS), dtype=np.uint8)
    held[4:, 39] = 1
    assert (begun(held, 0), begun(held, 8)) == (1, 0)


def test_files_are_scored_as_the_split_that_they_are(command: Command, run: Path, songs: Path) -> None:
    result, figures = json.loads((run / "result.json").read_text()), run.parent / "figures.json"
    checkpoint = f"checkpoint={run / 'best.ckpt'}"
    done = command("evaluate", checkpoint, f"data.root={songs.parent}", f"result={figures}")
    assert (done.code, done.err) == (0, "")
    split = json.loads(figures.read_text())
    assert split["nats_per_frame"] == pytest.approx(result["test_nll"], rel=1e-5)
    for batch_size in (1, 2):
        words = [f"midi={songs / 'test'}", f"batch_size={batch_size}", "seq_len=5", f"result={figures}"]
        done = command("evaluate", checkpoint, *words)
        assert (done.code, done.err) == (0, "")
        found = json.loads(figures.read_text())
        assert found["nats_per_frame"] == pytest.approx(split["nats_per_frame"], rel=1e-5)
        assert (found["frames"], found["frame_length"]) == (24, "0.25 quarter notes")
        assert [Path(each["file"]).name for each in found["pieces"]] == ["0.mid", "1.mid"]
        means = [each["nats_per_frame"] for each in found["pieces"]]
        assert (16 * means[0] + 8 * means[1]) / 24 == pytest.approx(found["nats_per_frame"])
        assert f"{means[0]:>18.3f}  {songs / 'test' / '0.mid'}\n" in done.out


def test_a_file_is_continued(
    command: Command, run: Path, songs: Path, network: hornn.MusicModel, tmp_path: Path
) -> None:
    prompt, written = songs / "test" / "0.mid", tmp_path / "more.mid"
    words = [f"checkpoint={run / 'best.ckpt'}", f"midi={prompt}", "frames=8", "length=8", f"to={written}"]
    (frames,) = network.generate(prompt, length=8, frames=8)
    assert (frames[:8] == tune(8)).all()
    done = command("generate", *words)
    assert (done.code, done.err) == (0, "")
    hornn.write_midi(tmp_path / "same.mid", frames, 0.25)
    assert written.read_bytes() == (tmp_path / "same.mid").read_bytes()
    assert (tmp_path / "more.png").exists()
    assert command("generate", *words, "frame_length=0.125").code == 0
    assert (hornn.read_midi(written, 0.125)[0][:8] == tune(16).repeat(2, axis=0)[:8]).all()


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("entry", "words", "said"),
    [
        (
            "generate",
            ["to=x.mid", "midi={songs}/test"],
            "names 2 pieces, and one is continued: give one file",
        ),
        ("generate", ["to=x.mid", "midi={songs}/test/0.mid", "piece=1"], "are both to be continued"),
        ("generate", ["to=x.mid", "midi=none.mid"], "there is no MIDI file none.mid: check the path"),
        ("generate", ["to=x.mid", "midi=[]"], "midi= names no MIDI file"),
        (
            "generate",
            ["to={songs}/test/0.mid", "midi={songs}/test/0.mid"],
            "is a file that this command reads",
        ),
        (
            "generate",
            ["to=x.mid", "frame_length=-1"],
            "frame_length must be a number of quarter notes from 1/480 on",
        ),
        ("evaluate", ["midi=[{songs}/test,{songs}/test/0.mid]"], "midi= names a file twice: give each once"),
        ("evaluate", ["midi={songs}/test", "result={songs}/test/0.mid"], "is a file that this command reads"),
        ("evaluate", ["midi={songs}/test", "split=test"], "midi= is scored in place of a split"),
        ("evaluate", ["midi={songs}"], None),
        ("evaluate", ["midi={songs}/none"], "none: check the path"),
        ("evaluate", ["frame_length=1"], "frame_length=1 is of midi=, which is not given"),
        ("evaluate", [], "there is no folder"),
    ],
)
def test_what_is_refused(
    command: Command, run: Path, songs: Path, entry: str, words: list[str], said: str | None
) -> None:
    done = command(entry, f"checkpoint={run / 'best.ckpt'}", *(word.format(songs=songs) for word in words))
    if said is None:
        assert "scored  6 MIDI files\n" in done.out
        return
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert said in done.err


def test_the_piece_of_a_folder_is_not_written_over(command: Command, run: Path, songs: Path) -> None:
    piece = songs / "valid" / "0.mid"
    before = piece.read_bytes()
    done = command("generate", f"checkpoint={run / 'best.ckpt'}", f"midi={songs / 'valid'}", f"to={piece}")
    assert (done.code, f"{piece} is a file that this command reads" in done.err) == (2, True)
    assert piece.read_bytes() == before


def test_a_model_of_text_reads_no_midi(command: Command, tmp_path: Path) -> None:
    words = ["data=pydoc", "model=kn", "model.order=1", f"run_dir={tmp_path / 'kn'}", "logger=csv"]
    assert command("train", *words).code == 0
    done = command("evaluate", f"checkpoint={tmp_path / 'kn' / 'best.ckpt'}", "midi=x.mid")
    assert (done.code, "midi= is for models of music" in done.err) == (2, True)
    with pytest.raises(ValueError, match=r"holds a model of text: hornn\.load takes it"):
        hornn.load_music(tmp_path / "kn" / "best.ckpt")


def test_changed_music_is_not_the_music_of_training(
    command: Command, run: Path, songs: Path, tmp_path: Path
) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / "songs" / split).mkdir(parents=True)
        hornn.write_midi(tmp_path / "songs" / split / "0.mid", tune(5), 0.25)
    done = command("evaluate", f"checkpoint={run / 'best.ckpt'}", f"data.root={tmp_path}")
    assert done.code == 2
    assert (
        "the midi-songs corpus on this machine is not the one that this checkpoint was trained on" in done.err
    )


def test_scores_in_python(network: hornn.MusicModel, run: Path, songs: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    files = [songs / "test" / f"{number}.mid" for number in range(2)]
    for batch_size in (1, 20):
        scores = network.score(files, batch_size)
        assert -sum(each.log_prob for each in scores) / 24 == pytest.approx(result["test_nll"], rel=1e-5)
    assert [each.frames for each in scores] == [16, 8]
    assert scores[0].nats_per_frame == pytest.approx(-scores[0].log_prob / 16)
    assert network.score([tune(16), str(files[1])]) == network.score(files)
    assert network.score([]) == []


def test_music_in_python(network: hornn.MusicModel, songs: Path) -> None:
    one, two = network.generate(songs / "test" / "0.mid", length=6, frames=4, num_samples=2, seed=3)
    assert one.shape == two.shape == (10, KEYS)
    assert (one[:4] == tune(4)).all()
    assert (one == network.generate(tune(4), length=6, seed=3)[0]).all()
    assert network.generate(length=3)[0].shape == (3, KEYS)
    assert network.frame_length == 0.25
    assert network.network.head.predicts == "keys"


def test_frequencies_of_keys_score_pieces_too(command: Command, songs: Path, tmp_path: Path) -> None:
    words = ["data=midi", f"data.root={songs.parent}", "data.name=songs", "model=key_counts", "logger=csv"]
    assert command("train", *words, f"run_dir={tmp_path / 'keys'}").code == 0
    counts, figures = hornn.load_music(tmp_path / "keys" / "best.ckpt"), tmp_path / "figures.json"
    files = [songs / "test" / f"{number}.mid" for number in range(2)]
    found = [counts.score([file])[0].nats_per_frame for file in files]
    assert [each.nats_per_frame for each in counts.score(files)] == pytest.approx(found)
    words = [
        f"checkpoint={tmp_path / 'keys' / 'best.ckpt'}",
        f"midi=[{files[0]},{files[1]}]",
        f"result={figures}",
    ]
    assert command("evaluate", *words).code == 0
    told = [each["nats_per_frame"] for each in json.loads(figures.read_text())["pieces"]]
    assert told == pytest.approx(found)
    with pytest.raises(ValueError, match="holds counts, and this needs a network"):
        counts.generate(length=3)


def test_what_python_refuses(network: hornn.MusicModel, run: Path) -> None:
    for do, said in (
        (lambda: network.score(tune(3)), "score takes a list of pieces"),
        (
            lambda: network.score([np.zeros((3, 5))]),
            r"must be an array of frames \(N, 88\) of 0 and 1, got \(3, 5\)",
        ),
        (lambda: network.generate(frames=0), "frames must be a whole number >= 1"),
        (lambda: network.generate(frames=8), "frames=8 are read of a piece: give one"),
        (lambda: network.generate(temperature=-1), "temperature must be >= 0"),
        (lambda: hornn.load(run / "best.ckpt"), r"in Python hornn\.load_music or hornn\.load_speech"),
        (
            lambda: hornn.load_speech(run / "best.ckpt"),
            "is no network of speech: give one that was trained with",
        ),
        (
            lambda: hornn.load_music(run / "best.ckpt", frame_length=0),
            "frame_length must be a number of quarter",
        ),
        (lambda: hornn.load_music(3), "load_music takes a path"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match=said):
            do()


def test_the_frame_of_a_set_is_as_long_as_is_known() -> None:
    cards = [{"data": {"name": "music-jsb_chorales"}}, {"data": {"name": "music-nottingham"}}]
    assert [frame_length_of(card, None) for card in cards] == [1.0, 0.5]
    assert frame_length_of({"data": {"name": "midi-mine", "frame_length": 0.125}}, None) == 0.125
    assert frame_length_of(cards[0], 0.25) == 0.25
