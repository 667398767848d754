"""Texts of strangers and errors, made fit to be shown: none acts on a terminal or outside of its place on a page."""

import os
import re
from typing import Any

# Control characters, ends of lines among them, marks that turn the direction of a text, halves of surrogates.
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def shown(text: str) -> str:
    """The text as one line, with a blank for each run of characters that would act and not be seen."""
    return ACTING.sub(" ", text)


def shown_lines(text: str) -> str:
    """The text with each of its lines as `shown` gives it."""
    return "\n".join(map(shown, text.split("\n")))


def shown_texts(value: Any) -> Any:
    """The nested value with all its texts, the keys included, made fit to be shown; texts keep their lines."""
    if isinstance(value, dict):
        return {shown(key): shown_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shown_texts(item) for item in value]
    return shown_lines(value) if isinstance(value, str) else value


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its class where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def is_screen(console: Any) -> bool:
    """Whether a console of rich is a terminal; FORCE_COLOR, which asks for colours in a pipe, makes none."""
    return bool(console.is_terminal and (console.file.isatty() or not os.environ.get("FORCE_COLOR")))
