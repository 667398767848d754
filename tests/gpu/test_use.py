"""A trained model scores and writes on a GPU as on the CPU."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu.conftest import Curve

pytestmark = pytest.mark.gpu

MODELS = ("hornn_fofe", "lstm", "nnlm")
TOLERANCE = 1e-5  # of a perplexity; a rate that learns as it scores passes rounding on
OPTIONS = {
    "left to right": ("batch_size=1",),
    "columns": ("batch_size=3", "seq_len=7"),
    "dynamic": ("dynamic_lr=0.1", "seq_len=10"),
    "mixed with a cache": ("cache=20",),
}


def score(command: Callable[..., Any], tmp_path: Path, *words: str) -> float:
    result = tmp_path / "figures.json"
    where = (f"checkpoint={tmp_path / 'run' / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'cache'}")
    done = command("evaluate", *where, f"result={result}", *words)
    assert done.code == 0, done.err
    perplexity: float = json.loads(result.read_text())["perplexity"]
    return perplexity


@pytest.mark.parametrize("head", ["softmax", "two_level"])
@pytest.mark.parametrize("model", MODELS)
def test_a_perplexity(
    model: str, head: str, curve: Curve, command: Callable[..., Any], tmp_path: Path
) -> None:
    curve("run", f"model={model}", f"head={head}", "trainer=cpu", "network.backend=auto")
    words = {**OPTIONS, "a text": (f"text={tmp_path / 'test.txt'}",)}
    for name, given in words.items():
        cpu, gpu = (score(command, tmp_path, *given, f"device={device}") for device in ("cpu", "cuda"))
        assert gpu == pytest.approx(cpu, rel=TOLERANCE), name
    lines = [f"checkpoint={tmp_path / 'run' / 'best.ckpt'}", f"text={tmp_path / 'test.txt'}"]
    found = [command("score", *lines, f"device={device}") for device in ("cpu", "cuda")]
    scores = [[json.loads(line)["log_prob"] for line in done.out.splitlines()] for done in found]
    assert scores[1] == pytest.approx(scores[0], rel=TOLERANCE)


@pytest.mark.parametrize("model", MODELS)
def test_the_likeliest_words(model: str, curve: Curve, command: Callable[..., Any], tmp_path: Path) -> None:
    curve("run", f"model={model}", "trainer=gpu", "network.backend=auto")
    words = (f"checkpoint={tmp_path / 'run' / 'best.ckpt'}", "prompt=a b", "length=40", "temperature=0")
    cpu, gpu = (command("generate", *words, f"device={device}") for device in ("cpu", "cuda"))
    assert cpu.code == gpu.code == 0, gpu.err
    assert gpu.out == cpu.out
    assert len(gpu.out.split()) == 42
