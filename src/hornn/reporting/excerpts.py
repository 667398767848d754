"""Small tables for pages that people write: some rows of a sweep, the claims of some sweeps.

The words behind `<!-- rows: -->` and `<!-- claims: -->` say which (see `hornn.blocks`).
"""

from collections.abc import Sequence
from pathlib import Path

from hornn.reporting.claims import signs_of
from hornn.reporting.gains import bound_of_gain, gain_of
from hornn.reporting.grid import published_text
from hornn.reporting.lines import Line, by_data, what_differs
from hornn.reporting.markdown import (
    capitalized,
    claims_markdown,
    escape_markdown,
    gain_text,
    markdown_table,
    relative_address,
)
from hornn.reporting.numbers import BOUND_NOTE, SIGN_MEANINGS, format_bound, format_number
from hornn.reporting.seeds import Spread, errors_of_gain, errors_of_mean, spread_for
from hornn.reporting.sweeps import Metric, Sweep
from hornn.reporting.tables import Table

METRIC, SAYS = "metric=", "says="
TEST = ("test_ppl", "test_bpc")


def rows_excerpt(words: Sequence[str], tables: Sequence[Table], home: dict[str, Path], folder: Path) -> str:
    """`SWEEP ROW ROW ... [metric=KEY]`: these rows, published beside measured, and their gains on the first one.

    The metric is the test score where the table has one, else the table's first. `home`: the page of each sweep;
    links start at `folder`. ValueError names an unknown word and the known ones.
    """
    names = [word for word in words if not word.startswith(METRIC)]
    table = find_table(names[0] if names else "", tables)
    metric = metric_of(table.sweep, [word.removeprefix(METRIC) for word in words if word.startswith(METRIC)])
    key, known = metric.key, {line.row.name: line for line in table.lines}
    for name in names[1:]:
        if name not in known:
            raise ValueError(f"{table.sweep.name} has no row {name!r}; its rows are: {', '.join(known)}")
    if len(names) < 2:
        raise ValueError(f"name rows behind {table.sweep.name}; its rows are: {', '.join(known)}")
    lines = [known[name] for name in names[1:]]
    base, spreads = lines[0], dict[str, Spread | None]()
    for group in by_data(lines).values():
        names_read = (line.row.name for line in group)
        spreads.update(dict.fromkeys(names_read, spread_for(group, key, table.lines)))
    columns: dict[str, list[str]] = {
        "network": [escape_markdown(line.row.label) for line in lines],
        "published": [published_text(key, line.scores.get(key), line.row) for line in lines],
        "measured": [measured_text(line, key, spreads.get(line.row.name)) for line in lines],
        "gain, published": [""] + [published_gain(line, base, metric) for line in lines[1:]],
        "gain, measured": [""]
        + [measured_gain(line, base, metric, spreads.get(line.row.name)) for line in lines[1:]],
    }
    columns = {name: texts for name, texts in columns.items() if name == "measured" or any(texts)}
    note = [f"{escape_markdown(capitalized(metric.label))}."]
    note += (
        [f"Gains are relative to the {escape_markdown(base.row.label)}."]
        if "gain, measured" in columns
        else []
    )
    note += ["±: one standard error."] if any("±" in text for text in columns["measured"]) else []
    shown = "".join([*columns.get("published", []), *columns["measured"]])
    note += [f"{sign}: {text}." for sign, text in SIGN_MEANINGS.items() if sign in shown]
    note += [BOUND_NOTE] if any(text[:1] in ("≥", "≤") for text in columns.get("gain, measured", [])) else []
    note += [f"[All rows]({relative_address(home[table.sweep.name], folder)})."]
    grid = markdown_table(list(columns), list(zip(*columns.values(), strict=True)), left=("network",))
    return f"\n{grid}\n\n{' '.join(note)}\n"


def claims_excerpt(words: Sequence[str], tables: Sequence[Table], home: dict[str, Path], folder: Path) -> str:
    """`SWEEP|PREFIX ... [says=TEXT ...]`: the claims of these sweeps with their outcomes.

    PREFIX stands for all sweeps `PREFIX_...`. With texts, only claims whose words hold one of them; `_` stands for a
    blank.
    """
    texts = [word.removeprefix(SAYS).replace("_", " ") for word in words if word.startswith(SAYS)]
    chosen: list[Table] = []
    for word in (word for word in words if not word.startswith(SAYS)):
        found = [
            table
            for table in sorted(tables, key=lambda table: table.sweep.name)
            if table.sweep.name == word or table.sweep.name.startswith(f"{word}_")
        ]
        chosen += [table for table in found if table not in chosen]
        if not found:
            find_table(word, tables)
    if not any(table.verdicts for table in chosen):
        raise ValueError(f"no claims in {' '.join(words) or 'no sweep'}: name sweeps that have some")
    claims = [(table, verdict) for table in chosen for verdict in table.verdicts]
    for text in texts:
        if not any(text in verdict.says for _, verdict in claims):
            raise ValueError(f"no claim of {', '.join(table.sweep.name for table in chosen)} says {text!r}")
    claims = [pair for pair in claims if any(text in pair[1].says for text in texts or [""])]
    links = {table.sweep.name: relative_address(home[table.sweep.name], folder) for table in chosen}
    return "\n" + "\n\n".join(claims_markdown(claims, "**{}**", links)) + "\n"


def find_table(name: str, tables: Sequence[Table]) -> Table:
    known = {table.sweep.name: table for table in tables}
    if name not in known:
        raise ValueError(f"there is no sweep {name!r}; there are: {', '.join(sorted(known))}")
    return known[name]


def metric_of(sweep: Sweep, asked: Sequence[str]) -> Metric:
    metrics = {metric.key: metric for metric in sweep.metrics}
    for key in asked:
        if key not in metrics:
            raise ValueError(f"{sweep.name} has no metric {key!r}; its metrics are: {', '.join(metrics)}")
    return next(metrics[key] for key in (*asked, *TEST, *metrics) if key in metrics)


def measured_text(line: Line, key: str, spread: Spread | None) -> str:
    """`106.3 ± 0.2 (3 seeds)`, or what is missing."""
    score = line.scores.get(key)
    if score is None or score.mean is None:
        return line.status
    error = errors_of_mean(line, key, spread).total
    margin = f" ± {format_number(key, error)}" if error else ""
    text = format_bound(score.mean) if score.at_limit else f"{format_number(key, score.mean)}{margin}"
    count = len(score.values)
    return f"{text} ({count} seed{'s' * (count > 1)})"


def published_gain(line: Line, base: Line, metric: Metric) -> str:
    scores = [line.scores.get(metric.key), base.scores.get(metric.key)]
    values = [score.published.value if score and score.published else None for score in scores]
    if metric.lower_is_better is None or values[0] is None or values[1] is None:
        return ""
    if len(by_data([line, base])) > 1:
        return ""
    return gain_text(gain_of(values[0], values[1], metric)) + signs_of([line, base], metric.key)


def measured_gain(line: Line, base: Line, metric: Metric, spread: Spread | None) -> str:
    one, other = line.scores.get(metric.key), base.scores.get(metric.key)
    if metric.lower_is_better is None or not (one and other) or one.mean is None or other.mean is None:
        return ""
    bound = bound_of_gain([line, base], metric)
    if bound is None or what_differs([line, base], metric.key):
        return ""
    errors = errors_of_gain(line, base, metric.key, spread)
    return gain_text(gain_of(one.mean, other.mean, metric), errors.total, bound)
