"""What `src/bench.py` does: measure, keep, compare, show."""

import json
import os
import platform
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from hornn.bench.changes import compare_rows, find_slower, render_changes
from hornn.bench.meter import Meter, clock_of
from hornn.bench.plan import FULL, QUICK, Plan
from hornn.bench.sections import Bench
from hornn.bench.tables import (
    SECTIONS,
    render,
    render_alone,
    render_ratios,
    render_section,
)
from hornn.bench.work import Sizes
from hornn.blocks import Writers, renew_pages
from hornn.checks import require_choice, require_positive
from hornn.kernels.recorded import RECURS
from hornn.machine import processor, processor_flags
from hornn.run.process import set_up_process
from hornn.writing import require_writable, write_atomically

SCHEMA_VERSION = 1
NEEDS = {"roofline": "step"}
# Sections that a GPU's benchmark leaves out.
OF_THE_CPU = {"roofline", "loops", "start", "table", "text8"}
WARM_UP = {"cuda": RECURS + 2}  # times that a GPU does a work before it is measured: it records what recurs
CONTENTS = {"date": str, "machine": dict, "sizes": dict, "rounds": dict, "filtered": bool, "rows": list}
# What is told of the machine, beside its processor.
ON = {"environment", "memory_gb", "system", "torch", "python"}


def run(
    out: Path,
    against: Path | None = None,
    only: Collection[str] = tuple(SECTIONS),
    plan: Plan = FULL,
    device: str = "cpu",
) -> None:
    """Measure the sections of `only`, print each table, write `<out>.json` and `<out>.md` after each.

    device: cpu, or cuda, which leaves out what concerns the CPU alone. Then print how the rows compare with the rows of
    the file `against`; ValueError where one got slower by more than its spread. Raises ValueError or OSError before any
    measurement for what cannot be read, chosen or written.
    """
    names = choose_sections(only, device)
    then = read(against) if against else None
    if then and then["sizes"] != plan.sizes._asdict():
        raise ValueError(f"{against} was measured at {Sizes(**then['sizes'])}, this would be at {plan.sizes}")
    if plan.seconds and os.environ.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE":
        raise ValueError(
            "OMP_WAIT_POLICY=PASSIVE makes torch's layers two to three times slower in short steps: unset it"
        )
    if not out.name:
        raise ValueError(f"--out must be FOLDER/NAME, got {out}")
    out.parent.mkdir(parents=True, exist_ok=True)
    for path in (out.with_name(f"{out.name}.json"), out.with_name(f"{out.name}.md")):
        if path.is_dir():
            raise ValueError(f"{path} is a folder: give another --out FOLDER/NAME")
        require_writable(path)
    set_up_process()  # as training does; torch's own layers, in this process, profit too
    torch.manual_seed(0)
    where = torch.device(device)
    meter = Meter(plan.seconds, WARM_UP.get(where.type, 1), clock_of(where))
    bench = Bench(plan, meter, [], where)
    if device == "cuda":
        left_out = ", ".join(sorted(OF_THE_CPU))
        print(f"left out, as they are about the CPU: {left_out}", file=sys.stderr, flush=True)
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows = [{"section": name, **row} for row in SECTIONS[name].measure(bench)]
        bench.rows.extend(rows)
        results = report(bench)
        write_atomically(out.with_name(f"{out.name}.json"), json.dumps(results, indent=1) + "\n")
        write_atomically(out.with_name(f"{out.name}.md"), render(results) + "\n")
        print(f"{render_section(name, rows)}\n", flush=True)
    if then:
        now = report(bench)
        print(render_changes(now, then))
        if slower := find_slower(compare_rows(now["rows"], then["rows"])):
            raise ValueError(f"slower than in {against}, by more than the spread: {'; '.join(slower)}")


def choose_plan(quick: bool, rounds: int | None) -> Plan:
    """The whole plan or its small model; `rounds` bounds the rounds of a series too. ValueError for rounds < 1."""
    plan = QUICK if quick else FULL
    if rounds is None:
        return plan
    require_positive(rounds=rounds)
    return plan._replace(rounds=rounds, few_rounds=min(rounds, plan.few_rounds))


