"""Which code a run was computed by is on record: an edited cell neither continues nor is mixed with the old one."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from commands.outcomes import refusal, result_of, rewrite
from hornn.places import CONF
from hornn.run.code import code_of, is_own, lies_in_own_folder, other_code, own_source
from outcome import Command
from run.offline_log import read_log

CELL = """
from torch.nn import functional as F

from hornn.cells.elman import Rnn, RnnState


class Halving(Rnn):
    def step(self, u_t, state):
        h_t = {keep} * state.h + 0.5 * self.f(u_t + F.linear(state.h, self.W_h))
        return h_t, RnnState(h_t)
"""


class Own:
    """A cell of somebody's own in a folder, whose equation can be edited."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "halving.py"
        self.conf = folder / "conf"
        (self.conf / "model").mkdir(parents=True)
        self.choose("halving.Halving")

    def choose(self, name: str) -> None:
        node = f"_target_: {name}\n_partial_: true\nhidden_size: 6\n"
        (self.conf / "model" / "halving.yaml").write_text(node)

    def write(self, keep: float) -> None:
        self.file.write_text(CELL.format(keep=keep))
        sys.modules.pop("halving", None)
        importlib.invalidate_caches()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Own:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits in one second are told apart
    (tmp_path / "own").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "own")
    own = Own(tmp_path / "own")
    own.write(0.5)
    return own


