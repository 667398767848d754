"""Every command and every block of code in README.md, CONTRIBUTING.md and docs/ does what its page says.

How a block is run, and how its page can steer that, stands in `documents.code`.
"""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents.code import (
    COMPOSE_ONLY,
    QUIET,
    SHELL,
    SHOWN,
    SKIP,
    UPDATES,
    Block,
    blocks_of,
    commands_of,
    to_run,
)
from documents.conftest import ROOT, Python, Shell
from hornn.blocks import pages_with_blocks
from reporting.place import read_sweep

PAGES = [page for page in pages_with_blocks(ROOT) if blocks_of(page)]
TRAIN = "python src/train.py logger=csv trainer.enable_progress_bar=false trainer.max_epochs=1 data=files"
TEXT = "data.train=train.txt data.valid=valid.txt data.test=test.txt data.batch_size=4 data.seq_len=5"
NETWORK = "model.hidden_size=6"
LONG = (  # the blocks of which take longest
    *("sweeps.md", "CONTRIBUTING.md", "using.md", "speech.md", "memory.md", "choosing.md", "reproducing.md"),
    *("python.md", "data.md", "troubleshooting.md"),
)
PREPARED = {  # a finished run that a page's commands may name -> what trains it
    "RUN": f"{TRAIN} {TEXT} model=hornn_fofe {NETWORK}",
    "A": f"{TRAIN} {TEXT} model=rnn {NETWORK}",
    "B": f"{TRAIN} {TEXT} model=lstm {NETWORK}",
    "KN": f"{TRAIN} {TEXT} model=kn model.fallback_discounts=[0.5,1,1.5]",
}
# What not every machine has, and the words by which a block shows that it reads it.
CORPORA = {
    "music/JSB_Chorales.mat": ("data=music", "outputs/music", "outputs/chorales", "deep_rnn/music"),
    "an4": ('"an4"', "said.train.txt", "outputs/said"),
}
CELL_CHECKS = (
    "ruff check {file}",
    "ruff format --check {file}",
    "mypy {file}",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.thorough) if page.name in LONG else page for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_block_runs(page: Path, checkout: Path, shell: Shell, python: Python) -> None:
    if (ROOT / ".mypy_cache").is_dir():  # what mypy knows of the libraries
        os.symlink(ROOT / ".mypy_cache", checkout / ".mypy_cache")
    blocks = blocks_of(page)
    sweeps = {Path(block.file).stem for block in blocks if block.file and block.file.startswith("sweeps/")}
    prepare(blocks, shell)
    for block in blocks:
        where = f"{page.relative_to(ROOT)}, line {block.line}"
        if block.steer.startswith(SKIP) or lacks_corpus(block):
            continue
        if block.file and block.language in ("python", "yaml"):
            write(block, checkout)
        elif block.language in SHELL:
            commands = [to_run(command, block.steer, sweeps) for command in commands_of(block.text)]
            done = shell("\n".join(line for lines in commands for line in lines))
            assert done.returncode == 0, f"{where}:\n{done.stdout[-6000:]}"
        elif block.language == "python":
            failure = python(block.text, where)
            assert failure is None, f"{where}:\n{failure}"
        elif block.language == "yaml":
            yaml.safe_load(block.text)
        else:
            assert block.language in SHOWN, f"{where}: a block of an unknown language, {block.language!r}"
    check_new_files([block.file for block in blocks if block.file], shell)


def lacks_corpus(block: Block) -> bool:
    """Whether a block reads a corpus that this machine does not have."""
    root = Path(os.environ.get("HORNN_DATA", ""))
    return any(
        any(word in block.text for word in words) and not (root / path).exists()
        for path, words in CORPORA.items()
    )


def prepare(blocks: list[Block], shell: Shell) -> None:
    """Train the runs that the commands of a page name."""
    text = "\n".join(block.text for block in blocks if block.language in SHELL)
    lines = [f"{train} run_dir={name}" for name, train in PREPARED.items() if re.search(rf"\b{name}/", text)]
    if "kn.arpa" in text:
        lines += [PREPARED["KN"] + " run_dir=KN"] * (f"{PREPARED['KN']} run_dir=KN" not in lines)
        lines.append("python src/evaluate.py checkpoint=KN/best.ckpt arpa=kn.arpa")
    done = shell("\n".join(lines))
    assert done.returncode == 0, done.stdout[-6000:]


def write(block: Block, checkout: Path) -> None:
    """Write a block to the file that it names; a sweep file is read as the report reads it."""
    assert block.file
    path = checkout / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    if block.language == "yaml":
        content: Any = yaml.safe_load(block.text)
        if "sweep" in content:
            read_sweep(path)


def check_new_files(files: list[str], shell: Shell) -> None:
    """Code that a page brings passes what our own code passes; a model of its own keeps the contract of cells."""
    code = [file for file in files if file.startswith("src/")]
    models = [Path(file).stem for file in files if file.startswith("conf/model/")]
    lines = [check.format(file=file) for file in code for check in CELL_CHECKS]
    lines += [f"pytest -q tests/cells/test_contract.py -k '[{model}'" for model in models]
    done = shell("\n".join(lines))
    assert done.returncode == 0, done.stdout[-6000:]


def test_what_is_skipped_says_why_and_is_little() -> None:
    steers = [block.steer for page in PAGES for block in blocks_of(page)]
    skipped = [steer for steer in steers if steer.startswith(SKIP)]
    assert all(len(steer.removeprefix(SKIP).split()) >= 3 for steer in skipped), skipped
    assert len(skipped) <= 5
    for steer in steers:
        known = (
            not steer
            or steer == COMPOSE_ONLY
            or steer.startswith(SKIP)
            or all("=" in w for w in steer.split())
        )
        assert known, f"unknown words in <!-- test: {steer} -->"


def test_commands_of_a_block() -> None:
    text = "python src/train.py a=1 \\\n    b=2   # remark\n\n# a line of remarks\necho '#x'\n"
    assert commands_of(text) == ["python src/train.py a=1 b=2", "echo '#x'"]


@pytest.mark.parametrize(
    ("command", "steer", "expected"),
    [
        ("echo a", "", ["echo a"]),
        ("pip install -e '.[slurm]'", "", []),
        ("wandb leet RUN/wandb", "", ["wandb leet --help > /dev/null"]),
        ("make lint", "", ["make -n lint"]),
        ("python src/generate.py length=50 seed=1", "length=5", ["python src/generate.py length=5  seed=1"]),
        (
            "python src/train.py -m sweeps=x",
            "",
            ["HORNN_TEST_COMPOSE_ONLY=1 python src/train.py -m sweeps=x"],
        ),
        (
            "python src/train.py -m sweeps=own",
            "",
            [f"python src/train.py -m {' '.join(QUIET)} {UPDATES} sweeps=own"],
        ),
        ("python src/train.py --help", "", ["python src/train.py --help"]),
    ],
)
def test_what_stands_for_a_command(command: str, steer: str, expected: list[str]) -> None:
    assert to_run(command, steer, own_sweeps={"own"}) == expected
