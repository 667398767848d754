"""Whatever one value of a result file is, the report stands, and that result alone is called damaged, or is used."""

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.commands import write_report
from hornn.reporting.sweeps import read_sweeps
from reporting.place import Place, claims_of, line_of, table_of

TABLES = Path(__file__).parents[2] / "outputs" / "tables"
# Of speech, with the words that were heard; of text, evaluated dynamically; of text, with how far it looks back.
RESULTS = ("acoustic_figure2/dnn-seed1", "ptb_recipe/rnn-seed1", "memory/rnn-seed1")
METRICS = (
    "test_wer",
    "test_ppl",
    "test_bpc",
    "dynamic.test_ppl",
    "metrics.-1.train_bpc",
    "seconds_per_epoch",
    "memory.summary.gradient_reach",
)
HUGE = {"10**400": "1" + "0" * 400, "1e999": "1e999", "1e200": "1e200"}


def places_of(value: Any, depth: int = 3) -> Iterator[tuple[Any, ...]]:
    """Each key of nested values, of a list the first and the last place."""
    items = list(value.items()) if isinstance(value, dict) else []
    items += [(at, value[at]) for at in {0, len(value) - 1}] if isinstance(value, list) and value else []
    for key, item in items if depth else ():
        yield (key,)
        for place in places_of(item, depth - 1):
            yield (key, *place)


def changed(result: dict[str, Any], place: tuple[Any, ...], value: str) -> str:
    """The result as JSON with `value`, as it is written there, in the place of one of its values."""
    result = node = copy.deepcopy(result)
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = "HERE"
    return json.dumps(result).replace('"HERE"', value)


def write_rows(place: Place, texts: list[str]) -> None:
    """A table with a row for each result; the claims set each beside the first one."""
    rows = [
        {
            "name": f"row{number}",
            "label": f"Row {number}",
            "run": ["model=rnn", f"model.hidden_size={number}"],
        }
        for number in range(1, len(texts) + 1)
    ]
    claims = [{"says": row["name"], "better": row["name"], "than": "row1"} for row in rows]
    claims += [{"says": f"not {row['name']}", "better": "row1", "than": row["name"]} for row in rows[1:]]
    sweep = {
        "name": "toy",
        "title": "Toy",
        "paper": "Nobody 2000",
        "metric": [{"key": key, "label": key} for key in METRICS],
        "lower_is_better": True,
        "seeds": [1],
        "rows": rows,
        "claims": claims[1:],
        "figure": {"x_label": "number"},
    }
    content = {"defaults": [{"override /experiment": "toy/text"}], "sweep": sweep}
    place.write_sweep("toy", json.dumps(content))
    folder = place.results / "tables" / "toy"
    folder.mkdir(parents=True)
    for number, text in enumerate(texts, start=1):
        (folder / f"row{number}-seed1.json").write_text(text)


@pytest.fixture(params=RESULTS)
def committed(request: pytest.FixtureRequest) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((TABLES / f"{request.param}.json").read_text())
    result["dynamic"] = {"lr": 0.1, "seq_len": 30, "test_ppl": 90.0}
    return result


