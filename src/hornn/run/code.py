"""By which code a run is computed: the classes that its config names, and checksums of their sources. No torch."""

import ast
import hashlib
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CODE, CLASS, SOURCE = "code", "class", "source"  # the key of a result, and the keys in there
WATCHES = "_watches_"  # what a callback that changes no number says of itself in its node
SHORT = 10  # digits of a checksum in a message


def code_of_run(config: Mapping[str, Any]) -> dict[str, str]:
    """The model's, and by name the source of each other class of a user's own that may change a number."""
    nodes = [node for group, node in config.items() if group not in ("model", "logger")]
    others = [code_of(node) for node in nodes_with_target(nodes) if lies_in_own_folder(node["_target_"])]
    return {**code_of(config["model"]), **{code[CLASS]: code[SOURCE] for code in others if SOURCE in code}}


def lies_in_own_folder(named: Any) -> bool:
    """Whether a class is a user's own, in a package that was not installed; nothing is imported to find out."""
    package = named.partition(".")[0] if isinstance(named, str) else ""
    try:
        found = find_spec(package) if package and is_own({CLASS: named}) else None
    except ValueError:  # of a module without a record of where it came from
        found = None
    places = [*(found.submodule_search_locations or ()), found.origin or ""] if found else []
    folders = {str(Path(place).parent) for place in places[:1] if Path(place).exists()}
    return any(not is_installed(Path(folder)) for folder in folders)


def is_installed(folder: Path) -> bool:
    """Whether a folder of packages holds what an installer put there: this Python's own, a user's, or another one's."""
    return str(folder) in sysconfig.get_paths().values() or any(folder.glob("*.dist-info"))


def nodes_with_target(node: Any) -> Iterator[Mapping[str, Any]]:
    """This node and those in it, at any depth, that name a class; none of a callback that only watches."""
    if isinstance(node, Mapping) and not node.get(WATCHES):
        if "_target_" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from nodes_with_target(each)


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
    except (Exception, SystemExit):  # of a package that cannot be imported, or a class in a class
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
    if is_installed(root):
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


def other_code(held: Any, code: Mapping[str, Any], own: bool = False) -> str:
    """How the code of a run on record differs from `code`, in words; empty where it is the same, or not on record.

    own: of classes of a user's own alone.
    """
    known = held if isinstance(held, Mapping) else {}
    moved = is_own(known) and is_own(code) and known.get(SOURCE) and code.get(SOURCE)
    if moved and own_source(known) == own_source(code):  # at most its module has another name
        return ""
    classes = known.get(CLASS), code.get(CLASS)
    if all(classes) and classes[0] != classes[1] and (not own or is_own(known) or is_own(code)):
        return f"the class was {classes[0]} there and is {classes[1]} now"
    then, now = sources({CLASS: code.get(CLASS), **known}), sources(code)
    for name in now:
        if now[name] != then.get(name, now[name]) and (not own or is_own({CLASS: name})):
            return f"the source of {name} was {then[name][:SHORT]} there and is {now[name][:SHORT]} now"
    return ""


def changed_since(card: Mapping[str, Any], cell: object) -> str:
    """How the class of a cell, a user's own, differs from what trained the weights of a checkpoint, in words.

    card: of the checkpoint. Empty where the class is the same, one of this package, or not on record.
    """
    kind = type(cell)
    return other_code(
        card.get(CODE), code_of({"_target_": f"{kind.__module__}.{kind.__qualname__}"}), own=True
    )


def sources(code: Mapping[str, Any]) -> dict[str, str]:
    """The sources on record, by class."""
    known = {name: source for name, source in code.items() if name not in (CLASS, SOURCE)}
    known[code.get(CLASS, "")] = code.get(SOURCE)
    return {str(name): str(source) for name, source in known.items() if name and source}


def is_own(code: Mapping[str, Any]) -> bool:
    """Whether a class is of a user's own, not of this package, whose commit is on record."""
    return not str(code.get(CLASS) or "hornn.").startswith("hornn.")


def own_source(code: Mapping[str, Any]) -> str:
    """The classes of a user's own with their sources, in words; empty where there are none, or they are not known.

    Without their modules: a class that was moved as it is stays the same.
    """
    own = {name: source for name, source in sources(code).items() if is_own({CLASS: name})}
    return ", ".join(f"{name.rpartition('.')[2]} {source[:SHORT]}" for name, source in own.items())
