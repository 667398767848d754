"""The cell of the README, pasted as it stands into a copy of the checkout, passes all that our own cells pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("src", "conf", "tests", "pyproject.toml")
CHECKS = {
    "ruff": ["ruff", "check", "src/hornn/cells/mine.py"],
    "format": ["ruff", "format", "--check", "src/hornn/cells/mine.py"],
    "mypy": ["mypy", "src/hornn/cells/mine.py"],
    "contract": ["pytest", "-q", "-p", "no:cacheprovider", "tests/cells/test_contract.py", "-k", "[mine"],
}


def paste_cell(folder: Path) -> None:
    """Write the two blocks of the README's section on cells to the files that their first lines name."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## A cell of your own")[2].partition("\n## ")[0]
    blocks = re.findall(
        r"^```(?:python|yaml)\n(# (\S+\.(?:py|yaml))\n.*?)^```$", section, re.DOTALL | re.MULTILINE
    )
    assert [name for _, name in blocks] == ["src/hornn/cells/mine.py", "conf/model/mine.yaml"]
    for block, name in blocks:
        (folder / name).write_text(block, encoding="utf-8")


@pytest.mark.slow
def test_the_cell_of_the_readme(tmp_path: Path) -> None:
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, tmp_path / part)
    if (ROOT / ".mypy_cache").is_dir():  # what it knows of the libraries
        shutil.copytree(ROOT / ".mypy_cache", tmp_path / ".mypy_cache")
    paste_cell(tmp_path)
    for name, command in CHECKS.items():
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
