"""A small sweep file, result files for it, and the table that they make."""

import json
from pathlib import Path
from typing import Any

from hornn.reporting.claims import NOT_MEASURED
from hornn.reporting.grid import table_grid
from hornn.reporting.inheritance import load_sweep
from hornn.reporting.lines import Line
from hornn.reporting.runs import find_runs
from hornn.reporting.sweeps import Sweep, define, read_sweeps
from hornn.reporting.tables import Table, build_tables

SWEEP = """
defaults:
  - override /experiment: toy/text
sweep:
  name: toy
  title: "Toy: order and pooling"
  paper: "Nobody 2000, table 1"
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1, 2]
  rows:
    - name: rnn
      label: "RNN"
      run: [model=rnn]
      published: {value: 123, verified: true, source: "table 1"}
      dynamic: true
    - name: sum-2
      label: "Sum, order 2"
      run: [model=hornn, model.order=2]
      published: {value: 111, verified: true, source: "table 1"}
      group: sum
      x: 2
    - name: sum-3
      label: "Sum, order 3"
      run: [model=hornn, model.order=3]
      published: {value: 108, verified: false, source: "recalled"}
      group: sum
      x: 3
    - name: max-2
      label: "Max, order 2"
      run: [model=hornn_max, model.order=2]
      published: {value: 110, verified: true, source: "table 1"}
      group: max
      x: 2
    - name: stack
      label: "Stack <RNN>"
      run: null
      state: not built
      published: {value: 110, verified: true, source: "table 1"}
  figure: {x_label: order}
"""

CLAIMS = """
  claims:
    - {says: "three beat two", better: sum-3, than: [sum-2, max-2], main: true}
    - {says: "little is gained over max", better: sum-3, than: max-2, at_most: 2}
    - {says: "max beats the RNN", better: max-2, than: rnn}
"""

PACE = """
defaults:
  - override /experiment: toy/text
sweep:
  name: pace
  title: "Pace"
  paper: "Somebody 2001"
  metric:
    - {key: valid_ppl, label: "validation"}
    - {key: metrics.-1.train_ppl, label: "training, with noise"}
    - {key: seconds_per_epoch, label: "seconds per epoch"}
    - {key: corpus.tokens.train, label: "tokens"}
  lower_is_better: true
  seeds: [1, 2]
  rows:
    - name: sum
      label: "Sum, order 2"
      run: [model=hornn, model.order=2]
      published: {valid_ppl: {value: 110, verified: true, source: "table 1"}}
    - {name: three, label: "Sum, order 3", run: [model=hornn, model.order=3]}
    - {name: max, label: "Max, order 2", run: [model=hornn_max, model.order=2]}
"""

CONF = {
    "config": "{defaults: [{model: rnn}, {experiment: null}, _self_], weight_noise: 0.0, hydra: {output_subdir: null}}",
    "experiment/toy/text": "{defaults: [override /data: text], optimizer: {lr: 1e-1}, trainer: {max_epochs: 20}}",
    "experiment/toy/speech": "{defaults: [/experiment/toy/text, _self_], optimizer: {lr: 0.2}}",
    "data/text": "{unit: word, root: '${oc.env:HOME}'}",
    "model/rnn": "{_target_: Rnn, hidden_size: 400}",
    "model/hornn": "{_target_: Hornn, hidden_size: 400, order: 3}",
    "model/hornn_max": "{_target_: MaxHornn, hidden_size: 400, order: 3}",
}


