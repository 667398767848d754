"""By which code a model is computed: the class that its config names, and a checksum of its source. No torch."""

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CODE, CLASS, SOURCE = "code", "class", "source"  # the key of a result, and the keys in there
SHORT = 10  # digits of a checksum in a message


def code_of(model: Mapping[str, Any]) -> dict[str, str]:
    """The class that a config node names, and the SHA-256 of its module's file; of a package, of all its files.

    No source where the module is not found: whoever builds the model says so. What it imports is not looked at.
    """
    named = model.get("_target_")
    if not isinstance(named, str):
        return {}
    try:
        found = find_spec(named.rpartition(".")[0])
    except Exception:  # of a package that cannot be imported, or a class in a class
        found = None
    if found is None or not found.origin or not Path(found.origin).is_file():
        return {CLASS: named}
    folders = found.submodule_search_locations or ()
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.py")) or [Path(found.origin)]
    return {CLASS: named, SOURCE: hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()}


def other_code(held: Any, code: Mapping[str, str]) -> str:
    """How the code of a run on record differs from `code`, in words; empty where it is the same, or not on record."""
    known = held if isinstance(held, Mapping) else {}
    for key in (CLASS, SOURCE):
        then, now = known.get(key), code.get(key)
        if then and now and then != now:
            what = "the class" if key == CLASS else f"the source of {code[CLASS]}"
            digits = None if key == CLASS else SHORT
            return f"{what} was {str(then)[:digits]} there and is {now[:digits]} now"
    return ""


def is_own(code: Mapping[str, Any]) -> bool:
    """Whether a class is of a user's own, not of this package, whose commit is on record."""
    return not str(code.get(CLASS) or "hornn.").startswith("hornn.")


def own_source(code: Mapping[str, Any]) -> str:
    """The class and the source of a cell of the user's own, in words; empty for another one, and where it's unknown."""
    return f"{code[CLASS]} {code[SOURCE][:SHORT]}" if is_own(code) and code.get(SOURCE) else ""
