"""What sweeps found, on Weights & Biases: a run with the table of each, and a report that plots all runs.

A table becomes the run `report-<sweep>` of job type `report`, with the lines of the table's CSV. The report on top
(wandb-workspaces, the extra `dashboard`) shows these and plots what the runs themselves have logged. A table's runs are
found by their hashes, whichever sweep launched them.
"""

import csv
import io
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import wandb

from hornn.reporting.comma_separated import table_csv
from hornn.reporting.commands import find_tables
from hornn.reporting.notes import table_notes
from hornn.reporting.run_numbers import SPLITS, UNITS
from hornn.reporting.scores import has_other_unit
from hornn.reporting.sweeps import Metric
from hornn.reporting.tables import Table
from hornn.run.epochs import ELAPSED
from hornn.shown import first_line, shown
from hornn.writing import write_atomically

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import Report

UPDATES = "trainer/global_step"  # as Lightning logs it; a step of W&B's is a line of its log
TITLE = "Recurrent language models compared"
TABLE, REPORT = "comparison", "report"  # the key of a table in its run, and that run's job type
NUMBERS = {
    *("published", "mean", "deviation", "seeds", "best_by_validation", "difference"),
    *("num_parameters", "seconds_per_epoch"),
}


class Settings(NamedTuple):
    """What the command line says: the options of `commands/dashboard.py`."""

    project: str
    results: Path
    sweeps: Path
    config_dir: Path | None = None
    entity: str = ""
    offline: bool = False
    spec: Path | None = None


def show(settings: Settings) -> str:
    """Log the tables, publish the dashboard; what to tell the user. A table whose sweep file is wrong is left out.

    Raises ValueError where there is nothing to show, the extra is missing, or W&B cannot be reached.
    """
    tables, refused = measured_tables(settings.results, settings.sweeps, settings.config_dir)
    return "\n".join([*(f"warning: left out: {shown(why)}" for why in refused), publish(tables, settings)])


def publish(tables: Sequence[Table], settings: Settings) -> str:
    """Log these tables and publish the dashboard, or write its spec; what to tell the user. Errors: as in `show`."""
    if settings.spec:
        spec = build_dashboard(tables, settings.project, settings.entity)._to_model().spec
        text = json.dumps(spec.model_dump(mode="json", by_alias=True, exclude_none=True), indent=1)
        write_atomically(settings.spec, text + "\n")
        return f"{settings.spec}: the spec of the dashboard, {len(tables)} tables; nothing was sent"
    folder = settings.results / "report"
    if settings.offline:
        runs = [log_table(table, settings, folder) for table in tables]
        return f"{len(runs)} tables, to be uploaded: wandb sync {shlex.quote(str(folder / 'wandb'))}/offline-run-*"
    build_dashboard(tables, settings.project, settings.entity)  # without the extra, nothing is sent
    try:
        runs = [log_table(table, settings, folder) for table in tables]
        dashboard = build_dashboard(tables, settings.project, runs[0].entity)
        dashboard.id = published_before(runs[0].entity, settings.project)
        return f"{len(runs)} tables; the dashboard is {dashboard.save().url}"
    except (wandb.Error, OSError) as error:
        raise ValueError(
            f"Weights & Biases cannot be reached or refuses ({first_line(error)}): log in once with "
            "`wandb login`, or use --offline or --spec FILE"
        ) from error


def measured_tables(results: Path, folder: Path, own: Path | None = None) -> tuple[list[Table], list[str]]:
    """The tables that have results, and why others are left out. Raises ValueError where there is none.

    folder, own: as in `find_sweeps`.
    """
    found, _, refused = find_tables(results, folder, own)
    tables = [table for table in found if table.measured]
    if not tables:
        raise ValueError(
            f"no sweep has results below {results}: run one, python src/train.py -m sweeps=hornn_table1, or give "
            "--results FOLDER"
        )
    return tables, [*refused.values()]