class Place:
    """A folder with sweep files, results and records."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sweeps, self.results = folder, folder / "sweeps", folder / "outputs"
        self.sweeps.mkdir()
        self.results.mkdir()
        self.write_sweep("toy", SWEEP)
        for name, text in CONF.items():
            path = folder / "conf" / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def write_sweep(self, name: str, text: str) -> Path:
        path = self.sweeps / f"{name}.yaml"
        path.write_text(text)
        return path

    def result(self, seed: int, test_ppl: float, **changes: Any) -> dict[str, Any]:
        return {
            "schema_version": 2,
            "status": "completed",
            "seed": seed,
            "num_parameters": 8_640_000,
            "name": "aaaa",
            "valid_ppl": test_ppl + 5,
            "test_ppl": test_ppl,
            "seconds_per_epoch": 12.5,
            "device": "cpu (abacus)",
            "commit": "1234567890",
            "dirty": False,
            "corpus": {"unit": "word", "valid_is_test": False},
            "metrics": [
                {"epoch": epoch, "seconds": 12.5, "valid_ppl": test_ppl + 20 / epoch} for epoch in (1, 2, 3)
            ],
            **changes,
        }

    def commit(
        self, row: str, seed: int, test_ppl: float = 100.0, sweep: str = "toy", **changes: Any
    ) -> Path:
        """A committed result."""
        path = self.results / "tables" / sweep / f"{row}-seed{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.result(seed, test_ppl, **changes)))
        return path

    def record(self, *jobs: dict[str, Any], sweep: str = "toy") -> Path:
        """A record of launched jobs; a job with `result` also has its run's file."""
        entries = []
        for job in jobs:
            result = job.pop("result", None)
            digest = (result or {}).get("name", job.pop("name", "aaaa"))
            run_dir = f"outputs/runs/{job['row']}/{digest}/seed={job['seed']}"
            if result:
                (self.folder / run_dir).mkdir(parents=True)
                (self.folder / run_dir / "result.json").write_text(json.dumps(result))
            entries.append({"run_dir": run_dir, "overrides": [], "name": digest, "error": None, **job})
        path = self.results / "sweeps" / f"{sweep}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"schema_version": 2, "sweep": sweep, "jobs": entries}))
        return path


def fill(place: Place) -> Place:
    """Committed results of three rows, one of them with two seeds, and an ad hoc sweep."""
    for row, seed, score in (
        ("sum-2", 1, 111.5),
        ("sum-2", 2, 112.5),
        ("sum-3", 1, 107.0),
        ("max-2", 1, 109.0),
    ):
        choices = {"model": "hornn_max" if row == "max-2" else "hornn", "data": "text"}
        place.commit(
            row, seed, score, num_parameters=9_640_000 if row == "max-2" else 8_640_000, choices=choices
        )
    place.record(
        {"row": "model=lstm", "seed": 1, "status": "done", "result": place.result(1, 77.0)}, sweep="adhoc-12"
    )
    return place


def fill_two(place: Place) -> Place:
    """Two tables: the runs of the sum stand in both, one with a pause; the maximum ran on two devices."""
    place.write_sweep("toy", SWEEP.replace("  figure:", CLAIMS + "  figure:", 1))
    place.write_sweep("pace", PACE)
    for seed, seconds in ((1, (10.0, 90.0, 10.0)), (2, (12.0, 12.0, 12.0))):
        metrics = [
            {"epoch": epoch, "seconds": taken, "valid_ppl": 120.0 - seed, "train_ppl": 50.0}
            for epoch, taken in enumerate(seconds, start=1)
        ]
        corpus = {"unit": "word", "name": "text", "tokens": {"train": 900_000}}
        result = {"corpus": corpus, "metrics": metrics, "seconds_per_epoch": sum(seconds) / 3}
        place.commit("sum-2", seed, 111.0 + seed, choices={"model": "hornn"}, **result)
        place.commit("sum-3", seed, 107.0, choices={"model": "hornn"}, **result)
        place.commit("max-2", seed, 109.0, **result)
        place.commit("max", seed, 109.0, sweep="pace", device="cpu (slide rule)", **result)
    return place


def read_sweep(path: Path) -> Sweep:
    """The table of one sweep file."""
    return define(path, load_sweep(path))


def table_of(place: Place, name: str = "toy", committed_only: bool = False) -> Table:
    sweeps = read_sweeps(place.sweeps)
    tables = build_tables(sweeps, find_runs(sweeps, place.results, committed_only))
    return next(table for table in tables if table.sweep.name == name)


def line_of(table: Table, row: str) -> Line:
    return next(line for line in table.lines if line.row.name == row)


def cells_of(table: Table, row: str) -> dict[str, str]:
    grid = table_grid(table)
    index = [line.row.name for line in table.lines].index(row)
    return dict(zip(grid.header, (cell.text for cell in grid.rows[index]), strict=True))


def claims_of(place: Place) -> list[str]:
    """The verdicts on the claims whose rows are measured, in words."""
    return [str(verdict) for verdict in table_of(place).verdicts if verdict.outcome != NOT_MEASURED]
