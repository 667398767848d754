"""A page for each run: its numbers, curves and commands; where its links lead."""

import re
from typing import Any

import pytest

from hornn.reporting.commands import write_report
from hornn.reporting.run_pages import curves_of, draw_curves


@pytest.fixture
def text(filled: Any) -> str:
    write_report(filled.results, filled.sweeps, filled.results / "report")
    page = filled.results / "report" / "runs" / "toy-sum-2-seed1.html"
    found: str = page.read_text()
    for address in re.findall(r'href="([^"#]+)', found):
        assert (page.parent / address).exists(), address
    return found


def test_a_run_has_its_numbers_its_seeds_and_its_commands(text: str) -> None:
    assert "<h1>Sum, order 2, seed 1</h1>" in text
    assert "<dt>perplexity, test</dt><dd>111.5</dd>" in text
    assert '<a href="toy-sum-2-seed2.html">seed 2</a>' in text
    assert "<code>python src/train.py -m sweeps=toy hydra.sweeper.only=[sum-2] sweep.seeds=[1]</code>" in text
    assert "Perplexity after each epoch" in text


def test_the_table_leads_to_the_pages_of_its_runs(filled: Any, text: str) -> None:
    page = (filled.results / "report" / "index.html").read_text()
    links = set(re.findall(r'href="(runs/[^"]+)"', page))
    assert "runs/toy-sum-2-seed1.html" in links
    assert all((filled.results / "report" / link).is_file() for link in links)


def test_a_curve_that_starts_far_off_is_cut_and_one_epoch_draws_none() -> None:
    svg = draw_curves("perplexity", {"validation": [(1, 1e6), (2, 120.0), (3, 100.0)]}, log=False)
    assert ">300<" in svg
    assert ">100<" in svg
    assert curves_of({"metrics": [{"epoch": 1, "valid_ppl": 5.0}]}) == []
    assert curves_of({}) == []


def test_a_logarithmic_axis_shows_all() -> None:
    svg = draw_curves("rate", {"rate": [(1, 1.0), (2, 0.1), (3, 0.01)]}, log=True)
    ends = [float(point.split(",")[1]) for point in re.findall(r'points="([^"]+)"', svg)[0].split()]
    assert ends[1] == pytest.approx((ends[0] + ends[2]) / 2, abs=0.2)
