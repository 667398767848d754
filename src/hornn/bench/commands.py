"""What a person waits for at a command line, as sections: the first output of a command, a whole table of runs."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hornn.bench.meter import Row
from hornn.bench.sections import Bench
from hornn.bench.work import Sizes, draw_text
from hornn.places import PACKAGE, script_of

USED = {"generate": ["length=1"], "evaluate": ["split=test"], "score": ["text=test.txt"]}


def start(bench: Bench) -> list[Row]:
    """The time to the first output of a command that reads a checkpoint, beside the import of torch."""
    meter = bench.meter._replace(others=lambda: None)  # a command is another process
    torch_alone = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    rows: list[Row] = []
    with corpus(Sizes(50, 8, 3, 4), 500) as (folder, words):
        first_output(
            command("train", *words, "model=hornn_fofe", "model.hidden_size=8", "run_dir=run"), folder
        )
        for name, keys in USED.items():
            ours = command(name, "checkpoint=run/best.ckpt", *keys)

            def sample(line: Sequence[str] = ours) -> float:
                return 1e3 * first_output(line, folder)

            def other() -> float:
                return 1e3 * first_output(torch_alone, folder)

            times = meter.compare(sample, other, bench.plan.few_rounds)
            rows.append({"work": name, "ours": "hornn_fofe", "other": "import torch", **times})
    return rows


def table(bench: Bench) -> list[Row]:
    """A table of two runs by the launcher, two at a time with a thread each, beside one at a time with all threads."""
    meter, sizes = bench.meter._replace(others=lambda: None), bench.plan.sizes
    rounds = min(bench.plan.few_rounds, 2)
    with corpus(sizes, bench.plan.table_tokens) as (folder, words):
        words += [
            f"model.hidden_size={sizes.hidden_size}",
            "model=hornn_fofe",
            "seed=1,2",
            "overwrite=true",
        ]

        def sample(jobs: int) -> float:
            started = time.perf_counter()
            first_output(command("train", "-m", *words, f"hydra.launcher.jobs={jobs}"), folder)
            return 1e3 * (time.perf_counter() - started)

        times = meter.compare(lambda: sample(2), lambda: sample(1), rounds)
    tokens = 2 * bench.plan.table_tokens
    speeds = {f"{side}_speed": 1e3 * tokens / times[f"{side}_ms"] for side in ("ours", "other")}
    names = {"work": "2 runs, 2 at a time", "ours": "hornn_fofe", "other": "1 at a time"}
    return [{**names, **times, **speeds}]


@contextmanager
def corpus(sizes: Sizes, tokens: int) -> Iterator[tuple[Path, list[str]]]:
    """A folder with a text of random words, and what has a command train on it for an epoch."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for split, share in (("train", 1.0), ("valid", 0.1), ("test", 0.1)):
            ids = draw_text(sizes.vocab_size, max(200, int(tokens * share)))
            lines = (" ".join(f"w{word}" for word in line.tolist()) for line in ids.split(20))
            (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")
        paths = [f"data.{split}={split}.txt" for split in ("train", "valid", "test")]
        columns = [f"data.batch_size={sizes.batch_size}", f"data.seq_len={sizes.seq_len}"]
        options = ["data.cache_dir=cache", "logger=csv", "trainer.max_epochs=1", "optimizer.lr=0.1"]
        yield folder, ["data=files", *paths, *columns, *options]


def command(name: str, *words: str) -> list[str]:
    return [sys.executable, str(script_of(PACKAGE / "commands" / f"{name}.py")), *words]


def first_output(line: Sequence[str], folder: Path) -> float:
    """Seconds until a command writes to its standard output, once it has ended well. ValueError where it did not."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    started = time.perf_counter()
    with subprocess.Popen(
        line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        seconds = time.perf_counter() - started
        _, said = process.communicate()
    if process.returncode:
        raise ValueError(
            f"{' '.join(line)} ended with {process.returncode}: {said.decode(errors='replace')[-500:]}"
        )
    return seconds
