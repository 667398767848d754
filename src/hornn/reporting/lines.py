"""A line of a table: a row with its runs, what is missing of it, and what a reader must know of its numbers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from hornn.reporting.departures import DEPARTS_FROM_RECIPE, departures
from hornn.reporting.numbers import format_number
from hornn.reporting.runs import Run, commits, finish_time, takes_the_place
from hornn.reporting.scores import (
    ON_DEMAND,
    Score,
    best_by_validation,
    has_other_unit,
    is_at_limit,
    metric_value,
)
from hornn.reporting.sweeps import Metric, Row, Sweep
from hornn.result import content_of
from hornn.run.code import CLASS, CODE, SOURCE
from hornn.run.identity import INIT_FROM

CONFLICT = "conflict"
SECONDS = "seconds_per_epoch"
TIMES = (SECONDS, "wall_seconds", "tokens_per_second")


class Line(NamedTuple):
    """A row with its runs. `status` says in words what is missing, empty where nothing is; `marks` what to know."""

    row: Row
    scores: Mapping[str, Score]
    runs: tuple[Run, ...]
    status: str
    marks: tuple[str, ...]
    parameters: float | None
    seconds: float | None
    devices: tuple[str, ...]

    @property
    def measured(self) -> tuple[Run, ...]:
        """The runs that its numbers come from."""
        return tuple(run for run in self.runs if run.state == "done") if self.status != CONFLICT else ()

    @property
    def best(self) -> Run | None:
        return best_by_validation(self.measured)


def data_read(line: Line) -> tuple[str, str]:
    """The corpus of a measured row, and what its runs read of it: words or characters, in which splits."""
    corpus = line.measured[0].result.get("corpus") or {}
    return str(corpus.get("name", "")), content_of(corpus)  # of a stranger's file all may be anything


def by_data(lines: Iterable[Line]) -> dict[tuple[str, str], list[Line]]:
    """The measured rows, by the data that they read."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.measured:
            groups.setdefault(data_read(line), []).append(line)
    return groups


def on_one_device(metric: str, lines: Iterable[Line]) -> bool:
    """Whether measured rows compare by this metric as far as their devices go: by a time only on one and the same."""
    return metric not in TIMES or len({device for line in lines for device in line.devices}) < 2


def tells(result: Mapping[str, Any], metric: str) -> bool:
    """Whether a result's number counts: a time only if the run had its GPU for itself."""
    return metric not in TIMES or not shared_its_gpu(result)


def what_differs(pair: Sequence[Line], metric: str) -> str:
    """Why no number of one measured row compares with the other's, in words; empty where they compare."""
    if not on_one_device(metric, pair):
        return "on different devices"
    return "on different data" if len(by_data(pair)) > 1 else ""


def build_line(row: Row, sweep: Sweep, runs: Sequence[Run], starts: Mapping[str, Sequence[Run]]) -> Line:
    """`starts`: the runs of each row that this one starts from."""
    configs = {run.name for run in runs if run.result}
    conflict = len(configs) > 1 or len({run.source for run in runs if run.source}) > 1
    done = [] if conflict else [run for run in runs if run.state == "done"]
    best = best_by_validation(done)
    devices = sorted({str(run.result.get("device") or "unknown") for run in done})
    seconds = least_seconds(done) if len(devices) == 1 else None
    scores, marks = {}, []
    for metric in sweep.metrics:
        if row.published and metric.key not in row.published and metric.key in sweep.published_of_runs:
            continue
        if any(has_other_unit(metric, sweep, run.result) for run in done):
            continue
        if metric.key == SECONDS:
            counted = () if seconds is None else times_of(done) if times_each_run(sweep) else (seconds,)
            scores[SECONDS] = Score(row.published.get(SECONDS), counted, seconds)
            continue
        compares = metric.key not in TIMES or len(devices) < 2
        told = [run for run in done if compares and tells(run.result, metric.key)]
        values = tuple(value for run in told if (value := metric_value(run.result, metric.key)) is not None)
        if len(values) < len(told) and (values or not metric.key.startswith(ON_DEMAND)):
            marks.append(f"{len(told) - len(values)} of its {len(done)} results hold no {metric.key}")
        top = metric_value(best.result, metric.key) if best and best in told else None
        at_limit = any(is_at_limit(run.result, metric.key) for run in done)
        scores[metric.key] = Score(row.published.get(metric.key), values, top, at_limit)
    return Line(
        row,
        scores,
        tuple(runs),
        CONFLICT if conflict else state_in_words(row, row.seeds or sweep.seeds, runs),
        (*marks, *remarks(row, runs, done, devices, starts), *run_again(runs, sweep.metrics)),
        done[0].result["num_parameters"] if done else None,
        seconds,
        tuple(devices),
    )


