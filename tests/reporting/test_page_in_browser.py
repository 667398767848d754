"""The page in a browser: views by address, comparison, figures, filters, search, narrow screens, contrast."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hornn.reporting.commands import write_report
from reporting.browser import PROGRAM, Browser, Tab
from reporting.place import CLAIMS, SWEEP, Place, fill
from speech.tiny import sound, write_wave

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="needs chromium or google-chrome on the PATH"),
]
SHOWN = "[...document.querySelectorAll('.view')].filter(view => view.checkVisibility()).map(view => view.id)"
MANY = """
defaults:
  - override /experiment: toy/text
sweep:
  name: many
  title: "Many widths"
  paper: ""
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1]
  grid: {model.hidden_size: [8, 16, 32, 64, 128]}
"""
ROWS = "toy/sum-2,toy/max-2"


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


@pytest.mark.parametrize(
    ("address", "view"),
    [
        ("", "home"),
        ("#claims", "home"),
        ("#toy", "toy"),
        ("#nothing", "home"),
        ("#menu", "home"),
        ("#tip", "home"),
        ("#%", "home"),
        ("#compare=%", "compare"),
        ("#run=%", "compare"),
        ("#compare", "compare"),
        (f"#compare={ROWS}", "compare"),
        ("#run=toy/sum-2/1", "compare"),
        ("#run=toy/none/7", "compare"),
    ],
)
def test_an_address_opens_its_view_alone(tab: Tab, address: str, view: str) -> None:
    assert tab.open(address).run(SHOWN) == [view]


def test_ticked_rows_are_compared_at_an_address_of_their_own(tab: Tab) -> None:
    tab.open("#toy")
    for item in ROWS.split(","):
        tab.run(f"document.querySelector('input[data-item=\"{item}\"]').click()")
    assert tab.texts("#tray") == ["2 chosen Compare Clear"]
    assert tab.run("document.querySelector('#tray a').hash") == f"#compare={ROWS}"
    tab.open(f"#compare={ROWS}")
    assert tab.texts("#compare h1") == ["Compare 2 rows"]
    assert tab.texts("#compare thead th")[:2] == ["● Sum, order 2", "■ Max, order 2"]
    numbers = tab.texts("#compare tbody tr")
    assert "perplexity, test, published 111 110" in numbers
    assert "perplexity, test 112.0 ± 0.7 109.0 -2.7 %" in numbers
    assert "commit 1234567890 1234567890" not in numbers, "what they share is folded"
    assert tab.run("document.querySelectorAll('#compare .chart [data-tip]').length") == 6
    tab.run("document.querySelector('#compare .curves input').click()")
    assert tab.run("document.querySelectorAll('#compare .chart [data-tip]').length") == 9, "every seed"


def test_scores_of_different_data_are_not_ranked(tab: Tab) -> None:
    said = "Scores of different data are not ranked."
    tab.open("#compare=toy/sum-2,toy/sum-3")
    assert "perplexity, test 112.0 ± 0.7 107.0" in tab.texts("#compare tbody tr")
    assert tab.texts("#compare tbody b") == []
    assert any(said in text for text in tab.texts("#compare p.soft"))
    tab.open(f"#compare={ROWS}")
    assert tab.texts("#compare tbody b") != []
    assert not any(said in text for text in tab.texts("#compare p.soft"))


def test_configs_beside_one_another_show_where_they_differ(tab: Tab) -> None:
    tab.open(f"#compare={ROWS}")
    title = "[...document.querySelectorAll('#compare h2')].find(each => each.textContent.includes('configs differ'))"
    rows = (
        f"[...{title}.nextElementSibling.querySelectorAll('tbody tr')].map(row => row.innerText.split('\\t'))"
    )
    assert tab.run(rows) == [["model", "hornn", "hornn_max"]]


def test_a_run_has_its_numbers_its_seeds_and_its_commands(tab: Tab) -> None:
    tab.open("#run=toy/sum-2/1")
    assert tab.texts("#compare h1") == ["Sum, order 2, seed 1"]
    assert "perplexity, test 111.5" in tab.texts("#compare tbody tr")
    assert "seed 2" in tab.texts("#compare a")
    assert "python src/train.py -m sweeps=toy hydra.sweeper.only=[sum-2] sweep.seeds=[1]" in tab.texts("code")
    file = tab.run("document.querySelector('#compare a[href$=json]').getAttribute('href')")
    assert (tab.page.parent / file).is_file()


def test_what_a_run_wrote_stands_there_as_text(tab: Tab) -> None:
    tab.open("#run=toy/sum-3/1")
    assert tab.texts("#compare .sample") == ["the <i>first</i> text", "the second"]
    tab.open("#run=toy/sum-2/1")
    assert tab.texts("#compare .sample") == []


@pytest.mark.parametrize("address", ["#toy", "#run=toy/sum-3/1"])
def test_one_listens_to_an_utterance_and_reads_what_was_heard(tab: Tab, address: str) -> None:
    tab.open(address)
    view = "[...document.querySelectorAll('.view')].find(each => each.checkVisibility())"
    assert tab.texts(".view .heard del") == ["NO", "YES"]
    assert tab.texts(".view .heard ins") == ["<b>SO</b>"]
    seconds = tab.run(
        f"new Promise((done, refuse) => {{ const sound = {view}.querySelector('audio'); sound.preload = 'metadata';"
        "sound.onloadedmetadata = () => done(sound.duration); sound.onerror = refuse; sound.load(); })"
    )
    assert seconds == pytest.approx(len(sound("YES NO", 1)) / 16_000)


def test_the_first_screen_has_the_main_claims(tab: Tab) -> None:
    assert tab.texts(".findings ul a") == ["three beat two"]
    assert tab.texts(".findings div")[0].startswith("Nobody 2000 ▲ 2")


def test_rows_that_were_not_run_are_folded(tab: Tab) -> None:
    shown = "[...document.querySelectorAll('#many tbody tr')].filter(row => row.checkVisibility()).length"
    tab.open("#many")
    assert tab.texts("#many .unfold") == ["Show 4 rows that were not run"]
    assert tab.run(shown) == 1
    tab.run("document.querySelector('#many .unfold').click()")
    assert tab.texts("#many .unfold") == ["Hide 4 rows that were not run"]
    assert tab.run(shown) == 5


def test_the_learning_curves_run_over_epochs_and_over_time(tab: Tab) -> None:
    tab.open("#toy")
    assert tab.texts("#toy .curves select:nth-of-type(1)")[0].startswith("perplexity, validation")
    tip = "document.querySelector('#toy .chart [data-series=\"1\"][data-tip]').dataset.tip"
    assert tab.run(tip) == "Sum, order 2, seed 1: 131.5, epoch 1"
    choose = "document.querySelectorAll('#toy .curves select')[1]"
    tab.run(f"{choose}.value = 'seconds'; {choose}.onchange()")
    assert tab.run(tip) == "Sum, order 2, seed 1: 131.5, 12.5 seconds"


def test_pointing_at_a_mark_says_its_value_and_lights_its_row(tab: Tab) -> None:
    tab.open("#toy")
    spot = "document.querySelector('#toy .top [data-tip^=\"Sum, order 3\"]')"
    x, y = tab.run(f"middle({spot})")
    tab.browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert tab.texts("#tip")[0].startswith("Sum, order 3: ")
    assert tab.run("document.querySelector('#toy tr.on').cells[1].textContent").endswith("Sum, order 3")
    tab.run("document.querySelector('#toy figure > svg').focus()")
    tab.browser.ask("Input.dispatchKeyEvent", type="rawKeyDown", key="ArrowRight", code="ArrowRight")
    assert tab.texts("#tip") != []


def test_a_row_has_one_colour_in_every_figure_of_its_table(tab: Tab) -> None:
    tab.open("#toy")
    marks = (
        "[...document.querySelectorAll('#toy figure [data-series=\"2\"][data-tip]')].map(getComputedStyle)"
    )
    colour = tab.run("data.rows['toy/sum-3'].style[0]")
    expected = "rgb({}, {}, {})".format(*bytes.fromhex(colour[1:]))
    drawn = tab.run(f"{marks}.map(look => [look.fill, look.stroke])")
    assert all(expected in looks for looks in drawn)
    assert len(drawn) > 4


def test_all_claims_are_listed_with_their_tables(tab: Tab) -> None:
    said = tab.texts("#claims .says")
    assert said == tab.run("[...document.querySelectorAll('#toy .says')].map(each => each.textContent)")
    assert set(tab.run("[...document.querySelectorAll('#claims .evidence a')].map(a => a.hash)")) == {"#toy"}


def test_the_claims_are_filtered(tab: Tab) -> None:
    shown = "[...document.querySelectorAll('#claims .claims > li')].filter(item => !item.hidden).length"
    everything = tab.run(shown)
    assert everything > 0
    for key, value in (("outcome", "a tendency for it"), ("cell", "hornn_max"), ("data", "text")):
        choice = f"document.querySelector('select[data-key={key}]')"
        change = f"{choice}.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        tab.run(f"{choice}.value = '{value}'; {change}")
        items = f"[...document.querySelectorAll('#claims .claims > li')].map(item => item.dataset.{key}.split('|'))"
        also = sum(value in words for words in tab.run(items))
        assert 0 < tab.run(shown) == also <= everything
        tab.run(f"{choice}.value = ''; {change}")
    assert tab.run(shown) == everything


def test_the_search_finds_tables_by_their_rows(tab: Tab) -> None:
    found = "[...document.querySelectorAll('nav [data-words]')].filter(item => !item.hidden).length"
    for words, count in (("stack", 1), ("no such thing", 0)):
        tab.run(f"document.getElementById('search').value = '{words}'; search()")
        assert tab.run(found) == count


def test_a_table_is_sorted(tab: Tab) -> None:
    tab.open("#toy").run("document.querySelectorAll('#toy .wide th button')[2].click()")
    values = "[...document.querySelector('#toy .wide').tBodies[0].rows].map(row => row.cells[3].textContent)"
    numbers = [float(value.split()[0]) for value in tab.run(values) if value.strip()]
    assert numbers == sorted(numbers)
    assert len(numbers) > 1


SORTED = """(texts => {
  document.querySelector('main').insertAdjacentHTML('beforeend', '<table id="sorted"><thead><tr><th class="KIND">'
    + '<button>x</button></th></tr></thead><tbody>' + texts.map(text => `<tr><td>${text}</td></tr>`).join('')
    + '</tbody></table>');
  const table = document.getElementById('sorted'), button = table.querySelector('button');
  const found = [0, 1].map(() => { sort(button); return [...table.tBodies[0].rows].map(row => row.innerText); });
  table.remove();
  return found;
})"""


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        ("", ["-2.5", "9 ± 1", "75.12", "75.6", "adam", "null", ""]),
        ("label", ["0 + 50 fixed", "0 + 140", "2 layers", "10 layers", ""]),
    ],
)
def test_numbers_are_sorted_as_numbers_and_labels_as_words(tab: Tab, kind: str, ascending: list[str]) -> None:
    *told, nothing = ascending
    found = tab.run(f"{SORTED.replace('KIND', kind)}({json.dumps(ascending[::2] + ascending[1::2])})")
    assert found == [ascending, [*reversed(told), nothing]]


def test_the_table_of_tables_is_sorted_by_its_titles(tab: Tab) -> None:
    tab.run("document.querySelector('#home .wide th button').click()")
    titles = tab.texts("#home .wide td.label")
    assert len(titles) > 1
    assert titles == sorted(titles, key=str.casefold)
    tab.run("document.querySelector('#home .wide th button').click()")
    assert tab.texts("#home .wide td.label") == titles[::-1]


def test_controls_follow_the_button_for_light_and_dark(tab: Tab) -> None:
    scheme = "getComputedStyle(document.documentElement).colorScheme"
    tab.run("localStorage.removeItem('theme')")
    tab.open(dark=True).run("changeTheme()")
    assert tab.run(scheme) == "light"
    tab.run("changeTheme()")
    assert tab.run(scheme) == "dark"
    tab.run("localStorage.removeItem('theme')")


def test_a_printed_table_has_its_headings_and_no_controls(tab: Tab) -> None:
    tab.open("#toy", width=720)
    tab.browser.ask("Emulation.setEmulatedMedia", media="print")
    headings = tab.texts("#toy .wide thead th")
    for controls in ("nav", "#toy input", "#toy select", "#toy .downloads", "#toy audio"):
        assert tab.texts(controls) == []
    assert {"model", "published", "measured", "seeds"} <= set(headings)
    assert tab.run("document.documentElement.scrollWidth") <= 720
    tab.browser.ask("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("address", ["", "#toy", f"#compare={ROWS}", "#run=toy/sum-2/1"])
def test_a_narrow_screen_never_scrolls_sideways(tab: Tab, address: str) -> None:
    tab.open(address, width=380)
    assert tab.run("document.documentElement.scrollWidth") <= 380


@pytest.mark.parametrize("address", ["", "#toy", f"#compare={ROWS}", "#run=toy/sum-2/1"])
def test_every_figure_has_a_name(tab: Tab, address: str) -> None:
    names = "[...document.querySelectorAll('figure > svg')].map(svg => svg.getAttribute('aria-label') ?? '')"
    found = tab.open(address).run(names)
    assert found
    assert min(map(len, found)) > 10


def test_every_control_has_a_name(tab: Tab) -> None:
    name = "each.getAttribute('aria-label') || each.labels?.length || each.textContent.trim()"
    controls = "[...document.querySelectorAll('input, select, button, a')]"
    named = f"{controls}.filter(each => !({name})).map(each => each.outerHTML)"
    for address in ("", "#toy", f"#compare={ROWS}", "#run=toy/sum-2/1"):
        assert tab.open(address).run(named) == []


CONTRAST = """(() => {
  const light = colour => { const pen = document.createElement('canvas').getContext('2d');
    pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0); };
  const style = getComputedStyle(document.documentElement), value = name => style.getPropertyValue(name).trim();
  const against = (ink, ground) => { const [a, b] = [light(ink), light(ground)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
  return { text: ['--ink', '--soft', '--link', '--yes', '--partly', '--no', '--open']
      .flatMap(name => ['--ground', '--panel'].map(ground => against(value(name), value(ground)))),
    lines: [...data.palette.map(([colour]) => colour), value('--edge')]
      .map(colour => against(colour, value('--ground'))) };
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_lines_stand_out_from_their_ground(tab: Tab, dark: bool) -> None:
    """At least 4.5 : 1 and 3 : 1, by the formula of WCAG."""
    ratios = tab.open(dark=dark).run(CONTRAST)
    assert min(ratios["text"]) >= 4.5
    assert min(ratios["lines"]) >= 3
