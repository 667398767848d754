"""The notes below a table."""

from collections.abc import Sequence

from hornn.reporting.grid import device_letters, shared_marks
from hornn.reporting.lines import CONFLICT, SECONDS, by_data, times_each_run
from hornn.reporting.numbers import percent
from hornn.reporting.runs import finish_time
from hornn.reporting.seeds import Spread, spread_over_seeds, variance_of
from hornn.reporting.sweeps import Metric
from hornn.reporting.tables import Table
from hornn.reporting.utterances import RATE
from hornn.run.code import SHORT

LISTED = 5  # commits, more than which a reader would not look up one by one


def table_notes(table: Table) -> list[str]:
    """What stands below a table: notes, sources of the numbers, the spread over seeds, what is missing, its results."""
    sweep = table.sweep
    texts = [sweep.note] if sweep.note else []
    texts += [f"{line.row.label}: {line.row.note}" for line in table.lines if line.row.note]
    sources = {
        score.published.source for line in table.lines for score in line.scores.values() if score.published
    }
    where = "; ".join(sorted(source for source in sources if source and not sweep.paper.endswith(source)))
    if sources:
        texts.append(f"Published numbers: {sweep.paper}{f' ({where})' if where else ''}.")
    if sweep.published_on:
        texts.append(
            f"The published numbers are of another corpus, {sweep.published_on}: only orders compare."
        )
    judged = {verdict.metric.key for verdict in table.verdicts} | {sweep.metrics[0].key}
    for metric in sweep.metrics:
        if metric.key in judged and (metric.key != SECONDS or times_each_run(sweep)):
            texts += spreads(table, metric)
    if any(line.seconds for line in table.lines):
        label = next((metric.label for metric in sweep.metrics if metric.key == SECONDS), "s/epoch")
        runs = "each run, on average" if times_each_run(sweep) else "the row's fastest run"
        texts.append(f"{label}: the median epoch of {runs}.")
    texts += [f"Every measured row: {mark}." for mark in shared_marks(table)]
    texts += [*what_is_missing(table), *where_results_come_from(table)]
    return [*texts, *table.warnings]


def spreads(table: Table, metric: Metric) -> list[str]:
    """The spread over seeds by a metric that tells the errors on each corpus."""
    groups = by_data(line for line in table.lines if metric.key in line.scores)
    whole = spread_over_seeds(metric.key, table.lines)
    texts, names = [], [name for name, _ in groups]
    for (name, text), lines in groups.items():
        unit = (lines[0].measured[0].result.get("corpus") or {}).get("unit")
        several = f" ({unit}, {text.removeprefix('sha256:')[:SHORT]})" if names.count(name) > 1 else ""
        own = spread_over_seeds(metric.key, lines)
        spread = own or whole
        if spread:
            rows = "all rows with several seeds" if own else "all corpora, for this one has too few seeds"
            texts.append(
                f"Spread over seeds, {metric.label}{f', on {name}{several}' if len(groups) > 1 else ''}: "
                f"{percent(spread.share)} of the mean, pooled over {rows}; {spread.freedom} degrees of freedom."
                f" {moderation(spread, metric.key)}"
            )
            outliers = [
                line.row.label
                for line in lines
                if spread.prior.is_outlier(variance_of(line.scores[metric.key]))
            ]
            if outliers:
                texts.append(
                    f"Seeds that scatter for reasons of their own, {metric.label}: {'; '.join(outliers)}."
                )
    return texts


def moderation(spread: Spread, metric: str) -> str:
    """How far the rows tell each other's variance, and what decides where a row has one seed and no speakers count."""
    decisive = spread.decisive_alone
    text = (
        "A row's own variance is drawn towards the rows' common variance, which counts as "
        f"{spread.prior.freedom():.1f} degrees of freedom in a row with one seed."
    )
    if metric.startswith(RATE):
        return text
    enough = f"{decisive:.3g} standard errors decide" if decisive < 100 else "hardly any gain is decided"
    return f"{text} Where one of two rows has one seed, {enough}."


def what_is_missing(table: Table) -> list[str]:
    """How many rows are measured, and the command that measures the others."""
    if not table.runnable:
        return []
    text = f"{table.measured} of {table.runnable} rows are measured"
    there, asked = table.seeds
    text += f", by {there} of {asked} runs." if table.measured and asked > table.runnable else "."
    if table.sweep.command and any(
        line.status not in ("", CONFLICT) for line in table.lines if line.row.run is not None
    ):
        text += f" `{table.sweep.command}` runs what is missing."
        if any(run.state in ("failed", "diverged") for line in table.lines for run in line.runs):
            text += " With `hydra.sweeper.retry_failed=true` it also repeats what failed."
    return [text]


def where_results_come_from(table: Table) -> list[str]:
    """Commits, devices and days of the measured runs."""
    if not table.commits:
        return []
    named = [f"{sign}: {device}" for sign, device in device_letters(table).items()]
    place = f" Devices: {'; '.join(named if len(named) > 1 else table.devices)}." if named else ""
    commits = f"commit{'s' if len(table.commits) > 1 else ''} {', '.join(table.commits)}"
    if len(table.commits) > LISTED:
        commits = f"{len(table.commits)} commits, which their files name"
    where = f"The runs are of {commits}{finish_dates(table)}.{place}"
    return [f"{where}{precisions(table)}"]


def precisions(table: Table) -> str:
    """In how many runs the output layer and the time loop multiplied in bf16 or fp16 while training, where runs differ.

    The time loop was always in fp32 before results said so.
    """
    runs = {run.path: run.result.get("dtype") for line in table.lines for run in line.measured}
    told = [dtype for dtype in runs.values() if dtype and dtype.get("output_layer_in_training")]
    kinds = {
        part: [dtype.get(f"{part}_in_training") or "fp32" for dtype in told]
        for part in ("output_layer", "time_loop")
    }
    return "".join(precisions_of(part.replace("_", " "), found) for part, found in kinds.items())


def precisions_of(part: str, kinds: Sequence[str]) -> str:
    if len(set(kinds)) < 2:
        return ""
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds)) if kind != "fp32"}
    told = " and ".join(f"in {kind} in {count}" for kind, count in counts.items())
    return f" In training the {part} multiplied {told} of {len(kinds)} runs, else in fp32."


def finish_dates(table: Table) -> str:
    """The first and the last day on which its runs finished, as far as the results say."""
    days = sorted({end[:10] for line in table.lines for run in line.measured if (end := finish_time(run))})
    return f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
