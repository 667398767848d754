"""Imports go one way, each outside library stays where it belongs, and no file is too long to read."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
ENTRIES = {path.stem for path in SOURCE.glob("*.py")}

# What a part may import stands before it, or beside it on the same line; of a room that is at two heights, the files.
LEVELS = (
    ("shown", "writing"),
    ("checks", "metrics", "result", "command_line", "run.lock", "columns", "blocks", "places", "machine"),
    ("run.epochs", "sweep.record"),
    ("norm",),
    ("recipe",),
    ("cells", "data"),
    ("run.code",),
    ("run.identity",),
    ("reporting",),
    ("baselines",),
    ("speech",),
    ("kernels",),
    ("scan",),
    ("initialization", "embedding", "heads", "network"),
    ("optim", "tally"),
    ("recorded_updates",),
    ("archive",),
    ("module", "checkpoint"),
    ("contract",),
    ("build",),
    ("card",),
    ("run", "use", "research"),
    ("analysis", "sweep", "bench", "parameters"),
    ("dashboard",),
    ("commands",),
)
LIGHTNING = {"module", "recorded_updates", "run", "bench"}
HYDRA = {
    "analysis",
    "build",
    "card",
    "run",
    "use",
    "sweep",
    "bench",
    "parameters",
    "command_line",
    "dashboard",
    "commands",
}
# The command line knows of the rest where it lies and how a text is shown, no more.
ALONE = {"command_line"}
REPORTS = {"reporting"}
HEAVY = {
    "torch",
    "torchmetrics",
    "lightning",
    "hydra",
    "omegaconf",
    "wandb",
    "matplotlib",
    "soundfile",
    "jiwer",
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py")) if ".egg-info" not in str(path)}


def part_of(module: str) -> str:
    """`cells` of hornn.cells.elman, `run.lock` of hornn.run.lock, `module` of hornn.module, `train` of train."""
    words = module.split(".")
    if words[0] != "hornn" or len(words) == 1:
        return words[0]
    own = ".".join(words[1:])
    return own if any(own in parts for parts in LEVELS) else words[1]


@cache
def imports(module: str) -> frozenset[str]:
    """All that a file imports, at its top or inside of a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            assert node.module is not None
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) or {node.module}
    return frozenset(found)


def own(module: str) -> set[str]:
    return {name for name in imports(module) if name in MODULES}


def all_own(module: str) -> set[str]:
    """A module and all of ours that it imports, directly or not."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += own(name)
    return seen


def libraries(module: str) -> set[str]:
    return {name.partition(".")[0] for name in imports(module)}


LONGEST = 350  # lines of a file
WRITTEN = {".py", ".h", ".cpp", ".js", ".css", ".html"}
FILES = [
    path for top in ("src", "tests") for path in sorted((ROOT / top).rglob("*")) if path.suffix in WRITTEN
]
INSIDE = [name for name in MODULES if name.startswith("hornn.")]


@pytest.mark.parametrize("module", INSIDE)
def test_imports_go_one_way(module: str) -> None:
    level = {part: number for number, parts in enumerate(LEVELS) for part in parts}
    part = part_of(module)
    if part in ALONE:
        assert {part_of(name) for name in own(module)} <= {part, "places", "shown", "writing"}
        return
    if part in REPORTS:
        known = {"blocks", "checks", "metrics", "places", "result", "recipe", "shown", "writing"}
        known |= {"run.code", "run.epochs", "run.identity", "run.lock", "sweep.record"}
        assert {part_of(name) for name in own(module)} <= known | REPORTS
        return
    assert part in level, f"give {module} a place in LEVELS"
    for name in own(module) - {"hornn"}:
        assert level[part_of(name)] <= level[part], f"{module} imports {name}"
        if part in ("cells", "data"):
            assert part_of(name) in (part, "checks", "columns", "metrics", "result", "writing"), (
                f"{module} imports {name}"
            )


def test_the_report_names_its_modules_in_the_order_of_their_imports() -> None:
    told = ast.get_docstring(ast.parse(MODULES["hornn.reporting"].read_text())) or ""
    lines = [re.findall(r"\w+", line.strip().split("  ")[0]) for line in told.split("\n\n")[-1].splitlines()]
    level = {f"hornn.reporting.{name}": number for number, names in enumerate(lines) for name in names}
    assert sorted(level) == [name for name in INSIDE if name.startswith("hornn.reporting.")]
    for module, number in level.items():
        for name in own(module) & level.keys():
            assert level[name] <= number, f"{module} imports {name}"


@pytest.mark.parametrize("module", [name for name in INSIDE if part_of(name) in REPORTS])
def test_a_report_waits_for_no_heavy_library(module: str) -> None:
    """Not even by what it imports of the rest."""
    for name in all_own(module):
        assert not libraries(name) & HEAVY, name


@pytest.mark.parametrize(
    "module", [f"hornn.use.{name}" for name in ("evaluate", "generate", "score", "rescore", "speech")]
)
def test_using_a_model_waits_for_no_training_library(module: str) -> None:
    for name in all_own(module):
        assert not libraries(name) & {"lightning", "torchmetrics", "wandb"}, name


def test_there_is_no_circle() -> None:
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for name in own(module):
                visit(name, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


@pytest.mark.parametrize("module", MODULES)
def test_libraries_stay_where_they_belong(module: str) -> None:
    part, used = part_of(module), libraries(module)
    if part not in LIGHTNING:
        assert "lightning" not in used
    if part not in HYDRA:
        assert not used & {"hydra", "omegaconf", "wandb"}
    if part in {"blocks", "machine", "metrics", "result", "run.epochs", "sweep.record", "writing"}:
        assert used - {"hornn"} <= sys.stdlib_module_names


@pytest.mark.parametrize("entry", sorted(ENTRIES))
def test_entries_are_thin(entry: str) -> None:
    """An entry only names a command."""
    assert imports(entry) == {"hornn.command_line.ending"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST
