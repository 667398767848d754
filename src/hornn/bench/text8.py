"""What the tables on text8 and its head take: some updates of each row on as many different random words."""

import math
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lightning.pytorch import Callback
from lightning.pytorch.loggers import CSVLogger

from hornn.bench import meter
from hornn.bench.meter import Row
from hornn.bench.plan import Plan
from hornn.bench.sections import Bench
from hornn.bench.work import draw_text, zipf_counts
from hornn.build import build_network
from hornn.data.streams import ChunkStream
from hornn.machine import peak_memory_mb
from hornn.metrics import WORDS
from hornn.places import CONF
from hornn.recipe import COUNTED, load, resolve
from hornn.run.keeper import RunKeeper
from hornn.run.process import set_up_process
from hornn.run.provenance import Starts
from hornn.run.train import build_module, build_trainer, quiet_libraries

TABLES = ("hornn_table3", "scrn_table3", "scrn_table4")
TRAINING_WORDS = 16_835_000  # 99 % of text8's 17,005,207
HEAD_TRAINING_WORDS = 1_053_278  # of the tables on its head, whose rows are the same


def text8(bench: Bench) -> list[Row]:
    """One row for each network of the tables; each of its two texts in a process of its own."""
    plan, rows = bench.plan, []
    for label, model, config in list(networks())[: plan.text8_rows]:
        whole = meter.apart(measure, config, plan, plan.large_vocab, TRAINING_WORDS)
        head = meter.apart(measure, config, plan, plan.head_vocab, HEAD_TRAINING_WORDS)
        rows.append({"work": label, "ours": model, **whole, "head_hours": head["hours"]})
    return rows


def networks() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Label, model and config of each row that trains a network; a row of two tables comes once."""
    seen: list[Any] = []
    for name in TABLES:
        base = load(CONF / "sweeps" / f"{name}.yaml")
        for row in base.pop("sweep")["rows"]:
            choices, config = resolve(row["run"], base)
            if not config["model"].get(COUNTED) and (choices, config) not in seen:
                seen.append((choices, config))
                yield row["label"], choices["model"], config


def measure(config: Mapping[str, Any], plan: Plan, vocab_size: int, words: int) -> Row:
    """Milliseconds of CPU time of an update, what follows for a text, and the memory of this process at most.

    words: how many the training text has.
    """
    set_up_process()
    quiet_libraries()
    columns, steps = config["data"]["batch_size"], config["data"]["seq_len"]
    warm_up = 1 + math.ceil((config["bptt_window"] or 0) / steps)
    ids = draw_text(vocab_size, (warm_up + plan.text8_updates) * columns * steps).numpy()
    corpus = SimpleNamespace(counts=zipf_counts(vocab_size), input_width=None, seq_len=steps, units=WORDS)
    network = build_network(config, corpus.counts)
    module = build_module(config, network, corpus)  # type: ignore[arg-type]
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        once = {"trainer": {**config["trainer"], "max_epochs": 1, "enable_progress_bar": False}}
        runner = build_trainer(once, RunKeeper(Path(folder), Starts({})), {}, [stopwatch])
        runner.logger = CSVLogger(folder)
        module.configure_optimizers()
        module.network.prepare(runner.strategy.root_device)
        some = ids[: columns * steps]
        runner.fit(module, ChunkStream(ids, 0, columns, steps), ChunkStream(some, 0, columns, steps))
    ms = 1e3 * (stopwatch.times[-1] - stopwatch.times[warm_up - 1]) / plan.text8_updates
    hours = 1e-3 * ms * math.ceil(math.ceil(words / columns) / steps) / 3600
    epochs = config["trainer"]["max_epochs"]
    peaks = {"peak_mb": peak_memory_mb(), "ms": ms, "speed": 1e3 * columns * steps / ms}
    return {**peaks, "epoch_hours": hours, "epochs": epochs, "hours": epochs * hours}


class Stopwatch(Callback):
    """The CPU time of this process at the end of each update: what other processes take does not count."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_end(self, *_: Any) -> None:
        self.times.append(time.process_time())
