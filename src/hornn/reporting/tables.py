"""A table: for each row the published numbers and ours, what is missing and why, and whether the orders agree."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hornn.metrics import bits
from hornn.reporting.recipe import INIT_FROM, departures
from hornn.reporting.runs import Finding, Run, commits
from hornn.reporting.sweeps import Claim, Metric, Published, Row, Sweep

CONFLICT = "conflict"
DEPARTS = "departs from the recipe"
ON_REQUEST = "dynamic."  # scores that a run has only where somebody asked for them
FAR = 0.1  # how much worse than published a result is, for a claim to say so
CONFIRMED, REFUTED = "confirmed", "not confirmed"
IN_DIRECTION = "confirmed in direction, with less than half of the gain"
UNDECIDED = "not decided: under three standard errors"
DECISIVE = 3  # standard errors
FREEDOM = 4  # how many seeds beyond the first of their row a spread over seeds is taken from, at least


class Score(NamedTuple):
    """One metric of one row: what was published, ours by seed, ours of the seed that validation finds best."""

    published: Published | None
    values: tuple[float, ...]
    best: float | None

    @property
    def mean(self) -> float | None:
        return fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Of the sample: divided by n - 1."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        if self.mean is None or self.published is None or self.published.value is None:
            return None
        return self.mean - self.published.value

    @property
    def relative(self) -> float | None:
        """(ours - published) / published."""
        if self.difference is None or self.published is None or not self.published.value:
            return None
        return self.difference / self.published.value


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
        return choose(self.measured)


class Verdict(NamedTuple):
    """What became of a claim, each part in words; `published` is empty where the paper gives no number."""

    says: str
    published: str
    ours: str
    outcome: str

    def __str__(self) -> str:
        published = f" Published: {self.published}." if self.published else ""
        return f"Claim: {self.says}.{published} Ours: {self.ours}: {self.outcome}."


class Table(NamedTuple):
    """`orders` says of each metric whether our order of the rows is the paper's."""

    sweep: Sweep
    lines: tuple[Line, ...]
    orders: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...]

    @property
    def short_title(self) -> str:
        return self.sweep.title.partition(":")[0]

    @property
    def comparisons(self) -> list[str]:
        """What the numbers say beside the paper's, in sentences."""
        return [*self.orders, *map(str, self.verdicts)]

    @property
    def compared(self) -> list[Score]:
        """The scores that can be set beside a published number.

        Not those by dynamic evaluation, which ours do without, nor times, which are another machine's.
        """
        return [
            score
            for line in self.lines
            for key, score in line.scores.items()
            if score.relative is not None and not line.row.dynamic and not key.startswith("seconds")
        ]

    def count(self, outcome: str) -> int:
        """How many of the paper's claims have this outcome."""
        return sum(verdict.outcome == outcome for verdict in self.verdicts)

    @property
    def measured(self) -> int:
        return sum(bool(line.measured) for line in self.lines)

    @property
    def runnable(self) -> int:
        return sum(line.row.run is not None for line in self.lines)

    @property
    def devices(self) -> list[str]:
        return sorted({device for line in self.lines for device in line.devices})

    @property
    def commits(self) -> list[str]:
        return commits([run for line in self.lines for run in line.measured])


def build_tables(sweeps: Sequence[Sweep], found: Finding) -> list[Table]:
    """Tables with results first, those before that bear most claims; then tables that can be run."""
    tables = [build_table(sweep, found) for sweep in sweeps]
    return sorted(tables, key=lambda table: (table.measured == 0, table.runnable == 0, -len(table.verdicts)))


def build_table(sweep: Sweep, found: Finding) -> Table:
    runs = {
        row.name: sorted(found.runs.get(row.identity, []), key=lambda run: run.seed)
        if row.run is not None
        else []
        for row in sweep.rows
    }
    lines = tuple(
        build_line(row, sweep, runs[row.name], runs[row.start] if row.start else ()) for row in sweep.rows
    )
    orders = tuple(filter(None, (compare(metric, sweep, lines) for metric in sweep.metrics)))
    verdicts = tuple(filter(None, (judge(claim, sweep, lines) for claim in sweep.claims)))
    return Table(sweep, lines, orders, verdicts, tuple(found.warnings.get(sweep.name, ())))


