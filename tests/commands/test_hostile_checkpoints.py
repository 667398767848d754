"""Checkpoints by strangers: no code of theirs runs, and no server is asked."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from commands.outcomes import refusal, rewrite
from outcome import Command
from small_text import write_text

# A part of a checkpoint -> what a stranger may write there, to have code run or a server asked; all of it is plain
# text, which weights_only=True lets pass.
HOSTILE: dict[str, dict[str, Any]] = {
    "hub": {
        "_target_": "hornn.data.streams.torch.hub.load",
        "repo_or_dir": "HUB",
        "model": "m",
        "source": "local",
    },
    "builder": {"_target_": "hornn.data.files.build_data.__globals__", "repo_or_dir": "HUB"},
    "folders": {"_target_": "hornn.data.download.os.makedirs", "name": "HUB/made"},
    "pickle": {"_target_": "hornn.data.text.np.load", "file": "HUB/hubconf.py", "allow_pickle": True},
    "module": {"_target_": "hubconf.m"},
}


class Hostile:
    """A part of a checkpoint that runs a command of the shell when it is unpickled."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.made}'",)


@pytest.mark.parametrize("entry", ["evaluate", "generate", "score"])
def test_a_checkpoint_with_code_is_refused_and_no_advice_is_given_to_run_it(
    command: Command, tmp_path: Path, entry: str
) -> None:
    checkpoint = tmp_path / "best.ckpt"
    torch.save({"state_dict": Hostile(tmp_path / "made")}, checkpoint)
    assert refusal(command(entry, f"checkpoint={checkpoint}")) == (
        f"error: checkpoint {checkpoint} asks for {os.system.__module__}.system, and those of this program hold "
        "numbers and text alone; nothing of it was run: give the path of a best.ckpt or last.ckpt that this program "
        "wrote\n"
    )
    assert not (tmp_path / "made").exists()


@pytest.fixture(scope="module")
def trained(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run on the small corpus."""
    folder = tmp_path_factory.mktemp("trained")
    words = ["model.hidden_size=6", "logger=csv", "trainer.enable_progress_bar=false", "trainer.max_steps=5"]
    assert command("train", *write_text(folder), *words, f"run_dir={folder / 'run'}").code == 0
    return folder / "run" / "best.ckpt"


@pytest.fixture
def checkpoint(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copy(trained, tmp_path / "stranger.ckpt"))


@pytest.mark.each(2)
@pytest.mark.parametrize("group", ["data", "model", "network", "head"])
@pytest.mark.parametrize(
    ("place", "node"), [("choices", HOSTILE["hub"]), *(("config", node) for node in HOSTILE.values())]
)
def test_a_checkpoint_runs_no_code_of_its_author(
    command: Command, checkpoint: Path, tmp_path: Path, monkeypatch: Any, place: str, group: str, node: Any
) -> None:
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "hubconf.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef m(*a, **k): pass\n")
    monkeypatch.syspath_prepend(hub)
    hostile = {key: str(value).replace("HUB", str(hub)) for key, value in node.items()}
    given = hostile["_target_"] if place == "choices" else {**hostile, "nested": hostile}
    rewrite(checkpoint, lambda c: c["hornn"][place].update({group: given}))
    words = (f"checkpoint={checkpoint}", f"data.cache_dir={tmp_path / 'c'}")
    outcome = command("evaluate", *words)
    if place == "choices":
        assert f"the checkpoint's unknown {group} {given!r}; it is one of: " in refusal(outcome)
    elif len(hostile) > 1 or group == "model":  # else nothing is left of the node, and defaults are built
        refusal(outcome)
    assert not (tmp_path / "ran").exists()
    assert not (hub / "made").exists()


@pytest.mark.parametrize("corpus", ["ptb", "text8"])
def test_a_checkpoint_sends_nothing_to_a_server(
    command: Command, checkpoint: Path, tmp_path: Path, monkeypatch: Any, corpus: str
) -> None:
    asked: list[str] = []

    def ask(request: Any, **_: Any) -> None:
        asked.append(getattr(request, "full_url", request))
        raise OSError("no network")

    monkeypatch.setattr("hornn.data.download.urlopen", ask)
    monkeypatch.setenv("SECRET", "s3cret")
    hostile = {"url": "http://127.0.0.1:9/${oc.env:SECRET}", "unit": "${oc.env:SECRET}"}
    card = {"choices": {"data": corpus}, "config": {"data": hostile}, "where": {"data.url": hostile["url"]}}
    rewrite(checkpoint, lambda c: [c["hornn"][key].update(card[key]) for key in card])
    refusal(command("evaluate", f"checkpoint={checkpoint}", f"data.root={tmp_path}"))
    assert asked
    assert not any("127.0.0.1" in str(url) or "s3cret" in str(url) for url in asked)
