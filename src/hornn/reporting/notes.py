"""The notes below a table."""

from hornn.reporting.grid import device_letters
from hornn.reporting.runs import finish_time
from hornn.reporting.seeds import spread_over_seeds
from hornn.reporting.tables import Table


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
    shares = [(metric, spread_over_seeds(metric.key, table.lines)) for metric in sweep.metrics]
    texts += [
        f"Standard deviation over seeds, {metric.label}: {share:.1%} of the mean, all rows with several seeds together."
        for metric, share in shares
        if share and not metric.key.startswith("seconds")
    ]
    if table.runnable:
        texts.append(f"{table.measured} of {table.runnable} rows measured.")
    if sweep.command and any(line.status for line in table.lines if line.row.run is not None):
        texts[-1] += f" `{sweep.command}` makes what is missing"
        again = any(run.state in ("failed", "diverged") for line in table.lines for run in line.runs)
        texts[-1] += ", `hydra.launcher.retry_failed=true` behind it also what failed." if again else "."
    if table.commits:
        named = [f"{sign}: {device}" for sign, device in device_letters(table).items()]
        place = f" on {'; '.join(named if len(named) > 1 else table.devices)}" if named else ""
        texts.append(f"Results of commit {', '.join(table.commits)}{place}{finish_dates(table)}.")
    return [*texts, *table.warnings]


def finish_dates(table: Table) -> str:
    """The first and the last day on which its runs finished, as far as the results say."""
    days = sorted({end[:10] for line in table.lines for run in line.measured if (end := finish_time(run))})
    return f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
