"""What holds of the pages themselves: links, file names, lengths."""

import re
import tomllib
from pathlib import Path

import pytest

from documents.code import FENCE
from documents.conftest import ROOT
from hornn.blocks import pages_with_blocks

PAGES = [*pages_with_blocks(ROOT), *sorted((ROOT / "outputs" / "tables").rglob("README.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAME = re.compile(
    r"`((?:src|conf|sweeps|docs|tests|outputs/tables)/[\w./-]+\.\w+|(?:src|conf|sweeps|docs|tests)/[\w/]+/)`"
)
PLACEHOLDER = re.compile(r"/(?!README)[A-Z]{2,}\b")  # in outputs/tables/SWEEP/ROW-seedN.json
README_LINES, HEADER_LINES = 180, 12
EXPERIMENTS = sorted((ROOT / "conf" / "experiment").rglob("*.yaml"))


def text_of(page: Path) -> str:
    """The page without its fenced code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What its headings are called where pages link to them."""
    titles = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_file_names_lead_somewhere(page: Path) -> None:
    text, broken = text_of(page), []
    for address in LINK.findall(text):
        if re.match(r"[a-z]+:", address):
            continue
        path, _, anchor = address.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(address)
    names = [name for name in NAME.findall(text) if not PLACEHOLDER.search(name)]
    written = {
        match for block in FENCE.finditer(page.read_text()) for match in re.findall(r"[\w./-]+", block[3])
    }
    broken += [name for name in names if not (ROOT / name).exists() and name not in written]
    assert broken == []


@pytest.mark.parametrize("page", pages_with_blocks(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_extras_that_a_page_installs_exist(page: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"\.\[([\w,]+)\]'?", page.read_text(encoding="utf-8"))
    assert {extra for names in named for extra in names.split(",")} <= extras.keys()


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_experiment_has_a_short_header(path: Path) -> None:
    """Source, command, published against chosen, expected number, cost; the search stands in docs/reproducing.md."""
    lines = path.read_text(encoding="utf-8").splitlines()
    header = next(index for index, line in enumerate(lines) if not line.startswith("#"))
    assert header <= HEADER_LINES
