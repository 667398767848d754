"""Deep recurrent networks that cannot be."""

from typing import Any

import pytest

from cells.deep_cells import INPUT, H
from hornn.cells.deep import INPUT_LAYERS
from reference.cases import build_cell


def refusal(name: str, input_size: int = INPUT, **arguments: Any) -> str:
    """The message, in one line, with which the cell refuses these arguments."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the caller looks at the message
        build_cell(name, input_size, **{"hidden_size": H, **arguments})
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("value", [0, -1, 1.5, "two"])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("dots_rnn", "transition_size"),
        ("dots_rnn", "output_size"),
    ],
)
def test_refuses_depths_and_sizes_below_one(name: str, argument: str, value: Any) -> None:
    assert refusal(name, **{argument: value}) == f"{argument} must be a whole number >= 1, got {value!r}"


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [
        ("pieces", 1, ">= 2"),
        ("pieces", 0, ">= 2"),
        ("p", 0.5, ">= 1"),
        ("transition_dropout", 1.0, "in [0, 1)"),
        ("output_dropout", -0.1, "in [0, 1)"),
        ("output_dropout", "half", "in [0, 1)"),
        ("output_std", -0.1, ">= 0"),
        ("output_std", True, ">= 0"),
        ("output_bias", "one", "a number"),
        ("output_bias", float("inf"), "a number"),
        ("input_layers", "middle", "all, first, last"),
    ],
)
def test_refuses_what_is_not_allowed_and_says_what_is(argument: str, value: Any, allowed: str) -> None:
    message = refusal("dots_rnn", **{argument: value})
    assert argument in message
    assert allowed in message
    assert repr(value) in message


@pytest.mark.parametrize("part", ["transition_activation", "state_activation", "output_activation"])
def test_refuses_unknown_units(part: str) -> None:
    message = refusal("dots_rnn", **{part: "swish"})
    assert all(word in message for word in (part, "swish", "sigmoid", "relu", "maxout", "lp"))
    assert "maxout" in refusal("srnn", activation="maxout")


@pytest.mark.parametrize(
    ("depth", "argument", "value"),
    [
        ("transition_depth", "shortcuts", True),
        ("transition_depth", "transition_size", 4),
        ("transition_depth", "transition_dropout", 0.5),
        ("output_depth", "output_size", 4),
        ("output_depth", "output_dropout", 0.5),
        ("output_depth", "output_std", 0.01),
        ("output_depth", "output_bias", 0.1),
        ("output_depth", "output_bias", 0.0),
        ("output_depth", "output_std", 0.0),
    ],
)
def test_refuses_options_of_layers_that_are_not_there(depth: str, argument: str, value: Any) -> None:
    message = refusal("dots_rnn", **{"shortcuts": False, depth: 1, argument: value})
    assert message == f"{argument}={value} needs {depth} >= 2, got {depth}=1, which has no such layers"


@pytest.mark.parametrize(
    ("name", "arguments", "width"),
    [
        ("dts_rnn", {}, 2 * H),
        ("dts_rnn", {"input_layers": "last"}, H),
        ("dts_rnn", {"transition_activation": "lp", "pieces": 3}, 4 * H),
        ("srnn", {}, H),
        ("srnn", {"depth": 3, "input_shortcuts": True}, 3 * H),
    ],
    ids=str,
)
def test_refuses_an_embedded_input_of_another_width(name: str, arguments: dict[str, Any], width: int) -> None:
    message = refusal(name, INPUT, embedded_input=True, **arguments)
    assert f"input_size={width}" in message
    assert f"got {INPUT}" in message
    assert f"network.embedding_size={width}" in message
    build_cell(name, width, embedded_input=True, hidden_size=H, **arguments)


def test_the_choices_of_layers_are_those_documented() -> None:
    assert list(INPUT_LAYERS) == ["all", "first", "last"]
