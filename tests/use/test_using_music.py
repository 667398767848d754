"""What a trained network of music is used for: its score, and what it writes."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hornn.data.music import MusicData
from hornn.use import music
from outcome import Command

mido = pytest.importorskip("mido")


@pytest.fixture(scope="module")
def music_root(corpus_root: Callable[[str], str]) -> str:
    return corpus_root("music/JSB_Chorales.mat")


@pytest.fixture(scope="module")
def run(command: Command, tmp_path_factory: pytest.TempPathFactory, music_root: str) -> Path:
    """A finished run on the smallest set."""
    folder = tmp_path_factory.mktemp("music") / "run"
    words = [
        "data=music",
        f"data.root={music_root}",
        "data.set=jsb_chorales",
        "model.hidden_size=6",
        "logger=csv",
    ]
    done = command("train", *words, "trainer.max_epochs=1", f"run_dir={folder}")
    assert done.code == 0, done.err
    assert "keys given the last frame" in done.out
    return folder


@pytest.mark.corpus
def test_a_split_is_scored_as_in_the_run(command: Command, run: Path, music_root: str) -> None:
    figures = run / "figures.json"
    for sizes in (["batch_size=20", "seq_len=7"], ["batch_size=5", "seq_len=1000"]):
        words = [f"checkpoint={run / 'best.ckpt'}", f"data.root={music_root}", *sizes, f"result={figures}"]
        done = command("evaluate", *words)
        assert done.code == 0, done.err
        found, result = (json.loads(path.read_text()) for path in (figures, run / "result.json"))
        assert found["nats_per_frame"] == pytest.approx(result["test_nll"], rel=1e-5)
        assert f"nats per frame  {found['nats_per_frame']:.3f}\n" in done.out
        assert f"frames per second  {found['frames_per_second']:,.0f}\n" in done.out
        assert found["accuracy"] == pytest.approx(result["test_accuracy"], abs=1e-3)
        assert found["frames"] == 4725


@pytest.mark.corpus
def test_music_goes_on_from_a_piece(command: Command, run: Path, music_root: str, tmp_path: Path) -> None:
    words = [
        f"checkpoint={run / 'best.ckpt'}",
        f"data.root={music_root}",
        "piece=3",
        "frames=10",
        "length=20",
    ]
    for name in ("one", "same"):
        assert command("generate", *words, f"to={tmp_path / name}.mid").code == 0
    one, same = ((tmp_path / f"{name}.mid").read_bytes() for name in ("one", "same"))
    assert one == same
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert command("generate", *words, "num_samples=2", f"to={tmp_path / 'two.mid'}").code == 0
    assert {path.name for path in tmp_path.glob("two-*.mid")} == {"two-1.mid", "two-2.mid"}


@pytest.mark.corpus
def test_a_name_that_is_taken_is_refused_before_anything_is_written(
    command: Command, run: Path, tmp_path: Path
) -> None:
    words = [f"checkpoint={run / 'best.ckpt'}", "length=2", "num_samples=2", f"to={tmp_path / 'song.mid'}"]
    (tmp_path / "song-2.png").write_text("mine")
    done = command("generate", *words)
    assert (done.code, done.err.count("song-2.png, the name of the picture, is taken")) == (2, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["song-2.png"]
    (tmp_path / "song-2.png").unlink()
    (tmp_path / "song-2.mid").mkdir()
    assert "song-2.mid is a folder" in command("generate", *words).err
    assert [path.name for path in tmp_path.iterdir()] == ["song-2.mid"]


@pytest.mark.each(3)
@pytest.mark.corpus
@pytest.mark.parametrize(
    ("entry", "words", "said"),
    [
        ("generate", ["piece=300", "to=x.mid"], "piece must be from 1 to 77, got 300"),
        ("generate", ["to=x.wav"], "to= must be the path of a MIDI file, which ends in .mid, got x.wav"),
        ("generate", [], "to= must be the path of a MIDI file"),
        ("generate", ["to=x.mid", "prompt=bach"], "prompt= is text, and this model writes music"),
        ("generate", ["to=nowhere/x.mid"], "the folder of nowhere/x.mid does not exist"),
        ("generate", ["to=x.mid", "piece=1.5"], "piece must be from 1 to 77, got 1.5"),
        ("generate", ["to=x.mid", "piece=true"], "piece must be from 1 to 77, got True"),
        (
            "generate",
            ["to=x.mid", "seed=99999999999999999999"],
            "seed must be a whole number from 0 to 4294967295",
        ),
        (
            "generate",
            ["to=x.mid", "frames=7"],
            "frames=7 are read of a piece: give midi=FILE or piece=NUMBER",
        ),
        ("generate", ["to=x.mid", "top_k=5"], "top_k= is for models of text"),
        ("generate", ["to=x.mid", "json=true"], "json= is for models of text"),
        ("evaluate", ["precision=bf16"], "precision= is for models of text"),
        ("evaluate", ["text=x.txt"], "text= is for models of text"),
        ("evaluate", ["record=true"], "record=true adds what a network of speech heard"),
        (
            "score",
            ["text=x.txt"],
            "is no model of text: evaluate, generate and transcribe take it by checkpoint=",
        ),
    ],
)
def test_what_a_model_of_music_cannot_do(
    command: Command, run: Path, music_root: str, entry: str, words: list[str], said: str
) -> None:
    of_data = [f"data.root={music_root}"] if entry != "score" else []
    done = command(entry, f"checkpoint={run / 'best.ckpt'}", *of_data, *words)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.each(3)
@pytest.mark.corpus
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["head=softmax"], "head=softmax predicts classes and data=music holds keys"),
        (["model=kn"], "model=kn predicts classes and data=music holds keys"),
        (["callbacks=word_frequency"], "callbacks=word_frequency speaks of words"),
        (["callbacks=early_stopping"], "monitor must be valid/nll, got 'valid/ppl'"),
        (["data.set=bach"], "data.set must be one of nottingham, jsb_chorales, muse_data, piano_midi"),
        (["network.tie_weights=true"], "needs inputs that are words"),
        (["data.max_len=0"], "data.max_len must be a whole number >= 1, got 0"),
    ],
)
def test_refused_trainings(
    command: Command, music_root: str, tmp_path: Path, words: list[str], said: str
) -> None:
    first = ["data=music", f"data.root={music_root}", "data.set=jsb_chorales", "logger=csv"]
    done = command("train", *first, *words, f"run_dir={tmp_path / 'run'}")
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "run" / "best.ckpt").exists()


def test_pieces_are_counted_from_1(monkeypatch: pytest.MonkeyPatch) -> None:
    data = object.__new__(
        type(
            "Songs",
            (MusicData,),
            {"whole": lambda *_: ["first", "second"], "prepare_data": None, "setup": None},
        )
    )
    monkeypatch.setattr(music, "open_data", lambda *_: data)
    scorer: Any = SimpleNamespace(name="mine")
    found = [music.piece_of(scorer, SimpleNamespace(data=None, piece=piece), []) for piece in (1, 2)]  # type: ignore[arg-type]
    assert found == ["first", "second"]
    for piece in (0, 3):
        with pytest.raises(ValueError, match=f"piece must be from 1 to 2, got {piece}"):
            music.piece_of(scorer, SimpleNamespace(data=None, piece=piece), [])  # type: ignore[arg-type]
