"""Names, shapes and numbers of the cells' parameters, and the arguments that are refused."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from hornn.cells.base import is_bias
from reference.cases import MODEL_NAMES, MODELS, SHIPPED, build_cell

INPUT, H, K = 4, 6, 3
WEIGHTS = {
    "rnn": {"W_in": (H, INPUT), "W_h": (H, H)},
    "lstm": {"W_in": (4 * H, INPUT), "W_h": (4 * H, H)},
    "gru": {"W_in": (3 * H, INPUT), "W_h": (3 * H, H)},
    "hornn": {"W_in": (H, INPUT), "W_h": (K, H, H)},
    "hornn_max": {"W_in": (H, INPUT), "W_h": (K, H, H)},
    "hornn_fofe": {"W_in": (H, INPUT), "W_h": (K, H, H)},
    "hornn_gated": {"W_in": (H, INPUT), "W_h": (K, H, H), "W_g1": (K, H, INPUT), "W_g2": (K, H, H)},
}
BIASES = {
    "rnn": {"b": (H,)},
    "lstm": {"b": (4 * H,)},
    "gru": {"b": (3 * H,), "b_n": (H,)},
    "hornn": {"b": (H,)},
    "hornn_max": {"b": (H,)},
    "hornn_fofe": {"b": (H,)},
    "hornn_gated": {"b": (H,), "b_g": (K, H)},
}
HIGHER_ORDER = [name for name in WEIGHTS if name.startswith("hornn")]
COUNTS = {
    *("order", "depth", "num_hidden", "frames", "n", "m", "hops", "memory_size"),
    *("transition_depth", "output_depth"),
}


def having(wanted: Callable[[str, Any], bool]) -> list[tuple[str, str]]:
    """Each cell with each of its arguments that is wanted, by name and value in its file."""
    return [
        (name, str(key))
        for name in MODEL_NAMES
        for key, value in MODELS[name].items()
        if wanted(str(key), value)
    ]


def order_of(name: str, order: int) -> dict[str, int]:
    """The order, for the cells that have one."""
    return {"order": order} if name in HIGHER_ORDER else {}


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_biases_are_known_by_their_names(name: str) -> None:
    """They start at 0, and no weight does."""
    wanted = {"bias": True, "learn_alpha": True, "adaptive": True, "embedded_input": False}
    cell = build_cell(
        name, INPUT, hidden_size=8, **{key: wanted[key] for key in wanted if key in MODELS[name]}
    )
    for key, parameter in cell.named_parameters():
        assert is_bias(f"cells.0.{key}") == (not parameter.any()), key


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", WEIGHTS)
def test_names_and_shapes(name: str, bias: bool) -> None:
    cell = build_cell(name, INPUT, hidden_size=H, bias=bias, **order_of(name, K))
    shapes = {key: tuple(parameter.shape) for key, parameter in cell.named_parameters()}
    assert shapes == WEIGHTS[name] | (BIASES[name] if bias else {})
    assert set(cell.state_dict()) == set(shapes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rnn", 8_320_000),
        ("hornn", 8_640_000),
        ("hornn_max", 8_640_000),
        ("hornn_fofe", 8_640_000),
        ("lstm", 9_280_000),
        ("hornn_gated", 9_600_000),
    ],
)
def test_language_model_has_the_number_of_parameters_of_the_paper(name: str, expected: int) -> None:
    """HORNN paper, 4.1.1: 8.3, 8.6, 9.3 and 9.6 million with 10,000 words and 400 units, without biases."""
    vocab_size, width = 10_000, 400
    cell = build_cell(name, width, hidden_size=width, **order_of(name, 3))
    embedding = vocab_size * width
    output = vocab_size * cell.output_size
    assert embedding + sum(parameter.numel() for parameter in cell.parameters()) + output == expected


def refusal(name: str, input_size: int = INPUT, **arguments: Any) -> str:
    """The message, in one line, with which the cell refuses these arguments."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the caller looks at the message
        build_cell(name, input_size, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("name", MODEL_NAMES)
def test_refuses_a_width_below_one(name: str, value: int) -> None:
    message = refusal(name, hidden_size=value)
    assert "hidden_size" in message
    assert str(value) in message
    message = refusal(name, input_size=value)
    assert "input_size" in message
    assert str(value) in message


@pytest.mark.parametrize(("name", "key"), having(lambda key, _: key in COUNTS))
def test_refuses_a_number_of_steps_or_layers_that_is_none(name: str, key: str) -> None:
    least = 2 if (name, key) == ("nnlm", "order") else 1
    for value in (least - 1, -2, 1.5):
        assert refusal(name, **{key: value}) == f"{key} must be a whole number >= {least}, got {value}"


@pytest.mark.parametrize(
    ("name", "key"), having(lambda key, value: isinstance(value, bool) and key[0] != "_")
)
def test_refuses_what_is_neither_true_nor_false(name: str, key: str) -> None:
    for value in ("no", 1, None):
        assert refusal(name, **{key: value}) == f"{key} must be true or false, got {value!r}"


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 1.5, -0.5, math.nan, "a half"])
@pytest.mark.parametrize(("name", "key"), having(lambda key, _: key == "alpha"))
def test_refuses_an_alpha_outside_the_open_interval(name: str, key: str, value: Any) -> None:
    message = f"alpha must be a number strictly between 0 and 1, got {value!r}"
    assert refusal(name, **{key: value}) == message


@pytest.mark.parametrize(("name", "key"), having(lambda key, _: key == "activation"))
def test_refuses_an_unknown_activation_and_names_the_known(name: str, key: str) -> None:
    assert refusal(name, **{key: "swish"}) == "activation must be one of sigmoid, tanh, relu, got 'swish'"
