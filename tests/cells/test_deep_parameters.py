"""The parameters of deep recurrent networks: names, numbers, and the input matrix as an embedding."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from cells.deep_cells import BETWEEN, OUT, STARRED, B, H, T, deep_cell, stacked_cell
from hornn.scan import scan
from reference.cases import build_cell, fill, seeded


def test_the_parameters_of_a_shallower_network_keep_their_names() -> None:
    """So that one can start from the other by name, as the paper pretrains."""

    def shapes(cell: nn.Module) -> set[tuple[str, torch.Size]]:
        return {(name, parameter.shape) for name, parameter in cell.named_parameters()}

    assert shapes(stacked_cell(0, depth=1)) < shapes(stacked_cell(0, depth=2))
    assert shapes(deep_cell(0, shortcuts=True)) < shapes(deep_cell(0, shortcuts=True, output_depth=2))
    assert shapes(deep_cell(0)) < shapes(deep_cell(0, shortcuts=True))


def test_the_weights_between_hidden_layers_are_the_recurrent_ones() -> None:
    """Those that the paper starts sparse: neither the input's nor those of the output, nor orders and biases."""

    def names(cell: Any) -> list[str]:
        recurrent = {id(weight) for weight in cell.recurrent_weights()}
        return [name for name, parameter in cell.named_parameters() if id(parameter) in recurrent]

    deep = deep_cell(0, shortcuts=True, output_depth=2, learn_p=True, bias=True, **STARRED)
    assert names(deep) == ["plus.0.W", "plus.1.W", "plus.1.S"]
    assert names(stacked_cell(0, depth=3, bias=True)) == ["W_h.0", "W_h.1", "W_h.2", "U.0", "U.1"]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("dts_rnn", {"transition_size": BETWEEN}),
        ("dots_rnn", {"transition_size": BETWEEN, "output_size": OUT, **STARRED}),
        ("dot_rnn", {"input_layers": "first"}),
        ("do_rnn", {"output_size": OUT}),
        ("srnn", {}),
        ("srnn", {"input_shortcuts": True}),
    ],
    ids=str,
)
def test_an_embedded_input_is_the_input_matrix_on_one_hot_words(
    name: str, arguments: dict[str, Any], depth: int
) -> None:
    vocab_size = 11
    arguments = {"hidden_size": H, **arguments, **({"depth": depth} if name == "srnn" else {})}
    matrix = fill(build_cell(name, vocab_size, **arguments), seeded(21))
    width = len(matrix.W_in)
    embedded = build_cell(name, width, embedded_input=True, **arguments).double()
    embedded.load_state_dict({key: w for key, w in matrix.state_dict().items() if key != "W_in"})
    words = torch.randint(vocab_size, (T, B), generator=seeded(22))
    y, last = scan(matrix, F.one_hot(words, vocab_size).double(), matrix.initial_state(B))
    y_embedded, last_embedded = scan(embedded, matrix.W_in.T[words], embedded.initial_state(B))
    assert_close(y_embedded, y, rtol=1e-12, atol=1e-12)
    assert_close(last_embedded, last, rtol=1e-12, atol=1e-12)


# The paper's table 1 with its rounded counts, and the counts that the equations give.
RNN, SRNN = {"depth": 1}, {"depth": 2}
TABLE_1 = [
    ("Nottingham", 88, "srnn", RNN | {"hidden_size": 600}, "465K", 465_600),
    ("Nottingham", 88, "dts_rnn", {"hidden_size": 400}, "585K", 585_600),
    ("Nottingham", 88, "dots_rnn", {"hidden_size": 400}, "745K", 745_600),
    ("Nottingham", 88, "srnn", SRNN | {"hidden_size": 400}, "550K", 550_400),
    ("JSB Chorales", 88, "srnn", RNN | {"hidden_size": 200}, "75K", 75_200),
    ("JSB Chorales", 88, "dts_rnn", {"hidden_size": 400}, "585K", 585_600),
    ("JSB Chorales", 88, "dots_rnn", {"hidden_size": 400}, "745K", 745_600),
    ("JSB Chorales", 88, "srnn", SRNN | {"hidden_size": 400}, "550K", 550_400),
    ("MuseData", 88, "srnn", RNN | {"hidden_size": 600}, "465K", 465_600),
    ("MuseData", 88, "dts_rnn", {"hidden_size": 400}, "585K", 585_600),
    ("MuseData", 88, "dots_rnn", {"hidden_size": 400}, "745K", 745_600),
    ("MuseData", 88, "srnn", SRNN | {"hidden_size": 600}, "1185K", 1_185_600),
    ("characters", 50, "srnn", RNN | {"hidden_size": 600}, "420K", 420_000),
    ("characters", 50, "dts_rnn", {"hidden_size": 400}, "540K", 540_000),
    ("characters", 50, "dots_rnn", {"hidden_size": 400, "output_size": 600}, "790K", 790_000),
    ("characters", 50, "srnn", SRNN | {"hidden_size": 400}, "520K", 520_000),
    ("words", 10_000, "srnn", RNN | {"hidden_size": 200}, "4.04M", 4_040_000),
    ("words", 10_000, "dts_rnn", {"hidden_size": 200}, "6.12M", 6_120_000),
    ("words", 10_000, "dots_rnn", {"hidden_size": 200}, "6.16M", 6_160_000),
    ("words", 10_000, "srnn", SRNN | {"hidden_size": 400}, "8.48M", 8_480_000),
]


@pytest.mark.parametrize(
    ("data", "vocab_size", "name", "arguments", "published", "expected"), TABLE_1, ids=str
)
def test_networks_have_the_numbers_of_parameters_of_table_1(
    data: str, vocab_size: int, name: str, arguments: dict[str, Any], published: str, expected: int
) -> None:
    """With the embedding as the input matrix (vocabulary x what it feeds), a full output layer, no biases."""
    width = len(build_cell(name, 1, **arguments).W_in)
    cell = build_cell(name, width, embedded_input=True, **arguments)
    cell_weights = sum(parameter.numel() for parameter in cell.parameters())
    total = vocab_size * width + cell_weights + cell.output_size * vocab_size
    assert total == expected
    assert published == (f"{total // 1000}K" if total < 2_000_000 else f"{total / 1e6:.2f}M")
