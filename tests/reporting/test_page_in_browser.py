"""The page in a browser: views by address, comparison, figures, filters, search."""

import json

import pytest

from reporting.browser import IN_BROWSER, Tab
from speech.tiny import sound

pytestmark = IN_BROWSER
SHOWN = "[...document.querySelectorAll('.view')].filter(view => view.checkVisibility()).map(view => view.id)"
ROWS = "toy/sum-2,toy/max-2"


@pytest.mark.parametrize(
    ("address", "view"),
    [
        ("", "home"),
        ("#claims", "home"),
        ("#toy", "table-toy"),
        ("#table-toy", "table-toy"),
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


def test_a_row_of_one_seed_has_the_numbers_of_its_run(tab: Tab) -> None:
    for address in ("#run=toy/sum-3", "#run=toy/sum-3/1"):
        assert "perplexity, test 107.0" in tab.open(address).texts("#compare tbody tr")


def test_published_numbers_keep_their_signs(tab: Tab) -> None:
    assert "(published 108†)" in tab.open("#run=toy/sum-3").texts("#compare p.headline")[0]
    assert "†: recalled or second-hand: not read in the paper itself." in tab.texts("#compare p.soft")


def test_scores_of_different_data_are_not_ranked(tab: Tab) -> None:
    said = "Scores of different data are not ranked."
    tab.open("#compare=toy/sum-2,toy/sum-3")
    assert "perplexity, test 112.0 ± 0.7 107.0" in tab.texts("#compare tbody tr")
    assert tab.texts("#compare tbody b") == []
    assert any(said in text for text in tab.texts("#compare p.soft"))
    tab.open(f"#compare={ROWS}")
    assert tab.texts("#compare tbody b") != []
    assert not any(said in text for text in tab.texts("#compare p.soft"))


def test_nothing_is_best_where_a_number_is_missing(tab: Tab) -> None:
    tab.open(f"#compare={ROWS}").run("delete data.rows['toy/sum-2'].numbers.test_ppl; show()")
    lines = "[...document.querySelectorAll('#compare tbody tr')]"
    ours = f"{lines}.filter(row => row.innerText.startsWith('perplexity, test\\t'))"
    assert tab.run(f"{ours}.map(row => [row.innerText, row.querySelectorAll('b').length])") == [
        ["perplexity, test\t\t109.0", 0]
    ]


def test_a_difference_that_rounds_to_nothing_has_no_minus(tab: Tab) -> None:
    tab.open(f"#compare={ROWS}").run("data.runs[3].numbers.test_ppl = [111.99, '111.99']; show()")
    assert "perplexity, test 112.0 ± 0.7 111.99 +0.0 %" in tab.texts("#compare tbody tr")


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


def test_what_a_reader_has_set_outlasts_a_renewal(tab: Tab) -> None:
    """The curve, the sort order, the legend, the rows that were folded, and the config that stands open."""
    fetch = f"fetch = async () => ({{ ok: true, text: async () => {json.dumps(tab.page.read_text())} }})"
    head = "document.querySelectorAll('#table-toy .wide th')[2]"
    over = "document.querySelectorAll('#table-toy .curves select')[1]"
    every = "document.querySelector('#table-toy .curves input')"
    tab.open("#toy").run(fetch)
    tab.run(f"{head}.firstElementChild.click(); {head}.firstElementChild.click(); {every}.click()")
    tab.run(f"{over}.selectedIndex = 1; {over}.onchange()")
    drawn = tab.run("document.querySelector('#table-toy .curves figcaption').textContent")
    order = tab.texts("#table-toy .wide tbody .label")
    tab.run("renew()")
    assert tab.run(f"[{head}.ariaSort, {over}.selectedIndex, {every}.checked]") == ["descending", 1, True]
    assert tab.run("document.querySelector('#table-toy .curves figcaption').textContent") == drawn
    assert tab.texts("#table-toy .wide tbody .label") == order
    tab.open("#many").run(fetch)
    tab.run("document.querySelector('#table-many .unfold').click()")
    tab.run("document.querySelectorAll('#table-toy [data-lights]')[1].click(); renew()")
    assert tab.texts("#table-many .unfold") == ["Hide 4 rows that were not run"]
    pressed = "[...document.querySelectorAll('#table-toy [data-lights]')].map(each => each.ariaPressed)"
    assert tab.run(pressed)[:2] == ["false", "true"]
    tab.open("#run=toy/sum-2/1").run(fetch)
    tab.run("document.querySelector('#compare details').open = true; renew()")
    assert tab.run("document.querySelector('#compare details').open")


def test_two_results_of_one_seed_stand_beside_one_another(tab: Tab) -> None:
    """By different configs: each has its own numbers, and the command names the seed once."""
    runs = "[{seed: 1, numbers: {test_ppl: [2]}}, {seed: 1, numbers: {test_ppl: [3]}}]"
    item = f"{{table: 'toy', name: 'sum-2', runs: {runs}}}"
    assert tab.run(f"spread([{item}]).map(each => each.numbers.test_ppl[0])") == [2, 3]
    assert tab.run(f"spread([{item}]).map(each => each.runs.length)") == [1, 1]
    assert tab.run(f"commandsOf({item})")[0].endswith(" sweep.seeds=[1]")


def test_the_commands_of_a_table_of_one_s_own_take_its_folder(tab: Tab) -> None:
    own = "{command: 'python src/train.py --config-dir=own -m sweeps=toy'}"
    item = "{table: 'toy', name: 'rnn', runs: [{seed: 1, folder: 'outputs/a'}]}"
    tab.run(f"toy = data.tables.toy; data.tables.toy = {own}")
    commands = tab.run(f"commandsOf({item})")
    tab.run("data.tables.toy = toy")
    assert commands[1] == "python src/evaluate.py --config-dir=own checkpoint=outputs/a/best.ckpt split=test"


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
    assert tab.texts(".findings div")[0].startswith("Nobody 2000 ○ 1 not measured yet")


def test_rows_that_were_not_run_are_folded(tab: Tab) -> None:
    shown = (
        "[...document.querySelectorAll('#table-many tbody tr')].filter(row => row.checkVisibility()).length"
    )
    tab.open("#many")
    assert tab.texts("#table-many .unfold") == ["Show 4 rows that were not run"]
    assert tab.run(shown) == 1
    tab.run("document.querySelector('#table-many .unfold').click()")
    assert tab.texts("#table-many .unfold") == ["Hide 4 rows that were not run"]
    assert tab.run(shown) == 5


def test_the_learning_curves_run_over_epochs_and_over_time(tab: Tab) -> None:
    tab.open("#toy")
    assert tab.texts("#table-toy .curves select:nth-of-type(1)")[0].startswith("perplexity, validation")
    tip = "document.querySelector('#table-toy .chart [data-series=\"1\"][data-tip]').dataset.tip"
    assert tab.run(tip) == "Sum, order 2, seed 1: 131.5, epoch 1"
    choose = "document.querySelectorAll('#table-toy .curves select')[1]"
    tab.run(f"{choose}.value = 'seconds'; {choose}.onchange()")
    assert tab.run(tip) == "Sum, order 2, seed 1: 131.5, 12.5 seconds"


def test_pointing_at_a_mark_says_its_value_and_lights_its_row(tab: Tab) -> None:
    tab.open("#toy")
    spot = "document.querySelector('#table-toy .top [data-tip][data-series=\"2\"]')"
    x, y = tab.run(f"middle({spot})")
    tab.browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert tab.texts("#tip")[0].startswith("Sum, order 3: ")
    assert tab.run("document.querySelector('#table-toy tr.on').cells[1].textContent").endswith("Sum, order 3")
    tab.run("document.querySelector('#table-toy figure > svg').focus()")
    tab.browser.ask("Input.dispatchKeyEvent", type="rawKeyDown", key="ArrowRight", code="ArrowRight")
    assert tab.texts("#tip") != []


def test_a_row_has_one_colour_in_every_figure_of_its_table(tab: Tab) -> None:
    tab.open("#toy")
    marks = "[...document.querySelectorAll('#table-toy figure [data-series=\"2\"][data-tip]')].map(getComputedStyle)"
    colour = tab.run("data.rows['toy/sum-3'].style[0]")
    expected = "rgb({}, {}, {})".format(*bytes.fromhex(colour[1:]))
    drawn = tab.run(f"{marks}.map(look => [look.fill, look.stroke])")
    assert all(expected in looks for looks in drawn)
    assert len(drawn) > 4


def test_all_claims_are_listed_with_their_tables(tab: Tab) -> None:
    said = tab.texts("#claims .says")
    assert said == tab.run("[...document.querySelectorAll('#table-toy .says')].map(each => each.textContent)")
    assert set(tab.run("[...document.querySelectorAll('#claims .evidence a')].map(a => a.hash)")) == {
        "#table-toy"
    }


def test_the_claims_are_filtered(tab: Tab) -> None:
    shown = "[...document.querySelectorAll('#claims .claims > li')].filter(item => !item.hidden).length"
    assert tab.run("document.querySelector('select[data-key=asked]').value") == "the paper", "at first"
    tab.run("document.querySelector('select[data-key=asked]').value = ''; filter()")
    everything = tab.run(shown)
    assert everything > 0
    for key, value in (("outcome", "not judged"), ("cell", "hornn_max"), ("data", "text")):
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
    tab.open("#toy").run("document.querySelectorAll('#table-toy .wide th button')[2].click()")
    values = (
        "[...document.querySelector('#table-toy .wide').tBodies[0].rows].map(row => row.cells[3].textContent)"
    )
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
        ("", ["-2.5", "9 ± 1", "75.12", "75.6", "9,900", "610,000", "1,000,000", "adam", "null", ""]),
        ("label", ["0 + 50 fixed", "0 + 140", "2 layers", "10 layers", ""]),
    ],
)
def test_numbers_are_sorted_as_numbers_and_labels_as_words(tab: Tab, kind: str, ascending: list[str]) -> None:
    *told, nothing = ascending
    found = tab.run(f"{SORTED.replace('KIND', kind)}({json.dumps(ascending[::2] + ascending[1::2])})")
    assert found == [ascending, [*reversed(told), nothing]]


def test_the_table_of_tables_is_sorted_by_its_titles(tab: Tab) -> None:
    tab.run("document.querySelector('#home .wide th button').click()")
    titles = tab.texts("#home .wide tbody .label")
    assert len(titles) > 1
    assert titles == sorted(titles, key=str.casefold)
    tab.run("document.querySelector('#home .wide th button').click()")
    assert tab.texts("#home .wide tbody .label") == titles[::-1]
