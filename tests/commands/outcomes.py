"""What a test reads of a command's outcome, and a checkpoint that it changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def result_of(run_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir / "result.json").read_text())
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refusal(outcome: Any) -> str:
    """The one line of a command that was refused before training."""
    code, out, err = outcome
    assert code == 2, (out, err)
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert "epoch" not in out
    return str(err)


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    checkpoint = torch.load(path, weights_only=True)
    change(checkpoint)
    torch.save(checkpoint, path)


def close(checkpoint: dict[str, Any]) -> None:
    """Leave the vocabulary without an `<unk>`."""
    words = checkpoint["hornn"]["vocabulary"]["words"]
    words[words.index("<unk>")] = "\N{SNOWMAN}"