def times_each_run(sweep: Sweep) -> bool:
    """Whether its table is about the time of an epoch, so that each run has the machine for itself.

    Elsewhere only the fastest run of a row tells of its speed.
    """
    return sweep.metrics[0].key == SECONDS


def shared_its_gpu(result: Mapping[str, Any]) -> bool:
    """Whether it ran on a GPU that it may not have had for itself: its times then say nothing."""
    device = str(result.get("device") or "cpu")
    return not device.startswith("cpu") and result.get("runs_on_gpu") != 1


def least_seconds(runs: Iterable[Run]) -> float | None:
    """Seconds of the median epoch of the fastest run: it shared the machine with least. None where not known."""
    return min(times_of(runs), default=None)


def times_of(runs: Iterable[Run]) -> tuple[float, ...]:
    """Seconds of the median epoch of each run of which they are known."""
    return tuple(seconds for run in runs if (seconds := epoch_seconds(run.result)))


def epoch_seconds(result: Mapping[str, Any]) -> float | None:
    """Seconds of the median whole epoch: a run may have been paused in one of them, or have shared its processor.

    None where it shared its GPU.
    """
    if shared_its_gpu(result):
        return None
    records = result.get("metrics") or ()
    ends = [0, *map(epochs_at, records)]  # `trainer.max_steps` may end a run within an epoch
    taken = (
        record.get("seconds")
        for record, (begin, end) in zip(records, pairwise(ends), strict=True)
        if end - begin == 1
    )
    seconds = [value for value in taken if isinstance(value, int | float)]
    found: float | None = median(seconds) if seconds else result.get(SECONDS)
    return found


def epochs_at(record: Mapping[str, Any]) -> float:
    """How many epochs a run had made at a record; 0 where the record does not say so."""
    epoch = record.get("epoch")
    return epoch if isinstance(epoch, int | float) else 0


def training_seconds(result: Mapping[str, Any], each: float | None = None) -> float:
    """Its epochs, at `each` seconds, else at the time of its median one; 0 where that is not known."""
    seconds = epoch_seconds(result) if each is None else each
    return max(map(epochs_at, result.get("metrics") or ()), default=0) * (seconds or 0.0)


def state_in_words(row: Row, seeds: Collection[int], runs: Sequence[Run]) -> str:
    """What is missing of a row: one word, or seeds with theirs where they differ; empty where nothing is."""
    if row.run is None:
        return row.state or ""
    states = dict.fromkeys(seeds, "not run")
    for run in runs:
        if states.get(run.seed) != "done":
            states[run.seed] = run.state
    if len(set(states.values())) == 1:
        word = next(iter(states.values()))
        return "" if word == "done" else word
    missing = by_seed((state, seed) for seed, state in sorted(states.items()) if state != "done")
    return ", ".join(f"{seeds_named(seeds)} {state}" for state, seeds in missing.items())


def remarks(
    row: Row,
    runs: Sequence[Run],
    done: Sequence[Run],
    devices: Sequence[str],
    starts: Mapping[str, Sequence[Run]],
) -> Iterable[str]:
    """What a reader must know of the runs; `done`: the runs that the row's numbers come from."""
    whole = [run for run in runs if run.state != "damaged"]
    rivals = rival_seeds(runs)
    can_keep = bool(rivals) and all(one_would_be_kept(row, runs, seed) for seed in rivals)
    keep = "`python src/report.py --keep` keeps one run of a seed" if can_keep else ""
    configs = by_seed((run.name, run.seed) for run in whole)
    sources = by_seed((run.source, run.seed) for run in whole)
    if len(configs) > 1 and len({run.name for run in runs if run.result}) > 1:
        remedy = keep or "run the seeds that depart again, by the row's own command"
        yield f"runs of different configs are not averaged ({told_by_seed(configs)}): {remedy}"
    elif len(configs) > 1:
        yield f"its runs on record are of different configs ({told_by_seed(configs)})"
    if len(sources) > 1:
        remedy = keep or "overwrite=true trains a seed anew"
        yield f"runs of different sources are not averaged ({told_by_seed(sources)}): {remedy}"
    finished = [run for run in runs if run.state == "done"]
    departed = by_seed(
        (item, run.seed)
        for run in finished
        for item in (
            *departures(row.recipe, run.result),
            *other_start(row, run, starts),
        )
    )
    if departed:
        each = [
            item if len(seeds) == len(finished) else f"{item} (seed {', '.join(map(str, seeds))})"
            for item, seeds in departed.items()
        ]
        yield f"{DEPARTS_FROM_RECIPE}: {'; '.join(each)}"
    older = by_seed((name, run.seed) for run in done for name in row.start if is_older(run, starts[name]))
    for name, seeds in older.items():
        which = seeds_named(seeds)
        yield f"{name} was trained anew after {which} of this row began: overwrite=true starts from the new weights"
    if len(commits(done)) > 1:
        yield "its seeds come from several commits, which their files name"
    if any(run.result.get("dirty") for run in done):
        yield "from a working tree with changes that are not committed"
    # Older results have none.
    codes = [code for run in done if (code := run.result.get(CODE) or {}).get(SOURCE)]
    if len({code[SOURCE] for code in codes}) > 1:
        yield f"its seeds come from several sources of {codes[0].get(CLASS)}, which their files name"
    if any(run.result.get("corpus", {}).get("valid_is_test") for run in done):
        rate = (
            ", so is the learning rate of dynamic evaluation"
            if any("dynamic" in run.result for run in done)
            else ""
        )
        yield f"validation reads the test text: the best epoch and the best seed are chosen on it{rate}"
    if len({(run.result.get("dynamic") or {}).get("seq_len") for run in done} - {None}) > 1:
        yield "its seeds learned from the test text by chunks of different lengths"
    if len(devices) > 1:
        yield "its seeds ran on different devices: no time is given"
    elif any(shared_its_gpu(run.result) for run in done):
        yield "its GPU was shared with other runs: no time is given"
    for run in runs:
        if run.problem and run.state != "done":
            yield f"seed {run.seed} {run.state}: {f'{run.path}: ' if run.state == 'damaged' else ''}{run.problem}"


