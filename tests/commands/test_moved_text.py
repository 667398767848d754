"""A model of files of one's own, used from another folder, and after the files have moved, changed or gone."""

import json
import shutil
from pathlib import Path

import pytest

from commands.outcomes import refusal, result_of, rewrite
from outcome import Command
from small_text import SMALL, write_text

SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def origin(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `there` with a network `run` and n-grams `kn`, trained there on relative paths, and a copy, `whole`."""
    folder = tmp_path_factory.mktemp("moved")
    there = folder / "there"
    there.mkdir()
    text = [word.replace(f"{there}/", "") for word in write_text(there)]
    with pytest.MonkeyPatch.context() as here:
        here.chdir(there)
        assert command("train", *text, *SMALL, "run_dir=run").code == 0
        assert command("train", *text, "model=kn", "logger=csv", "run_dir=kn").code == 0
    shutil.copytree(there, folder / "whole")
    return folder


@pytest.fixture
def trained(origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the network and the n-grams, as it was once they were trained; the test runs elsewhere."""
    shutil.rmtree(origin / "there")
    shutil.copytree(origin / "whole", origin / "there")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return origin / "there"


def move(folder: Path) -> list[str]:
    """The overrides that say where the texts lie, once they have moved."""
    for split in SPLITS:
        (folder / f"{split}.txt").rename(folder / f"moved-{split}.txt")
    return [f"data.{split}={folder}/moved-{split}.txt" for split in SPLITS]


def test_a_split_is_scored_from_another_folder_and_after_a_move(command: Command, trained: Path) -> None:
    words = [f"checkpoint={trained}/run/best.ckpt", "data.cache_dir=cache", "batch_size=2", "seq_len=5"]
    assert command("evaluate", *words, "result=before.json").code == 0
    moved = move(trained)
    lost = f"there is no text file data.train={trained}/train.txt: give the path of an existing one"
    assert lost in refusal(command("evaluate", *words))
    done = command("evaluate", *words, *moved, "result=after.json")
    assert (done.code, done.err) == (0, "")
    for name in ("before", "after"):
        found = json.loads(Path(f"{name}.json").read_text())["perplexity"]
        assert found == pytest.approx(result_of(trained / "run")["test_ppl"], rel=1e-13)
    changed = Path("changed.txt")
    changed.write_text("a b c\n" * 9)
    line = refusal(command("evaluate", *words, *moved[:2], f"data.test={changed}"))
    assert f"is not the one that this checkpoint was trained on (changed: data.test={changed})" in line
    read = refusal(command("evaluate", *words, *moved[:2], f"data.test={changed}", f"result={changed}"))
    assert "changed.txt is a file that this command reads: give another name to write to" in read


@pytest.mark.thorough
def test_an_old_checkpoint_with_relative_paths_needs_no_new_training(command: Command, trained: Path) -> None:
    best = trained / "run" / "best.ckpt"
    for where in ({f"data.{split}": f"{split}.txt" for split in SPLITS}, {}):
        rewrite(best, lambda saved, where=where: saved["hornn"].update(where=where))
        words = [f"checkpoint={best}", "data.cache_dir=cache"]
        assert "data.train" in refusal(command("evaluate", *words))
        done = command("evaluate", *words, *(f"data.{split}={trained}/{split}.txt" for split in SPLITS))
        assert (done.code, done.err) == (0, "")


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("evaluate", ["checkpoint=run", "cache=5"]),
        ("evaluate", ["checkpoint=run", "dynamic_lr=[0.1,0.2]", "seq_len=5"]),
        ("score", ["mix=[run,kn]", "text=text"]),
        ("rescore", ["mix=[run,kn]", "nbest=text", "lm_weight=1"]),
        ("analyse", ["checkpoint=run", "lags=5", "windows=6", "targets=20"]),
    ],
)
def test_whatever_reads_the_corpus_takes_its_new_place(
    command: Command, trained: Path, entry: str, words: list[str]
) -> None:
    moved = move(trained)
    Path("text").write_text("u\ta b\t-1\t-1\n")
    named = [
        word.replace("run", f"{trained}/run/best.ckpt").replace("kn", f"{trained}/kn/best.ckpt")
        for word in words
    ]
    assert "there is no text file data.train=" in refusal(command(entry, *named, "data.cache_dir=cache"))
    assert command(entry, *named, "data.cache_dir=cache", *moved).code == 0


