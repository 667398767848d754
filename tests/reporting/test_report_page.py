"""The page and the README: what a reader finds there, and that making them loads no torch."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.figures import draw_figures
from hornn.reporting.page import renew_readme, write_report
from hornn.reporting.runs import find_runs
from hornn.reporting.sweeps import read_sweeps
from hornn.reporting.tables import Table, build_tables

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

ROOT = Path(__file__).parents[2]


def build(place: Any) -> Table:
    sweeps = read_sweeps(place.sweeps)
    (table,) = build_tables(sweeps, find_runs(sweeps, place.results))
    return table


@pytest.fixture
def filled(place: Any) -> Any:
    """A place with committed results of three rows, one of them with two seeds, and an ad hoc sweep."""
    for row, seed, score in (
        ("sum-2", 1, 111.5),
        ("sum-2", 2, 112.5),
        ("sum-3", 1, 107.0),
        ("max-2", 1, 109.0),
    ):
        place.commit(row, seed, score, num_parameters=8_640_000 + (row == "max-2"))
    place.record(
        {"row": "model=lstm", "seed": 1, "status": "done", "result": place.result(1, 77.0)}, sweep="adhoc-12"
    )
    return place


def report(place: Any, *words: str, program: str | None = None) -> subprocess.CompletedProcess[str]:
    script = [str(ROOT / "src" / "report.py")] if program is None else ["-c", program]
    return subprocess.run(
        [sys.executable, *script, *words],
        cwd=place.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )


class Outline(HTMLParser):
    """Tags that are open, addresses, and the text of each table row."""

    VOID = ("meta", "br", "path", "use", "rect", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.rows: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
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
    assert [row for row in page.rows if row.startswith((" Sum", " RNN", " Stack"))] == [
        " RNN 123‡ not run",
        " Sum, order 2 111 112.0 ± 0.7 (n = 2) 111.5 +1.0 8,640,000 12.5 seed 1 seed 2",
        " Sum, order 3 108† 107.0 -1.0 8,640,000 12.5 seed 1 seed 2 not run",
        " Stack <RNN> 110 not built",
    ]


def test_the_page_begins_with_all_tables(page: Outline) -> None:
    assert page.rows[0].startswith(" table rows ours beside the published")
    assert " Toy: order and pooling 3 of 4 -0.9% (-0.9% to +0.9%)†" in page.rows
    assert "#toy" in page.addresses


def test_a_sweep_of_the_command_line_has_a_table(page: Outline) -> None:
    assert " model=lstm 77.0 8,640,000 12.5 seed 1" in page.rows
    assert "adhoc-12" in page.ids


def test_its_links_lead_to_files_and_nothing_is_loaded(page: Outline, filled: Any) -> None:
    folder = filled.results / "report"
    files = {address for address in page.addresses if not address.startswith("#")}
    assert "../tables/toy/sum-2-seed1.json" in files
    assert all((folder / address).is_file() for address in files)
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    text = (folder / "index.html").read_text()
    assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons\.org)", text)
    assert "@import" not in text


def test_figures_are_drawn_where_there_is_data(page: Outline, filled: Any) -> None:
    text = (filled.results / "report" / "index.html").read_text()
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert [caption.partition(".")[0] for caption in captions] == [
        "perplexity, test against order",
        "Validation after each epoch, of each row&#39;s best run by validation",
        "The same over time, which compares only on one device",
        "perplexity, test against the number of weights",
        "perplexity, test against the time that the best run trained",
        "Validation after each epoch, of each row&#39;s best run by validation",
        "The same over time, which compares only on one device",
    ]
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r"url\(#(\w+)\)", text)) <= set(page.ids)
    assert "#010203" not in text
    assert text.count("currentColor") > 20


def test_figures_of_a_table_by_validation(place: Any, broken: Any) -> None:
    broken(
        'metric: test_ppl\n  metric_label: "perplexity, test"',
        'metric: valid_ppl\n  metric_label: "validation"',
    )
    place.commit("sum-2", 1)
    place.commit("sum-3", 1)
    write_report(place.results, place.sweeps, place.results / "report")
    text = (place.results / "report" / "index.html").read_text()
    assert "<figcaption>validation against order." in text


def test_rows_that_say_how_they_differ_have_curves_of_their_own(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", re.sub(r"Sum, order 3|Max, order 2", "... decay", text))
    for row in ("rnn", "sum-2", "sum-3", "max-2"):
        place.commit(row, 1)
    curves = draw_figures(build(place))[1]
    labels = [label for label, _ in curves.legend]
    assert labels == ["RNN", "Sum, order 2", "Sum, order 2 ... decay", "Sum, order 2 ... decay"]
    assert len({style for _, style in curves.legend}) == 4


def test_a_figure_speaks_of_seeds_where_a_row_has_several(place: Any) -> None:
    place.commit("sum-2", 1)
    assert "Full marks: ours; open marks" in draw_figures(build(place))[0].panels[0].caption
    place.commit("sum-2", 2)
    caption = draw_figures(build(place))[0].panels[0].caption
    assert "Full marks: ours, with one standard deviation where a row has several seeds; open" in caption


def test_what_rows_change_is_a_figure_of_its_own(place: Any, broken: Any) -> None:
    """The rows of the base's group that are measured, the best first, and no others."""
    broken("group: max", "group: sum")
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", text.replace("figure: {x: order,", "figure: {base: sum-2, x: order,"))
    readme = place.folder / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    place.commit("rnn", 1, 90.0)
    place.commit("sum-2", 1, 111.5)
    renew_readme(place.results, place.sweeps, readme)
    assert "figure.svg" not in readme.read_text()
    place.commit("sum-3", 1, 107.0)
    place.commit("max-2", 1, 114.0)
    renew_readme(place.results, place.sweeps, readme)
    assert "perplexity, test: how far each row is from “Sum, order 2”, 111.5." in readme.read_text()
    drawn = (place.results / "tables" / "toy" / "figure.svg").read_text()
    words = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    assert [word for word in words if word.startswith(("Sum", "Max", "RNN"))] == [
        "Sum, order 3",
        "Max, order 2",
    ]
    assert [word for word in words if re.fullmatch(r"[+-]\d+\.\d", word)] == ["-4.5", "+2.5"]


def test_without_results_there_is_no_figure(place: Any) -> None:
    said = write_report(place.results, place.sweeps, place.results / "report")
    assert said.endswith("1 tables, 0 of 4 rows measured")
    assert "<svg" not in (place.results / "report" / "index.html").read_text()


def test_the_report_loads_no_torch(filled: Any) -> None:
    program = "import sys, runpy; sys.argv = ['report.py']; runpy.run_path({!r}, run_name='__main__'); "
    program += "print(sorted({{'torch', 'lightning', 'hydra', 'omegaconf', 'wandb'}} & set(sys.modules)))"
    done = report(filled, program=program.format(str(ROOT / "src" / "report.py")))
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert {path.name for path in (filled.results / "report").iterdir()} == {
        *(f"{name}.{suffix}" for name in ("toy", "adhoc-12") for suffix in ("md", "csv", "tex")),
        "index.html",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sweeps", "absent"), "error: there is no folder absent: give --sweeps FOLDER"),
        (
            ("--out", "sweeps/toy.yaml"),
            "error: cannot write to sweeps/toy.yaml (File exists): give --out FOLDER",
        ),
        (("--readme", "absent.md"), "error: no file absent.md: give a Markdown file with the lines"),
        (
            ("--readme", "sweeps/toy.yaml"),
            "error: sweeps/toy.yaml has no place for the results: put the lines",
        ),
    ],
)
def test_a_wrong_folder_or_file_is_one_line(place: Any, words: tuple[str, ...], message: str) -> None:
    done = report(place, *words)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_readme_holds_the_tables_of_committed_results(filled: Any) -> None:
    readme = filled.folder / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    renew_readme(filled.results, filled.sweeps, readme)
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n| table | rows |")
    assert "\n\n### Toy: order and pooling\n\nNobody 2000, table 1; perplexity, test\n" in text
    assert text.endswith(f"\n{END}\nafter\n")
    assert "[seed 1](outputs/tables/toy/sum-2-seed1.json)" in text
    assert "lstm" not in text
    assert (
        "![Toy: order and pooling](outputs/tables/toy/figure.svg)\n\n● sum, ■ max: perplexity, test against"
        in text
    )
    assert "</svg>" in (filled.results / "tables" / "toy" / "figure.svg").read_text()
    renew_readme(filled.results, filled.sweeps, readme)
    assert readme.read_text() == text


def test_the_claims_of_all_tables_come_first(filled: Any) -> None:
    path = filled.sweeps / "toy.yaml"
    claim = '{says: "two beat | one", better: sum-2, than: max-2}'
    path.write_text(path.read_text().replace("  figure:", f"  claims: [{claim}]\n  figure:"))
    for row in ("sum-2", "max-2"):
        filled.commit(row, 1, {"sum-2": 100.0, "max-2": 125.0}[row])
        filled.commit(row, 2, {"sum-2": 100.0, "max-2": 125.0}[row])
    readme = filled.folder / "README.md"
    readme.write_text(f"{BEGIN}{END}")
    renew_readme(filled.results, filled.sweeps, readme)
    first, _, rest = readme.read_text().partition("### Toy: order and pooling")
    assert "| two beat \\| one | Toy | Sum, order 2: 111; Max, order 2: 110; 0.9% worse |" in first
    assert "20.0% better" in first
    assert "two beat" not in rest
    write_report(filled.results, filled.sweeps, filled.folder / "report")
    page = (filled.folder / "report" / "index.html").read_text()
    assert page.index("two beat | one") < page.index('<section id="toy">')


def test_readme_without_results_says_so(place: Any) -> None:
    readme = place.folder / "README.md"
    readme.write_text(f"{BEGIN}{END}")
    renew_readme(place.results, place.sweeps, readme)
    assert readme.read_text() == f"{BEGIN}\nNo runs yet.\n{END}"


def test_what_was_kept_is_said(place: Any) -> None:
    place.record({"row": "rnn", "seed": 1, "status": "done", "result": place.result(1, 120.0)})
    done = report(place, "--keep")
    assert done.stdout == "outputs/tables/toy/rnn-seed1.json\n1 results kept in outputs/tables\n"
