"""The versions of .ci/constraints.txt lie in the ranges of pyproject.toml, and name each package that it asks for."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_constraints_fit_the_ranges() -> None:
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pinned = {plain(name): version for name, version in (line.split("==") for line in lines if "==" in line)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(text for extra in project["optional-dependencies"].values() for text in extra),
    ]
    for requirement in map(Requirement, wanted):
        if requirement.name != "hornn":
            assert requirement.specifier.contains(pinned[plain(requirement.name)]), requirement
