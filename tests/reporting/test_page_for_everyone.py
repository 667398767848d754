"""The page for everyone: by keyboard, by ear, on small screens, on paper, without its script, light and dark."""

import pytest

from reporting.browser import IN_BROWSER, Tab

pytestmark = IN_BROWSER
ROWS = "toy/sum-2,toy/max-2"
WIDTH = "document.querySelector('{}').getBoundingClientRect().width"


def press(tab: Tab, key: str) -> None:
    text = {"text": "\r"} if key == "Enter" else {}
    code = {"windowsVirtualKeyCode": {"Enter": 13, "Tab": 9, "Escape": 27}.get(key, 0)}
    tab.browser.ask("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **code, **text)
    tab.browser.ask("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, **code)
    tab.run("new Promise(done => setTimeout(done, 50))")


@pytest.mark.parametrize(
    ("address", "title"),
    [
        ("#claims", "What the papers claim, by our numbers"),
        ("#tables", "All tables"),
        ("#toy", "Toy: order and pooling"),
        ("#count", "Recurrent language models: published and measured"),
    ],
)
def test_a_link_leads_the_keyboard_to_the_heading_of_its_target(tab: Tab, address: str, title: str) -> None:
    tab.open("#many").run(f"location.hash = '{address}'")
    tab.run("new Promise(done => setTimeout(done, 50))")
    assert tab.run("document.activeElement.textContent") == title


def test_a_tip_goes_when_the_keyboard_leaves_the_figure(tab: Tab) -> None:
    tab.open("#toy").run("document.querySelector('#table-toy figure > svg').focus()")
    press(tab, "ArrowRight")
    assert tab.texts("#tip") != []
    assert tab.run("document.querySelectorAll('#table-toy .here, #table-toy tr.on').length") == 2
    press(tab, "Tab")
    assert tab.texts("#tip") == []
    assert tab.run("document.querySelectorAll('#table-toy .here').length") == 0


def test_escape_releases_what_a_legend_holds(tab: Tab) -> None:
    tab.open("#toy").run("document.querySelector('#table-toy [data-lights]').click()")
    assert tab.run("document.querySelectorAll('#table-toy [aria-pressed=true], #table-toy.lit').length") == 2
    press(tab, "Escape")
    assert tab.run("document.querySelectorAll('#table-toy [aria-pressed=true], #table-toy.lit').length") == 0


def test_a_picture_with_links_is_no_image(tab: Tab) -> None:
    role = "[svg.getAttribute('role'), !!svg.querySelector('a')]"
    roles = f"[...document.querySelectorAll('.columns svg')].map(svg => {role})"
    assert tab.run(roles) == [["group", True]]
    assert tab.run("document.querySelectorAll('svg[role=img] a').length") == 0


def test_the_picture_of_all_tables_says_whole_labels(tab: Tab) -> None:
    x, y = tab.run("middle(document.querySelector('.columns [data-tip]'))")
    tab.browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert tab.texts("#tip")[0].endswith(" measured")


def test_a_chart_that_was_hidden_takes_the_width_of_the_window(tab: Tab) -> None:
    width = WIDTH.format("#table-toy .chart > svg")
    wide = tab.open("#toy").run(width)
    tab.run("location.hash = '#home'")
    size = {"width": 500, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    tab.browser.ask("Emulation.setDeviceMetricsOverride", **size)
    tab.run("new Promise(done => setTimeout(done, 250))")
    tab.run(
        "new Promise(done => { addEventListener('hashchange', done, { once: true }); location.hash = '#toy'; })"
    )
    assert tab.run("document.querySelector('#table-toy .chart > svg').viewBox.baseVal.width") < 500 < wide


@pytest.mark.parametrize("width", [1440, 1280, 1249, 1024, 900, 897, 390])
def test_claims_have_room_for_their_words(tab: Tab, width: int) -> None:
    tab.open("#claims", width=width)
    for query in ("#claims .says", ".findings ul a"):
        assert tab.run(WIDTH.format(query)) > 200


def test_without_its_script_the_page_has_no_dead_controls(tab: Tab) -> None:
    tab.browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    tab.browser.open(f"file://{tab.page}#many")
    tab.browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    dead = "#theme, #skip, #search, .filters, .unfold, .pick"
    assert tab.texts(dead) == []
    assert "published" in tab.texts("#table-toy th")
    assert tab.run(
        "[...document.querySelectorAll('#table-many tbody tr')].every(row => row.checkVisibility())"
    )


def test_headings_stand_above_their_columns_on_paper(tab: Tab) -> None:
    """Also where a table has a row of headings for its metrics, and no column of ticks."""
    tab.open("#many").browser.ask("Emulation.setEmulatedMedia", media="print")
    shown = (
        "[...row.cells].filter(cell => cell.checkVisibility()).reduce((sum, cell) => sum + cell.colSpan, 0)"
    )
    metrics, heads = tab.run(f"[...document.querySelectorAll('#table-many thead tr')].map(row => {shown})")
    tab.browser.ask("Emulation.setEmulatedMedia", media="")
    assert metrics == heads > 4


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
    headings = tab.texts("#table-toy .wide thead th")
    for controls in (
        "nav",
        "#table-toy input",
        "#table-toy select",
        "#table-toy .downloads",
        "#table-toy audio",
    ):
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


def test_a_seed_leads_to_its_run(tab: Tab) -> None:
    links = tab.run(
        "[...document.querySelectorAll('#table-toy .runs a')].map(link => link.getAttribute('href'))"
    )
    assert "#run=toy/sum-2/1" in links
    tab.run("document.querySelector('#table-toy .runs a').click()")
    assert tab.run("document.querySelector('.view.shown').id") == "compare"


def test_a_table_is_called_after_the_heading_above_it(tab: Tab) -> None:
    tab.open("#toy")
    named = (
        "[...document.querySelectorAll('.view.shown table')].map(table => table.getAttribute('aria-label'))"
    )
    assert tab.run(named)[0] == "Toy: order and pooling"


def test_the_third_click_brings_the_order_of_the_paper_back(tab: Tab) -> None:
    labels = "#table-toy .top + .scroll tbody tr"
    order = f"[...document.querySelectorAll('{labels}')].map(row => row.dataset.series)"
    before, orders = tab.open("#toy").run(order), []
    for _ in range(3):
        tab.run("document.querySelector('#table-toy .top + .scroll th.label button').click()")
        orders.append(tab.run(order))
    assert orders[0] != before
    assert orders[2] == before
    assert tab.run("document.querySelectorAll('#table-toy [aria-sort]').length") == 0


def test_a_slash_leads_to_the_search_from_a_tick_but_not_from_words(tab: Tab) -> None:
    for place, focused in (("input[type=checkbox]", "search"), ("select", "")):
        tab.open("#claims" if place == "select" else "#toy")
        tab.run(f"document.querySelector('.view.shown {place}').focus()")
        press(tab, "/")
        assert tab.run("document.activeElement.id") == focused


def test_the_address_of_the_claims_keeps_naming_their_filters(tab: Tab) -> None:
    tab.open("#claims")
    outcome = "document.querySelector('[data-key=outcome]')"
    tab.run(f"{outcome}.value = 'confirmed'; {outcome}.dispatchEvent(new Event('change', {{bubbles: true}}))")
    tab.run("location.hash = '#toy'")
    tab.run("new Promise(done => setTimeout(done, 50))")
    tab.run("location.hash = '#claims'")
    tab.run("new Promise(done => setTimeout(done, 50))")
    assert "outcome=confirmed" in tab.run("location.hash")


def test_a_mark_that_the_keyboard_reaches_is_in_sight(tab: Tab) -> None:
    tab.open("#toy").run("document.querySelector('#table-toy figure > svg').focus({preventScroll: true})")
    tab.run("scrollTo(0, document.body.scrollHeight)")
    press(tab, "ArrowRight")
    top, bottom, height = tab.run(
        "(box => [box.top, box.bottom, innerHeight])(document.querySelector('.here').getBoundingClientRect())"
    )
    assert 0 <= top <= bottom <= height
