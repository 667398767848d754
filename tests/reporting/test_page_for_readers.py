"""The page for who reads it for long: where a reader was, what a row is called, how a table is found."""

import json

import pytest

from reporting.browser import IN_BROWSER, Tab

pytestmark = IN_BROWSER
LATER = "new Promise(done => setTimeout(done, 250))"


def resize(tab: Tab, width: int, height: int = 900) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    tab.browser.ask("Emulation.setDeviceMetricsOverride", **size)
    tab.run(LATER)


def test_a_row_that_goes_on_from_another_has_its_whole_label_once_sorted(tab: Tab) -> None:
    labels = "#table-settings tbody .label"
    first = ["●RNN", "■... lr 1", "▲Sum", "◆... lr 1", "▼... lr 9 a"]
    assert tab.open("#settings").texts(labels) == first
    boxes = "[...document.querySelectorAll('#table-settings input[data-item]')].map(each => each.ariaLabel)"
    assert tab.run(boxes)[:4] == [
        "Compare RNN",
        "Compare RNN; here lr 1",
        "Compare Sum",
        "Compare Sum; here lr 1",
    ]
    tab.run("document.querySelectorAll('#table-settings .wide th button')[1].click()")
    assert tab.texts(labels)[:4] == ["◆Sum; here lr 1", "■RNN; here lr 1", "▲Sum", "●RNN"]


def test_a_row_whose_runs_diverged_says_so_where_its_number_would_be(tab: Tab) -> None:
    cells = (
        "[...document.querySelectorAll('#table-settings tbody tr')].map(row => row.cells[2].innerText.trim())"
    )
    assert tab.open("#settings").run(cells) == ["104.0", "102.0", "103.0", "101.0", "diverged"]


def test_each_row_of_a_table_has_its_label_as_heading(tab: Tab) -> None:
    tab.open("#toy")
    rows = "[...document.querySelectorAll('.wide tbody tr')].map(row => row.querySelectorAll('th[scope=row]').length)"
    assert set(tab.run(rows)) == {1}


@pytest.mark.parametrize(
    ("words", "tables"),
    [("toy", ["toy"]), ("nobody 2000", ["toy"]), ("lr 9", ["settings"]), ("Many widths", ["many"])],
)
def test_the_search_knows_names_papers_titles_and_rows(tab: Tab, words: str, tables: list[str]) -> None:
    tab.run(f"document.getElementById('search').value = {json.dumps(words)}; search()")
    found = "[...document.querySelectorAll('nav [data-words]')].filter(item => !item.hidden)"
    assert tab.run(f"{found}.map(item => item.querySelector('a').hash)") == [f"#table-{t}" for t in tables]


def test_the_list_of_tables_is_there_again_in_a_window_that_became_wide(tab: Tab) -> None:
    seen = "[...document.querySelectorAll('nav a')].filter(link => link.checkVisibility()).length"
    assert tab.open("#toy", width=800).run(seen) == 0
    resize(tab, 1300)
    assert tab.run(seen) > 3
    resize(tab, 800)
    assert tab.run(seen) == 0


def test_back_leads_to_the_place_where_the_reader_was(tab: Tab) -> None:
    tab.open("#claims")
    resize(tab, 1400, 200)
    tab.run(f"scrollTo(0, 333); {LATER}")
    for step in ("location.hash = '#toy'", "history.back()"):
        tab.run(f"{step}; {LATER}")
        assert tab.run("scrollY") == (0 if "toy" in step else 333)


def test_a_renewal_leaves_the_reader_at_the_words_that_are_typed(tab: Tab) -> None:
    tab.open("#toy").run(
        f"fetch = async () => ({{ ok: true, text: async () => {json.dumps(tab.page.read_text())} }})"
    )
    box = "document.getElementById('search')"
    tab.run(f"{box}.focus(); {box}.value = 'sum'; {box}.setSelectionRange(1, 1); renew()")
    assert tab.run(f"[document.activeElement.id, {box}.value, {box}.selectionStart]") == ["search", "sum", 1]
    link = "document.querySelectorAll('#table-toy .runs a')[1]"
    tab.run(f"{link}.focus(); renew()")
    assert tab.run(f"document.activeElement === {link}")


