"""The page: what a reader finds there."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.commands import write_report

# Elements that end, without an end tag, where one of these begins.
ENDED_BY = {"td": ("td", "th", "tr"), "th": ("td", "th", "tr"), "tr": ("tr",), "li": ("li",)}


class Outline(HTMLParser):
    """Tags that are open, addresses, and the text of each table row."""

    VOID = ("meta", "link", "br", "input", "path", "use", "rect", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.rows: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        while self.open and tag in ENDED_BY.get(self.open[-1], ()):
            self.open.pop()
        found = dict(attributes)
        self.addresses += [value for key in ("href", "src", "xlink:href") if (value := found.get(key))]
        self.ids += [value] if (value := found.get("id")) else []
        if tag == "tr":
            self.rows.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        while self.open[-1] != tag and self.open[-1] in ENDED_BY:
            self.open.pop()
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "tr" in self.open:
            self.rows[-1] += f" {data.strip()}" if data.strip() else ""


@pytest.fixture
def page(filled: Any) -> Outline:
    write_report(filled.results, filled.sweeps, filled.results / "report")
    outline = Outline()
    outline.feed((filled.results / "report" / "index.html").read_text())
    assert not outline.open
    return outline


def test_the_page_shows_every_row(page: Outline) -> None:
    assert [row for row in page.rows if row.startswith((" ● RNN", " ● Sum", " ■ Sum", " ◆"))] == [
        " ● RNN 123‡ not run",
        " ● Sum, order 2 111 112.0 ± 0.7 (n = 2) 111.5 +1.0 8,640,000 12.5 1 2",
        " ■ Sum, order 3 108† 107.0 -1.0 8,640,000 12.5 1 seed 2 not run",
        " ◆ Stack <RNN> 110 not built",
    ]


@pytest.mark.parametrize("name", ["run", "claims", "menu", "search"])
def test_a_sweep_may_be_called_as_a_part_of_the_page(filled: Any, name: str) -> None:
    filled.record({"row": "model=lstm", "seed": 1, "status": "queued"}, sweep=name)
    write_report(filled.results, filled.sweeps, filled.results / "report")
    outline = Outline()
    outline.feed((filled.results / "report" / "index.html").read_text())
    assert f"table-{name}" in outline.ids
    assert f"#table-{name}" in outline.addresses
    assert len(outline.ids) == len({*outline.ids})


def test_the_page_begins_with_all_tables(page: Outline) -> None:
    assert page.rows[0].startswith(" table rows measured measured against published")
    assert " Toy: order and pooling 3 of 4 -0.9 % (-0.9 % to +0.9 %)†" in page.rows
    assert "#table-toy" in page.addresses


def test_a_sweep_of_the_command_line_has_a_table(page: Outline) -> None:
    assert " ● model=lstm 77.0 8,640,000 12.5 1" in page.rows
    assert "table-adhoc-12" in page.ids


def test_its_links_lead_to_files_and_nothing_is_loaded(page: Outline, filled: Any) -> None:
    folder = filled.results / "report"
    files = {address for address in page.addresses if not address.startswith(("#", "data:,"))}
    assert "toy.json" in files
    assert all((folder / address).is_file() for address in files)
    views = {address[1:] for address in page.addresses if address.startswith("#") and "=" not in address}
    assert views <= set(page.ids)
    text = (folder / "index.html").read_text()
    assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons\.org)", text)
    assert "@import" not in text


def test_figures_are_drawn_where_there_is_data(page: Outline, filled: Any) -> None:
    text = (filled.results / "report" / "index.html").read_text()
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert [caption.partition(".")[0] for caption in captions] == [
        "Published → measured, all 3 rows with both numbers, on a logarithmic axis for each table",
        "perplexity, test against order",
        "Ranks by perplexity, test, the best on top: a line that rises is ranked better than published",
        "perplexity, test against the number of weights",
        "perplexity, test against the training time of the best run, at the pace of the fastest, on cpu (abacus)",
    ]
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r"url\(#(\w+)\)", text)) <= set(page.ids)
    assert "#010203" not in text
    assert re.search(r"\.l\d+{stroke:currentColor", text)


def test_the_report_of_all_committed_results_is_light(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])  # as the command has it, whose paths are relative
    write_report(Path("outputs"), Path("sweeps"), tmp_path)
    page, *downloads = sorted((path.stat().st_size for path in tmp_path.rglob("*.*")), reverse=True)
    assert page <= 2_000_000
    assert downloads[0] <= 150_000, "each is loaded by itself"
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) - page <= 1_500_000, (
        "nobody loads all downloads"
    )


def test_a_table_shows_what_its_network_wrote(filled: Any) -> None:
    folder, report = filled.results / "tables" / "toy", filled.results / "report"
    (folder / "sample.png").write_bytes(b"\x89PNG")
    write_report(filled.results, filled.sweeps, report)
    page = (report / "index.html").read_text()
    assert page.count('src="data:image/png;base64,iVBORw=="') == 1
    assert "audio/midi" not in page
    (folder / "sample.mid").write_bytes(b"MThd")
    write_report(filled.results, filled.sweeps, report)
    page = (report / "index.html").read_text()
    assert page.count('href="data:audio/midi;base64,TVRoZA==" download="toy.mid"') == 1


def test_learning_curves_need_several_epochs(place: Any) -> None:
    place.commit("rnn", 1, 120.0, metrics=[{"epoch": 1, "valid_ppl": 125.0}])
    write_report(place.results, place.sweeps, place.results / "report")
    assert "<h2>Learning curves" not in (place.results / "report" / "index.html").read_text()
    place.commit("sum-2", 1, 110.0)
    write_report(place.results, place.sweeps, place.results / "report")
    assert "<h2>Learning curves" in (place.results / "report" / "index.html").read_text()


def test_many_marks_are_a_list(place: Any) -> None:
    for row in ("rnn", "sum-2", "sum-3", "max-2"):
        place.commit(row, 1, 120.0)
    write_report(place.results, place.sweeps, place.results / "report")
    assert "<li><sup>" not in (place.results / "report" / "index.html").read_text()
    place.commit("rnn", 1, 120.0, dirty=True)
    place.commit("sum-2", 1, 120.0, corpus={"valid_is_test": True})
    write_report(place.results, place.sweeps, place.results / "report")
    page = (place.results / "report" / "index.html").read_text()
    assert page.count("<li><sup>") == 4, "two of the published numbers, two of ours"