def build_line(row: Row, sweep: Sweep, runs: Sequence[Run], starts: Sequence[Run]) -> Line:
    """`starts`: the runs of the row that this one starts from."""
    configs = {run.config_hash: run.seed for run in runs if run.result}
    conflict = len(configs) > 1
    done = [] if conflict else [run for run in runs if run.state == "done"]
    best = choose(done)
    scores, marks = {}, []
    for metric in sweep.metrics:
        if row.published and metric.key not in row.published and metric.key in sweep.published:
            continue
        if any(told_in_other_unit(metric, sweep, run.result) for run in done):
            continue
        values = tuple(value for run in done if (value := measure(run.result, metric.key)) is not None)
        if len(values) < len(done) and (values or not metric.key.startswith(ON_REQUEST)):
            marks.append(f"{len(done) - len(values)} of its {len(done)} results hold no {metric.key}")
        top = measure(best.result, metric.key) if best else None
        scores[metric.key] = Score(row.published.get(metric.key), values, top)
    devices = sorted({str(run.result.get("device") or "unknown") for run in done})
    seconds = [float(value) for run in done if (value := run.result.get("seconds_per_epoch"))]
    return Line(
        row,
        scores,
        tuple(runs),
        CONFLICT if conflict else state_in_words(row, sweep.seeds, runs),
        (*marks, *remarks(row, runs, done, devices, starts)),
        float(done[0].result["num_parameters"]) if done else None,
        fmean(seconds) if seconds and len(devices) == 1 else None,
        tuple(devices),
    )


def measure(result: Mapping[str, Any], key: str) -> float | None:
    """A number of result.json; None where it has none. `corpus.tokens.train` and `metrics.-1.train_ppl` lead inside."""
    if key.endswith("_bpc"):
        perplexity = measure(result, key.removesuffix("_bpc") + "_ppl")
        return bits(math.log(perplexity)) if perplexity and of_characters(result) else None
    value: Any = result
    for word in key.split("."):
        if isinstance(value, list) and value and word == "-1":
            value = value[-1]
        else:
            value = value.get(word) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) else None


def of_characters(result: Mapping[str, Any]) -> bool:
    return bool(result.get("corpus", {}).get("unit") == "char")


def told_in_other_unit(metric: Metric, sweep: Sweep, result: Mapping[str, Any]) -> bool:
    """Whether a table of both has the bits of characters, or the perplexity of words, in the place of this."""
    name, _, unit = metric.key.rpartition("_")
    unfit, fit = ("ppl", "bpc") if of_characters(result) else ("bpc", "ppl")
    return unit == unfit and any(other.key == f"{name}_{fit}" for other in sweep.metrics)


def choose(runs: Iterable[Run]) -> Run | None:
    """The run with the lowest validation perplexity: the test text has no say in it."""
    judged = [run for run in runs if measure(run.result, "valid_ppl") is not None]
    return min(judged, key=lambda run: run.result["valid_ppl"], default=None)


def state_in_words(row: Row, seeds: Collection[int], runs: Sequence[Run]) -> str:
    """What is missing of a row: one word, or a word for each seed where they differ; empty where nothing is."""
    if row.run is None:
        return row.state or ""
    states = dict.fromkeys(seeds, "not run")
    for run in runs:
        if states.get(run.seed) != "done":
            states[run.seed] = run.state
    if len(set(states.values())) == 1:
        word = next(iter(states.values()))
        return "" if word == "done" else word
    return ", ".join(f"seed {seed} {state}" for seed, state in sorted(states.items()) if state != "done")


def remarks(
    row: Row, runs: Sequence[Run], done: Sequence[Run], devices: Sequence[str], starts: Sequence[Run]
) -> Iterable[str]:
    configs: dict[str, list[int]] = {}
    for run in runs:
        if run.config_hash and run.state != "damaged":
            configs.setdefault(run.config_hash, []).append(run.seed)
    if len(configs) > 1:
        each = "; ".join(f"{digest}: seed {', '.join(map(str, seeds))}" for digest, seeds in configs.items())
        yield f"runs of different configs are not averaged ({each})"
    departed = dict.fromkeys(
        item
        for run in done
        for item in (
            *departures(row.recipe, run.result.get("config") or {}),
            *other_start(row, run, starts),
        )
    )
    if departed:
        yield f"{DEPARTS}: {'; '.join(departed)}"
    if len(commits(done)) > 1:
        yield "its seeds come from several commits, which their files name"
    if any(run.result.get("dirty") for run in done):
        yield "from a working tree with changes that are not committed"
    if any(run.result.get("corpus", {}).get("valid_is_test") for run in done):
        rate = (
            ", so is the rate of dynamic evaluation" if any("dynamic" in run.result for run in done) else ""
        )
        yield f"validation reads the test text: the best epoch and the best seed are chosen on it{rate}"
    if len({(run.result.get("dynamic") or {}).get("seq_len") for run in done} - {None}) > 1:
        yield "its seeds learned from the test text by chunks of different lengths"
    if len(devices) > 1:
        yield "its seeds ran on different devices: no time is given"
    for run in runs:
        if run.problem and run.state != "done":
            yield f"seed {run.seed} {run.state}: {f'{run.path}: ' if run.state == 'damaged' else ''}{run.problem}"


