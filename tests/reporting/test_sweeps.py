"""Reading sweep files: what is wrong with one is said in one message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.sweeps import Figure, read_sweeps
from reporting.place import SWEEP, read_sweep


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  title:", "  tittle:", "toy.yaml: sweep: unknown key 'tittle'; it takes: name, title"),
        ('  title: "Toy: order and pooling"\n', "", "toy.yaml: sweep: title is missing"),
        ("  metric: test_ppl\n", "", "toy.yaml: sweep: metric is missing"),
        ("  name: toy", "  name: tuy", "sweep.name is 'tuy': it must be the file's name, 'toy'"),
        ("name: sum-3", "name: sum-2", "rows 'sum-2' and 'sum-2' have the same name sum-2: keep one"),
        (
            "model.order=3",
            "model.order=2",
            "rows 'sum-2' and 'sum-3' have the same run model=hornn model.order=2",
        ),
        ("      group: sum", "      grop: sum", "toy.yaml: row 'sum-2': unknown key 'grop'"),
        (', source: "recalled"', "", "toy.yaml: row 'sum-3': published: source is missing"),
        (
            'source: "recalled"',
            'source: " "',
            "row 'sum-3': the published 108 has no source: say where it was read",
        ),
        (
            "verified: false",
            "verified: perhaps",
            "row 'sum-3': published: verified must be true or false, got 'perhaps'",
        ),
        ("value: 108", "value: true", "row 'sum-3': published: value must be a number or null, got True"),
        ("state: not built", "state: later", "unknown state 'later'; it is one of: not built, quoted"),
        (
            "      state: not built\n",
            "",
            "row 'stack': give either run, or run: null and state: not built | quoted",
        ),
        (
            "run: [model=rnn]",
            "run: [model]",
            "row 'rnn': run must list overrides key=value or ~key, got ['model']",
        ),
        (
            "run: [model=rnn]",
            "run: model=rnn",
            "row 'rnn': run must be a list such as [A, B] or null, got 'model=rnn'",
        ),
        ("model=rnn", "model=rnnn", "row 'rnn': unknown model 'rnnn'; it is one of: hornn, hornn_max, rnn"),
        ("toy/text", "toy/txt", "unknown experiment 'toy/txt'; it is one of: toy/speech, toy/text"),
        ("model.order=2]", "model.order=3]", "have the same run model=hornn model.order=3"),
        ("name: rnn", "name: a/b", "row 'a/b': a name has letters, digits and . _ - alone"),
        (
            "seeds: [1, 2]",
            "seeds: [1, 1]",
            "sweep.seeds must list different whole numbers such as [1,2,3], got [1, 1]",
        ),
        (
            "  seeds:",
            "  relative_to: elman\n  seeds:",
            "toy.yaml: sweep.relative_to names 'elman', which is no row",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, than: [rnn, elman]}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so' names 'elman', which is no row",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, than: [sum-2, rnn]}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so' names 'rnn' in better and in than: leave it out of one",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, than: sum-2, metric: valid_ppl}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so' names the metric 'valid_ppl', which the table has not",
        ),
        ("  seeds:", "  claims: [{better: rnn, than: sum-2}]\n  seeds:", "sweep.claims: says is missing"),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, at_most: 0}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so': at_most must be above 0 where no row is named in than, got 0",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, at_most: .nan}]\n  seeds:",
            "toy.yaml: sweep.claims: at_most must be a finite number, got nan",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, than: [], at_most: 1}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so': than must be the name of a row or a list of names, got []",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: [], than: rnn}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so': better must be the name of a row or a list of names, got []",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: [[rnn]], than: sum-2}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so': better must be the name of a row or a list of names, got [['rnn']]",
        ),
        *(
            (
                "  figure: {",
                f"  figure: {{published_best: {ends}, ",
                "toy.yaml: sweep.figure.published_best must list two numbers, the lower one first, such as [0.5,0.7]",
            )
            for ends in ("[0.5]", "[a, b]", "[]", "[0.7, 0.5]", "[0.5, .nan]")
        ),
        (
            "seeds: [1, 2]",
            "seeds: []",
            "sweep.seeds must list different whole numbers such as [1,2,3], got []",
        ),
        ('  metric_label: "perplexity, test"\n', "", "sweep.metric 'test_ppl' needs a metric_label"),
        ("  rows:\n", "  rows:\n    - text\n", "row 'text' must hold keys and values, got 'text'"),
        ("  figure: {", "  figure: {z: 1, ", "sweep.figure: unknown key 'z'"),
        (
            "  figure: {",
            "  figure: {base: elman, ",
            "toy.yaml: sweep.figure.base names 'elman', which is no row",
        ),
        (
            "name: sum-3\n",
            "name: sum-3\n      start: elman\n",
            "toy.yaml: row 'sum-3' starts from 'elman': name a row with a run that starts from no other",
        ),
        (
            "name: sum-3\n",
            "name: sum-3\n      start: [rnn, elman]\n",
            "toy.yaml: row 'sum-3' starts from 'elman': name a row with a run that starts from no other",
        ),
        (
            "name: sum-3\n",
            "name: sum-3\n      start: [1]\n",
            "start must be the name of a row or a list of names, got [1]",
        ),
        (
            "name: sum-3\n",
            "name: sum-3\n      seeds: [a]\n",
            "row 'sum-3': seeds must list different whole numbers",
        ),
        (
            "name: sum-3\n",
            "name: sum-3\n      seeds: [1]\n      start: rnn\n",
            "toy.yaml: rows 'sum-3' and 'rnn' must have the same seeds",
        ),
        ("sweep:\n", "sweep: [\n", "toy.yaml is not YAML: "),
    ],
)
def test_what_is_wrong_is_said(broken: Callable[[str, str], Path], old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_sweep(broken(old, new))
    assert message in str(caught.value)


def test_a_figure_may_have_the_keys_of_earlier_files(broken: Callable[[str, str], Path]) -> None:
    earlier = read_sweep(broken("figure: {", "figure: {x: order, series: group, "))
    assert earlier.figure == Figure("order")


def test_several_metrics_take_numbers_by_key(place: Any) -> None:
    path = place.write_sweep(
        "two",
        """
