"""What a shell sees of a command, and what runs one in a test."""

from collections.abc import Callable
from typing import Any, NamedTuple

Command = Callable[..., Any]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str
