"""The keys that a sweep file's nodes take, with the types of their values."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from hornn.checks import SEEDS
from hornn.result import KINDS, is_of

ROW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # of a row: files are called after it

SWEEP_KEYS = {
    "name": str,
    "title": str,
    "paper": str,
    "metric": str | list,
    "metric_label": str,
    "lower_is_better": bool | None,
    "seeds": list,
    "rows": list,
    "grid": dict,
    "labels": dict,
    "figure": dict,
    "relative_to": str,
    "published_on": str,
    "claims": list,
    "note": str,
}
CLAIM_KEYS = {
    "says": str,
    "better": str | list,
    "than": str | list,
    "metric": str,
    "at_most": int | float,
    "where": str,
    "main": bool,
}
ROW_KEYS = {
    "name": str,
    "label": str,
    "run": list | None,
    "start": str | list,
    "seeds": list,
    "state": str,
    "published": dict | None,
    "group": str,
    "x": int | float,
    "dynamic": bool,
    "note": str,
}
FIGURE_KEYS = {"x_label": str, "published_best": list, "base": str}
FIGURE_KEYS |= {"x": str, "series": str}  # files of earlier versions have them, nobody reads them
PUBLISHED_KEYS = {"value": int | float | None, "verified": bool, "source": str}
WORDS = {  # for a person; int comes beside float alone
    str: "a text",
    list: "a list such as [A, B]",
    dict: "keys and values",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}
# The first words of keys by which runs of ours can be compared; a corpus of a user's own may measure more.
MEASURED = KINDS.keys() | {
    *(f"{split}_{what}" for split in ("valid", "test") for what in ("bpc", "wer", "wer_bigram")),
    *("acoustic_scale", "acoustic_scale_bigram", "scoring_tokens_per_second", "evaluation", "baselines"),
}
NEEDED = {
    *("name", "title", "paper", "metric", "lower_is_better"),
    *("says", "better", "label", "run", "x_label", "key", "value", "verified", "source"),
}


def rows_named(named: Any, where: str, key: str = "start") -> list[str]:
    """The rows that a key of a row or a claim names: one or several. ValueError for a list of anything else."""
    if isinstance(named, list) and (not named or not all(isinstance(name, str) for name in named)):
        raise ValueError(f"{where}: {key} must be the name of a row or a list of names, got {named!r}")
    return named if isinstance(named, list) else [str(named)]


def read_range(ends: Any, where: str) -> tuple[float, float]:
    """The two ends of a range of numbers. ValueError for anything else."""
    numbers = isinstance(ends, list) and all(is_of(end, float) for end in ends)
    if not numbers or len(ends) != 2 or ends[0] > ends[1]:
        raise ValueError(
            f"{where} must list two numbers, the lower one first, such as [0.5,0.7], got {ends!r}"
        )
    return ends[0], ends[1]


def read_seeds(seeds: Any, where: str) -> tuple[int, ...]:
    """The seeds of a table or of a row. ValueError for anything but a list of different whole numbers."""
    whole = isinstance(seeds, list) and all(type(seed) is int for seed in seeds)
    if not seeds or not whole or len(set(seeds)) < len(seeds):
        raise ValueError(f"{where} must list different whole numbers such as [1,2,3], got {seeds!r}")
    if not all(0 <= seed < SEEDS for seed in seeds):
        raise ValueError(f"{where}: a seed is from 0 to {SEEDS - 1}, got {seeds!r}")
    return tuple(seeds)


def check_known(node: Collection[str], keys: Collection[str], where: str) -> None:
    """Raise ValueError for the first key of `node` that is none of `keys`."""
    for key in node:
        if key not in keys:
            raise ValueError(f"{where}: unknown key {key!r}; it takes: {', '.join(keys)}")


def check(node: Any, keys: Mapping[str, Any], where: str, needed: Collection[str] = NEEDED) -> None:
    """Raise ValueError unless `node` has known keys alone, all those needed, with values of their types."""
    if not isinstance(node, dict):
        raise ValueError(f"{where} must hold keys and values, got {node!r}")
    check_known(node, keys, where)
    for key, kind in keys.items():
        if key not in node:
            if key in needed:
                raise ValueError(f"{where}: {key} is missing")
        elif not isinstance(node[key], kind) or (
            isinstance(node[key], bool) and kind not in (bool, bool | None)
        ):
            allowed = " or ".join(WORDS[each] for each in getattr(kind, "__args__", (kind,)) if each in WORDS)
            raise ValueError(f"{where}: {key} must be {allowed}, got {node[key]!r}")
        elif type(node[key]) in (int, float) and not is_of(node[key], float):
            raise ValueError(f"{where}: {key} must be a finite number, got {node[key]!r}")
