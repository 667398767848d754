"""The figures of a table."""

import re
from typing import Any

import pytest

from hornn.reporting.commands import write_pages, write_report
from hornn.reporting.figures import draw_figures
from hornn.reporting.glance import draw_glance
from hornn.reporting.memory import draw_memory
from hornn.reporting.panels import nth_style, whose
from hornn.reporting.runs import find_runs
from hornn.reporting.tables import build_tables
from reporting.place import table_of
from reporting.shipped import ROOT, SWEEPS


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


def test_rows_that_say_how_they_differ_have_marks_of_their_own(place: Any) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", re.sub(r"Sum, order 3|Max, order 2", "... decay", text))
    for row in ("rnn", "sum-2", "sum-3", "max-2"):
        place.commit(row, 1)
    curves = draw_figures(table_of(place))[-1]
    labels = [label for label, _ in curves.legend]
    assert labels == ["RNN", "Sum, order 2", "Sum, order 2; here decay", "Sum, order 2; here decay"]
    assert len({style for _, style in curves.legend}) == 4


def test_a_figure_speaks_of_seeds_where_a_row_has_several(place: Any) -> None:
    place.commit("sum-2", 1)
    assert "Full marks: measured; open marks" in draw_figures(table_of(place))[0].panels[0].caption
    place.commit("sum-2", 2)
    caption = draw_figures(table_of(place))[0].panels[0].caption
    assert "Full marks: measured, with one standard deviation where a row has several seeds; open" in caption


def test_times_on_another_device_are_left_out(place: Any) -> None:
    place.commit("rnn", 1)
    place.commit("sum-2", 1)
    place.commit("sum-3", 1, device="cpu (slide rule)")
    (by_time,) = draw_figures(table_of(place))[-1].panels
    assert by_time.caption.endswith(
        "best run, at the pace of the fastest, on cpu (abacus); 1 row ran on another device."
    )
    assert [f'data-series="{row}" data-tip' in by_time.svg for row in (0, 1, 2)] == [True, True, False]
    place.commit("max-2", 1, device="gpu", runs_on_gpu=4)
    (by_time,) = draw_figures(table_of(place))[-1].panels
    assert by_time.caption.endswith("1 row ran on another device; for 1 row no comparable time is known.")
    place.commit("sum-2", 1, device="cpu (tally)")
    assert not any(
        "trained, on" in panel.caption for plot in draw_figures(table_of(place)) for panel in plot.panels
    )


@pytest.mark.parametrize(("weights", "drawn"), [(1040, False), (1060, True)])
def test_weights_are_drawn_where_rows_differ_in_them(place: Any, weights: int, drawn: bool) -> None:
    place.commit("sum-2", 1, num_parameters=1000)
    place.commit("sum-3", 1, num_parameters=weights)
    captions = [panel.caption for plot in draw_figures(table_of(place)) for panel in plot.panels]
    assert ("perplexity, test against the number of weights." in captions) is drawn


def test_what_rows_change_is_a_figure_of_its_own(place: Any, broken: Any) -> None:
    """The rows of the base's group that are measured, the best first, and no others."""
    broken("group: max", "group: sum")
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", text.replace("figure: {", "figure: {base: sum-2, "))
    page = place.results / "tables" / "toy" / "README.md"
    place.commit("rnn", 1, 90.0)
    place.commit("sum-2", 1, 111.5)
    write_pages(place.results, place.sweeps, place.folder)
    assert "figure.svg" not in page.read_text()
    place.commit("sum-3", 1, 107.0)
    place.commit("max-2", 1, 114.0)
    write_pages(place.results, place.sweeps, place.folder)
    assert (
        "Perplexity, test: how far each row is from “Sum, order 2”, 111.5, less is better."
        in page.read_text()
    )
    drawn = (place.results / "tables" / "toy" / "figure.svg").read_text()
    words = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    assert [word for word in words if word.startswith(("Sum", "Max", "RNN"))] == [
        "Sum, order 3",
        "Max, order 2",
    ]
    assert [word for word in words if re.fullmatch(r"[+-]\d+\.\d", word)] == ["-4.5", "+2.5"]


def test_an_equal_number_is_not_better_at_a_glance(place: Any) -> None:
    for row, score in (("sum-2", 111.0), ("sum-3", 107.0), ("max-2", 112.0)):
        place.commit(row, 1, score)
    glance = draw_glance([table_of(place)])
    assert glance
    assert "1 measured numbers are better than the published ones, 2 are worse or equal" in glance.caption
    assert "measured, worse or equal" in glance.svg


def test_a_legend_names_what_its_figure_draws(place: Any) -> None:
    place.commit("sum-2", 1, 111.0, num_parameters=1_000_000)
    place.commit("sum-3", 1, 107.0, num_parameters=1_000_000)
    place.commit("max-2", 1, 112.0, num_parameters=1_000_000, device="cpu (slide rule)")
    costs = draw_figures(table_of(place))[-1]
    assert costs.panels[0].caption.endswith("1 row ran on another device.")
    assert [label for label, _ in costs.legend] == ["Sum, order 2", "Sum, order 3"]


def test_without_results_there_is_no_figure(place: Any) -> None:
    said = write_report(place.results, place.sweeps, place.results / "report").said
    assert said.endswith("1 tables, 0 of 4 rows measured")
    assert "<svg" not in (place.results / "report" / "index.html").read_text()


def test_a_published_share_is_in_percent_beside_the_measured_one(place: Any, broken: Any) -> None:
    path = broken("metric: test_ppl", "metric: test_accuracy")
    path.write_text(re.sub(r"value: 1(\d\d)", r"value: 0.\1", path.read_text()))
    for row, share in (("sum-2", 0.2), ("sum-3", 0.1), ("max-2", 0.3)):
        place.commit(row, 1, test_accuracy=share)
    by_x, ranks = draw_figures(table_of(place))[:2]
    assert 'data-series="1" data-tip=": 11.00 %, published"' in by_x.panels[0].svg
    assert "Max, order 2  10.00 %" in ranks.panels[0].svg
    assert "30.0 %  Max, order 2" in ranks.panels[0].svg


def test_a_tip_leaves_the_name_of_its_row_to_the_page() -> None:
    """Which has it from the table; without more to say, the tip is the name alone."""
    style = nth_style(0)._replace(series=(3,))
    assert whose(style) == {"data_series": "3"}
    assert whose(style, "") == {"data_series": "3", "data_tip": ":"}
    assert whose(style, "106.3") == {"data_series": "3", "data_tip": ": 106.3"}


def test_no_tip_of_the_committed_tables_says_the_name_of_a_row_again() -> None:
    sweeps, again = list(SWEEPS.values()), list[str]()
    for table in build_tables(sweeps, find_runs(sweeps, ROOT / "outputs", committed_only=True)):
        names = {line.row.label for line in table.lines}
        for plot in [*draw_figures(table), *draw_memory(table)]:
            for panel in plot.panels:
                tips = re.findall('data-tip=": ([^"]*)"', panel.svg)
                again += [tip for tip in tips if any(tip.startswith(name) for name in names)]
    assert again == []
