"""Axes: round numbers, where things are, and names that can be read."""

import math
import re
from itertools import accumulate, pairwise
from xml.etree import ElementTree

import pytest

from hornn.reporting.axes import (
    FOOT,
    HEAD,
    LINE,
    RIGHT,
    SMALL,
    WIDTH,
    Axes,
    Point,
    Scale,
    distance,
    path_of,
    round_numbers,
    tick_texts,
)

SVG = "{http://www.w3.org/2000/svg}"
HEIGHT, LEFT = 245, 58


def drawn(axes: Axes) -> ElementTree.Element:
    return ElementTree.fromstring(axes.svg("A <figure>", HEIGHT, LEFT))


def places_of(points: list[Point]) -> list[Point]:
    numbers = [float(number) for number in path_of(points, float, float)[1:].replace("l", " ").split()]
    return list(zip(accumulate(numbers[::2]), accumulate(numbers[1::2]), strict=True))


def words(picture: ElementTree.Element) -> list[str | None]:
    return [text.text for text in picture.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("low", "high", "log", "numbers"),
    [
        (0, 10, False, [0, 2, 4, 6, 8, 10]),
        (-4.5, 99, False, [0, 20, 40, 60, 80]),
        (0.00021, 0.00034, False, [0.00025, 0.0003]),
        (105.2, 117, False, [106, 108, 110, 112, 114, 116]),
        (3, 3, False, [3]),
        (2, 9, True, [2, 4, 6, 8]),
        (0.9, 60, True, [1, 2, 5, 10, 20, 50]),
        (1, 100, True, [1, 2, 5, 10, 20, 50, 100]),
        (1e-6, 1.5, True, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]),
    ],
)
def test_ticks_are_round(low: float, high: float, log: bool, numbers: list[float]) -> None:
    assert round_numbers(low, high, log=log) == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0, 0.5, 1], "0 0.5 1"),
        ([200000], "200000"),
        ([4.75921, 4.759212, 4.759214], "4.75921 4.759212 4.759214"),
        ([0.1 * n for n in (1, 2, 3)], "0.1 0.2 0.3"),
        ([1e-5, 1e-4, 1e-3, 1], "10⁻⁵ 10⁻⁴ 10⁻³ 10⁰"),
        ([0, 1e7, 2.5e7], "0 10⁷ 2.5·10⁷"),
        ([-3e-5, 0, 3e-5], "-3·10⁻⁵ 0 3·10⁻⁵"),
        ([], ""),
    ],
)
def test_ticks_differ_and_have_one_notation(values: list[float], texts: str) -> None:
    assert tick_texts(values) == texts.split()


@pytest.mark.parametrize(("log", "middle"), [(False, 50.5), (True, 10.0)])
def test_what_is_drawn_is_where_its_values_are(log: bool, middle: float) -> None:
    axes = Axes("x", "y")
    axes.x.log = axes.y.log = log
    for axis in (axes.x, axes.y):
        axis.begin, axis.end = 1, 100
    axes.line(((1, 1), (middle, middle), (100, 100)), "red", whose={"data_tip": 'a "tip" & <more>'})
    line = next(path for path in drawn(axes).iter(f"{SVG}path") if "data-tip" in path.attrib)
    ways = list(map(float, line.attrib["d"].removeprefix("M").replace("l", " ").split()))
    right, foot = WIDTH - RIGHT, HEIGHT - FOOT
    assert ways[:2] == [LEFT, foot]
    assert ways[2:] == pytest.approx([right - LEFT, HEAD - foot], abs=0.11), "the middle lies on the way"
    assert line.attrib["data-tip"] == 'a "tip" & <more>'


@pytest.mark.parametrize(
    ("points", "kept"),
    [
        ([(0, 0), (1, 0), (5, 0), (9, 0)], [(0, 0), (9, 0)]),
        ([(0, 0), (1, 1), (5, 0)], [(0, 0), (1, 1), (5, 0)]),
        ([(0, 0), (5, 0), (3, 0)], [(0, 0), (5, 0), (3, 0)]),
        ([(0, 0), (1, 0.1), (2, 0), (3, 0.1), (9, 0)], [(0, 0), (9, 0)]),
        ([(0, 0)], [(0, 0)]),
        ([(0, 0), (4, 0), (0, 0)], [(0, 0), (4, 0), (0, 0)]),
    ],
)
def test_a_path_leaves_out_what_no_eye_sees(points: list[Point], kept: list[Point]) -> None:
    assert places_of(points) == [pytest.approx(point) for point in kept]


