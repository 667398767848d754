"""Sweep files that are another sweep with keys of their own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hornn.places import CONF
from hornn.recipe import find_file, load


def load_sweep(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The content of a sweep file, laid over the content of the sweeps that its `defaults` name.

    `above`: the files that have led here. Raises ValueError for a sweep that is not there or names itself.
    """
    content = load(path)
    below: dict[str, Any] = {"defaults": []}
    defaults = content.pop("defaults", [])
    for place, item in enumerate(defaults):
        if isinstance(item, str) and item != "_self_" and "/" not in item:
            other = find_file((path.parent, CONF / "sweeps"), item)
            if other is None or other in (path, *above):
                raise ValueError(f"{path}: its defaults name {item!r}: give another sweep file beside it")
            if "_self_" in defaults[:place]:
                raise ValueError(
                    f"{path}: {item!r} behind _self_ would be laid over this file: name it before"
                )
            below = laid_over(below, load_sweep(other, (path, *above)))
        else:
            below["defaults"].append(item)
    return laid_over(below, content)


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The nested keys of both. A value of `above` replaces a value of `below`; lists of defaults are joined."""
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if key == "defaults":
            merged[key] = [*below[key], *above[key]]
        elif isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            merged[key] = laid_over(below[key], above[key])
    return merged
