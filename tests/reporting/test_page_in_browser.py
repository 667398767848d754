"""The page in a browser: each view by its address, filters, search, narrow screens, names of figures."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.commands import write_report
from reporting.place import CLAIMS

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs chromium or google-chrome on the PATH"),
]
Look = Callable[..., str]


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Look:
    """`look(page, "#address", script, width)`: the text that a script leaves in a page that is open there."""
    profile = tmp_path_factory.mktemp("profile")

    def look(page: Path, address: str, script: str, width: int = 1400) -> str:
        report = "document.body.innerHTML = '<pre id=said></pre>'; document.getElementById('said').textContent = said;"
        tell = f"let said; try {{ said = String({script}); }} catch (e) {{ said = e; }} {report}"
        wait = f"setTimeout(() => {{ {tell} }}, 300)"
        catch = "addEventListener('error', event => document.title = 'ERROR ' + event.message);"
        text = page.read_text().replace("<body>", f"<body><script>{catch}</script>", 1)
        copy = page.with_name("looked_at.html")
        copy.write_text(
            text.replace("</body>", f"<script>addEventListener('load', () => {wait})</script></body>")
        )
        assert BROWSER
        done = subprocess.run(
            [
                *(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"),
                *(f"--window-size={width},900", "--virtual-time-budget=3000", "--dump-dom"),
                f"file://{copy}{address}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "HOME": str(profile)},
        )
        found = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found, done.stderr[-2000:]
        assert "ERROR" not in (re.search(r"<title>(.*?)</title>", done.stdout) or [""])[0]
        return found[1]

    return look


@pytest.fixture
def page(filled: Any, broken: Any) -> Path:
    broken("  figure:", CLAIMS + "  figure:")
    write_report(filled.results, filled.sweeps, filled.results / "report")
    path: Path = filled.results / "report" / "index.html"
    return path


SHOWN = "[...document.querySelectorAll('.view')].filter(v => v.checkVisibility()).map(v => v.id)"


@pytest.mark.parametrize(
    ("address", "view"), [("", "home"), ("#claims", "claims"), ("#toy", "toy"), ("#nothing", "home")]
)
def test_an_address_opens_its_view_alone(page: Path, look: Look, address: str, view: str) -> None:
    assert look(page, address, SHOWN) == view


def test_the_claims_are_filtered(page: Path, look: Look) -> None:
    shown = "[...document.querySelectorAll('#claims .claims > li')].filter(item => !item.hidden).length"
    everything = int(look(page, "#claims", shown))
    assert everything > 0
    choose = "(() => { const choice = document.querySelector('select[data-key=outcome]');"
    choose += " choice.value = 'confirmed'; choice.onchange();"
    confirmed = int(look(page, "#claims", f"{choose} return {shown}; }})()"))
    also = "document.querySelectorAll('#claims li[data-outcome=confirmed]').length"
    assert confirmed == int(look(page, "#claims", also)) <= everything


def test_the_search_finds_tables_by_their_rows(page: Path, look: Look) -> None:
    found = "[...document.querySelectorAll('nav [data-words]')].filter(item => !item.hidden).length"
    search = "(() => { const field = document.getElementById('search'); field.value = '%s'; field.oninput();"
    assert int(look(page, "", f"{search % 'stack'} return {found}; }})()")) == 1
    assert int(look(page, "", f"{search % 'no such thing'} return {found}; }})()")) == 0


def test_a_table_is_sorted(page: Path, look: Look) -> None:
    click = "(() => { const table = document.querySelector('#toy table');"
    click += " table.querySelectorAll('th button')[2].click();"
    values = (
        "[...table.tBodies[0].rows].map(row => row.cells[2].dataset.value).filter(value => value).map(Number)"
    )
    numbers = [float(text) for text in look(page, "#toy", f"{click} return {values}; }})()").split(",")]
    assert numbers == sorted(numbers)
    assert len(numbers) > 1


@pytest.mark.parametrize("address", ["", "#claims", "#toy"])
def test_a_narrow_screen_never_scrolls_sideways(page: Path, look: Look, address: str) -> None:
    widths = look(page, address, "[document.documentElement.scrollWidth, innerWidth]", width=380).split(",")
    assert int(widths[0]) <= int(widths[1])


def test_every_figure_has_a_name(page: Path, look: Look) -> None:
    named = "[...document.querySelectorAll('figure svg')].map(svg => (svg.getAttribute('aria-label') ?? '').length)"
    lengths = [int(text) for text in look(page, "", named).split(",")]
    assert len(lengths) > 3
    assert min(lengths) > 10


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(page: Path, look: Look, theme: str) -> None:
    """At least 4.5 : 1, by the formula of WCAG."""
    contrast = """(() => {
      document.documentElement.dataset.theme = '%s';
      const light = text => text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const ground = light(getComputedStyle(document.body).backgroundColor);
      return ['--ink', '--soft', '--link', '--yes', '--partly', '--no', '--open'].map(name => {
        document.body.style.color = `var(${name})`;
        const ink = light(getComputedStyle(document.body).color);
        return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
      });
    })()"""
    ratios = [float(text) for text in look(page, "", contrast % theme).split(",")]
    assert len(ratios) == 7
    assert min(ratios) >= 4.5
