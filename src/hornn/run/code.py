"""By which code a model is computed: the class that its config names, and a checksum of its source. No torch."""

import ast
import hashlib
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CODE, CLASS, SOURCE = "code", "class", "source"  # the key of a result, and the keys in there
SHORT = 10  # digits of a checksum in a message


def code_of(model: Mapping[str, Any]) -> dict[str, str]:
    """The class that a config node names, and the SHA-256 of its module's file; of a package, of all its files.

    The files that it imports from beside it, of a class of a user's own, count as its source, too. No source where the
    module is not found: whoever builds the model says so.
    """
    named = model.get("_target_")
    if not isinstance(named, str):
        return {}
    module = named.rpartition(".")[0]
    try:
        found = find_spec(module)
    except Exception:  # of a package that cannot be imported, or a class in a class
        found = None
    if found is None or not found.origin or not Path(found.origin).is_file():
        return {CLASS: named}
    folders = found.submodule_search_locations or ()
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.py")) or [Path(found.origin)]
    if is_own({CLASS: named}):
        root = Path(found.origin).parents[module.count(".") + bool(folders)]
        files += imported(files, root)
    return {CLASS: named, SOURCE: hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()}


def imported(files: Sequence[Path], root: Path) -> list[Path]:
    """The modules below `root` that these files import, and that those import in turn, in the order of their paths.

    None where `root` holds what was installed: its version is on record.
    """
    if str(root) in sysconfig.get_paths().values():
        return []
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        new = {path for path in imports_of(waiting.pop(), root) if path not in found and path not in files}
        found |= new
        waiting += new
    return sorted(found)


def imports_of(file: Path, root: Path) -> Iterator[Path]:
    """The files below `root` that a file's import statements may name, this package's aside.

    None of a file that Python refuses: whoever imports it says so.
    """
    try:
        statements = [*ast.walk(ast.parse(file.read_bytes()))]
    except (SyntaxError, ValueError):
        return
    for statement in statements:
        base, names = root, []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            base = file.parents[statement.level - 1] if statement.level else root
            package = [statement.module] if statement.module else []
            names = [".".join([*package, alias.name]) for alias in statement.names]
        for name in names:
            parts = name.split(".")
            for path in (base.joinpath(*parts[:end]) for end in range(1, len(parts) + 1)):
                if base != root or parts[0] != "hornn":
                    yield from filter(Path.is_file, (path.with_suffix(".py"), path / "__init__.py"))


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
