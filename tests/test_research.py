"""A network by the words of the command line, and results as rows."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig

import hornn
from hornn.cells.hornn import FofeHornn
from hornn.result import write_result

TABLES = Path(__file__).parents[1] / "outputs" / "tables"


def test_a_network_is_built_by_its_words_and_runs_a_chunk() -> None:
    network = hornn.make_network(
        "hornn_fofe", vocab_size=11, order=3, hidden_size=5, network={"init_std": 0.2}
    )
    assert isinstance(network.cells[0], FofeHornn)
    assert network.cells[0].order == 3
    features, state = network(torch.randint(11, (7, 2)), network.initial_state(2))
    assert features.shape == (7, 2, 5)
    assert state[0].history.shape == (3, 2, 5)
    assert torch.equal(state[0].history[0], features[-1])
    assert network.head.log_probs(features).exp().sum(-1).detach().numpy() == pytest.approx(1, rel=1e-5)


def test_a_name_or_key_that_is_not_there_is_said() -> None:
    with pytest.raises(ValueError, match=r"unknown model 'hornn_fof'; it is one of: .*hornn_fofe"):
        hornn.make_network("hornn_fof", vocab_size=11)
    with pytest.raises(ValueError, match=r"model 'rnn' has no key 'order'; it takes: .*hidden_size"):
        hornn.make_network("rnn", vocab_size=11, order=3)
    with pytest.raises(ValueError, match="model 'kn' is no network: it is counted"):
        hornn.make_network("kn", vocab_size=11)
    for arguments, message in (
        ({"counts": [1] * 5}, "counts must be a list of vocab_size=11 whole numbers"),
        ({"counts": 3}, "counts must be a list of vocab_size=11 whole numbers, got 3"),
        ({"head": None}, "head must be a name, got None"),
        ({"network": [1]}, r"network must hold keys and values, got \[1\]"),
        ({"network": {"dropout": "a"}}, r"network\.dropout must be in \[0, 1\), got 'a'"),
        ({"network": {"init_std": "a"}}, r"network\.init_std must be >= 0 and finite, got 'a'"),
        (
            {"network": {"state_grad_norm": "a"}},
            r"network\.state_grad_norm must be > 0 and finite, or null, got 'a'",
        ),
        ({"network": {"initial_value": None}}, r"network\.initial_value must be finite, got None"),
    ):
        with pytest.raises(ValueError, match=message):
            hornn.make_network("rnn", vocab_size=11, **arguments)
    with pytest.raises(ValueError, match="order must be a whole number >= 1, got 0"):
        hornn.make_network("hornn", vocab_size=11, order=0)


def test_numbers_may_be_numpys() -> None:
    counts = np.array([3, 2, 1, 1, 1])
    given = {"hidden_size": np.int64(4), "network": {"init_std": np.float64(0.1)}, "head": "two_level"}
    network = hornn.make_network("rnn", np.int64(5), counts=counts, **given)
    assert network.cells[0].W_h.shape == (4, 4)


def test_a_program_of_ones_own_that_hydra_runs_builds_a_network(tmp_path: Path) -> None:
    """Its folder of choices is its own: it has neither ours nor says what a name of ours means."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "gru.yaml").write_text("units: 3\n")
    (tmp_path / "app.yaml").write_text("defaults: [{model: gru}]\n")
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        HydraConfig.instance().set_config(compose("app", return_hydra_config=True))
    network = hornn.make_network("gru", vocab_size=11, hidden_size=5)
    assert type(network.cells[0]).__name__ == "Gru"


def test_results_are_rows(tmp_path: Path) -> None:
    rows = hornn.results(TABLES / "hornn_table1")
    assert len(rows) == len(list((TABLES / "hornn_table1").glob("*-seed*.json")))
    row = next(row for row in rows if row["file"].endswith("hornn_fofe-3-seed1.json"))
    told = json.loads(Path(row["file"]).read_text())
    assert (row["model"], row["model.order"], row["seed"]) == ("hornn_fofe", 3, 1)
    assert row["test_ppl"] == told["test_ppl"]
    assert not any(isinstance(value, dict) for value in row.values())
    kept = tmp_path / "tables" / "hornn_table1" / "hornn_fofe-3-seed1.json"
    kept.parent.mkdir(parents=True)
    for path in (kept, tmp_path / "result.json"):
        path.write_text(json.dumps(told))
    (tmp_path / "three-seeds.json").write_text("[]")  # the record of a sweep
    for folder in ("sweeps", "report", "studies/rates-seed1"):  # a sweep, its table and a search of this name
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "rates-seed1.json").write_text("[]")
    assert [row["file"] for row in hornn.results(tmp_path)] == [str(tmp_path / "result.json")]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        hornn.results(tmp_path / "none")
    with pytest.raises(ValueError, match="results takes the path of a folder, such as 'outputs', got 3"):
        hornn.results(3)
    write_result(tmp_path, {"status": "diverged"})
    assert [row["status"] for row in hornn.results(tmp_path)] == ["diverged", "completed"]
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(ValueError, match=r"result\.json is damaged"):
        hornn.results(tmp_path)


def test_the_package_names_what_it_has() -> None:
    with pytest.raises(
        AttributeError,
        match=r"has no attribute 'lod'; it has: GrowingText, Model, MusicModel, .*, load, load_music, ",
    ):
        hornn.lod  # noqa: B018


def test_a_network_that_no_machine_holds_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="beyond any memory"):
        hornn.make_network("lstm", 5, hidden_size=10**9)