def test_a_path_follows_a_long_curve() -> None:
    points = [(float(k), 40 * math.sin(k / 40)) for k in range(400)]
    kept = places_of(points)
    assert len(kept) < 100
    for point in points:
        assert min(distance(point, *line) for line in pairwise(kept)) < 0.2 + 0.1  # and what rounding moves


def test_the_axes_reach_beyond_what_is_drawn() -> None:
    axes = Axes("order", "perplexity, test")
    axes.mark((2, 110), "M0 0h1", "red")
    axes.mark((4, 118), "M0 0h1", "red")
    picture = drawn(axes)
    assert (axes.x.low, axes.x.high, axes.y.low, axes.y.high) == pytest.approx((1.9, 4.1, 109.6, 118.4))
    assert {"order", "perplexity, test", "110", "2", "4"} <= set(words(picture))
    assert picture.attrib["aria-label"] == "A <figure>"


def test_one_value_is_drawn_in_the_middle() -> None:
    axes = Axes("x", "y")
    axes.mark((0, 5), "M0 0h1", "red")
    drawn(axes)
    assert (axes.x.share(0), axes.y.share(5)) == (0.5, 0.5)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values", [(-1.7e308, 1.7e308), (5e-324, 1e-323), (0.0, 1e308), (1e15, 1e15 + 1), (-1.0, 0.0), (1.7e308,)]
)
def test_numbers_of_strangers_are_drawn(values: tuple[float, ...], log: bool) -> None:
    axes = Axes("x", "y")
    axes.x.log = axes.y.log = log
    axes.line([(value, value) for value in values], "red")
    picture = drawn(axes)
    text = ElementTree.tostring(picture, encoding="unicode")
    assert "nan" not in text
    assert "inf" not in text
    assert len(words(picture)) < 25


def test_the_names_of_lines_do_not_cover_one_another_and_have_room() -> None:
    axes = Axes("x", "y")
    axes.ends = [(3, 1.0, "the first", "red"), (3, 1.001, "the second", "blue"), (3, 9.0, "a third", "green")]
    axes.line(((1, 2), (3, 1)), "red")
    axes.line(((1, 2), (3, 9)), "green")
    found = [each for each in drawn(axes).iter(f"{SVG}text") if each.text and " " in each.text]
    places = sorted(float(each.attrib["y"]) for each in found)
    assert min(b - a for a, b in pairwise(places)) >= LINE - 0.2
    assert all(float(each.attrib["x"]) + 5 * len(each.text or "") < WIDTH for each in found)


def test_names_stand_right_of_all_that_is_drawn_in_the_colour_of_the_text() -> None:
    axes = Axes("x", "y")
    axes.line(((1, 2), (3, 1)), "red")
    axes.line(((1, 2), (2, 3)), "green")
    axes.level(1.5, "blue", whose={"data_tip": "level"})
    long = "a name that is much too long to be written in full beside these lines"
    axes.ends = [(3, 1, "the first", "red"), (2, 3, long, "green"), (3, 1.5, "the level", "blue")]
    picture = drawn(axes)
    names = [each for each in picture.iter(f"{SVG}text") if (each.text or "").startswith(("the ", "a name"))]
    assert len(names) == 3
    assert {each.attrib["x"] for each in names} == {names[0].attrib["x"]}
    assert all("fill" not in each.attrib for each in names)
    assert all(float(each.attrib["x"]) + 5 * len(each.text or "") < WIDTH for each in names)
    inside = next(each for each in picture.iter(f"{SVG}svg") if "x" in each.attrib)
    level = next(each for each in inside.iter(f"{SVG}line") if "data-tip" in each.attrib)
    assert float(level.attrib["x2"]) < float(names[0].attrib["x"])
    ways = [
        each.attrib["stroke"] for each in picture.findall(f"{SVG}path") if "stroke-dasharray" in each.attrib
    ]
    assert ways == ["red", "blue"], "of the lines that go on to the last x"
    assert {"red", "green", "blue"} <= {each.attrib.get("stroke") for each in picture.iter(f"{SVG}path")}


