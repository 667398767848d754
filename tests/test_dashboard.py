"""The dashboard on Weights & Biases: its tables as offline runs, its objects built without a network."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hornn import dashboard
from hornn.dashboard import Settings, build_dashboard, cells, measured_tables, scores, show
from outcome import Command
from reporting.place import Place, table_of

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic V1 style")  # that wandb-workspaces is written in
NEEDED = "needs wandb-workspaces: pip install -e '.[dashboard]'"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A sweep with two seeds of one row and one of another; a third is running. One without a figure or scores."""
    place = Place(tmp_path)
    place.commit("sum-2", 1, 112.0, name="aaaa")
    place.commit("sum-2", 2, 110.0, name="aaaa")
    place.commit("sum-3", 1, 107.5, name="bbbb")
    place.record({"row": "max-2", "seed": 1, "status": "running", "name": "cccc"})
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: sizes")
    text = text.replace("test_ppl", "num_parameters")
    figure = "  figure: {x_label: order}\n"
    place.write_sweep("sizes", text.replace(figure, "").replace("perplexity, test", "weights"))
    return place


@pytest.fixture
def words(place: Place) -> list[str]:
    return ["--project=tests", f"--results={place.results}", f"--sweeps={place.sweeps}"]


def settings_of(place: Place, **changes: Any) -> Settings:
    return Settings("tests", place.results, place.sweeps, **changes)


def test_a_table_has_the_numbers_of_its_csv_and_the_place_in_the_figure(place: Place) -> None:
    toy = next(
        table for table in measured_tables(place.results, place.sweeps)[0] if table.sweep.name == "toy"
    )
    columns, lines = cells(toy)
    rows = {line[columns.index("row")]: dict(zip(columns, line, strict=True)) for line in lines}
    assert set(columns) >= dashboard.NUMBERS
    assert list(rows) == ["rnn", "sum-2", "sum-3", "max-2", "stack"]
    two = rows["sum-2"]
    assert (two["published"], two["mean"], two["difference"], two["seeds"]) == (111.0, 111.0, 0.0, 2.0)
    assert two["deviation"] == pytest.approx(2**0.5)
    assert (two["group"], two["x"], two["verified"]) == ("sum", 2, "True")
    assert (rows["rnn"]["mean"], rows["rnn"]["x"]) == (None, None)
    assert rows["stack"]["status"] == "not built"


@pytest.mark.slow
def test_tables_are_logged_without_a_network(process: Command, place: Place, words: list[str]) -> None:
    done = process("dashboard", *words, "--offline", WANDB_API_KEY=None)
    folder = place.results / "report" / "wandb"
    assert (done.code, done.err) == (0, "")
    assert done.out == f"2 tables, to be uploaded: wandb sync {shlex.quote(str(folder))}/offline-run-*\n"
    (log,) = folder.glob("offline-run-*-report-toy")
    inspect = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(log)]
    lines = subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.splitlines()
    records = {record["type"]: record for record in map(json.loads, lines)}
    run = records["run"]["run"]
    assert [run[key] for key in ("run_id", "project", "run_group", "job_type")] == [
        *("report-toy", "tests", "toy", "report")
    ]
    assert records["exit"]["exit"]["exit_code"] == 0
    (table,) = log.glob("files/media/table/comparison_*.table.json")
    logged = json.loads(table.read_text())
    toy = next(
        table for table in measured_tables(place.results, place.sweeps)[0] if table.sweep.name == "toy"
    )
    assert (logged["columns"], logged["data"]) == cells(toy)


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(
        ValueError, match=r"no sweep has results below .*outputs: run one, python src/train.py"
    ):
        show(settings_of(place))


@pytest.mark.thorough
def test_sweep_files_are_found_outside_of_the_checkout(
    process: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb_workspaces", reason=NEEDED)
    monkeypatch.chdir(tmp_path)
    done = process("dashboard", "--project=tests", f"--results={ROOT / 'outputs'}", "--spec=spec.json")
    assert done.out.startswith("spec.json: the spec of the dashboard, ")


def test_a_table_that_cannot_be_read_is_left_out_and_one_of_ones_own_is_shown(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(dashboard, "log_table", lambda table, *_: logged.append(table.sweep.name))
    own = tmp_path / "own" / "sweeps"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text((place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: mine"))
    (place.sweeps / "sizes.yaml").write_text("sweep: {name: [\n")
    warning, said = show(settings_of(place, offline=True, config_dir=own.parent)).splitlines()
    assert warning.startswith(f"warning: left out: {place.sweeps / 'sizes.yaml'}")
    assert said.startswith("2 tables, to be uploaded: ")
    assert sorted(logged) == ["mine", "toy"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: --project"),
        (["--project=a", "--entty=b"], "unrecognized arguments: --entty=b"),
        (["project=a"], "the following arguments are required: --project"),
        (["--project=a", "--offline", "--spec=a.json"], "--spec: not allowed with argument --offline"),
        (["--project=a", "--spec="], "--spec must name a file"),
        (["--project="], "--project must name a project"),
        (["--project=a", "--sweeps=absent"], "there is no folder absent: give --sweeps FOLDER"),
        (["--project=a", "--config-dir=absent"], "there is no folder absent: give --config-dir FOLDER"),
    ],
)
def test_a_wrong_word_is_named(command: Command, words: list[str], message: str) -> None:
    done = command("dashboard", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def panels_of(spec: dict[str, Any]) -> list[tuple[list[Any], dict[str, Any]]]:
    """Each panel with the filters of its runs, as pairs."""
    return [
        (
            [(leaf["key"]["name"], leaf["op"], leaf["value"]) for leaf in runs["filters"]["filters"]],
            panel,
        )
        for block in spec["blocks"]
        if block["type"] == "panel-grid"
        for runs in block["metadata"]["runSets"]
        for panel in block["metadata"]["panelBankSectionConfig"]["panels"]
    ]


@pytest.fixture
def spec(command: Command, words: list[str], tmp_path: Path) -> dict[str, Any]:
    pytest.importorskip("wandb_workspaces", reason=NEEDED)
    done = command("dashboard", *words, f"--spec={tmp_path / 'spec.json'}")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{tmp_path / 'spec.json'}: the spec of the dashboard, 2 tables; nothing was sent\n"
    found: dict[str, Any] = json.loads((tmp_path / "spec.json").read_text())
    return found


def test_perplexity_is_plotted_against_order_alpha_time_and_size(spec: dict[str, Any]) -> None:
    plots = [
        (runs, panel["config"]) for runs, panel in panels_of(spec) if panel["viewType"] == "Scatter Plot"
    ]
    axes = ["config:cell.value.order", "config:cell.value.alpha", "summary:elapsed_seconds"]
    assert [plot["xAxis"] for _, plot in plots] == [*axes, "config:num_parameters.value"]
    assert {plot["yAxis"] for _, plot in plots} == {"summary:test/ppl"}
    assert all(runs == [("jobType", "!=", "report")] for runs, _ in plots)


def test_scores_have_the_units_of_the_tables(place: Place) -> None:
    """Perplexity of all runs and nats of all runs; of each table, its own."""
    pytest.importorskip("wandb_workspaces", reason=NEEDED)
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: tunes")
    place.write_sweep("tunes", text.replace("test_ppl", "test_nll").replace("perplexity, test", "nats, test"))
    tables, _ = measured_tables(place.results, place.sweeps)
    spec = build_dashboard(tables, "tests")._to_model().spec.model_dump(by_alias=True, exclude_none=True)
    panels = [panel for _, panel in panels_of(spec)]
    plots = [panel["config"] for panel in panels if panel["viewType"] == "Scatter Plot"]
    assert [plot["yAxis"] for plot in plots] == ["summary:test/ppl"] * 4 + ["summary:test/nll"] * 4
    assert plots[4]["chartTitle"] == "test: nats per frame against order"
    curves = [panel["config"] for panel in panels if panel["viewType"] == "Run History Line Plot"]
    shown = [(*curve["metrics"], curve.get("yLogScale", False)) for curve in curves[::2]]
    assert shown == [("valid/ppl", True), ("valid/nll", False)] * 2


def test_word_errors_have_no_panels(place: Place) -> None:
    """No logger has them: they are in the results alone."""
    metrics = "[{key: test_ppl, label: perplexity}, {key: test_wer, label: word errors}]"
    text = re.sub(r"\n *(published|metric_label): .*", "", (place.sweeps / "toy.yaml").read_text())
    place.write_sweep("toy", text.replace("metric: test_ppl", f"metric: {metrics}"))
    table = table_of(place)
    assert [metric.key for metric in table.sweep.metrics] == ["test_ppl", "test_wer"]
    assert scores(table).keys() == {"ppl"}


def test_learning_curves_are_those_of_the_runs_of_a_table(spec: dict[str, Any]) -> None:
    """By model of all runs; by row of a table's runs, done or at work. A table of sizes has none."""
    curves = [
        (runs, panel["config"]["xAxis"], panel["config"]["groupBy"])
        for runs, panel in panels_of(spec)
        if panel["viewType"] == "Run History Line Plot"
    ]
    everything = [("jobType", "!=", "report")]
    of_the_table = [("run_name", "IN", ["aaaa", "bbbb", "cccc"])]
    assert curves == [
        (everything, "trainer/global_step", "model.value"),
        (everything, "elapsed_seconds", "model.value"),
        (of_the_table, "trainer/global_step", "jobType"),
        (of_the_table, "elapsed_seconds", "jobType"),
    ]


def test_each_table_is_shown_as_it_was_logged(spec: dict[str, Any]) -> None:
    tables = [runs for runs, panel in panels_of(spec) if panel["viewType"] == "Weave"]
    assert tables == [[("jobType", "=", "report"), ("group", "=", name)] for name in ("sizes", "toy")]
    (chart,) = [panel["config"] for _, panel in panels_of(spec) if panel["viewType"] == "Vega2"]
    assert chart["fieldSettings"] == {"x": "x", "y": "mean", "stroke": "group"}
    assert chart["stringSettings"] == {"title": "perplexity, test against order"}
    assert '"tableKey", "value": "comparison"' in json.dumps(chart)
    remarks = [
        block["content"] for block in spec["blocks"] if "Nobody 2000, table 1 (" in block.get("content", "")
    ]
    assert ["rows are measured" in text for text in remarks] == [True, True]


def test_the_spec_is_one_that_the_library_reads(spec: dict[str, Any]) -> None:
    from wandb_workspaces.reports.v2.internal import Spec

    blocks = Spec.model_validate(spec).blocks
    grids = [block.metadata.panel_bank_section_config for block in blocks if block.type == "panel-grid"]
    kinds = [type(part).__name__ for part in (*blocks, *(panel for grid in grids for panel in grid.panels))]
    assert [kind for kind in kinds if kind.startswith("Unknown")] == []
    assert kinds.count("PanelGrid") == 4


def test_publishing_logs_the_tables_and_replaces_the_dashboard(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    wr = pytest.importorskip("wandb_workspaces.reports.v2", reason=NEEDED)
    logged: list[str] = []
    asked: list[tuple[str, str]] = []

    def log(table: Any, settings: Settings, folder: Path) -> Any:
        logged.append(table.sweep.name)
        return SimpleNamespace(entity="someone")

    def reports(path: str, name: str) -> list[Any]:
        asked.append((path, name))
        return [SimpleNamespace(id="old")]

    def save(report: Any) -> Any:
        return SimpleNamespace(url=f"{report.entity}/{report.project}/{report.id}")

    monkeypatch.setattr(dashboard, "log_table", log)
    monkeypatch.setattr(dashboard.wandb, "Api", lambda: SimpleNamespace(reports=reports))
    monkeypatch.setattr(wr.Report, "save", save)
    assert show(settings_of(place)) == "2 tables; the dashboard is someone/tests/old"
    assert (sorted(logged), asked) == (["sizes", "toy"], [("someone/tests", dashboard.TITLE)])


def test_without_the_extra_nothing_is_sent(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb_workspaces.reports.v2", None)
    monkeypatch.setattr(dashboard, "log_table", lambda *_: pytest.fail("it was"))
    with pytest.raises(
        ValueError, match=r"the dashboard needs wandb-workspaces: pip install -e '\.\[dashboard\]'"
    ):
        show(settings_of(place))


@pytest.mark.slow
def test_without_a_login_it_is_one_line(process: Command, words: list[str], tmp_path: Path) -> None:
    pytest.importorskip("wandb_workspaces", reason=NEEDED)
    nobody = {"WANDB_API_KEY": None, "HOME": str(tmp_path), "NETRC": str(tmp_path / "no"), "WANDB_MODE": None}
    done = process("dashboard", *words, **nobody)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("error: Weights & Biases cannot be reached or refuses (")
    assert "wandb login" in done.err


def test_the_committed_results_make_a_dashboard() -> None:
    pytest.importorskip("wandb_workspaces", reason=NEEDED)
    tables, _ = measured_tables(ROOT / "outputs", ROOT / "sweeps")
    dashboard = build_dashboard(tables, "hornn")
    headings = [block.text for block in dashboard.blocks if type(block).__name__ == "H1"]
    assert headings == ["All runs", *(table.sweep.title for table in tables)]
    assert dashboard._to_model().spec.blocks


def test_it_loads_no_torch(words: list[str], tmp_path: Path) -> None:
    pytest.importorskip("wandb_workspaces", reason=NEEDED)
    program = (
        f"import sys, runpy; sys.argv[0] = 'dashboard.py'; "
        f"runpy.run_path({str(ROOT / 'src' / 'dashboard.py')!r}, run_name='__main__'); "
        "sys.exit(bool({'torch', 'lightning', 'hydra'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, *words, f"--spec={tmp_path / 's.json'}"])
    assert done.returncode == 0
