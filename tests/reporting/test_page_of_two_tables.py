"""Rows of two tables in the page, and beside one another."""

from pathlib import Path

import pytest

from hornn.reporting.commands import write_report
from reporting.browser import IN_BROWSER, Tab
from reporting.place import Place, fill_two

pytestmark = IN_BROWSER
TICK = "document.querySelector('input[data-item=\"toy/{}\"]').click()"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = fill_two(Place(tmp_path_factory.mktemp("two")))
    write_report(place.results, place.sweeps, place.results / "report")
    return place.results / "report" / "index.html"


def test_words_of_one_table_name_its_rows_alone(tab: Tab) -> None:
    own, common = "training, with noise 50.0", "perplexity, training, last epoch 50.0"
    assert any(
        row.startswith(own) for row in tab.open("#compare=pace/sum,pace/max").texts("#compare tbody tr")
    )
    assert any(row.startswith(common) for row in tab.open("#run=toy/sum-2").texts("#compare tbody tr"))
    rows = tab.open("#compare=pace/sum,toy/max-2").texts("#compare tbody tr")
    assert any(row.startswith(common) for row in rows), "no words hold for both but the common ones"


def test_a_headline_is_the_number_that_is_published(tab: Tab) -> None:
    assert (
        tab.open("#run=pace/sum")
        .texts("#compare p.headline")[0]
        .startswith("validation 117.5 ± 0.7 (published 110)")
    )
    assert (
        tab.open("#run=toy/sum-2")
        .texts("#compare p.headline")[0]
        .startswith("perplexity, test 112.5 ± 0.7 (published 111)")
    )


def test_times_of_different_devices_are_not_ranked(tab: Tab) -> None:
    def times(address: str) -> list[str]:
        rows = tab.open(address).texts("#compare tbody tr")
        return [row for row in rows if row.startswith("seconds per epoch")]

    assert times("#compare=pace/sum,pace/max") == ["seconds per epoch 10.0 10.0"]
    assert times("#compare=pace/sum,pace/three") == ["seconds per epoch 10.0 10.0 +0.0 %"]


def test_rows_of_one_label_name_their_tables(tab: Tab) -> None:
    heads = ["● Sum, order 2 (Toy)", "■ Sum, order 2 (Pace)"]
    tab.open("#compare=toy/sum-2,pace/sum")
    assert tab.texts("#compare .sides thead th")[:2] == heads
    assert tab.run("[...document.querySelectorAll('#compare .leave')].map(each => each.ariaLabel)") == [
        f"Leave out {head[2:]}" for head in heads
    ]


def test_a_row_that_is_left_out_is_ticked_no_more(tab: Tab) -> None:
    tab.open("#toy")
    for row in ("sum-2", "sum-3", "max-2"):
        tab.run(TICK.format(row))
    tab.run("document.querySelector('#tray a').click()")
    tab.run("new Promise(done => setTimeout(done, 50))")
    tab.run("document.querySelector('#compare .leave').click()")
    assert tab.run("document.querySelector('#tray a').hash") == "#compare=toy/sum-3,toy/max-2"


def test_the_keyboard_stays_in_the_view_when_nothing_is_ticked_any_more(tab: Tab) -> None:
    tab.open("#toy").run(TICK.format("sum-2"))
    tab.run("document.querySelector('#clear').focus(); document.querySelector('#clear').click()")
    assert tab.run("document.activeElement.textContent") == "Toy: order and pooling"


def test_a_main_claim_of_the_first_screen_leads_to_its_evidence(tab: Tab) -> None:
    links = tab.run("[...document.querySelectorAll('.findings a')].map(each => each.hash)")
    (address,) = (each for each in links if each.startswith("#claim-"))
    tab.open(address)
    assert tab.run("document.querySelector('.view.shown').id") == "table-toy"
    assert tab.run("[...document.querySelectorAll('details[open] .says')].map(each => each.textContent)") == [
        "three beat two"
    ]
    assert tab.run("document.querySelectorAll('[id^=claim-]').length") == 1, (
        "in the list of all claims it has no other place"
    )


def test_a_search_that_finds_nothing_says_so(tab: Tab) -> None:
    type_words = (
        "document.querySelector('#search').value = '{}'; search(); !document.querySelector('#nothing').hidden"
    )
    assert [tab.run(type_words.format(words)) for words in ("zzz", "pace", "")] == [True, False, False]


def test_a_key_that_an_earlier_run_lacks_leaves_no_empty_value(tab: Tab) -> None:
    item = "{ runs: runs.map(config => ({ config })) }"
    values = (
        "data.configs = { keys: ['a'], values: [['0'], [''], ['1']] };"
        f"[[0, 1], [0, 1, 2], [1]].map(runs => valuesOf(data.configs, {item}, 'a'))"
    )
    assert tab.run(values) == ["0", "0 / 1", ""]


def test_filtered_claims_have_an_address(tab: Tab) -> None:
    shown = "[...document.querySelectorAll('#claims .claims > li')].filter(item => !item.hidden).length"
    values = (
        "[...document.querySelectorAll('.filters select[data-key]')].map(each => each.value).filter(Boolean)"
    )
    choice = "document.querySelector('select[data-key=cell]')"
    tab.open("#claims=cell=rnn")
    assert tab.run(f"[{shown}, {values}]") == [1, ["rnn"]]
    assert tab.run("document.querySelector('.view.shown').id") == "home"
    tab.run(f"{choice}.value = ''; {choice}.dispatchEvent(new Event('change', {{ bubbles: true }}))")
    assert tab.run(f"[{shown}, location.hash]") == [3, "#claims="]
    links = tab.run("[...document.querySelectorAll('.findings a')].map(each => each.hash)")
    tab.open(next(each for each in links if each.startswith("#claims=")))
    assert tab.run(values) == ["the paper", "Nobody 2000"]
