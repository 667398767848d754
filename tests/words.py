"""The words of a command line that a test makes of common ones and of its own."""

from collections.abc import Iterable


def settled(words: Iterable[object]) -> list[str]:
    """The words, each key once: a test's own value takes the place of the common one. The program refuses both."""
    places: dict[str, str] = {}
    for word in map(str, words):
        key, sign, _ = word.partition("=")
        places[key if sign and key[:1] not in ("-", "+", "~", "") else f"{len(places)} {word}"] = word
    return list(places.values())