def test_another_corpus_than_the_checkpoint_s(command: Command, run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("x y z\n" * 50)
    line = refusal(
        command("evaluate", f"checkpoint={run_dir / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'cache'}")
    )
    assert "is not the one that this checkpoint was trained on" in line
    assert "give the same corpus, or text=FILE" in line


def test_evaluate_needs_nothing_beside_the_checkpoint(
    command: Command, run_dir: Path, tmp_path: Path
) -> None:
    text, figures = tmp_path / "own.txt", tmp_path / "figures.json"
    text.write_text("a b c\n")
    words = [f"checkpoint={run_dir / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'own'}", f"text={text}"]
    found = []
    for _ in range(2):
        done = command("evaluate", *words, f"result={figures}")
        assert (done.code, done.err) == (0, "")
        found.append(json.loads(figures.read_text())["perplexity"])
        for path in [*run_dir.glob("*.*"), *(tmp_path / f"{split}.txt" for split in SPLITS)]:
            if path.name != "best.ckpt":
                path.unlink(missing_ok=True)
    assert found[0] == found[1]


def test_an_export_needs_no_corpus(command: Command, text: list[str], tmp_path: Path) -> None:
    """The text that the n-grams were counted on is gone, and so are its tokens."""
    done = command("train", *text, "model=kn", "model.order=3", "logger=csv", f"run_dir={tmp_path / 'kn'}")
    assert done.code == 0, done.err
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").unlink()
    figures, arpa = tmp_path / "figures.json", tmp_path / "kn.arpa"
    words = [f"checkpoint={tmp_path / 'kn' / 'best.ckpt'}", f"arpa={arpa}", f"result={figures}"]
    done = command("evaluate", *words, f"data.cache_dir={tmp_path / 'none'}")
    assert (done.code, done.err) == (0, "")
    found = json.loads(figures.read_text())
    assert found["arpa"] == str(arpa)
    assert found["ngrams"][0] == "10 of order 1"  # 9 words and <s>
    assert len(found["ngrams"]) == 3
    assert arpa.read_text().startswith("\\data\\\nngram 1=10\n")


def test_a_text_that_is_cut_elsewhere_is_another_one(command: Command, trained: Path) -> None:
    """All words are the same, in the same order: lines of the validation text have become lines of the test text."""
    moved = move(trained)
    valid, test = (Path(word.partition("=")[2]) for word in moved[1:])
    lines = valid.read_text().splitlines(keepends=True)
    valid.write_text("".join(lines[:-3]))
    test.write_text("".join(lines[-3:]) + test.read_text())
    for run in ("run", "kn"):
        words = [f"checkpoint={trained}/{run}/best.ckpt", "data.cache_dir=cache", *moved]
        assert "is not the one that this checkpoint was trained on" in refusal(command("evaluate", *words))


def test_a_mixture_is_of_models_of_one_text(command: Command, trained: Path) -> None:
    """A model that was trained on the validation text of the others would get all of the weight."""
    more = trained / "more.txt"
    more.write_text((trained / "train.txt").read_text() + (trained / "valid.txt").read_text())
    places = [f"data.{split}={trained}/{split}.txt" for split in SPLITS]
    other = ["data=files", f"data.train={more}", *places[1:], "model=kn", "logger=csv", "run_dir=other"]
    assert command("train", *other).code == 0
    mixed = f"mix=[{trained}/kn/best.ckpt,other/best.ckpt]"
    line = refusal(command("evaluate", mixed, *places))
    assert line.startswith(
        "error: other/best.ckpt was trained on another text, or with another vocabulary, than the corpus files"
    )
    assert line.endswith(" here: mix models of one text\n")


def test_a_text_of_the_training_is_not_written_over(command: Command, trained: Path) -> None:
    """Where the checkpoint, and no word of the command, says that it is read."""
    for target in (trained / "test.txt", trained / "train.txt"):
        before = target.read_bytes()
        line = refusal(command("evaluate", f"checkpoint={trained}/run/best.ckpt", f"result={target}"))
        assert f"{target} is a file of the files corpus: give another name to write to" in line
        assert target.read_bytes() == before
