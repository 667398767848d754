"""The record of a run's epochs, `metrics.csv` in its folder: written after each epoch, read by whoever watches."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from hornn.result import LARGEST
from hornn.writing import write_atomically

METRICS = "metrics.csv"
ELAPSED = "elapsed_seconds"  # what loggers are told: the seconds of all epochs so far, of earlier starts, too

Epoch = dict[str, float]  # the measurements of one epoch


def write_epochs(run_dir: Path, epochs: Sequence[Epoch]) -> None:
    """Write one row for each epoch, every number in full precision; what an epoch does not measure is empty."""
    buffer = io.StringIO()
    measured = dict.fromkeys(key for epoch in epochs for key in epoch)
    writer = csv.DictWriter(buffer, fieldnames=list(measured), lineterminator="\n")
    writer.writeheader()
    writer.writerows(epochs)
    write_atomically(run_dir / METRICS, buffer.getvalue())


def read_epochs(run_dir: Path) -> list[Epoch]:
    """The epochs so far, in order, less what is no number, or too large for a report, and a last line without its end.

    There are none before the first epoch's end, and none in a file that cannot be read.
    """
    path = run_dir / METRICS
    try:
        if not path.is_file():  # a pipe has no end
            return []
        text = path.read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1])))
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
    return [numbers_of(row) for row in rows]


def numbers_of(row: Mapping[str, str]) -> Epoch:
    """The cells of a row that hold numbers."""
    numbers = {}
    for key, text in row.items():
        try:
            number = float(text)
        except (TypeError, ValueError):
            continue
        if abs(number) <= LARGEST:
            numbers[key] = number
    return numbers
