"""Each gain that README states by hand stands among the measured gains."""

import re

import pytest

from documents.conftest import ROOT

LISTS = [*sorted((ROOT / "docs" / "findings").glob("*.md")), ROOT / "docs" / "choosing.md"]
FINDINGS = [
    line.split(" | ")
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    if re.search(r"\| -?[\d.]+ ± [\d.]+ % \|", line)
]


def test_the_readme_has_findings() -> None:
    assert len(FINDINGS) > 10


@pytest.mark.parametrize("row", FINDINGS, ids=lambda row: row[0].strip("| ")[:60])
def test_a_finding_of_the_readme_is_a_measured_gain(row: list[str]) -> None:
    """With its standard error, in a generated table of the page that the finding links to."""
    (page,) = (page for page in LISTS if f"({page.relative_to(ROOT)})" in row[0])
    gain = row[1] if row[1].startswith("-") else f"+{row[1]}"
    assert f"| {gain} |" in page.read_text(encoding="utf-8")


def test_the_page_shows_every_weight_decay_that_was_tried() -> None:
    """In a generated table: so no sentence says of cells that are not shown how far they move."""
    tried = {path.name.rpartition("-seed")[0] for path in (ROOT / "outputs/tables/ptb_decay").glob("*.json")}
    page = (ROOT / "docs" / "findings" / "hornn.md").read_text(encoding="utf-8")
    shown = {row for words in re.findall(r"<!-- rows: ptb_decay (.*) -->", page) for row in words.split()}
    assert tried
    assert tried <= shown


def test_the_readme_gives_the_poster_s_gain() -> None:
    """The figure has no numbers, but the abstract has one for each pair of networks."""
    (row,) = (row for row in FINDINGS if "AN4" in row[0])
    assert "6.3 %" in row[2]