def rival_seeds(runs: Iterable[Run]) -> set[int]:
    """The seeds that have several results, of different configs or sources."""
    seeds = [run.seed for run in runs if run.result]
    return {seed for seed in seeds if seeds.count(seed) > 1}


def one_would_be_kept(row: Row, runs: Iterable[Run], seed: int) -> bool:
    """Whether a later result of a seed takes the place of its first one."""
    first, *others = (run for run in runs if run.result and run.seed == seed)
    return any(takes_the_place(row, other, first) for other in others)


def run_again(runs: Iterable[Run], metrics: Iterable[Metric]) -> Iterable[str]:
    """What the same run came to here, where a committed result of it counts."""
    for run in runs:
        if again := run.again:
            numbers = [
                f"{metric.label} {format_number(metric.key, value)}"
                for metric in metrics
                if metric.key not in TIMES and (value := metric_value(again.result, metric.key)) is not None
            ]
            came_to = ", ".join(numbers) if again.state == "done" else again.state
            yield f"seed {run.seed} was also run here, and the committed result counts: {came_to} ({again.path})"


def by_seed(marked: Iterable[tuple[str | None, int]]) -> dict[str, list[int]]:
    """Each mark, if there is one, with the seeds of its runs."""
    found: dict[str, list[int]] = {}
    for mark, seed in marked:
        if mark:
            found.setdefault(mark, []).append(seed)
    return found


def seeds_named(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def told_by_seed(marked: Mapping[str, Sequence[int]]) -> str:
    return "; ".join(f"{mark}: seed {', '.join(map(str, seeds))}" for mark, seeds in marked.items())


def other_start(row: Row, run: Run, starts: Mapping[str, Sequence[Run]]) -> Iterable[str]:
    """The weights that a run started from, where no run of its seed in the rows that it should start from left them.

    Where all are of these rows, the rows of which none is given.
    """
    trained = {name: {start.name for start in starts[name] if start.seed == run.seed} for name in row.start}
    given = (run.result.get("config") or {}).get(INIT_FROM)
    paths = [path for path in (given if isinstance(given, list) else [given]) if isinstance(path, str)]
    found = {path: [name for name in row.start if trained[name] & {*Path(path).parts}] for path in paths}
    for path, names in found.items():
        if row.start and not names:
            yield f"{INIT_FROM}={path}, no run of {' or '.join(row.start)} with this seed"
    if found and all(found.values()):
        known = {name for names in found.values() for name in names}
        for name in row.start:
            if name not in known:
                yield f"{INIT_FROM} names no run of {name} with this seed"


def is_older(run: Run, starts: Sequence[Run]) -> bool:
    """Whether a run began before the run of its seed finished whose weights it should start from."""
    began = next((start.get("started") for start in run.result.get("starts") or ()), None)
    return began is not None and any(
        start.seed == run.seed and start.state == "done" and finish_time(start) > began for start in starts
    )


def departures_of(line: Line) -> tuple[str, ...]:
    """How its results depart from the recipe of its row; empty where they keep to it."""
    return tuple(mark for mark in line.marks if mark.startswith(DEPARTS_FROM_RECIPE))


def by_one_recipe(lines: Sequence[Line]) -> bool:
    """Whether the results keep to the recipes of their rows, or all depart from them alike."""
    return len({departures_of(line) for line in lines}) == 1
