"""What the files of choices are built to."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor

from hornn.build import build_network, check_cell, check_memory, check_plain
from hornn.card import looked_up_in, rebuild_data, rebuild_network
from hornn.cells.base import Cell
from hornn.cells.elman import Rnn
from hornn.recipe import resolve

ROOT = Path(__file__).parents[1]
COUNTS = list(range(50, 0, -1))
HEADS = sorted(path.stem for path in (ROOT / "conf" / "head").glob("*.yaml"))
EXPERIMENTS = ["hornn/ptb", "hornn/modern", "scrn/ptb", "deep_rnn/ptb_word"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("head", HEADS)
def test_the_shapes_without_memory_are_those_of_the_network(experiment: str, head: str) -> None:
    words = [f"experiment={experiment}", f"head={head}", "model=srn", "model.hidden_size=20"]
    _, config = resolve([*words, "network.tie_weights=false", "network.embedding_size=20"], {})
    found = build_network(config, COUNTS).state_dict()
    assert check_memory(config, COUNTS, copies=3) == shapes_of(found)


def shapes_of(weights: dict[str, Tensor]) -> dict[str, Any]:
    return {name: (weight.shape, weight.dtype) for name, weight in weights.items()}


def test_a_limit_of_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hornn.build.memory_bytes", lambda: 2**20)
    _, config = resolve(["model=rnn"], {})
    with pytest.raises(
        ValueError, match=r"^360,000 weights need 0.0 GiB, this process may have 0.0: lower model."
    ):
        check_memory(config, [1] * 50, copies=1)


@pytest.mark.parametrize(
    "words",
    [
        ["model=resrnn", "model.m=10000000000"],
        ["model=hornn_relu", "model.n=10000000000"],
        ["model=hornn_sigmoid", "model.m=10000000000"],
        ["model=hornnp_sigmoid", "model.n=10000000000"],
        ["model=hierarchical", "model.delays=[1,2,4,10000000000]"],
    ],
)
def test_a_state_beyond_the_memory_is_refused_before_a_network_is_built(words: list[str]) -> None:
    """However small its weights are."""
    _, config = resolve(words, {})
    with pytest.raises(
        ValueError, match=r"^two states of [\d,]+ numbers need .* GiB, this process may have .* fewer steps$"
    ):
        check_memory(config, [1] * 50, copies=1)


class StateOfItsWeights(Rnn):
    """A cell whose first state depends on numbers, which a tensor without memory has not."""

    def initial_state(self, batch_size: int) -> Any:
        return super().initial_state(batch_size if self.W_h.sum().item() < 1e9 else 1)


def test_a_state_that_cannot_be_counted_without_memory_is_not() -> None:
    _, config = resolve(["model=rnn"], {})
    model = node(StateOfItsWeights, hidden_size=20)
    assert "cells.0.W_h" in check_memory(config | {"model": model}, COUNTS, copies=3)


def test_a_published_corpus_takes_no_place_of_a_file() -> None:
    card = {"choices": {"data": "ptb"}, "config": {"data": {}}, "where": {}}
    places = {"root": "/none", "cache_dir": "/none", "train": None, "valid": None, "test": None}
    assert rebuild_data(card, places).name == "ptb"
    with pytest.raises(
        ValueError, match=r"^data\.valid= .* trained on data=ptb, which has none: leave it out$"
    ):
        rebuild_data(card, {**places, "valid": "valid.txt"})


class ReadsItsWeights(Rnn):
    """A cell whose constructor reads numbers, which a tensor without memory has not."""

    def __init__(self, input_size: int, hidden_size: int, radius: float) -> None:
        super().__init__(input_size, hidden_size)
        self.W_h.data.mul_(radius / torch.linalg.matrix_norm(self.W_h.detach(), ord=2).item())
        if (self.W_h > 3).any():
            raise ValueError("too large")


class HalfAsWide(Rnn):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.output_size = hidden_size / 2  # type: ignore[assignment]


class Unfinished(Rnn):
    step = Cell.step  # type: ignore[assignment]


class Careless(Rnn):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        raise ValueError("data.root is unknown")


def node(cell: type, **arguments: Any) -> dict[str, Any]:
    return {"_target_": f"{cell.__module__}.{cell.__name__}", **arguments}


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (node(Rnn), "^model/mine.yaml lacks hidden_size: "),
        (node(ReadsItsWeights, hidden_size=3), "^model/mine.yaml lacks radius: "),
        (
            node(HalfAsWide, hidden_size=3),
            r"HalfAsWide\.__init__ must set self.output_size to a whole number, got 1.5",
        ),
        (node(Unfinished, hidden_size=3), r"test_build\.Unfinished lacks step"),
        (
            node(Careless, hidden_size=3),
            r"test_build\.Careless\.__init__ fails: ValueError: data.root is unknown",
        ),
        (node(Rnn, hidden_size=3.5), "^hidden_size must be a whole number >= 1, got 3.5$"),
    ],
)
def test_a_class_that_cannot_be_built_is_refused_in_one_line(model: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_cell(model, "mine")


def test_an_argument_that_no_checkpoint_gives_back_is_refused() -> None:
    _, config = resolve(["model=rnn"], {})
    check_plain(config)
    with pytest.raises(
        ValueError, match=r"^model\.gains must be a number, .* got {'h': 2.0}: give each of its"
    ):
        check_plain(config | {"model": node(Rnn, hidden_size=3, gains={"h": 2.0})})


def test_a_constructor_may_read_its_weights() -> None:
    model = node(ReadsItsWeights, hidden_size=20, radius=0.9)
    _, config = resolve(["model=rnn"], {})
    torch.manual_seed(1)
    check_cell(model, "mine")
    shapes = check_memory(config | {"model": model}, COUNTS, copies=3)
    weights = build_network(config | {"model": model}, COUNTS).state_dict()
    assert shapes == shapes_of(weights)
    torch.manual_seed(1)
    assert torch.equal(weights["cells.0.W_h"], ReadsItsWeights(20, 20, 0.9).W_h)


class Periodic(Rnn):
    """A cell with a buffer of whole numbers, which a checkpoint keeps beside the weights."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.register_buffer("period", torch.arange(hidden_size) % 3 + 1)


def test_a_buffer_comes_back_in_its_own_type(tmp_path: Path) -> None:
    model = node(Periodic, hidden_size=20)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "periodic.yaml").write_text(yaml.safe_dump(model))
    choices, config = resolve(["model=rnn"], {})
    card = {"choices": choices | {"model": "periodic"}, "config": config | {"model": model}}
    weights = build_network(card["config"], COUNTS).state_dict()
    weights["cells.0.period"] += 1
    with looked_up_in(tmp_path):
        found = rebuild_network(tmp_path / "best.ckpt", card, COUNTS, weights).state_dict()
        assert torch.equal(found["cells.0.period"], weights["cells.0.period"])
        weights["cells.0.period"] = weights["cells.0.period"].float()
        with pytest.raises(ValueError, match=r"holds cells\.0\.period as float32, a run keeps it in int64: "):
            rebuild_network(tmp_path / "best.ckpt", card, COUNTS, weights)