def log_table(table: Table, settings: Settings, folder: Path) -> Any:
    """A run that holds the table. Logged again it is the same run, which then shows the new table."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{REPORT}-{table.sweep.name}"
    run = wandb.init(
        project=settings.project,
        entity=settings.entity or None,
        name=name,
        id=name,
        group=table.sweep.name,
        job_type=REPORT,
        notes=table.sweep.title,
        dir=folder,
        mode="offline" if settings.offline else "online",
        resume=None if settings.offline else "allow",
        reinit="finish_previous",
        settings=wandb.Settings(silent=True, console="off", x_disable_stats=True, init_timeout=30),
    )
    columns, lines = cells(table)
    run.log({TABLE: wandb.Table(columns=columns, data=lines)})
    run.finish()
    return run


def cells(table: Table) -> tuple[list[Any], list[list[Any]]]:
    """The table's CSV with numbers as such, None where there is none, and each row's place in the figure."""
    header, *lines = csv.reader(io.StringIO(table_csv(table)))
    rows = {line.row.name: line.row for line in table.lines}
    place = header.index("row")

    def read(key: str, text: str) -> float | str | None:
        return text if key not in NUMBERS else float(text) if text else None

    return [*header, "group", "x"], [
        [*map(read, header, line), rows[line[place]].group, rows[line[place]].x] for line in lines
    ]


def build_dashboard(tables: Sequence[Table], project: str, entity: str = "") -> "Report":
    """All runs, then each table with its runs. Raises ValueError without the extra that it needs."""
    try:
        import wandb_workspaces.reports.v2 as wr
        from wandb_workspaces.expr import And, Config, Metric
    except ImportError as error:
        raise ValueError(
            "the dashboard needs wandb-workspaces: pip install -e '.[dashboard]', or use --offline for the tables "
            "alone"
        ) from error
    training = wr.Runset(name="runs", filters=And(Metric("JobType") != REPORT))
    blocks: list[Any] = [
        wr.P(
            "Test scores by order, forgetting factor, time and size; validation scores over updates and time."
        ),
        wr.TableOfContents(),
        wr.H1("All runs"),
    ]
    for unit in dict.fromkeys(unit for table in tables for unit in scores(table)):
        blocks.append(
            wr.PanelGrid(runsets=[training], panels=[*scatters(unit), *curves(unit, wr.Config("model"))])
        )
    for table in tables:
        name = table.sweep.name
        remarks = [f"- {text}" for text in (*map(str, table.verdicts), *table_notes(table))]
        blocks += [wr.H1(table.sweep.title), wr.MarkdownBlock("\n".join([table.sweep.paper, "", *remarks]))]
        logged = wr.Runset(name=name, filters=And(Metric("JobType") == REPORT, Metric("Group") == name))
        blocks.append(wr.PanelGrid(runsets=[logged], panels=comparison(table)))
        for unit, metric in scores(table).items():
            runs = [run for line in table.lines for run in line.runs]
            fitting = [
                run for run in runs if run.name and not has_other_unit(metric, table.sweep, run.result)
            ]
            hashes = sorted({str(run.name) for run in fitting})
            found = wr.Runset(name=name, filters=And(Config("run_name").isin(hashes)))
            blocks.append(wr.PanelGrid(runsets=[found], panels=curves(unit, wr.Metric("JobType"))))
    return wr.Report(project=project, entity=entity, title=TITLE, blocks=blocks, width="fluid")


def scores(table: Table) -> dict[str, Metric]:
    """The units in which runs of a table are scored, as `ppl`, each with its first metric."""
    found: dict[str, Metric] = {}
    for metric in table.sweep.metrics:
        split, _, unit = metric.key.partition("_")
        if split in SPLITS and unit in UNITS and not unit.startswith("wer"):  # a logger has no word errors
            found.setdefault(unit, metric)
    return found


def scatters(unit: str) -> list[Any]:
    """The test score of each run against what may explain it."""
    import wandb_workspaces.reports.v2 as wr

    against: dict[str, Any] = {
        "order": wr.Config("cell.order"),
        "alpha": wr.Config("cell.alpha"),
        "seconds of training": wr.SummaryMetric(ELAPSED),
        "weights": wr.Config("num_parameters"),
    }
    return [
        wr.ScatterPlot(
            title=f"test: {UNITS[unit][0]} against {label}",
            x=x,
            y=wr.SummaryMetric(f"test/{unit}"),
            legend_template="${run:displayName}",
            layout=wr.Layout(x=6 * column, w=6, h=8),
        )
        for column, (label, x) in enumerate(against.items())
    ]


def curves(unit: str, by: Any) -> list[Any]:
    """The validation score over updates and over time, a curve for each value of `by`, its mean over the runs."""
    import wandb_workspaces.reports.v2 as wr

    return [
        wr.LinePlot(
            title=f"validation: {UNITS[unit][0]} over {label}",
            x=x,
            y=[f"valid/{unit}"],
            log_y=unit == "ppl",
            groupby=by,
            groupby_aggfunc="mean",
            groupby_rangefunc="stddev",
            max_runs_to_show=100,
            layout=wr.Layout(x=12 * column, y=8, w=12, h=10),
        )
        for column, (label, x) in enumerate({"updates": UPDATES, "seconds of training": ELAPSED}.items())
    ]


def comparison(table: Table) -> list[Any]:
    """The logged table and, where its sweep has a figure, our numbers against the rows' x."""
    import wandb_workspaces.reports.v2 as wr

    panels: list[Any] = [wr.WeavePanelSummaryTable(table_name=TABLE, layout=wr.Layout(w=24, h=12))]
    figure, metrics = table.sweep.figure, table.sweep.metrics
    if figure and len(metrics) == 1:
        panels.append(
            wr.CustomChart(
                query={"summaryTable": {"tableKey": TABLE}},
                chart_name="wandb/line/v0",
                chart_fields={"x": "x", "y": "mean", "stroke": "group"},
                chart_strings={"title": f"{metrics[0].label} against {figure.x_label}"},
                layout=wr.Layout(y=12, w=12, h=10),
            )
        )
    return panels


def published_before(entity: str, project: str) -> str:
    """The id of the dashboard that the project has already and that a new one replaces; empty: there is none."""
    return next((str(report.id) for report in wandb.Api().reports(f"{entity}/{project}", name=TITLE)), "")