def test_a_run_of_an_edited_cell_is_not_continued(
    command: Command, small: list[str], own: Own, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = [f"--config-dir={own.conf}", *small, "model=halving", f"run_dir={run}"]
    assert command("train", *words).code == 0
    first = result_of(run)
    assert first["code"] == code_of({"_target_": "halving.Halving"})
    assert first["code"]["class"] == "halving.Halving"
    assert len(first["code"]["source"]) == 64
    assert yaml.safe_load((run / "config.yaml").read_text())["code"] == first["code"]
    assert first["starts"][0]["code"] == first["code"]
    own.write(0.25)
    (tmp_path / "own.txt").write_text("a b\n")
    best = [f"--config-dir={own.conf}", f"checkpoint={run / 'best.ckpt'}"]
    scored = command("evaluate", *best, f"text={tmp_path / 'own.txt'}")
    assert scored.code == 0
    assert "best.ckpt was trained by other code: the source of halving.Halving was " in scored.err
    recorded = command("analyse", *best, "record=true")
    assert recorded.code == 2
    assert "result.json is of other code (the source of halving.Halving was " in recorded.err
    line = refusal(command("train", *words))
    assert "by other code (the source of halving.Halving was " in line
    assert "overwrite=true replaces it by a run of this code" in line
    (run / "result.json").unlink()  # as if it were cut off
    line = refusal(command("train", *words))
    assert f"{run} holds an unfinished run of other code (the source of halving.Halving was " in line
    assert "overwrite=true starts anew by this code, or put the old code back to continue" in line
    own.write(0.5)
    done = command("train", *words)
    assert done.code == 0
    assert "continues" in done.out
    assert result_of(run)["test_ppl"] == first["test_ppl"]
    own.write(0.25)
    longer = [*words[:-1], f"run_dir={tmp_path / 'longer'}", f"continue_from={run}"]
    longer = [word.replace("max_epochs=2", "max_epochs=3") for word in longer]
    line = refusal(command("train", *longer))
    assert "is a run of other code" in line
    assert "leave it out to train from the first epoch" in line
    assert command("train", *words, "overwrite=true").code == 0
    assert result_of(run)["name"] == first["name"], "the code is no part of a name"
    assert result_of(run)["code"]["source"] != first["code"]["source"]
    own.choose("halving.Rnn")
    assert "the class was halving.Halving there and is halving.Rnn now" in refusal(command("train", *words))


def test_a_key_that_the_file_of_a_cell_mistypes_is_not_laid_to_others(
    command: Command, small: list[str], own: Own
) -> None:
    (own.conf / "model" / "odd.yaml").write_text(
        "_target_: halving.Halving\n_partial_: true\nhidden_size: 4\nhiden_size: 4\n"
    )
    line = refusal(command("train", f"--config-dir={own.conf}", *small, "model=odd"))
    assert "unknown key 'model.hiden_size' (from a config file or the command line); did you mean" in line
    assert "an experiment or a sweep" not in line


def cut_off(command: Command, words: list[str], run: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Leave a run as if it had been cut off, with something edited in its checkpoint."""
    assert command("train", *words).code == 0
    (run / "result.json").unlink()
    rewrite(run / "last.ckpt", edit)


def test_a_run_of_an_edited_cell_of_the_package_goes_on_and_says_so(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = [*small, "model=rnn", f"run_dir={run}"]

    def edit(checkpoint: dict[str, Any]) -> None:
        for part in (checkpoint["hornn"], checkpoint["training"]["starts"][0]):
            part["code"]["source"] = "0123456789abcdef"

    cut_off(command, words, run, edit)
    done = command("train", *words)
    assert done.code == 0
    said = (
        "warning: it goes on by other code (the source of hornn.cells.elman.Rnn was 0123456789 there and is "
    )
    assert said in done.out
    assert result_of(run)["starts"][0]["code"]["source"] == "0123456789abcdef"


def test_a_run_of_before_there_was_a_record_of_code_goes_on(
    command: Command, small: list[str], own: Own, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = [f"--config-dir={own.conf}", *small, "model=halving", f"run_dir={run}"]

    def forget(checkpoint: dict[str, Any]) -> None:
        del checkpoint["hornn"]["code"], checkpoint["training"]["starts"][0]["code"]

    cut_off(command, words, run, forget)
    assert command("train", *words).code == 0


@pytest.mark.thorough
def test_weights_and_biases_is_told_of_the_code(command: Command, small: list[str], tmp_path: Path) -> None:
    words = [word for word in small if word != "logger=csv"]
    run = tmp_path / "run"
    assert command("train", *words, "model=rnn", f"run_dir={run}").code == 0
    told, result = read_log(run)["config"]["update"], result_of(run)
    assert {key: told[key] for key in ("code", "commit", "dirty", "versions")} == {
        key: result[key] for key in ("code", "commit", "dirty", "versions")
    }


def test_of_a_package_all_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "of_many_files"
    folder.mkdir()
    (folder / "__init__.py").write_text("from of_many_files.cell import Cell\n")
    (folder / "cell.py").write_text("class Cell: pass\n")
    before = code_of({"_target_": "of_many_files.Cell"})
    (folder / "cell.py").write_text("class Cell: x = 1\n")
    assert code_of({"_target_": "of_many_files.Cell"})["source"] != before["source"]


@pytest.mark.parametrize(
    ("module", "statement", "other"),
    [
        ("mine_a", "from squash_a import squash", "squash_a.py"),
        ("mine_b", "import shapes_b.squash", "shapes_b/squash.py"),
        ("mine_c", "import shapes_c.squash", "shapes_c/__init__.py"),
        ("own_d.cell", "from .shapes import squash", "own_d/shapes.py"),
        ("own_e.deep.cell", "from .. import squash", "own_e/squash.py"),
        ("mine_f", "from first_f import *", "second_f.py"),
    ],
)
def test_what_a_cell_of_ones_own_imports_from_beside_it_counts(
    module: str, statement: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    cell = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
    for file, text in (
        (cell, f"import torch, hornn\n{statement}\nclass Cell: pass\n"),
        (tmp_path / "first_f.py", "import mine_f, second_f\n"),
        (tmp_path / other, "x = 1\n"),
        (tmp_path / "shapes_b" / "__init__.py", ""),
        (tmp_path / "shapes_c" / "squash.py", ""),
        (tmp_path / "hornn" / "__init__.py", "x = 1\n"),
        (tmp_path / "unread.py", "x = 1\n"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def source() -> str:
        return code_of({"_target_": f"{module}.Cell"})["source"]

    before = source()
    for unread in ("unread.py", "hornn/__init__.py"):
        (tmp_path / unread).write_text("x = 2\n")
    assert source() == before
    (tmp_path / other).write_text("x = 2\n")
    assert source() != before
    (tmp_path / other).write_text("a line that Python refuses\n")
    assert source() != before


def test_of_an_installed_package_its_own_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"purelib": str(tmp_path)})
    (tmp_path / "installed_cell.py").write_text("import beside_it\nclass Cell: pass\n")
    (tmp_path / "beside_it.py").write_text("")
    before = code_of({"_target_": "installed_cell.Cell"})
    (tmp_path / "beside_it.py").write_text("x = 1\n")
    assert code_of({"_target_": "installed_cell.Cell"}) == before


def test_what_is_not_found_has_no_source() -> None:
    assert code_of({}) == {}
    assert code_of({"_target_": "no_such_module.Cell"}) == {"class": "no_such_module.Cell"}
    assert code_of({"_target_": "Cell"}) == {"class": "Cell"}


@pytest.mark.parametrize("statement", ["raise NameError", "raise SystemExit(3)"])
def test_a_package_that_cannot_be_imported_has_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "unusable").mkdir()
    (tmp_path / "unusable" / "__init__.py").write_text(f"{statement}\n")
    (tmp_path / "unusable" / "cell.py").write_text("class Cell: pass\n")
    assert code_of({"_target_": "unusable.cell.Cell"}) == {"class": "unusable.cell.Cell"}


def test_code_that_is_not_on_record_is_no_other_code() -> None:
    code = {"class": "mine.Cell", "source": "abc"}
    for held in (None, {}, "text", {"class": "mine.Cell"}, {"source": None}, code):
        assert other_code(held, code) == ""
    assert other_code({"source": "xyz"}, code) == "the source of mine.Cell was xyz there and is abc now"
    assert is_own(code)
    assert not is_own({"class": "hornn.cells.elman.Rnn"})
    assert not is_own({})
    assert own_source(code) == "Cell abc"
    assert own_source({"class": "hornn.cells.elman.Rnn", "source": "abc"}) == ""


def test_a_class_that_was_moved_as_it_is_stays_the_same() -> None:
    then, now = (
        {"class": f"{module}.Cell", "source": "abc", "mine.Rule": "1"} for module in ("mine", "theirs")
    )
    assert own_source(then) == own_source(now) == "Rule 1, Cell abc"
    assert other_code(then, now) == other_code(then, now, own=True) == ""
    assert (
        other_code(then, {**now, "source": "xyz"}) == "the class was mine.Cell there and is theirs.Cell now"
    )
    unknown = [{"class": f"mine.{name}", "mine.Rule": "1"} for name in "AB"]
    assert other_code(*unknown) == "the class was mine.A there and is mine.B now"
    ours = [
        {"class": f"hornn.cells.{name}", "source": "abc", "mine.Rule": "1"}
        for name in ("elman.Rnn", "srn.Srn")
    ]
    assert other_code(*ours) == "the class was hornn.cells.elman.Rnn there and is hornn.cells.srn.Srn now"


def test_what_was_installed_is_not_ones_own(own: Own) -> None:
    """Also where it was not installed into this Python: by another user, or below an environment."""
    (own.file.parent / "inner.py").write_text("x = 1\n")
    own.file.write_text("import inner\n" + own.file.read_text())
    alone = code_of({"_target_": "halving.Halving"})["source"]
    assert lies_in_own_folder("halving.Halving")
    (own.file.parent / "halving-1.0.dist-info").mkdir()
    assert not lies_in_own_folder("halving.Halving")
    assert code_of({"_target_": "halving.Halving"})["source"] != alone, (
        "its imports are on record by their version"
    )


def test_an_optimizer_of_ones_own_is_on_record_too(
    command: Command, small: list[str], own: Own, tmp_path: Path
) -> None:
    """So is every class but a logger's and one of a callback that watches; what was installed is not."""
    file = own.file.with_name("my_optimizer.py")
    file.write_text("from hornn.optim.descent import MomentumSGD\n\n\nclass Mine(MomentumSGD):\n    pass\n")
    (own.conf / "optimizer").mkdir()
    node = yaml.safe_load((CONF / "optimizer" / "sgd.yaml").read_text()) | {"_target_": "my_optimizer.Mine"}
    (own.conf / "optimizer" / "mine.yaml").write_text(yaml.safe_dump(node))
    run = tmp_path / "run"
    words = [f"--config-dir={own.conf}", *small, "model=rnn", "optimizer=mine", f"run_dir={run}"]
    assert command("train", *words).code == 0
    code = result_of(run)["code"]
    assert code["class"] == "hornn.cells.elman.Rnn"
    assert code["my_optimizer.Mine"] == code_of({"_target_": "my_optimizer.Mine"})["source"]
    assert set(code) == {"class", "source", "my_optimizer.Mine"}
    assert own_source(code) == f"Mine {code['my_optimizer.Mine'][:10]}"
    file.write_text(file.read_text() + "# another rule\n")
    assert "by other code (the source of my_optimizer.Mine was " in refusal(command("train", *words))
    (run / "result.json").unlink()  # as if it were cut off
    line = refusal(command("train", *words))
    assert "holds an unfinished run of other code (the source of my_optimizer.Mine was " in line


@pytest.mark.parametrize("several", [[], ["-m", "seed=1,2"]])
def test_a_cell_does_not_take_the_name_of_a_shipped_one(
    command: Command,
    small: list[str],
    own: Own,
    several: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (own.conf / "model" / "halving.yaml").rename(own.conf / "model" / "lstm.yaml")
    line = refusal(command("train", f"--config-dir={own.conf}", *several, *small, "model=lstm"))
    assert (
        f"conf/model/lstm.yaml and {own.conf}/model/lstm.yaml have one name and are not the same: give"
        in line
    )
    assert not Path("outputs").exists()
