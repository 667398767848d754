"""A folder with a small sweep file, empty or with results; a browser with the page of one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.commands import write_report
from reporting.browser import Browser, Tab
from reporting.place import CLAIMS, SWEEP, Place, fill
from speech.tiny import sound, write_wave

MANY = """
defaults:
  - override /experiment: toy/text
sweep:
  name: many
  title: "Many widths"
  paper: ""
  metric:
    - {key: test_ppl, label: "perplexity, test"}
    - {key: valid_ppl, label: "perplexity, validation"}
  lower_is_better: true
  seeds: [1]
  grid: {model.hidden_size: [8, 16, 32, 64, 128]}
"""

SETTINGS = """
defaults:
  - override /experiment: toy/text
sweep:
  name: settings
  title: "What a recipe is made of"
  paper: "Somebody 2001"
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1]
  rows:
    - {name: rnn, label: "RNN", run: [model=rnn, weight_noise=1]}
    - {name: rnn-lr, label: "... lr 1", run: [model=rnn, optimizer.lr=1]}
    - {name: sum, label: "Sum", run: [model=hornn, weight_noise=1]}
    - {name: sum-lr, label: "... lr 1", run: [model=hornn, optimizer.lr=1]}
    - {name: sum-lr-9, label: "... lr 9", run: [model=hornn, optimizer.lr=9]}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def broken(place: Place) -> Callable[[str, str], Path]:
    """The sweep file with one thing in it replaced."""

    def replace(old: str, new: str) -> Path:
        assert old in SWEEP
        return place.write_sweep("toy", SWEEP.replace(old, new, 1))

    return replace


@pytest.fixture
def filled(place: Any) -> Any:
    """A place with committed results of three rows, one of them with two seeds, and an ad hoc sweep."""
    return fill(place)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = fill(Place(tmp_path_factory.mktemp("place")))
    place.write_sweep("toy", SWEEP.replace("  figure:", CLAIMS + "  figure:", 1))
    heard = {"shipped": "YES <b>SO</b>", "bigram": "NO"}
    place.commit(
        "sum-3",
        1,
        107.0,
        samples={"epoch": 3, "texts": ["the <i>first</i> text", "the second"]},
        corpus={"name": "tones"},
        utterances=[{"id": "one", "said": "YES NO", "heard": heard}],
    )
    recording = place.results / "tables" / "recordings" / "tones" / "one.wav"
    recording.parent.mkdir(parents=True)
    write_wave(recording, sound("YES NO", 1))
    place.write_sweep("many", MANY)
    place.commit("hidden_size8", 1, sweep="many")
    place.write_sweep("settings", SETTINGS)
    for row, score in (("rnn", 104.0), ("rnn-lr", 102.0), ("sum", 103.0), ("sum-lr", 101.0)):
        place.commit(row, 1, score, sweep="settings")
    place.commit("sum-lr-9", 1, sweep="settings", status="diverged", error="the loss is nan")
    write_report(place.results, place.sweeps, place.results / "report")
    return place.results / "report" / "index.html"


@pytest.fixture
def tab(browser: Browser, page: Path) -> Iterator[Tab]:
    """Nothing may have gone wrong in the page when the test ends, and nothing is ticked when it begins."""
    browser.errors.clear()
    tab = Tab(browser, page).open()
    tab.run("sessionStorage.clear()")
    yield tab
    assert browser.errors == []
