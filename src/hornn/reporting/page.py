"""The page: one HTML file that holds all tables and figures and needs nothing else."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from hornn.reporting.figures import draw_figures
from hornn.reporting.glance import draw_glance
from hornn.reporting.grid import table_grid
from hornn.reporting.markdown import gain_text, relative_address
from hornn.reporting.notes import table_notes
from hornn.reporting.overview import OVERVIEW_HEADER, OVERVIEW_NOTE, overview_cells
from hornn.reporting.run_pages import has_page, page_name
from hornn.reporting.scoreboard import MARKS, list_claims, summarise
from hornn.reporting.studies import Study, draw_study
from hornn.reporting.tables import Table

TEMPLATE = Path(__file__).with_name("page.html")


def render_page(
    tables: Sequence[Table], warnings: Sequence[str], out: Path, studies: Sequence[Study] = ()
) -> str:
    """The page: an overview, the claims and a view for each table. Links to result files start at `out`."""
    claims = list_claims(tables)
    papers: dict[str, list[Table]] = {}
    for table in tables:
        papers.setdefault(table.paper, []).append(table)
    outcomes = [*MARKS, *({claim.verdict.outcome for claim in claims} - MARKS.keys())]
    filters = (
        ("paper", "Paper", sorted({claim.paper for claim in claims})),
        ("outcome", "Outcome", outcomes),
        ("asked", "Asked by", ["the paper", "us"]),
    )
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        tables=tables,
        papers=papers,
        claims=claims,
        findings=summarise(claims),
        filters=filters,
        list_claims=list_claims,
        gain_text=gain_text,
        glance=draw_glance(tables, linked=True),
        OVERVIEW_HEADER=OVERVIEW_HEADER,
        OVERVIEW_NOTE=OVERVIEW_NOTE,
        overview_cells=overview_cells,
        table_grid=table_grid,
        table_notes=table_notes,
        draw_figures=draw_figures,
        page_name=page_name,
        has_page=has_page,
        link=lambda path: relative_address(path, out),
        warnings=warnings,
        studies=studies,
        draw_study=draw_study,
        written=datetime.now().strftime("%Y-%m-%d %H:%M"),
    )
