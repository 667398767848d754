"""The page: one HTML file that holds all tables and figures and needs nothing else."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from hornn.reporting.figures import draw_figures
from hornn.reporting.grid import table_grid
from hornn.reporting.markdown import relative_address
from hornn.reporting.notes import table_notes
from hornn.reporting.overview import OVERVIEW_HEADER, OVERVIEW_NOTE, overview_cells
from hornn.reporting.studies import Study, draw_study
from hornn.reporting.tables import Table

TEMPLATE = Path(__file__).with_name("page.html")


def render_page(
    tables: Sequence[Table], warnings: Sequence[str], out: Path, studies: Sequence[Study] = ()
) -> str:
    """The page. Links to result files start at `out`."""
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        tables=tables,
        judged=[(table, verdict) for table in tables for verdict in table.verdicts],
        OVERVIEW_HEADER=OVERVIEW_HEADER,
        OVERVIEW_NOTE=OVERVIEW_NOTE,
        overview_cells=overview_cells,
        table_grid=table_grid,
        table_notes=table_notes,
        draw_figures=draw_figures,
        link=lambda path: relative_address(path, out),
        warnings=warnings,
        studies=studies,
        draw_study=draw_study,
        written=datetime.now().strftime("%Y-%m-%d %H:%M"),
    )
