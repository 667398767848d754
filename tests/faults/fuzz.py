"""Damaged files for every command that reads them: `PYTHONPATH=tests python -m faults.fuzz --seed 0`.

Each input ends well or with one line `error: ...`, within a time and a memory. What does not is printed with its seed,
kind and number; `--kind arpa --number 17` repeats one, and its file stays in the folder that is printed.
"""

import argparse
import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml

from faults.commands import ROOT, Ended, ForkServer
from faults.mutation import damage_bytes, damage_lines, damage_values
from faults.places import MEMORY, SECONDS, SMALL, Place, fault_of
from faults.sweeps import FAKE

TABLE = {
    "defaults": [{"override /experiment": "demo"}],
    "sweep": {
        "name": "table",
        "title": "A table",
        "paper": "no paper",
        "metric": "test_ppl",
        "metric_label": "perplexity",
        "lower_is_better": True,
        "seeds": [1],
        "rows": [
            {
                "name": "one",
                "label": "One",
                "run": ["model=rnn"],
                "published": {"value": 3.5, "verified": True, "source": "table 1"},
            },
            {"name": "two", "label": "Two", "run": ["model=hornn", "model.order=2"], "start": "one"},
            {"name": "none", "label": "None", "run": None, "state": "quoted"},
        ],
    },
    "trainer": {"max_epochs": 1},
}


class Inputs:
    """Good files and, for each kind, what is damaged and which commands read it."""

    def __init__(self, server: ForkServer, folder: Path, seed: int) -> None:
        self.server, self.seed, self.folder = server, seed, folder
        self.place = Place(server, folder)
        self.words = [*self.place.text, *SMALL, f"run_dir={folder / 'damaged'}"]
        self.run_dir = folder / "damaged"
        done = self.command(
            "evaluate", f"checkpoint={folder / 'counts' / 'best.ckpt'}", f"arpa={folder / 'good.arpa'}"
        )
        assert done.code == 0, done.err
        self.good = {
            name: torch.load(folder / run / f"{name}.ckpt", weights_only=True)
            for run, name in (("run", "best"), ("run", "last"))
        }
        self.counts = torch.load(folder / "counts" / "best.ckpt", weights_only=True)
        shutil.copytree(ROOT / "conf", folder / "conf", ignore=shutil.ignore_patterns("sweeps"))

    def command(self, entry: str, *words: str) -> Ended:
        cache = [f"data.cache_dir={self.folder / 'cache'}"] if entry == "evaluate" else []
        return self.server.run(entry, *cache, *words, folder=self.folder, seconds=SECONDS, memory=MEMORY)

    def try_one(self, kind: str, number: int) -> str | None:
        """What is wrong with how a command ends, if something is."""
        dice = random.Random(f"{self.seed} {kind} {number}")
        shutil.rmtree(self.run_dir, ignore_errors=True)
        self.run_dir.mkdir()
        make: Callable[[random.Random], Ended] = getattr(self, kind)
        return fault_of(make(dice), refused=False)

    # -- kinds -----------------------------------------------------------------------------------------------

    def checkpoint_bytes(self, dice: random.Random) -> Ended:
        name = dice.choice(("run/best.ckpt", "counts/best.ckpt"))
        path = self.run_dir / "best.ckpt"
        path.write_bytes(damage_bytes((self.folder / name).read_bytes(), dice))
        return self.read(path, dice)

    def checkpoint_values(self, dice: random.Random) -> Ended:
        path = self.run_dir / "best.ckpt"
        torch.save(damage_values(dice.choice((self.good["best"], self.counts)), dice), path)
        return self.read(path, dice)

    def read(self, path: Path, dice: random.Random) -> Ended:
        match dice.randrange(4):
            case 0:
                return self.command("generate", f"checkpoint={path}", "length=5")
            case 1:
                return self.command("train", *self.words, f"init_from={path}")
            case 2:
                return self.command("evaluate", f"checkpoint={path}", f"text={self.folder / 'test.txt'}")
        return self.command("evaluate", f"checkpoint={path}")

    def continued(self, dice: random.Random) -> Ended:
        """A run goes on from a damaged last.ckpt."""
        torch.save(damage_values(self.good["last"], dice), self.run_dir / "last.ckpt")
        shutil.copy(self.folder / "run" / "best.ckpt", self.run_dir)
        return self.command("train", *self.words)

    def arpa(self, dice: random.Random) -> Ended:
        path = self.run_dir / "damaged.arpa"
        damage = dice.choice((damage_lines, damage_lines, damage_bytes))
        path.write_bytes(damage((self.folder / "good.arpa").read_bytes(), dice))
        if dice.random() < 0.3:
            return self.command("generate", f"checkpoint={path}", "length=5")
        return self.command("evaluate", f"checkpoint={path}", f"text={self.folder / 'test.txt'}")

    def corpus(self, dice: random.Random) -> Ended:
        split, path = dice.choice(("train", "valid", "test")), self.run_dir / "damaged.txt"
        damage = dice.choice((damage_lines, damage_bytes))
        path.write_bytes(damage((self.folder / f"{split}.txt").read_bytes(), dice))
        if dice.random() < 0.3:
            run = dice.choice(("run", "counts"))
            return self.command("evaluate", f"checkpoint={self.folder / run / 'best.ckpt'}", f"text={path}")
        model = dice.choice(
            (["model=rnn"], ["model=kn", "model.order=2", "model.fallback_discounts=[0.5,1,1.5]"])
        )
        unit = dice.choice(("word", "char"))
        words = [word for word in self.words if not word.startswith((f"data.{split}=", "model."))]
        size = ["model.hidden_size=6"] if model == ["model=rnn"] else []
        return self.command("train", *words, *model, *size, f"data.unit={unit}", f"data.{split}={path}")

    def sweep_file(self, dice: random.Random) -> Ended:
        """Launched with jobs that cost nothing, or read for a report."""
        if dice.random() < 0.8:
            text = yaml.safe_dump(damage_values(TABLE, dice)).encode()
        else:
            text = damage_bytes(yaml.safe_dump(TABLE).encode(), dice)
        for folder in ("conf/sweeps", "sweeps"):
            (self.folder / folder).mkdir(exist_ok=True)
            (self.folder / folder / "table.yaml").write_bytes(b"# @package _global_\n" + text)
        shutil.rmtree(self.folder / "outputs", ignore_errors=True)
        if dice.random() < 0.3:
            return self.command("report", "--out", str(self.folder / "report"))
        options = [f"--config-dir={self.folder / 'conf'}", f"hydra.launcher.program={FAKE}"]
        return self.command("train", "-m", *options, "sweeps=table")

    def result_file(self, dice: random.Random) -> Ended:
        good = (self.folder / "run" / "result.json").read_bytes()
        damaged = (
            json.dumps(damage_values(json.loads(good), dice)).encode()
            if dice.random() < 0.8
            else damage_bytes(good, dice)
        )
        for name in ("best.ckpt", "last.ckpt"):
            shutil.copy(self.folder / "run" / name, self.run_dir)
        (self.run_dir / "result.json").write_bytes(damaged)
        if dice.random() < 0.5:
            return self.command("train", *self.words)
        return self.command(
            "evaluate", f"checkpoint={self.run_dir / 'best.ckpt'}", "dynamic_lr=0.1", "record=true"
        )

    def report_of_results(self, dice: random.Random) -> Ended:
        """A report, or the status of a sweep, over a damaged result, record or kept result."""
        shutil.rmtree(self.folder / "outputs", ignore_errors=True)
        (self.folder / "sweeps").mkdir(exist_ok=True)
        (self.folder / "sweeps" / "table.yaml").write_text("# @package _global_\n" + yaml.safe_dump(TABLE))
        good = json.loads((self.folder / "run" / "result.json").read_text())
        entry = {"row": "one", "seed": 1, "run_dir": "outputs/a", "overrides": [], "name": good["name"]}
        record = {"schema_version": 2, "sweep": "table", "jobs": [{**entry, "status": "done", "error": None}]}
        files: dict[str, Any] = {
            "outputs/a/result.json": good,
            "outputs/sweeps/table.json": record,
            "outputs/tables/table/one-seed1.json": good,
        }
        hit = dice.choice(sorted(files))
        for name, value in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(damage_values(value, dice) if name == hit else value))
        if dice.random() < 0.3:
            return self.command("sweep_status", *dice.choice(((), ("table",))))
        return self.command("report", *dice.choice((("--keep",), ("--out", str(self.folder / "report")))))


