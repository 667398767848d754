"""The page: one HTML file that holds all tables and figures and needs nothing else."""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from hornn.places import as_typed
from hornn.reporting.glance import draw_glance_in_parts
from hornn.reporting.grid import table_grid
from hornn.reporting.lines import Line
from hornn.reporting.listening import GRAMMARS, Recordings, utterances_of
from hornn.reporting.markdown import (
    GAIN_NOTE,
    MEAN_NOTE,
    gain_text,
    published_gain_text,
    relative_address,
    sign_note,
)
from hornn.reporting.memory import factor_notes
from hornn.reporting.notes import table_notes
from hornn.reporting.overview import OVERVIEW_HEADER, OVERVIEW_NOTE, overview_cells
from hornn.reporting.packing import packed
from hornn.reporting.panels import Plot
from hornn.reporting.row_styles import row_styles, with_full_labels
from hornn.reporting.run_data import address, has_view, page_data
from hornn.reporting.scoreboard import STYLES, each_once, list_claims, summarise
from hornn.reporting.scores import has_published
from hornn.reporting.studies import Study, draw_study, show_score
from hornn.reporting.svg import Looks
from hornn.reporting.tables import Table

HERE = Path(__file__).parent
SCRIPTS = ("chart.js", "compare.js", "page.js")
LOOKS = "/* looks */\n"  # in the style, where the rules stand once all is drawn
END_TAGS = re.compile(r"</(?:td|th|tr|li)>\n(?=<)")  # HTML does without them
FEW_EMPTY = 3  # more rows without a number are folded away
FEW_MARKS = 3  # more marks below a table are a list
DOWNLOADS = (("csv", "CSV"), ("md", "Markdown"), ("tex", "LaTeX"), ("json", "JSON"))


def render_page(
    tables: Sequence[Table],
    warnings: Sequence[str],
    out: Path,
    studies: Sequence[Study],
    draw: Callable[[Table], list[Plot]],
    draw_memory: Callable[[Table], list[Plot]],
    samples: Mapping[str, tuple[bytes, bytes]],
    recordings: Recordings,
) -> str:
    """The page: an overview, the claims and a view for each table. Links to result files start at `out`.

    samples: of a table by its name, a PNG of what a network of it wrote, and its MIDI file. recordings: below `out`.
    """
    claims = each_once(list_claims(tables))
    places = {claim.place for claim in claims}
    papers: dict[str, list[Table]] = {}
    for table in tables:
        papers.setdefault(table.paper, []).append(table)
    outcomes = [*STYLES, *({claim.verdict.outcome for claim in claims} - STYLES.keys())]
    cells = {cell for claim in claims for cell in claim.cells}
    data = {name for claim in claims for name in claim.data}
    filters = (
        ("asked", "Asked by", ["the paper", "us"]),
        ("paper", "Paper", sorted({claim.paper for claim in claims})),
        ("outcome", "Outcome", outcomes),
        ("cell", "Cell", sorted(cells)),
        ("data", "Data", sorted(data)),
    )
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.tests |= {"has_view": has_view, "has_curve": has_curve, "without_numbers": without_numbers}
    looks = Looks()
    environment.filters["inline"] = looks.inline
    text = environment.from_string(read("page.html")).render(
        style=read("page.css"),
        script=as_typed("".join(map(read, SCRIPTS))),
        data=packed(page_data(tables, out, recordings)),
        tables=tables,
        papers=papers,
        claims=claims,
        findings=summarise(claims),
        filters=filters,
        asked_by_papers=any(claim.verdict.of_paper for claim in claims),
        OUTCOMES=[(*style, outcome) for outcome, style in STYLES.items()],
        FEW_EMPTY=FEW_EMPTY,
        FEW_MARKS=FEW_MARKS,
        list_claims=list_claims,
        stands_elsewhere=lambda claim: claim.place not in places,
        gain_text=gain_text,
        published_gain_text=published_gain_text,
        sign_note=lambda claims: sign_note(claim.verdict for claim in claims),
        glance=draw_glance_in_parts(tables),
        OVERVIEW_HEADER=OVERVIEW_HEADER,
        OVERVIEW_NOTE=OVERVIEW_NOTE,
        MEAN_NOTE=MEAN_NOTE,
        GAIN_NOTE=GAIN_NOTE,
        DOWNLOADS=DOWNLOADS,
        overview_cells=overview_cells,
        table_grid=table_grid,
        table_notes=table_notes,
        draw_figures=draw,
        how_many_first=how_many_first,
        draw_memory=draw_memory,
        factor_notes=factor_notes,
        row_styles=row_styles,
        with_full_labels=with_full_labels,
        marks=looks.marks,
        coloured=lambda style: looks.name(f"color:{style.colour}"),
        address=address,
        samples={name: [b64encode(part).decode() for part in parts] for name, parts in samples.items()},
        link=lambda path: relative_address(path, out),
        utterances_of=lambda table: utterances_of(table, recordings),
        GRAMMARS=GRAMMARS.values(),
        warnings=warnings,
        studies=studies,
        draw_study=draw_study,
        show_score=show_score,
        written=datetime.now().strftime("%Y-%m-%d %H:%M"),
    )
    return END_TAGS.sub("", text.replace(LOOKS, looks.rules(), 1))


def how_many_first(plots: Sequence[Plot]) -> int:
    """How many figures stand above a table, side by side."""
    room = [sum(1 + panel.wide for panel in plot.panels) for plot in plots]
    return 2 if sum(room[:2]) <= 3 else 1


def has_curve(line: Line) -> bool:
    """Whether a run of the row has several epochs, or several so far."""
    return any(len(run.result.get("metrics") or run.records) > 1 for run in line.runs)


def without_numbers(line: Line) -> bool:
    """Whether a row has nothing to show: no number of the paper or of ours, and no run."""
    return not line.runs and not any(
        has_published(score) or score.mean is not None for score in line.scores.values()
    )


def read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