@pytest.mark.each(11)
@pytest.mark.parametrize("value", ['"text"', "null", "[[1]]", "-1", "1e149", *HUGE])
def test_one_wrong_value_leaves_the_report(
    place: Place, committed: dict[str, Any], value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hornn.reporting.utterances.DRAWS", 10)
    places = list(places_of(committed))
    texts = [changed(committed, at, HUGE.get(value, value)) for at in places]
    write_rows(place, [json.dumps(committed), *texts])
    written = write_report(place.results, place.sweeps, place.folder / "report")
    first, *runs = [line.runs[0] for line in table_of(place).lines]
    assert first.state == "done"
    for at, run in zip(places, runs, strict=True):
        assert run.state in ("done", "diverged", "damaged"), at
        assert (f"warning: {run.path}: " in written.said) == (run.state == "damaged"), at
        assert run.state == "damaged" or value not in HUGE, at
    kinds = {at[0] for at, run in zip(places, runs, strict=True) if run.state == "damaged"}
    if value == '"text"':
        assert {"schema_version", "seed", "dtype", "versions", "starts", "dynamic", "metrics"} <= kinds


@pytest.mark.parametrize("loser", [0.0, 1.0])
def test_seeds_and_rows_without_an_error_are_no_fault(place: Place, loser: float) -> None:
    """A rate of 0 has no relative spread, and no gain is relative to it."""
    text = (place.sweeps / "toy.yaml").read_text().replace("test_ppl", "test_wer")
    claims = (
        '  claims: [{says: "so", better: rnn, than: sum-2}, {says: "so not", better: sum-2, than: rnn}]\n'
    )
    place.write_sweep("toy", text.replace("  figure:", f"{claims}  figure:"))
    for seed in (1, 2, 3, 4, 5, 6):
        place.commit("rnn", seed, test_wer=0.0)
        place.commit("sum-2", seed, test_wer=loser)
    write_report(place.results, place.sweeps, place.folder / "report")
    so, so_not = claims_of(place)
    if loser:
        assert "Measured: RNN: 0; Sum, order 2: 1; 100.0 % better" in so
        assert "Measured: Sum, order 2: 1; RNN: 0; worse (6 and 6 seeds" in so_not
        assert so_not.endswith("Outcome: a tendency against it.")
    else:
        assert "Measured: Sum, order 2: 0; RNN: 0; 0.0 % better (6 and 6 seeds" in so_not


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


EPOCHS = "epoch,seconds,valid_ppl\n1,60.0,200.0\n"
FOLDER = "outputs/runs/rnn/aaaa/seed=1"
# A file of a stranger below the place, and what it holds.
FILES = {
    "a constructor in an override": ("overrides", "model.x=!!bool x"),
    "no number in an override": ("overrides", "model.x=0b_"),
    "no date in an override": ("overrides", "model.x=2026-13-45"),
    "a number without end in an override": ("overrides", f"model.x=1{'0' * 400}"),
    "infinity in an override": ("overrides", "model.x=.inf"),
    "a folder that no disk takes": ("run_dir", "a" * 5000),
    "a constructor in a config": (f"{FOLDER}/config.yaml", "!!bool x"),
    "a config in itself": (f"{FOLDER}/config.yaml", "a: &a {b: *a}"),
    "epochs without end": (f"{FOLDER}/config.yaml", f"config: {{trainer: {{max_epochs: 1{'0' * 400}}}}}"),
    "no trainer": (f"{FOLDER}/config.yaml", "config: {trainer: 5}"),
    "seconds without end": (f"{FOLDER}/metrics.csv", f"{EPOCHS}2,1e308,100.0\n3,1e308,100.0\n"),
    "a deep study": ("outputs/studies/mine/study.json", json.dumps(nested(600))),
    "a deep result": ("outputs/tables/toy/sum-3-seed1.json", json.dumps(nested(600))),
}


@pytest.mark.parametrize(("file", "text"), FILES.values(), ids=FILES)
def test_the_report_does_without_a_stranger_s_file(place: Place, file: str, text: str) -> None:
    place.commit("sum-2", 1)
    jobs: list[dict[str, Any]] = [
        {"row": "rnn", "seed": 1, "status": "running"},
        {"row": "max-2", "seed": 1, "status": "done", "result": place.result(1, 90.0, name="max")},
    ]
    of_file = file not in ("overrides", "run_dir")
    (place.folder / FOLDER).mkdir(parents=True)
    (place.folder / FOLDER / "metrics.csv").write_text(EPOCHS)
    changed = {} if of_file else {file: [text] if file == "overrides" else text}
    record = place.record(*jobs)
    content = json.loads(record.read_text())
    content["jobs"][0].update(changed)
    record.write_text(json.dumps(content))
    record.with_name("adhoc.json").write_text(json.dumps(content))
    if of_file:
        (place.folder / file).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / file).write_text(text)
    said = write_report(place.results, place.sweeps, place.folder / "report").said
    assert [run.state for run in line_of(table_of(place), "max-2").runs] == ["done"]
    assert (f"{record}: the folder of 'rnn' cannot be looked into" in said) == (file == "run_dir")


@pytest.mark.parametrize(
    "text",
    [
        "sweep: !!bool x",
        "sweep: !!timestamp x",
        "sweep: &a {name: *a}",
        "defaults: 5\nsweep: {}",
        f"defaults: [{'a' * 5000}]\nsweep: {{}}",
    ],
)
def test_a_sweep_file_of_a_stranger_is_refused_by_name(place: Place, text: str) -> None:
    path = place.write_sweep("theirs", text)
    said, *_ = write_report(place.results, place.sweeps, place.folder / "report").said.splitlines()
    assert said.startswith("warning: left out: ")
    assert str(path) in said
    assert len(said) < 500
    with pytest.raises(ValueError, match=path.name):
        read_sweeps(place.sweeps)


@pytest.mark.parametrize("value", ["0", "-5"])
def test_a_published_number_without_a_logarithm(place: Place, value: str) -> None:
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", text.replace("value: 111", f"value: {value}"))
    place.commit("sum-2", 1)
    place.commit("sum-3", 1)
    write_report(place.results, place.sweeps, place.folder / "report")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[model=rnn]", "['model.x=!!bool x']"),
        ("[model=rnn]", "['model.x=1', 'model.x.y=2']"),
        ("[model=rnn]", f"[{'a' * 5000}=1]"),
        ("defaults:", "optimizer: {lr: [{1: a, b: c}]}\ndefaults:"),
    ],
)
def test_a_row_of_a_stranger_is_refused_by_name(
    broken: Callable[[str, str], Path], place: Place, old: str, new: str
) -> None:
    path = broken(old, new)
    said, *_ = write_report(place.results, place.sweeps, place.folder / "report").said.splitlines()
    assert said.startswith(f"warning: left out: {path}")
    with pytest.raises(ValueError, match=path.name):
        read_sweeps(place.sweeps)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_result_without_an_end_is_damaged(place: Place, make: Callable[[Path], None]) -> None:
    make(place.commit("rnn", 2).with_name("rnn-seed1.json"))
    written = write_report(place.results, place.sweeps, place.results / "report")
    assert "it is no plain file" in written.said
    assert line_of(table_of(place), "rnn").measured


def test_a_record_and_a_folder_of_names_that_are_no_text_are_left_out(place: Place) -> None:
    place.commit("rnn", 1)
    record = place.record({"row": "a", "seed": 1, "status": "queued"}, sweep="mine")
    record.with_name("b\udcff.json").write_bytes(record.read_bytes())
    (place.results / "tables" / "t\udcff").mkdir()
    written = write_report(place.results, place.sweeps, place.results / "report")
    assert "has a name that no sweep can have: rename or remove it" in written.said
    assert "belongs to no sweep file" in written.said
    assert "mine" in (place.results / "report" / "index.html").read_text()