def other_start(row: Row, run: Run, starts: Sequence[Run]) -> Iterable[str]:
    """The weights that a run started from, where no run of its seed in the row that it should start from left them."""
    path = (run.result.get("config") or {}).get(INIT_FROM)
    trained = {start.config_hash for start in starts if start.seed == run.seed}
    if row.start and path and trained.isdisjoint(Path(path).parts):
        yield f"{INIT_FROM}={path}, no run of {row.start} with this seed"


# -- the order of models -------------------------------------------------------------------------------------


def compare(metric: Metric, sweep: Sweep, lines: Sequence[Line]) -> str:
    """Whether our order of the rows is the paper's, in words; empty with fewer than two rows to compare.

    Rows whose published number used dynamic evaluation are left out: ours does without.
    """
    both = [
        (line, score.published.value, score.mean)
        for line in lines
        if (score := line.scores.get(metric.key))
        and not line.row.dynamic
        and score.published is not None
        and score.published.value is not None
        and score.mean is not None
    ]
    if len(both) < 2:
        return ""
    compared, theirs, ours = zip(*both, strict=True)
    if not by_one_recipe(compared):
        return f"{len(both)} rows have both numbers ({metric.label}), but not all of ours are by one recipe."
    labels = [line.row.label for line in compared]
    pairs = [(i, j) for i, j in combinations(range(len(both)), 2) if theirs[i] != theirs[j]]
    same = sum((theirs[i] - theirs[j]) * (ours[i] - ours[j]) > 0 for i, j in pairs)
    words = [f"{len(both)} rows have both numbers ({metric.label})."]
    if not pairs:
        words.append("The paper does not separate them.")
    elif len(pairs) == 1:
        words.append(
            f"The order of models is {'' if same else 'not '}the paper's in the one pair that it separates."
        )
    elif same == len(pairs):
        words.append(f"The order of models is the paper's in all {len(pairs)} pairs that it separates.")
    else:
        words.append(
            f"The order of models is not the paper's: of the {len(pairs)} pairs that it separates, {same} stand in"
            " the same order here."
        )
    correlation = spearman(theirs, ours) if len(both) > 2 else None
    if correlation is not None:
        words.append(f"Spearman's rank correlation is {correlation:.2f}.")
    if sweep.lower_is_better is not None:
        for who, values in (("The paper", theirs), ("Ours", ours)):
            ranked = sorted(zip(values, labels, strict=True), reverse=not sweep.lower_is_better)
            words.append(f"{who}, best first: {'; '.join(label for _, label in ranked)}.")
    return " ".join(words)


