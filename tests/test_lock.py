"""The lock .ci/lock.txt: its versions lie in the ranges of pyproject.toml, are complete, and have hashes.

The committed results were made with these versions.
"""

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / ".ci" / "lock.txt").read_text()
ENTRY = re.compile(r"^([\w.-]+)==(\S+)[^\n]*((?:\n +--hash=sha256:[0-9a-f]{64}[ \\]*)*)$", re.MULTILINE)


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


LOCKED = {plain(name): version for name, version, _ in ENTRY.findall(LOCK)}


def wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    return [each for each in map(Requirement, texts) if each.name != "hornn"]


def test_the_lock_fits_the_ranges() -> None:
    for requirement in wanted():
        assert requirement.specifier.contains(LOCKED[plain(requirement.name)]), requirement


def test_every_line_is_a_version_a_hash_or_the_header() -> None:
    assert [name for name, _, hashes in ENTRY.findall(LOCK) if not hashes] == []
    rest = ENTRY.sub("", LOCK).splitlines()
    assert [line for line in rest if line and not line.startswith("# ") and line != "#"] == []
    assert not re.search(r"https?:|\bindex\b", LOCK), "the file names no place to download from"


def test_the_lock_holds_what_the_locked_packages_need() -> None:
    """Of the packages that are installed here in the locked version, which knows what it needs."""
    missing = []
    for name, version in LOCKED.items():
        try:
            found = distribution(name)
        except PackageNotFoundError:  # another system's
            continue
        if Version(found.version).public != version:
            continue
        for need in map(Requirement, found.requires or []):
            if (need.marker is None or need.marker.evaluate({"extra": ""})) and plain(
                need.name
            ) not in LOCKED:
                missing.append(f"{name} needs {need}")
    assert missing == []


def test_committed_results_were_made_with_these_versions() -> None:
    made: dict[str, set[str]] = {}
    for path in (ROOT / "outputs" / "tables").rglob("*-seed*.json"):
        for name, version in json.loads(path.read_text())["versions"].items():
            made.setdefault(plain(name), set()).add(Version(version).public)
    assert made.keys() >= {"torch", "lightning", "numpy"}
    assert {name: LOCKED[name] for name in made if name in LOCKED and LOCKED[name] not in made[name]} == {}
