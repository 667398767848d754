"""The project's sweep files: each of their runs composes, and their constants are those that validation chooses."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from hornn.baselines.counts import FittedModel
from hornn.build import bound, build_network
from hornn.cells.base import Cell
from hornn.network import SequenceModel
from hornn.parameters import TABLE
from hornn.recipe import COUNTED, flatten, load, resolve
from hornn.reporting.runs import FoundRuns, find_runs
from hornn.reporting.sweeps import Row, Sweep
from hornn.reporting.tables import build_table
from hornn.run.composed import as_dict
from hornn.run.identity import INIT_FROM, hashed_part, name_of
from reference.cases import MODEL_NAMES
from reporting.shipped import ROOT, SWEEPS


@pytest.mark.parametrize(
    ("table", "study", "key"),
    [
        ("hornn_table2", "ptb_decay", "optimizer.weight_decay"),
        ("ptb_modern", "ptb_modern_recipe", "network.dropout"),
    ],
)
def test_a_cell_s_own_constant_is_the_one_that_validation_chooses(table: str, study: str, key: str) -> None:
    """Of those that are measured, in the study that tries several; where none is named, the recipe's is the best."""
    found = find_runs(list(SWEEPS.values()), ROOT / "outputs", committed_only=True)
    named = {row.name: row for row in SWEEPS[table].rows}
    tried = [row for row in (*named.values(), *SWEEPS[study].rows) if row.run is not None]
    valid = {
        row.identity: run.result["valid_ppl"]
        for row in tried
        for run in found.runs.get(row.identity, [])
        if run.state == "done"
    }
    studied = {row.identity for row in SWEEPS[study].rows}
    compared = 0
    for name, row in named.items():
        assert row.identity in studied or not name.endswith("-own"), name
        alike = {
            other.identity for other in tried if {**values(row), key: values(other).get(key)} == values(other)
        }
        measured = alike & valid.keys()
        if len(alike) > 1 and measured and f"{name}-own" not in named:
            assert min(measured, key=valid.__getitem__) == row.identity, name
            compared += 1
    assert compared


def values(row: Row) -> dict[str, Any]:
    return {**row.recipe.choices, **flatten(row.recipe.config)}


def runs() -> Iterator[Any]:
    """All rows; one that neither begins its table nor has a choice or a key that no earlier row has is `thorough`."""
    seen: set[str] = set()
    for sweep in SWEEPS.values():
        for row in sweep.rows:
            if row.run is not None:
                words = {
                    word if (ROOT / "conf" / key).is_dir() else key
                    for word in row.run
                    for key in [word.split("=")[0]]
                } | ({"start"} if row.start else set())
                marks = [pytest.mark.thorough] if words <= seen and row is not sweep.rows[0] else []
                seen |= words
                yield pytest.param(sweep, row, id=f"{sweep.name}-{row.name}", marks=marks)


@pytest.mark.each(4)
@pytest.mark.parametrize(("sweep", "row"), list(runs()))
def test_each_run_is_a_run_of_its_experiment(sweep: Sweep, row: Row) -> None:
    """Hydra composes it to the recipe that the report knows, every override in force, by its paper's experiment.

    A table of another paper, or of none, may do without one.
    """
    run = row.run or ()
    chosen = dict(word.partition("=")[::2] for word in run)
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", [f"sweeps={sweep.name}", *run], return_hydra_config=True)
    choices = cfg.hydra.runtime.choices
    assert choices.experiment == chosen.pop("experiment", choices.experiment)
    paper = {"Soltani": "hornn", "Mikolov": "scrn", "Pascanu": "deep_rnn"}.get(sweep.paper.split()[0])
    if paper and "experiment" not in dict(word.partition("=")[::2] for word in run):
        assert choices.experiment.startswith(f"{paper}/")
    for key, value in chosen.items():
        found = (
            choices[key] if key in choices else OmegaConf.select(cfg, key.lstrip("~"), default="no such key")
        )
        wanted = "no such key" if key.startswith("~") else value
        assert ("null" if found is None else str(found).lower()) == wanted, key
    config = as_dict(OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"]))
    start = {INIT_FROM: row.recipe.config[INIT_FROM]} if row.start else {}
    recipe = hashed_part(choices, config | start)
    assert row.recipe == (*recipe, {})
    assert row.start or name_of(*recipe) == row.identity
    if cfg.model.get(COUNTED):
        bound(config["model"], FittedModel, "model")(vocab_size=10, eos_id=0)
        return
    with torch.device("meta"):
        SequenceModel(
            [1] * 10,
            bound(config["model"], Cell, "model"),
            cfg.network.embedding_size,
            cfg.network.num_layers,
        )


def test_the_smoke_sweeps_leave_no_cell_out() -> None:
    """None of those that the table of weight counts holds; a cell of one's own may do without."""
    swept: list[str] = []
    for name in ("smoke_all_cells", "smoke_relu_cells"):
        sweep = OmegaConf.load(ROOT / "sweeps" / f"{name}.yaml")
        swept += [model.strip() for model in sweep.hydra.sweeper.params.model.split(",")]
    known = {row.model for row in OmegaConf.load(TABLE).rows}
    assert len(swept) == len(set(swept)) >= 29
    assert known <= set(swept) <= set(MODEL_NAMES)


def test_every_cell_has_equal_weights() -> None:
    """Within 2 % of the LSTM's, on the 10,000 words of Penn Treebank; the file's header says within 0.4 %."""
    counts = {}
    for row in SWEEPS["every_cell"].rows:
        nodes = resolve(row.run or (), load(SWEEPS["every_cell"].path), ROOT / "conf")[1]
        with torch.device("meta"):
            counts[row.name] = build_network(nodes, [1] * 10_000).num_parameters
    assert len(counts) > 20
    for name, count in counts.items():
        assert abs(count / counts["lstm"] - 1) < 0.004, name


def test_every_cell_s_table_leaves_no_cell_out() -> None:
    """But those that another cell stands for: HORNNs of other poolings, acoustic cells, models of windows."""
    shown = {dict(word.split("=", 1) for word in row.run or ())["model"] for row in SWEEPS["every_cell"].rows}
    alike = {
        "hornn",
        "hornn_max",
        "hornn_relu",
        "hornn_sigmoid",
        "hornnp_relu",
        "hornnp_sigmoid",
        "resrnn",
        "lstmp",
    }
    known = {row.model for row in OmegaConf.load(TABLE).rows}
    assert known - alike - {"nnlm", "fofe_fnn", "memn2n", "dnn"} <= shown


def test_no_two_tables_have_one_short_title() -> None:
    """Which is all that the page's list and a table of claims show of a title."""
    titles = [build_table(sweep, FoundRuns({}, {})).short_title for sweep in SWEEPS.values()]
    assert len(titles) == len(set(titles)) > 40


def test_the_header_of_a_grid_is_short() -> None:
    for name in ("width", "orders", "alpha", "every_cell"):
        lines = SWEEPS[name].path.read_text().splitlines()
        header = [line for line in lines[: lines.index("defaults:")] if line.startswith("#")]
        assert len(header) <= 12
        assert f"#   python src/train.py -m sweeps={name}" in header
        assert any(line.startswith("# Cost: ") for line in header)
