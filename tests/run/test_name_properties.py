"""A run's name stands for its words and values: equal where they are equal, and nowhere else."""

import json
from collections.abc import Iterator
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from hornn.command_line.messages import _quote
from hornn.run.identity import canonical, name_of

KEYS = st.text("abc", min_size=1, max_size=2)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
    st.sampled_from([1.0, -0.0]),
)
PLAIN = st.one_of(st.none(), st.booleans(), NUMBERS, st.text("a1.'\" ", max_size=3))
VALUES = st.one_of(PLAIN, st.lists(PLAIN, max_size=3))
CONFIGS = st.dictionaries(
    KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, min_size=1, max_size=2)), max_size=3
)
CHOICES = st.dictionaries(
    st.sampled_from(["model", "data"]), st.sampled_from(["rnn", "ptb", "1"]), max_size=2
)
# a path as the folders of runs have it; the first letter keeps it a text
PATHS = st.builds(lambda head, rest: head + rest, st.sampled_from("abz/."), st.text("ab09/_.=-", max_size=12))


def leaves(config: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each value with its path and its kind: True is not 1."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), json.dumps(canonical(value))


@given(CHOICES, CHOICES, CONFIGS, CONFIGS)
def test_names_are_equal_where_words_and_values_are(
    choices: dict[str, str], others: dict[str, str], config: dict[str, Any], other: dict[str, Any]
) -> None:
    same = choices == others and set(leaves(config)) == set(leaves(other))
    assert (name_of(choices, config) == name_of(others, other)) is same


@given(CHOICES, CONFIGS, st.randoms(use_true_random=False))
def test_a_name_knows_no_order_and_no_point_zero(
    choices: dict[str, str], config: dict[str, Any], dice: Any
) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            pairs = list(value.items())
            dice.shuffle(pairs)
            return {key: turned(item) for key, item in pairs}
        return float(value) if type(value) is int else value

    assert name_of(choices, turned(config)) == name_of(choices, config)


@given(PATHS)
def test_a_path_on_the_command_line_is_that_path(path: str) -> None:
    (override,) = OverridesParser.create().parse_overrides([_quote(f"init_from={path}")])
    assert str(override.value()) == path


@given(st.lists(PATHS, min_size=1, max_size=3))
def test_so_is_each_of_a_list(paths: list[str]) -> None:
    (override,) = OverridesParser.create().parse_overrides([_quote(f"mix=[{','.join(paths)}]")])
    assert [str(path) for path in override.value()] == paths  # type: ignore[union-attr]


@given(st.sampled_from(["prompt", "+text"]), st.text("a${}'\"\\ ,[=é\n", min_size=1, max_size=12))
def test_a_text_is_read_as_it_stands(key: str, text: str) -> None:
    """By Hydra, which takes quotes for its own, and then by OmegaConf, which resolves `${...}`."""
    (override,) = OverridesParser.create().parse_overrides([_quote(f"{key}={text}")])
    assert OmegaConf.create({"text": override.value()}).text == text