def judge(claim: Claim, sweep: Sweep, lines: Sequence[Line]) -> Verdict | None:
    """Whether our numbers bear a claim of the paper; None while one of its rows is not measured."""
    sides = [[line for line in lines if line.row.name in names] for names in (claim.better, claim.than)]
    scores = [line.scores.get(claim.metric) for side in sides for line in side]
    if any(score is None or score.mean is None for score in scores):
        return None
    published, claimed = "", 0.0
    if all(has_published(score) for score in scores):
        first = min if sweep.lower_is_better else max
        theirs = [first(side, key=lambda line: told(line.scores[claim.metric])) for side in sides]
        published, claimed = contest(theirs, claim.metric, sweep, told)
        if any(line.row.dynamic for line in theirs):
            published += " (one of them by dynamic evaluation)"
    best = [min(side, key=validation) for side in sides]
    text, gain = contest(best, claim.metric, sweep, lambda score: score.mean)
    one, other = (line.scores[claim.metric] for line in best)
    limit = (claim.at_most or 0.0) / 100
    distance = certainty(one, other, gain - limit, spread(claim.metric, lines))
    seeds = [len(score.values) for score in (one, other)]
    trust = "one seed each" if max(seeds) == 1 else f"{seeds[0]} and {seeds[1]} seeds"
    if distance is not None:
        trust = f"{distance:.1f} standard errors{f' from {claim.at_most:g}%' if limit else ''}, {trust}"
    known = [trust]
    known += [shortfall(line, claim.metric, sweep) for line in best]
    known += [learning(line, claim.metric) for line in best]
    if not by_one_recipe(best):
        outcome = "not judged (not by one recipe)"
    elif distance is not None and distance < DECISIVE:
        outcome = UNDECIDED
    elif claim.at_most is not None:
        outcome = CONFIRMED if 100 * gain <= claim.at_most else REFUTED
    elif gain <= 0:
        outcome = REFUTED
    else:
        outcome = IN_DIRECTION if gain < claimed / 2 else CONFIRMED
    return Verdict(claim.says, published, f"{text} ({'; '.join(filter(None, known))})", outcome)


def validation(line: Line) -> float:
    """Its mean perplexity on validation, which decides between several rows on one side of a claim."""
    return fmean(measure(run.result, "valid_ppl") or math.inf for run in line.measured)


def by_one_recipe(lines: Sequence[Line]) -> bool:
    """Whether the results keep to the recipes of their rows, or all depart from them alike."""
    return len({tuple(mark for mark in line.marks if mark.startswith(DEPARTS)) for line in lines}) == 1


def shortfall(line: Line, metric: str, sweep: Sweep) -> str:
    """How far a row stays behind its own published number, in words; empty where that is not far."""
    relative = line.scores[metric].relative
    if relative is None or line.row.dynamic:
        return ""
    behind = relative if sweep.lower_is_better else -relative
    return f"{line.row.label} is itself {behind:.0%} worse than published" if behind > FAR else ""


def learning(line: Line, metric: str) -> str:
    """What a row published with dynamic evaluation has by it here, in words; empty where that is not known."""
    values = [measure(run.result, ON_REQUEST + metric) for run in line.measured if line.row.dynamic]
    known = [value for value in values if value is not None]
    return f"{line.row.label} by dynamic evaluation, as published: {fmean(known):.4g}" if known else ""


def contest(
    pair: Sequence[Line], metric: str, sweep: Sweep, value: Callable[[Any], float]
) -> tuple[str, float]:
    """How much better the first of two lines is, in words and relative to the second."""
    one, other = (value(line.scores[metric]) for line in pair)
    gain = (other - one) / other if sweep.lower_is_better else (one - other) / other
    names = [f"{line.row.label}: {each:.4g}" for line, each in zip(pair, (one, other), strict=True)]
    return f"{'; '.join(names)}; {abs(gain):.1%} {'better' if gain >= 0 else 'worse'}", gain


def told(score: Any) -> float:
    """The published number of a score that has one."""
    return float(score.published.value)


def has_published(score: Score | None) -> bool:
    return score is not None and score.published is not None and score.published.value is not None


def spread(metric: str, lines: Iterable[Line]) -> float | None:
    """The deviation over seeds relative to the mean, of all rows with several together; None with too few seeds."""
    several = [each for line in lines if (each := line.scores.get(metric)) and len(each.values) > 1]
    freedom = sum(len(each.values) - 1 for each in several)
    squares = sum((value / fmean(each.values) - 1) ** 2 for each in several for value in each.values)
    return math.sqrt(squares / freedom) if freedom >= FREEDOM else None


def certainty(one: Score, other: Score, margin: float, share: float | None) -> float | None:
    """How many standard errors a margin between two means is, relative to the other; `share`: the spread over seeds."""
    if not share:
        return None
    ratio = fmean(one.values) / fmean(other.values)
    return abs(margin) / share / math.hypot(ratio / len(one.values) ** 0.5, 1 / len(other.values) ** 0.5)


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The correlation of the ranks, equal values sharing their mean rank; None where one side is all equal."""
    a, b = ranks(one), ranks(other)
    middle = (len(a) + 1) / 2
    spread = math.sqrt(sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b))
    return sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True)) / spread if spread else None


def ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]
