"""What models heard: words side by side, on the page as text, with the recordings that lie beside the results."""

import html
from pathlib import Path
from typing import Any

import pytest

from hornn.reporting.commands import find_tables, write_report
from hornn.reporting.listening import WORDS, Recording, align, heard_by, utterances_of
from hornn.reporting.run_data import page_data
from hornn.result import SAMPLES
from reporting.place import table_of


@pytest.mark.parametrize(
    ("said", "heard", "pairs"),
    [
        ("GO", "GO", [("GO", "GO")]),
        ("GO", "", [("GO", "")]),
        ("", "GO", [("", "GO")]),
        ("", "", []),
        ("A B C", "A C", [("A", "A"), ("B", ""), ("C", "C")]),
        ("A C", "A B C", [("A", "A"), ("", "B"), ("C", "C")]),
        ("A B C", "A X C D", [("A", "A"), ("B", "X"), ("C", "C"), ("", "D")]),
    ],
)
def test_words_stand_side_by_side(said: str, heard: str, pairs: list[tuple[str, str]]) -> None:
    assert align(said.split(), heard.split()) == pairs


UTTERANCES = [
    {"id": "one", "said": "YES NO", "heard": {"shipped": "YES SO", "bigram": "YES NO", "odd": "X"}},
    {"id": "../../secret", "said": "<b>", "heard": {"shipped": "<script>alert(1)</script>"}},
]


def speak(place: Any, **changes: Any) -> str:
    """The page of a place with two rows that heard the same, and a folder of recordings."""
    for row in ("rnn", "sum-2"):
        place.commit(row, 1, corpus={"name": "tones"}, **{"utterances": UTTERANCES, **changes})
    folder = place.results / "tables" / "recordings" / "tones"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("one.flac", "other.flac", "LICENSE"):
        (folder / name).write_bytes(name.encode())
    (place.results / "tables" / "secret.flac").write_bytes(b"secret")
    said = write_report(place.results, place.sweeps, place.results / "report").said
    assert "warning" not in said
    text: str = (place.results / "report" / "index.html").read_text()
    return text


def test_a_table_shows_what_each_row_heard(place: Any) -> None:
    page = speak(place)
    assert page.count("<td>YES <del>NO</del> <ins>SO</ins>") == 2
    assert page.count("<td>YES NO") == 2
    assert 'src="recordings/tones/one.flac"' in page
    assert 'href="recordings/tones/LICENSE"' in page
    (place.results / "tables" / "recordings" / "tones" / "LICENSE").unlink()
    write_report(place.results, place.sweeps, place.results / "other")
    page = (place.results / "other" / "index.html").read_text()
    assert 'src="recordings/tones/one.flac"' in page
    assert "LICENSE" not in page, "nothing leads nowhere"


def test_only_recordings_that_are_heard_are_copied_and_from_their_folder_alone(place: Any) -> None:
    speak(place)
    report: Path = place.results / "report"
    found = {path.relative_to(report).as_posix() for path in (report / "recordings").rglob("*.*")}
    assert found == {"recordings/tones/one.flac"}
    assert (report / "recordings" / "tones" / "LICENSE").read_bytes() == b"LICENSE"


def test_words_are_text(place: Any) -> None:
    page = speak(place)
    assert "<script>alert" not in page
    assert f"<h3>{html.escape('<b>')}</h3>" in page
    assert f"<ins>{html.escape('<script>alert(1)</script>')}</ins>" in page


def test_without_words_there_is_nothing_to_listen_to(place: Any) -> None:
    assert "<h2>What was heard" not in speak(place, utterances=[])
    assert not (place.results / "report" / "recordings").exists()


def test_of_a_long_file_only_the_beginning_is_shown() -> None:
    many = [{"id": "a", "said": "A " * 9999, "heard": {"shipped": "B " * 9999}}] * 99
    found = heard_by({"utterances": many}, {})
    assert len(found) == SAMPLES
    assert len(found[0].by_grammar["by the shipped grammar"]) == WORDS


def test_the_script_knows_the_words(place: Any) -> None:
    speak(place)
    address = {("tones", "one"): Recording("recordings/tones/one.flac")}
    run = page_data([table_of(place)], place.results / "report", address)["runs"][0]
    assert run["heard"][0]["recording"] == ("recordings/tones/one.flac", "")
    assert run["heard"][0]["by_grammar"]["by the shipped grammar"] == [("YES", "YES"), ("NO", "SO")]
    assert run["heard"][1]["recording"] == ("", "")


def test_of_a_row_the_seed_that_is_best_on_validation_is_heard(place: Any) -> None:
    for seed, valid_ppl, text in ((1, 90.0, "YES"), (2, 80.0, "NO"), (3, 85.0, "SO")):
        heard = [{"id": "one", "said": "YES", "heard": {"shipped": text}}]
        place.commit("rnn", seed, 70.0 + seed, valid_ppl=valid_ppl, utterances=heard)
    ((_, heard),) = utterances_of(table_of(place), {})[0].rows
    assert heard.by_grammar == {"by the shipped grammar": [("YES", "NO")]}


def test_a_sweep_without_a_file_shows_word_errors(place: Any) -> None:
    speech = {
        "valid_nll": 1.0,
        "test_nll": 1.1,
        "test_wer": 12.5,
        "test_wer_bigram": 8.25,
        "valid_wer_bigram": 9.5,
    }
    result = place.result(1, 77.0, corpus={"name": "mine"}, choices={"model": "dnn", "data": "an4"}, **speech)
    del result["valid_ppl"], result["test_ppl"]
    place.record({"row": "model=dnn", "seed": 1, "status": "done", "result": result}, sweep="mine")
    table = table_of_record(place, "mine")
    assert [metric.key for metric in table.sweep.metrics] == ["test_nll", "test_wer", "test_wer_bigram"]
    data = page_data([table], place.results / "report", {})
    (run,) = data["runs"]
    assert run["numbers"]["test_wer"] == (12.5, "12.5")
    assert data["measures"]["test_wer"][0] == "word errors %, shipped grammar, test"
    assert data["measures"]["valid_wer_bigram"] == ("word errors %, bigram, validation", -1)
    assert run["asks"] == "data.root=FOLDER", "for no checkpoint knows the folder of a corpus of one's own"


def table_of_record(place: Any, name: str) -> Any:
    tables, _, _ = find_tables(place.results, place.sweeps, None)
    return next(table for table in tables if table.sweep.name == name)
