"""A table as text cells, and those as Markdown, CSV and LaTeX."""

import csv
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hornn.reporting.runs import Run, commits, ended
from hornn.reporting.tables import CONFIRMED, IN_DIRECTION, REFUTED, UNDECIDED, Line, Table, spread
from hornn.result import write_between

UNVERIFIED, DYNAMIC = "†", "‡"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
EXPLAINED = {
    UNVERIFIED: "recalled or second-hand: not read in the paper itself",
    DYNAMIC: "the published number used dynamic evaluation; ours does not",
}

OVERVIEW = (
    "table",
    "rows",
    "ours beside the published",
    "claims confirmed",
    "in direction alone",
    "not confirmed",
    "undecided",
    "deviation over seeds",
)
OVERVIEW_NOTE = (
    "Rows: measured, of those that can be run. Ours beside the published: the median, least and greatest of "
    "(ours - published) / published, neither by dynamic evaluation nor times; "
    f"{UNVERIFIED} some of the published are recalled or second-hand. Claims: those whose rows are all measured; "
    "in direction alone: with less than half of the published gain; undecided: within three standard errors, of the "
    "deviation over seeds of all rows of the table, which stands last. A table without it has too few seeds, and its "
    "claims are taken by their direction."
)


class Cell(NamedTuple):
    """`value` is what a column is sorted by; `marks` are letters that the legend explains."""

    text: str = ""
    value: float | str | None = None
    marks: str = ""
    kind: str = "number"