KINDS = (
    "checkpoint_bytes",
    "checkpoint_values",
    "continued",
    "arpa",
    "corpus",
    "sweep_file",
    "result_file",
    "report_of_results",
)


def run(inputs: Inputs, kinds: list[str], numbers: list[int] | None, seconds: float) -> list[str]:
    """Try inputs of these kinds in turn, until the time is over or all `numbers` are done; the faults found."""
    until, tried, faults = time.monotonic() + seconds, Counter[str](), []
    for number, kind in ((n, k) for n in (numbers or itertools.count()) for k in kinds):
        if time.monotonic() > until:
            break
        tried[kind] += 1
        if fault := inputs.try_one(kind, number):
            faults.append(f"--seed {inputs.seed} --kind {kind} --number {number}: {fault}")
            print(faults[-1], flush=True)
    done = ", ".join(f"{kind} {count}" for kind, count in tried.items())
    print(f"{tried.total()} inputs with seed {inputs.seed}, {len(faults)} with a fault ({done})")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kind", choices=KINDS, action="append", help="this kind alone; several times: these"
    )
    parser.add_argument("--number", type=int, help="this one input alone")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    server = ForkServer(folder)
    numbers = None if given.number is None else [given.number]
    faults = run(Inputs(server, folder, given.seed), given.kind or list(KINDS), numbers, given.seconds)
    server.close()
    if numbers:
        print(f"the damaged file is below {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
