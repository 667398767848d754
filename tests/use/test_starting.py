"""What a command that uses a model waits for before it begins."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from small_text import write_text

SLOW = ("lightning", "wandb", "torchmetrics", "matplotlib", "scipy", "pandas", "optuna")
# A second; torch loads them for a draw without memory.
COMPILER = ("torch._dynamo", "torch._inductor", "sympy")
PROGRAM = """
import json, runpy, sys
for entry, argv in json.load(sys.stdin).items():
    sys.argv = argv
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as stop:
        assert not stop.code, (entry, stop.code)
    print("loaded by", entry, *sorted({name for name in sys.modules} & set(%r)), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [
        ["model=hornn_fofe"],
        pytest.param(["model=rnn", "network.recurrent_fan_in=2"], marks=pytest.mark.thorough),
    ],
)
def test_no_library_is_loaded_that_scoring_does_not_use(
    command: Callable[..., Any], tmp_path: Path, recipe: list[str]
) -> None:
    words = [*write_text(tmp_path), "model.hidden_size=6", "logger=csv", "trainer.max_steps=2", *recipe]
    done = command("train", *words, f"run_dir={tmp_path / 'run'}")
    assert done.code == 0, done.err
    text = f"text={tmp_path / 'test.txt'}"
    lines = {
        entry: [
            str(Path(__file__).parents[2] / "src" / f"{entry}.py"),
            f"checkpoint={tmp_path / 'run' / 'best.ckpt'}",
            *given,
        ]
        for entry, given in {"generate": ["length=3"], "evaluate": [text], "score": [text]}.items()
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM % ((*SLOW, *COMPILER),)],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    said = [line for line in ran.stderr.splitlines() if line.startswith("loaded by ")]
    assert said == [f"loaded by {entry}" for entry in lines]
