"""The space of a search: which constants of a run are searched, and where."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hornn.reporting.grid_rows import as_text


def leaves(space: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each constant, as its key in the config of a run, with where to search it; null ones are left out."""
    for key, value in space.items():
        where = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and not {"low", "high"} & value.keys():
            yield from leaves(value, where)
        elif value is not None:
            yield where, value


def distribution(optuna: Any, key: str, values: Any) -> Any:
    """Where a constant is searched. Raises ValueError for what is neither a list of values nor a range."""
    kinds = optuna.distributions
    try:
        if isinstance(values, list) and values and not any(isinstance(v, list | dict) for v in values):
            return kinds.CategoricalDistribution(values)
        if isinstance(values, Mapping) and {"low", "high"} <= values.keys() <= {"low", "high", "log"}:
            low, high, log = values["low"], values["high"], values.get("log", False)
            numbers = {type(low), type(high)} <= {int, float} and math.isfinite(low) and math.isfinite(high)
            if numbers and type(log) is bool:
                whole = type(low) is type(high) is int
                kind = kinds.IntDistribution if whole else kinds.FloatDistribution
                return kind(low, high, log=log)
    except ValueError as error:
        raise ValueError(f"space.{key}: {error}") from error
    raise ValueError(
        f"space.{key} must be a list of values, or {{low: NUMBER, high: NUMBER, log: true or false}}, got {values!r}"
    )


def constants(params: Mapping[str, Any], distributions: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a trial: what a list holds as it stands there, of a range a number to four digits within it.

    That is what a person would write, and a run that can be named again.
    """
    return {key: written(value, distributions[key]) for key, value in params.items()}


def written(value: Any, place: Any) -> Any:
    """A value that was drawn from this place of the space, as it is written on a command line."""
    if not isinstance(value, float) or hasattr(place, "choices"):
        return value
    return min(max(float(f"{value:.4g}"), place.low), place.high)


def in_words(values: Any) -> str:
    """Where a constant is searched, for a person."""
    if isinstance(values, list):
        return f"of {', '.join(map(as_text, values))}"
    return f"from {values['low']:g} to {values['high']:g}{' (log)' * bool(values.get('log'))}"


def holds(values: Any, value: Any) -> bool:
    """Whether the place of a search holds this value."""
    if isinstance(values, list):
        return value in values
    return isinstance(value, int | float) and bool(values["low"] <= value <= values["high"])