sweep:
  name: two
  title: Two
  paper: P
  metric: [{key: valid_ppl, label: valid}, {key: test_ppl, label: test}]
  lower_is_better: true
  seeds: [1]
  rows:
    - name: a
      label: A
      run: [model=rnn]
      published: {test_ppl: {value: 1, verified: true, source: s}}
""",
    )
    assert read_sweep(path).rows[0].published["test_ppl"].value == 1
    path.write_text(path.read_text().replace("{test_ppl:", "{test_bpc:"))
    with pytest.raises(ValueError, match="published names 'test_bpc'; the metrics are: valid_ppl, test_ppl"):
        read_sweep(path)


def test_a_start_has_the_seeds_of_its_row_if_the_table_gives_them(broken: Callable[[str, str], Path]) -> None:
    own = "name: sum-3\n      seeds: [2, 1]\n      start: rnn\n"
    assert next(row for row in read_sweep(broken("name: sum-3\n", own)).rows if row.start).start == ("rnn",)


def test_a_row_takes_a_key_away_with_its_value_or_without(broken: Callable[[str, str], Path]) -> None:
    words = ("~model.hidden_size", "~model.hidden_size=400")
    bare, full = (
        read_sweep(broken("run: [model=rnn]", f"run: [model=rnn, {word}]")).rows[0] for word in words
    )
    assert "hidden_size" not in bare.recipe.config["model"]
    assert bare.identity == full.identity


def test_the_same_run_has_one_identity_in_every_file(place: Any) -> None:
    toy = read_sweep(place.sweeps / "toy.yaml")
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: other")
    other = read_sweep(place.write_sweep("other", text.replace("toy/text", "toy/speech")))
    assert toy.rows[0].identity != other.rows[0].identity
    rows = text.replace("toy/text", "toy/speech").replace("model=rnn", "experiment=toy/text, model=rnn")
    other = read_sweep(place.write_sweep("other", rows))
    assert toy.rows[0].identity == other.rows[0].identity


def test_a_folder_without_sweeps_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no folder .*absent: give --sweeps FOLDER"):
        read_sweeps(tmp_path / "absent")


def test_a_sweep_that_is_another_one_with_keys_of_its_own(place: Any) -> None:
    first = read_sweep(place.write_sweep("toy", SWEEP))
    own = "defaults: [toy, _self_]\ntrainer: {max_epochs: 1}\nsweep: {name: twin, published_on: news, seeds: [5]}\n"
    twin = read_sweep(place.write_sweep("twin", own))
    assert (twin.title, twin.seeds, twin.published_on) == (first.title, (5,), "news")
    assert [row.name for row in twin.rows] == [row.name for row in first.rows]
    for ours, theirs in zip(twin.rows, first.rows, strict=True):
        if ours.run:
            assert ours.recipe.config["trainer"]["max_epochs"] == 1
            assert ours.recipe.choices == theirs.recipe.choices
            assert ours.identity != theirs.identity


def test_a_sweep_that_would_be_laid_over_its_own_keys_is_refused(place: Any) -> None:
    place.write_sweep("toy", SWEEP)
    path = place.write_sweep("twin", "defaults: [_self_, toy]\nsweep: {name: twin}\n")
    with pytest.raises(ValueError, match="'toy' behind _self_ would be laid over this file: name it before"):
        read_sweep(path)


@pytest.mark.parametrize("named", ["twin", "absent"])
def test_a_sweep_that_is_itself_or_nothing(place: Any, named: str) -> None:
    path = place.write_sweep("twin", f"defaults: [{named}]\nsweep: {{name: twin}}\n")
    with pytest.raises(ValueError, match=f"its defaults name '{named}'"):
        read_sweep(path)