def test_a_renewal_leaves_the_keyboard_at_the_heading_to_which_a_link_led(tab: Tab) -> None:
    """Also in a view whose name has a dot."""
    page = tab.page.read_text().replace("table-toy", "table-toy.v2")
    tab.open("#claims").run(f"fetch = async () => ({{ ok: true, text: async () => {json.dumps(page)} }})")
    tab.run("document.getElementById('table-toy').id = 'table-toy.v2'")
    tab.run(f"location.hash = '#toy.v2'; {LATER}")
    heading, link = "[id='table-toy.v2'] h1", "[id='table-toy.v2'] .runs a"
    for query in (heading, link):
        tab.run(f'document.querySelector("{query}").focus(); renew()')
        assert tab.run(f'document.activeElement === document.querySelector("{query}")')


def test_of_two_results_of_one_seed_both_are_shown(tab: Tab) -> None:
    """A diverged run beside a healthy one: the reader decides which of them stays."""
    assert tab.run("itemOf('toy/sum-2/1').runs.length") == 1
    tab.run("twin = data.rows['toy/sum-2'].runs; twin.push(data.runs.push({ ...data.runs[twin[0]] }) - 1)")
    assert tab.run("itemOf('toy/sum-2/1').runs.length") == 2
    assert tab.run("itemOf('toy/sum-2/1').numbers") == {}, "the mean of the row is neither's"
    assert tab.run("itemOf('toy/sum-2/2').numbers.test_ppl[0]") == 112.5
    assert tab.run("itemOf('toy/sum-2/7')") is None


def test_a_renewal_leaves_the_keyboard_at_its_claim_which_stays_open(tab: Tab) -> None:
    """Though more links stand before it and its outcome is another."""
    text, says = tab.page.read_text(), '<span class="says">three beat two'
    changed = text.replace("<h2>Claims</h2>", '<h2>Claims</h2><a href="#home">more</a>', 1)
    changed = changed.replace(says, f"<b>now</b> {says}")
    assert changed.count("now</b>") == changed.count(">more</a>") == 1
    tab.open("#toy").run(f"fetch = async () => ({{ ok: true, text: async () => {json.dumps(changed)} }})")
    claim = "document.querySelector('#table-toy .claims details')"
    tab.run(f"{claim}.open = true; {claim}.querySelector('summary').focus(); renew()")
    assert tab.run(f"{claim}.querySelector('b').textContent") == "now"
    assert tab.run(f"[{claim}.open, document.activeElement === {claim}.querySelector('summary')]") == [
        True,
        True,
    ]


@pytest.mark.parametrize("kept", ['["gone/row"]', "no JSON", "5"])
def test_what_is_no_row_of_the_page_is_not_chosen(tab: Tab, kept: str) -> None:
    tab.run(f"sessionStorage.setItem('ticked', {json.dumps(kept)})")
    tab.open("#toy")
    assert tab.run("document.getElementById('tray').hidden")
    assert tab.run("document.querySelector('nav a.chosen').hash") == "#compare="


def test_an_unknown_choice_of_a_filter_is_all(tab: Tab) -> None:
    tab.open("#claims=outcome=zzz")
    assert tab.run("document.querySelector('select[data-key=outcome]').selectedOptions[0].text") == "all"


def test_the_list_of_tables_closes_at_a_tap_on_the_table_that_is_shown(tab: Tab) -> None:
    tab.open("#toy", width=390)
    tab.run(
        "document.getElementById('menu').open = true; document.querySelector('nav a[href=\"#table-toy\"]').click()"
    )
    assert not tab.run("document.getElementById('menu').open")


def test_a_page_that_was_moved_away_is_no_news(tab: Tab) -> None:
    tab.open("#toy").run("fetch = async () => ({ ok: false, text: async () => 'not found' }); renew()")
    assert tab.texts("#table-toy h1") == ["Toy: order and pooling"]


def test_epochs_are_whole_and_updates_are_written_out(tab: Tab) -> None:
    marks = "rounded(0, 2, 5, false, 1).map(value => short(value, 1e7))"
    assert tab.run(marks) == ["0", "1", "2"]
    assert tab.run("[60000, 120000].map(value => short(value, 1e7))") == ["60,000", "120,000"]


def test_one_score_is_no_line(tab: Tab) -> None:
    tab.open("#toy").run(
        "data.runs[3].curves.valid_ppl = [129]; document.querySelector('#table-toy .curves').redraw()"
    )
    assert tab.run("document.querySelectorAll('#table-toy .chart polyline').length") == 2
    assert any("Without this curve: Max, order 2." in text for text in tab.texts("#table-toy figcaption"))