class Grid(NamedTuple):
    """A table as cells. `legend`: mark -> what it says."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    legend: dict[str, str]


def lay_out(table: Table) -> Grid:
    """Columns: the row, for each metric the published number, ours and the difference (or both in units of the row that
    the sweep is relative to), then what a run cost.

    Columns without any entry are left out, but for our numbers and for what is published of at least one row; so is a
    device that is everywhere the same. The notes name the devices, the rows their letters there.
    """
    metrics, keys = table.sweep.metrics, {metric.key for metric in table.sweep.metrics}
    base = next((line for line in table.lines if line.row.name == table.sweep.relative_to), None)
    header = ["model"]
    for metric in metrics:
        what = f" ({metric.label})" if len(metrics) > 1 else ""
        header += [f"published{what}", f"ours{what}"]
        header += ["best by validation" + what] if has_best(metric.key) else []
        relative = [f"published / {base.row.label}{what}", f"ours / {base.row.label}{what}"] if base else []
        header += relative or [f"difference{what}"]
    sized, timed = "num_parameters" not in keys, "seconds_per_epoch" not in keys
    header += ["weights"] * sized + ["s/epoch"] * timed + ["device", "runs"]

    letters: dict[str, str] = {}
    devices = by_letter(table)
    rows = []
    for line in table.lines:
        for mark in line.marks:
            letters.setdefault(mark, letter(len(letters)))
        cells = [Cell(line.row.label, line.row.label, "".join(letters[mark] for mark in line.marks), "label")]
        for metric in metrics:
            cells += score_cells(metric.key, line, base)
        if sized:
            cells.append(Cell(write_number("num_parameters", line.parameters), line.parameters))
        if timed:
            cells.append(Cell(write_number("seconds_per_epoch", line.seconds), line.seconds))
        signs = ", ".join(sign for sign, device in devices.items() if device in line.devices)
        cells += [Cell(signs, signs, kind="device"), Cell(line.status, line.status, kind="runs")]
        rows.append(tuple(cells))
    compared = {f"published ({metric.label})" for metric in metrics if metric.key in table.sweep.published}
    compared |= {"published"} if table.sweep.published else set()
    used = [
        index
        for index, name in enumerate(header)
        if name in {"model", "runs", *compared}
        or (table.runnable and name.startswith("ours"))
        or (any(cells[index].text for cells in rows) and not (name == "device" and len(devices) == 1))
    ]
    rows = [tuple(cells[index] for index in used) for cells in rows]
    header = [header[index] for index in used]
    shown = "".join(cell.text for cells in rows for cell in cells)
    legend = {sign: text for sign, text in EXPLAINED.items() if sign in shown}
    return Grid(tuple(header), tuple(rows), {**legend, **{sign: mark for mark, sign in letters.items()}})


def letter(index: int) -> str:
    """a to z, then aa, ab, .."""
    return (letter(index // 26 - 1) if index >= 26 else "") + LETTERS[index % 26]


def by_letter(table: Table) -> dict[str, str]:
    """The devices of its runs: A, B, .. -> a device."""
    return {letter(index).upper(): device for index, device in enumerate(table.devices)}


def has_best(key: str) -> bool:
    """Whether choosing a seed by validation says something: not for sizes, times and validation itself."""
    return key.startswith("test_")


def score_cells(key: str, line: Line, base: Line | None) -> list[Cell]:
    score = line.scores.get(key)
    published = score.published if score else None
    theirs = Cell()
    if published and published.value is not None:
        signs = UNVERIFIED * (not published.verified) + DYNAMIC * line.row.dynamic
        theirs = Cell(write_published(published.value) + signs, published.value)
    ours = Cell()
    if score and score.mean is not None:
        text = write_number(key, score.mean)
        if score.deviation is not None and not is_count(key):
            text += f" ± {write_number(key, score.deviation)} (n = {len(score.values)})"
        ours = Cell(text, score.mean)
    difference = score.difference if score else None
    cells = [theirs, ours]
    if has_best(key):
        best = score.best if score and len(score.values) > 1 else None
        cells.append(Cell(write_number(key, best), best))
    if base:
        unit = base.scores.get(key)
        in_theirs = unit.published.value if unit and unit.published else None
        return [*cells, ratio(theirs.value, in_theirs), ratio(ours.value, unit.mean if unit else None)]
    sign = "+" if difference and difference > 0 else ""
    return [*cells, Cell(sign + write_number(key, difference), difference)]


def ratio(value: float | str | None, unit: float | None) -> Cell:
    if not isinstance(value, int | float) or not unit:
        return Cell()
    return Cell(f"{value / unit:.2f}", value / unit)


def write_number(key: str, value: float | None) -> str:
    """Whole for counts, to a thousandth for bits and nats, else to a tenth."""
    if value is None:
        return ""
    if is_count(key):
        return f"{value:,.0f}"
    return f"{value:.3f}" if key.endswith(("_bpc", "_nll")) else f"{value:.1f}"


def is_count(key: str) -> bool:
    return key == "num_parameters" or key.startswith("corpus.")


def write_published(value: float) -> str:
    """As printed, with commas in long whole numbers."""
    return f"{value:,}" if isinstance(value, int) else str(value)


# -- files ---------------------------------------------------------------------------------------------------


def markdown(table: Table, folder: Path, claims: bool = True) -> str:
    """The table with its remarks; links to result files start at `folder`, where the text will lie.

    Without `claims` it does not say what became of the paper's claims.
    """
    grid, labels = lay_out(table), [metric.label for metric in table.sweep.metrics]
    lines = [
        f"### {table.sweep.title}",
        "",
        "; ".join(filter(None, [table.sweep.paper, *labels])),
        "",
        "| " + " | ".join(grid.header) + " |",
        "|"
        + "|".join("---" if name in ("model", "device", "runs") else "---:" for name in grid.header)
        + "|",
    ]
    for line, cells in zip(table.lines, grid.rows, strict=True):
        texts = [
            escape_markdown(cell.text) + (f" <sup>{cell.marks}</sup>" if cell.marks else "") for cell in cells
        ]
        texts[-1] = ", ".join(filter(None, [*(link_markdown(run, folder) for run in line.runs), texts[-1]]))
        lines.append("| " + " | ".join(texts) + " |")
    remarks = [f"- <sup>{mark}</sup> {escape_markdown(text)}" for mark, text in grid.legend.items()]
    remarks += [
        f"- {escape_markdown(text)}"
        for text in (*(table.comparisons if claims else table.orders), *notes(table))
    ]
    return "\n".join([*lines, "", *remarks]) + "\n"


def overview(table: Table) -> tuple[str, ...]:
    """Its line in the table of tables, as `OVERVIEW` names the cells; the first is its title."""
    shares = [round(score.relative or 0.0, 3) + 0.0 for score in table.compared]  # no -0.0
    sign = "" if all(score.published and score.published.verified for score in table.compared) else UNVERIFIED
    ends = f" ({min(shares):+.1%} to {max(shares):+.1%})" if len(shares) > 1 else ""
    return (
        table.sweep.title,
        f"{table.measured} of {table.runnable}" if table.runnable else "not built",
        f"{median(shares):+.1%}{ends}{sign}" if shares else "",
        *(str(table.count(outcome) or "") for outcome in (CONFIRMED, IN_DIRECTION, REFUTED, UNDECIDED)),
        deviation(table),
    )


def deviation(table: Table) -> str:
    """Of the score that its claims are about, relative to the mean; empty with too few seeds."""
    share = spread(table.sweep.claims[0].metric, table.lines) if table.sweep.claims else None
    return f"{share:.1%}" if share else ""


def contents(tables: Iterable[Table]) -> str:
    """All tables as a table, each with the way to its heading."""
    lines = ["| " + " | ".join(OVERVIEW) + " |", "|---|" + "---:|" * (len(OVERVIEW) - 1)]
    for table in tables:
        title, *cells = map(escape_markdown, overview(table))
        lines.append(f"| [{title}](#{anchor(table.sweep.title)}) | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", OVERVIEW_NOTE]) + "\n"


def anchor(title: str) -> str:
    """What a Markdown heading is called where pages link to it: small letters, digits and hyphens."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def summary(tables: Iterable[Table]) -> str:
    """What became of the papers' claims, as a table; empty before the first can be judged."""
    judged = [
        (verdict.says, table.short_title, verdict.published, verdict.ours, verdict.outcome)
        for table in tables
        for verdict in table.verdicts
    ]
    if not judged:
        return ""
    lines = ["| claim | table | published | ours | |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(map(escape_markdown, cells)) + " |" for cells in judged]
    return "\n".join(["### What the papers claim of their models, by our numbers", "", *lines]) + "\n"


def link_markdown(run: Run, folder: Path) -> str:
    return f"[seed {run.seed}]({link(run.path, folder)})" if run.path else ""


def link(path: Path, folder: Path) -> str:
    """The way from a folder to a file, as an address."""
    return Path(os.path.relpath(path, folder)).as_posix().replace(" ", "%20")


def escape_markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def notes(table: Table) -> list[str]:
    """What stands below a table: notes, sources of the numbers, the spread over seeds, what is missing, its results."""
    sweep = table.sweep
    texts = [sweep.note] if sweep.note else []
    texts += [f"{line.row.label}: {line.row.note}" for line in table.lines if line.row.note]
    sources = {
        score.published.source for line in table.lines for score in line.scores.values() if score.published
    }
    told = "; ".join(sorted(source for source in sources if source and not sweep.paper.endswith(source)))
    if sources:
        texts.append(f"Published numbers: {sweep.paper}{f' ({told})' if told else ''}.")
    shares = [(metric, spread(metric.key, table.lines)) for metric in sweep.metrics]
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
        named = [f"{sign}: {device}" for sign, device in by_letter(table).items()]
        place = f" on {'; '.join(named if len(named) > 1 else table.devices)}" if named else ""
        texts.append(f"Results of commit {', '.join(table.commits)}{place}{dates(table)}.")
    return [*texts, *table.warnings]


def dates(table: Table) -> str:
    """The first and the last day on which its runs finished, as far as the results say."""
    days = sorted({end[:10] for line in table.lines for run in line.measured if (end := ended(run))})
    return f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""


def comma_separated(table: Table) -> str:
    """Full precision, a line for each row and metric, for other programs."""
    entries = [
        {
            "sweep": table.sweep.name,
            "row": line.row.name,
            "label": line.row.label,
            "metric": key,
            "published": score.published.value if score.published else None,
            "verified": score.published.verified if score.published else None,
            "source": score.published.source if score.published else None,
            "dynamic_evaluation": line.row.dynamic,
            "mean": score.mean,
            "deviation": score.deviation,
            "seeds": len(score.values),
            "best_by_validation": score.best,
            "difference": score.difference,
            "num_parameters": line.parameters,
            "seconds_per_epoch": line.seconds,
            "device": "; ".join(line.devices),
            "status": line.status,
            "marks": "; ".join(line.marks),
            "commits": " ".join(commits(line.measured)),
            "results": " ".join(str(run.path) for run in line.measured),
        }
        for line in table.lines
        for key, score in line.scores.items()
    ]
    out = io.StringIO()
    if entries:
        writer = csv.DictWriter(out, entries[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(entries)
    return out.getvalue()


def latex(table: Table) -> str:
    """A tabular for booktabs in a table environment; the runs' links are left out."""
    grid = lay_out(table)
    keep = [index for index, name in enumerate(grid.header) if name not in ("device",)]
    lines = [
        r"\begin{table}",
        rf"\caption{{{escape_latex(table.sweep.title)} ({escape_latex(table.sweep.paper)}).}}",
        rf"\begin{{tabular}}{{l{'r' * (len(keep) - 2)}l}}",
        r"\toprule",
        " & ".join(escape_latex(grid.header[index]) for index in keep) + r" \\",
        r"\midrule",
    ]
    for cells in grid.rows:
        texts = [
            escape_latex(cells[index].text) + (f"$^{{{cells[index].marks}}}$" if cells[index].marks else "")
            for index in keep
        ]
        lines.append(" & ".join(texts) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [
        rf"\par\footnotesize {escape_latex(mark)} {escape_latex(text)}" for mark, text in grid.legend.items()
    ]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    special = {char: f"\\{char}" for char in "&%$#_{}"} | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        UNVERIFIED: r"\dag{}",
        DYNAMIC: r"\ddag{}",
    }
    return "".join(special.get(char, char) for char in text)


def write_files(tables: Sequence[Table], folder: Path) -> None:
    """<name>.md, .csv and .tex of each table."""
    for table in tables:
        for suffix, text in (
            ("md", markdown(table, folder)),
            ("csv", comma_separated(table)),
            ("tex", latex(table)),
        ):
            (folder / f"{table.sweep.name}.{suffix}").write_text(text, encoding="utf-8")


# -- README --------------------------------------------------------------------------------------------------


def renew(path: Path, tables: Iterable[Table], figures: Mapping[str, str]) -> None:
    """Replace the measured tables between the marks in a Markdown file; before them their list and all claims.

    ValueError where the marks are missing.

    `figures`: what to put below the table of a sweep, by its name.
    """
    shown = [table for table in tables if table.measured]
    bodies = [
        markdown(table, path.parent, claims=False) + figures.get(table.sweep.name, "") for table in shown
    ]
    text = "\n".join(filter(None, [contents(shown), summary(shown), *bodies])) if shown else "No runs yet."
    write_between(path, "results", text.rstrip("\n"))
