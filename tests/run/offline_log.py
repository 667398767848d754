"""The log that W&B writes without a network."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def read_log(folder: Path) -> dict[str, Any]:
    """The last record of each kind in the one offline run below `folder`."""
    return dict(records_of(folder))


def records_of(folder: Path) -> list[tuple[str, Any]]:
    """All records of the one offline run below `folder`, each behind its kind."""
    (log,) = folder.rglob("*.wandb")
    words = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(log)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return [(record["type"], record[record["type"]]) for record in records if record["type"] in record]


def summary_of(folder: Path) -> dict[str, Any]:
    """What the summary of that run says in the end."""
    merged: dict[str, Any] = {}
    for kind, record in records_of(folder):
        if kind == "summary":
            merged |= record["update"]
    return merged