def test_bars_stand_below_one_another() -> None:
    axes = Axes("difference", "")
    axes.bars(["the first\nof two lines", "the second"])
    axes.bar(0, 0, -2, "red")
    axes.bar(1, 0, 3, "red")
    picture = drawn(axes)
    first, second = picture.iter(f"{SVG}rect")
    assert float(first.attrib["y"]) < float(second.attrib["y"])
    assert float(first.attrib["x"]) + float(first.attrib["width"]) == pytest.approx(
        float(second.attrib["x"]), abs=0.2
    )
    assert words(picture)[-5:-1] == ["the first", "of two lines", "the second", "difference"]


def test_a_legend_and_long_words_make_the_picture_higher() -> None:
    axes = Axes("x", "y")
    heights = []
    for ticks, legend in (
        ({0: "a"}, []),
        ({0: "a\nb"}, []),
        ({0: "a\nb"}, [("a line", "red", "--", "M0 0h1")]),
    ):
        axes.x.ticks, axes.legend = ticks, legend
        heights.append(float(re.findall(r' height="([\d.]+)"', axes.svg("name", HEIGHT, LEFT))[0]))
    assert heights[0] == HEIGHT < heights[1] < heights[2]


def test_a_hollow_mark_has_no_ink_inside() -> None:
    axes = Axes("x", "y")
    axes.mark((0, 0), "M0 0h1", "red", hollow=True)
    axes.mark((1, 1), "M0 0h1", "blue")
    marks = [path.attrib for path in drawn(axes).iter(f"{SVG}path") if "transform" in path.attrib]
    assert [(mark.get("fill"), mark.get("stroke")) for mark in marks] == [("none", "red"), ("blue", None)]


def test_a_band_goes_back_along_its_upper_edge() -> None:
    axes = Axes("x", "y")
    axes.band([(1, 1), (2, 1)], [(1, 3), (2, 3)], "red")
    (band,) = (path.attrib["d"] for path in drawn(axes).iter(f"{SVG}path") if "fill-opacity" in path.attrib)
    numbers = [float(number) for number in band[1:].replace("l", " ").split()]
    left, right, above_right, above_left = accumulate(numbers[::2])
    assert (left, right) == pytest.approx((above_left, above_right))
    assert left < right


def test_a_span_is_as_wide_as_its_values() -> None:
    axes = Axes("x", "y")
    axes.x.begin, axes.x.end = 0, 10
    axes.span(4, 6, "red")
    (rectangle,) = drawn(axes).iter(f"{SVG}rect")
    assert float(rectangle.attrib["width"]) == pytest.approx(0.2 * (WIDTH - RIGHT - LEFT), abs=0.1)


def test_a_bar_is_at_the_height_of_its_label_and_a_number_beyond_its_end() -> None:
    axes = Axes("x", "")
    axes.bars(["one", "two"])
    axes.bar(0, 0, -2, "red")
    axes.bar(1, 0, 3, "red")
    axes.word((-2, 0), "less", -3)
    axes.word((3, 1), "more", 3)
    picture = drawn(axes)
    texts = {text.text: text.attrib for text in picture.iter(f"{SVG}text")}
    assert [texts[word]["text-anchor"] for word in ("less", "more")] == ["end", "start"]
    bar = next(picture.iter(f"{SVG}rect")).attrib
    middle = float(bar["y"]) + float(bar["height"]) / 2
    assert middle == pytest.approx(float(texts["one"]["y"]) - 0.35 * SMALL, abs=0.2)


def test_the_marks_of_a_logarithmic_axis_are_its_own_powers_of_ten() -> None:
    scale = Scale("k")
    scale.log, scale.drawn = True, [1.0, 1000.0]
    scale.fit()
    assert sorted(scale.marked()) == pytest.approx([1, 10, 100, 1000])
    assert [scale.share(value) for value in (1, 1000)] == pytest.approx([0.0, 1.0], abs=0.1)