def choose_sections(only: Collection[str], device: str = "cpu") -> list[str]:
    """The chosen sections in order, and the sections that they need; on cuda without the sections about the CPU.

    Raises ValueError for an unknown name, for a device that is not there, and where no section is left.
    """
    require_choice("--device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda needs a CUDA device and this machine has none: leave it out")
    for name in only:
        if name not in SECTIONS:
            raise ValueError(f"there is no section {name!r}: --only takes {', '.join(SECTIONS)}")
    left = set(only) - (OF_THE_CPU if device == "cuda" else set())
    if not left:
        raise ValueError(f"{', '.join(only)} would measure the CPU: leave out --device cuda")
    needed = {NEEDS[name] for name in left if name in NEEDS}
    return [name for name in SECTIONS if name in left | needed]


def report(bench: Bench) -> dict[str, Any]:
    """All that the JSON file holds."""
    from hornn.run.provenance import commit, device_name

    plan = bench.plan
    return {
        "schema_version": SCHEMA_VERSION,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **commit(),
        "machine": machine(),
        **({"device": device_name(bench.device)} if bench.device.type == "cuda" else {}),
        "sizes": plan.sizes._asdict(),
        "rounds": {"most": plan.rounds, "series": plan.few_rounds},
        "filtered": bench.meter.others() is not None,
        "rows": bench.rows,
    }


def machine() -> dict[str, Any]:
    """The processor, its extensions for matrices and vectors, the threads and what steers them, the versions."""
    return {
        "processor": processor(),
        "flags": [
            flag
            for flag in processor_flags()
            if flag.startswith(("avx", "amx", "fma", "sve", "asimd", "bf16"))
        ],
        "threads": torch.get_num_threads(),
        "environment": {
            key: value
            for key, value in sorted(os.environ.items())
            if key.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))
        },
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def read(path: Path) -> dict[str, Any]:
    """The results that `run` wrote. ValueError where the file is missing, damaged or of another schema."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        version = results["schema_version"]
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}): give a JSON file of this benchmark"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged or no file of this benchmark ({error!r})") from error
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"{path} has schema version {version}, this program reads {SCHEMA_VERSION}: measure again"
        )
    wrong = [key for key, kind in CONTENTS.items() if not isinstance(results.get(key), kind)]
    if not wrong and set(results["sizes"]) != set(Sizes._fields):
        wrong = ["sizes"]
    if not wrong and not results["machine"].keys() >= ON:
        wrong = ["machine"]
    if not wrong and not all(map(is_row, results["rows"])):
        wrong = ["rows"]
    if wrong:
        raise ValueError(f"{path} is damaged: {', '.join(wrong)} cannot be understood; measure again")
    assert isinstance(results, dict)
    return results


def is_row(row: Any) -> bool:
    """Whether it is a row of a known section; what took a time or memory has its ratio to the other side."""
    known = isinstance(row, dict) and row.get("section") in SECTIONS
    return known and ("ratio" in row or not row.keys() & {"ours_ms", "ours_mb"})


def renew(folder: Path, source: Path) -> list[Path]:
    """Write the tables of a JSON file, and three ratios of them, into the pages of `folder` that have blocks for them.

    The tables of another machine stand in the file that their block names, beside this one. What text8's tables take
    has a block of its own. The pages that changed. ValueError where a file cannot be read or a block is wrong.
    """
    results = read(source)
    shown = [name for name in SECTIONS if name != "text8"]

    def named(words: list[str]) -> dict[str, Any]:
        return read(source.with_name(f"{words[0]}.json")) if words else results

    def tables(words: list[str]) -> str:
        return render(named(words), choose_sections(words[1:] or shown))

    writers: Writers = {
        "speed": tables,
        "ratios": lambda _: render_ratios(results),
        "text8": lambda words: render_alone("text8", named(words)),
    }
    return renew_pages(folder, lambda _: writers)
