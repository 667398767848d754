"""What a value must be: each check raises ValueError that names the key, what is allowed and what was given."""

import math
import operator
import re
from collections.abc import Iterable
from importlib.util import find_spec
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard

LARGEST_INTEGER = 2**63 - 1  # that torch and NumPy count with
SEEDS = 2**32  # as many as there are for NumPy's generators
FILE_NAME = re.compile(r"\w[\w.-]*")  # that a file or a folder can have everywhere
DEEPEST = 1000  # layers; a hundred times the deepest network of the papers


def require_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError if `value` is none of `choices`."""
    if value not in (choices := tuple(choices)):
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def require_whole(least: int, **sizes: Any) -> None:
    """Raise ValueError for the first of `sizes` that is not an integer from `least` to LARGEST_INTEGER."""
    for name, size in sizes.items():
        if not is_whole(size) or size < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {size!r}")
        if size > LARGEST_INTEGER:
            raise ValueError(f"{name} must be at most {LARGEST_INTEGER}, got {size}")


def require_positive(**sizes: Any) -> None:
    """Raise ValueError for the first of `sizes` that is not an integer from 1 to LARGEST_INTEGER."""
    require_whole(1, **sizes)


def require_depth(**depths: int) -> None:
    """Raise ValueError for the first of `depths` that is not an integer from 1 to DEEPEST.

    Each layer is built by itself, so that a greater number takes time before it takes memory.
    """
    for name, depth in depths.items():
        require_positive(**{name: depth})
        if depth > DEEPEST:
            raise ValueError(f"{name} must be at most {DEEPEST} layers, got {depth}")


def require_path(taker: str, path: object) -> None:
    """Raise ValueError for what is no path of a file that `taker` could read or write."""
    if not isinstance(path, str | Path):
        raise ValueError(f"{taker} takes a path, got {path!r:.80}")


def require_string(name: str, text: object, *others: type) -> None:
    """Raise ValueError for what is no string, nor of one of the other types."""
    if not isinstance(text, (str, *others)):
        raise ValueError(f"{name} must be a string{' or a Path' * bool(others)}, got {text!r}")


def in_home(path: str | Path) -> Path:
    """The path, with its home for ~ or ~NAME. Raises ValueError where there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(
            f"{path} begins with ~, and there is no such home: write ./{path} where that is its name, or the whole path"
        ) from None


def require_truth(**claims: object) -> None:
    """Raise ValueError for the first of `claims` that is neither true nor false."""
    for name, claim in claims.items():
        if not isinstance(claim, bool):
            raise ValueError(f"{name} must be true or false, got {claim!r}")


def require_factor(alpha: Any) -> None:
    """Raise ValueError for a forgetting factor outside (0, 1)."""
    holds = is_number(alpha) and 0 < alpha < 1
    require_range("alpha", alpha, "a number strictly between 0 and 1", holds)


def require_range(name: str, value: float | None, allowed: str, holds: bool) -> None:
    """Raise ValueError unless `holds`, and for a number that is not finite."""
    try:
        holds = holds and (value is None or math.isfinite(value))
    except OverflowError:  # a whole number beyond all floats
        holds = False
    if not holds:
        raise ValueError(f"{name} must be {allowed}, got {value!r:.80}")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, of Python's or of NumPy's."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a whole or a real number, of Python's or of NumPy's."""
    return isinstance(value, Real) and not isinstance(value, bool)


def require_seed(seed: Any) -> int:
    """A seed of random numbers as Python's integer, which may come as NumPy's. Raises ValueError for what is none."""
    try:
        whole = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        whole = -1
    require_range("seed", seed, f"a whole number from 0 to {SEEDS - 1}", 0 <= whole < SEEDS)
    return whole


def require_temperature(temperature: Any) -> None:
    """Raise ValueError for a temperature of draws that is negative, infinite or no number."""
    holds = is_number(temperature) and 0 <= temperature < math.inf
    require_range("temperature", temperature, ">= 0 and finite", holds)


def require_dropout(**rates: float) -> None:
    """Raise ValueError for the first of `rates` that is not a probability below 1."""
    for name, rate in rates.items():
        require_range(name, rate, "in [0, 1)", is_number(rate) and 0 <= rate < 1)


def require_file_name(name: str, value: str) -> None:
    """Raise ValueError unless a file or a folder can be called `value` everywhere."""
    if not FILE_NAME.fullmatch(value):
        raise ValueError(f"{name} must be letters, digits, '.', '_' and '-', got {value!r}")


def require_package(package: str, what: str, install: str | None = None) -> None:
    """Raise ValueError, with the command that installs it, where `what` needs a package that is not there."""
    if find_spec(package) is None:
        raise ValueError(f"{what} needs the package {package}: pip install {install or package}")
