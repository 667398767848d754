"""A table as Markdown: its rows, its claims, its notes."""

import math
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hornn.reporting.claims import CONFIRMED, FOR, Verdict
from hornn.reporting.grid import table_grid
from hornn.reporting.notes import table_notes
from hornn.reporting.numbers import BOUND_NOTE, SIGN_MEANINGS, percent
from hornn.reporting.tables import Table
from hornn.shown import shown

SPECIAL = re.compile(r"[|*!`\\\[]")
CODE = re.compile(r"((?<!`)`[^`|]+`(?!`))")  # a bar would end a table's cell

MEAN_NOTE = (
    "Measured: mean ± standard deviation over n seeds. "
    "Best by validation: the number of the seed that validates best."
)
GAIN_NOTE = "Gains: ± one standard error."


def table_markdown(table: Table, folder: Path | None = None, before: str = "") -> str:
    """A page on the table. With `folder`, where the page will lie, its runs link to their result files.

    `before`: what to put between its title and the table.
    """
    grid, sweep = table_grid(table), table.sweep
    labels = "; ".join(metric.label for metric in sweep.metrics)
    source = " ".join(f"{capitalized(text)}." for text in (sweep.paper, labels) if text)
    parts = [f"# {escape_markdown(sweep.title)}", escape_markdown(source)]
    parts += [before.strip("\n")] if before else []
    rows = []
    for line, cells in zip(table.lines, grid.rows, strict=True):
        texts = [
            escape_markdown(cell.text) + (f" <sup>{cell.marks}</sup>" if cell.marks else "") for cell in cells
        ]
        told = [run for run in line.runs if run.path and (folder or run.state == "done")]
        seeds = [seed_text(run.seed, run.path, folder) for run in told if run.path]
        texts[-1] = ", ".join(filter(None, [*seeds, texts[-1]]))
        rows.append(texts)
    header = [*map(escape_markdown, grid.header[:-1]), grid.header[-1] if folder else "seeds"]
    parts.append(markdown_table(header, rows, left=("model", "device", header[-1])))
    parts += [MEAN_NOTE] if any("±" in text for texts in rows for text in texts) else []
    parts += list_of(f"<sup>{mark}</sup> {escape_markdown(text)}" for mark, text in grid.legend.items())
    if table.verdicts:
        parts += ["## Claims", *claims_markdown([(table, verdict) for verdict in table.verdicts], "### {}")]
        parts += [GAIN_NOTE] if any(verdict.error is not None for verdict in table.verdicts) else []
        parts += list_of(escape_markdown(str(verdict)) for verdict in table.verdicts)
    parts += ["## Notes", *list_of(escape_markdown(text) for text in table_notes(table))]
    return "\n\n".join(parts) + "\n"


def claims_markdown(
    claims: Sequence[tuple[Table, Verdict]], heading: str, links: dict[str, str] | None = None
) -> list[str]:
    """The claims of the papers and our own questions, each kind below its title; what a sign says.

    heading: how a title is written, such as `## {}`. With `links`, name of a sweep -> address, also where they stand.
    """
    parts = []
    for title, of_paper in (("Claims of the papers", True), ("Questions of our own", False)):
        these = [(table, verdict) for table, verdict in claims if verdict.of_paper == of_paper]
        parts += [heading.format(title), outcomes_markdown(these, links)] if these else []
    note = sign_note(verdict for _, verdict in claims)
    return [*parts, note] if note else parts


def sign_note(verdicts: Iterable[Verdict]) -> str:
    """What the signs behind the gains of claims say; empty where there are none."""
    told = list(verdicts)
    seen = "".join(verdict.published_signs + verdict.measured_signs for verdict in told)
    notes = [f"{sign}: {text}." for sign, text in SIGN_MEANINGS.items() if sign in seen]
    return " ".join([*notes, BOUND_NOTE] if any(verdict.bound for verdict in told) else notes)


def outcomes_markdown(claims: Iterable[tuple[Table, Verdict]], links: dict[str, str] | None) -> str:
    """Claims with their outcomes, a line each."""
    header = [
        "claim",
        *(["table"] if links is not None else []),
        "gain, published",
        "gain, measured",
        "outcome",
    ]
    rows = [
        [
            escape_markdown(verdict.says),
            *(
                [f"[{escape_markdown(table.short_title)}]({links[table.sweep.name]})"]
                if links is not None
                else []
            ),
            published_gain_text(verdict),
            escape_markdown(measured_gain_text(verdict)),
            outcome_text(verdict),
        ]
        for table, verdict in claims
    ]
    return markdown_table(header, rows, left=("claim", "table", "outcome"))


def outcome_text(verdict: Verdict) -> str:
    """The outcome, and what a reader must know of a claim that holds."""
    told = verdict.outcome in (CONFIRMED, FOR) and verdict.reason
    return f"{verdict.outcome} ({verdict.reason})" if told else verdict.outcome


def published_gain_text(verdict: Verdict) -> str:
    return gain_text(verdict.published_gain) + verdict.published_signs


def measured_gain_text(verdict: Verdict) -> str:
    text = gain_text(verdict.gain, verdict.error, verdict.bound) + verdict.measured_signs
    return f"{text} ({verdict.judged_on})" if text and verdict.judged_on else text


def gain_text(gain: float | None, error: float | None = None, bound: str = "") -> str:
    """`+3.0 ± 0.3 %`, `≥ +3.0 %` for a bound; empty where there is none, or it is relative to 0."""
    if gain is None or not math.isfinite(gain):
        return ""
    number = percent(gain, signed=True)
    if bound:
        return f"{bound} {number}"
    return f"{number.removesuffix(' %')} ± {percent(error)}" if error else number


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str] = ()) -> str:
    """Columns named in `left` hold words, the others numbers."""
    rule = "|".join("---" if name in left else "---:" for name in header)
    return "\n".join(
        ["| " + " | ".join(header) + " |", f"|{rule}|", *("| " + " | ".join(row) + " |" for row in rows)]
    )


def list_of(texts: Iterable[str]) -> list[str]:
    """One paragraph that is a list; nothing where it is empty."""
    items = [f"- {text}" for text in texts]
    return ["\n".join(items)] if items else []


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def seed_text(seed: int, path: Path, folder: Path | None) -> str:
    return f"[seed {seed}]({relative_address(path, folder)})" if folder else str(seed)


def relative_address(path: Path, folder: Path) -> str:
    """The way from a folder to a file, as an address."""
    return Path(os.path.relpath(path, folder)).as_posix().replace(" ", "%20")


def escape_markdown(text: str) -> str:
    """The text as one line in which nothing is markup but what stands between two backticks."""
    parts = CODE.split(shown(text))
    return "".join(
        part if place % 2 else SPECIAL.sub(r"\\\g<0>", part).replace("<", "&lt;")
        for place, part in enumerate(parts)
    )
