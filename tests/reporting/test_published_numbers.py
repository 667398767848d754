"""The project's sweep files hold all numbers that the papers publish, and no others. A new table is found by itself."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from reporting.shipped import SWEEPS as EVERY

ROOT = Path(__file__).parents[2]
PAPERS = {
    "acoustic_figure2",
    "acoustic_table1",
    "acoustic_table2",
    "deep_rnn_table1",
    "deep_rnn_table2",
    "deep_rnn_table3",
    "hornn_table1",
    "hornn_table2",
    "hornn_table3",
    "scrn_table1",
    "scrn_table2",
    "scrn_table3",
    "scrn_table4",
    "thesis_figure61",
    "thesis_parameters",
    "thesis_table61",
    "thesis_table63",
}
HEADS = {"hornn_table3_head", "scrn_table3_head", "scrn_table4_head"}  # a paper's table on another text
OURS = EVERY.keys() - PAPERS - HEADS
SWEEPS = {name: sweep for name, sweep in EVERY.items() if name not in HEADS}


@pytest.fixture(scope="module")
def published() -> list[dict[str, Any]]:
    """The papers' numbers, if the file that holds them is there; else the test is skipped."""
    folder = os.environ.get("HORNN_REFERENCE")
    if not folder or not Path(folder, "published.yaml").is_file():
        pytest.skip("needs published.yaml in the folder that HORNN_REFERENCE names")
    text = Path(folder, "published.yaml").read_text()
    rows: list[dict[str, Any]] = yaml.load(text, yaml.CSafeLoader)["rows"]
    return rows


SLUGS = {"RNN": "rnn", "DT(S)-RNN": "dts_rnn", "DOT(S)-RNN": "dots_rnn", "DOT(S)-RNN*": "dots_rnn-star"}
SLUGS |= {"sRNN": "srnn", "sRNN 2 layers": "srnn", "RNN with fast dropout (Bayer 2013)": "fast-dropout"}
SLUGS |= {
    "HORNN": "hornn",
    "Max HORNN": "hornn_max",
    "FOFE HORNN": "hornn_fofe",
    "Gated HORNN": "hornn_gated",
}
SLUGS |= {"HORNN (also max, FOFE)": "hornn", "RNN (1st order)": "rnn", "LSTM": "lstm", "SCRNN": "scrn"}
SLUGS |= {"KN 5-gram": "kn5", "CSLM5": "cslm5", "genCNN": "gencnn", "Gated word&char": "gated-word-char"}
SLUGS |= {"E2E Mem Net": "memn2n", "Stack RNN": "stack-rnn", "Deep RNN": "deep-rnn", "FOFE-FNN": "fofe-fnn"}
SLUGS |= {"LSTMP": "lstmp", "ReLU HORNNP": "hornnp_relu", "sigmoid HORNNP": "hornnp_sigmoid"}
SLUGS |= {"sigmoid RNN": "rnn_sigmoid", "ReLU RNN": "rnn_relu", "sigmoid ResRNN": "resrnn_sigmoid"}
SLUGS |= {"ReLU ResRNN": "resrnn_relu", "sigmoid HORNN": "hornn_sigmoid", "ReLU HORNN": "hornn_relu"}
SLUGS |= {
    "Ngram": "ngram",
    "Ngram + cache": "ngram-cache",
    "5-gram": "ngram",
    "5-gram + cache": "ngram-cache",
}
SLUGS |= {"SRN (Bengio 2013)": "srn-bengio", "SRN + leaky neurons (Bengio 2013)": "leaky-bengio"}
# Ours is a bigram, so that the published trigram stands beside it; a confusion network has no measured number.
OF_DECODING = {"tg": "test_wer_bigram", "cn": "wer_cn"}


def place_of(number: dict[str, Any]) -> tuple[str, str, str] | None:
    """Sweep, row and metric where a published number belongs; None for what is in no table of ours."""
    config, split, data = number["config"], number["split"], number["dataset"]
    name = SLUGS.get(number["row"], "")
    ordered = f"{name}-{config['order']}" if config.get("order", 1) > 1 else name
    units = f"{config.get('hidden')}-{config.get('context')}"
    match number["document"], number["table"]:
        case "hornn_paper", "table1":
            return "hornn_table1", ordered, "test_ppl"
        case "hornn_thesis", "table6.2":
            return "hornn_table1", ordered, "test_ppl"
        case "hornn_paper", "table2":
            return "hornn_table2", ordered, "test_ppl"
        case "hornn_thesis", "table6.4":
            return "hornn_table2", ordered, "test_ppl"
        case ("hornn_paper", "table3") | ("hornn_thesis", "table6.5"):
            return "hornn_table3", ordered, "test_ppl"
        case ("hornn_paper", "text section 4.1.1") | ("hornn_thesis", "text section 6.2.2"):
            row = f"{name}-3" if "HORNN" in number["row"] else name
            return (
                "thesis_parameters",
                row,
                "num_parameters" if data and split is None else "seconds_per_epoch",
            )
        case "hornn_thesis", "table6.3":
            return "thesis_table63", ordered, "seconds_per_epoch"
        case "hornn_thesis", "table6.1":
            return "thesis_table61", data, f"corpus.tokens.{split}"
        case "hornn_thesis", "figure6.1":
            return "thesis_figure61", f"alpha-{config['alpha']}", "test_ppl"
        case "scrn", "table1":
            row = name or "-".join([number["row"].lower(), *str(config["hidden"]).split()])
            if number["row"] == "LSTM":
                row = f"lstm-{config['hidden']}"
            if number["row"] == "SCRN":
                row = f"scrn-{units}"
            return "scrn_table1", row, f"{split}_ppl"
        case "scrn", "table2":
            return "scrn_table2", f"scrn-{units}-{config['context_weights']}", "test_ppl"
        case "scrn", "table3":
            return "scrn_table3", f"scrn-{units}", "test_ppl"
        case "scrn", "table4":
            row = f"{number['row'].lower()}-{units.removesuffix('-None')}"
            return "scrn_table4", row, "test_ppl"
        case "scrn", "text section 3.2":
            return "scrn_table1", name, "test_ppl"
        case "scrn", "text section 3.3":
            return "scrn_table4", name, "test_ppl"
        case "deep_rnn", "table1":
            return "deep_rnn_table1", f"{data}-{name}", "num_parameters"
        case "deep_rnn", "table2" | "text section 5.3.1":
            return "deep_rnn_table2", f"{data}-{name}", "test_nll"
        case "deep_rnn", "table3":
            unit, key = {"ptb_char": ("characters", "test_bpc"), "ptb_word": ("words", "test_ppl")}[data]
            who = "graves" if "Graves" in number["row"] else "mikolov"
            return "deep_rnn_table3", f"{name or who}-{unit}", key
        case "hornn_acoustic", "table1":
            row = f"{name}-{config['layers']}-{config['params_millions']}"
            return "acoustic_table1", row, OF_DECODING[config["decoding"]]
        case "hornn_acoustic", "table2":
            return "acoustic_table2", f"{name}-{config['layers']}", f"wer_{config['decoding']}"
        case "hornn_acoustic", "text below table2":
            return "acoustic_table2", "dnn-7", f"wer_{config['decoding']}"
        case "hornn_acoustic", "figure2":
            return "acoustic_figure2", name, OF_DECODING[config["decoding"]]
        case "hornn_acoustic", "abstract":
            return None
    raise AssertionError(f"no place for {number}")


# Read in later papers alone, whatever published.yaml says of them. The last three stand in the HORNN paper.
SECOND_HAND = {
    ("deep_rnn_table3", "mikolov-characters", "test_bpc"),
    ("deep_rnn_table3", "graves-characters", "test_bpc"),
    ("deep_rnn_table3", "dots_rnn-words", "test_ppl"),
    ("deep_rnn_table3", "srnn-words", "test_ppl"),
    ("deep_rnn_table3", "mikolov-words", "test_ppl"),
    ("deep_rnn_table3", "graves-words", "test_ppl"),
}


@pytest.mark.reference
def test_every_published_number_stands_in_its_row(published: list[dict[str, Any]]) -> None:
    """Value, verified mark and dynamic evaluation; a thesis table that repeats one of the paper has its place there."""
    places = Counter()
    for number in published:
        place = place_of(number)
        if place is None:
            continue
        sweep, name, key = place
        (row,) = (row for row in SWEEPS[sweep].rows if row.name == name)
        ours = row.published[key]
        assert (ours.value, ours.verified) == (
            number["value"],
            number["verified"] and place not in SECOND_HAND,
        ), place
        dynamic = "dynamic" in number["row"] or bool(number["config"].get("dynamic_evaluation"))
        assert row.dynamic or not dynamic, place
        places[(number["document"], *place)] += 1
    assert set(places.values()) == {1}


@pytest.mark.reference
def test_no_row_shows_a_number_that_is_not_published(published: list[dict[str, Any]]) -> None:
    known = {place_of(number) for number in published}
    shown = {
        (sweep.name, row.name, key)
        for sweep in SWEEPS.values()
        if sweep.name not in OURS
        for row in sweep.rows
        for key, number in row.published.items()
        if not number.source.startswith("Boulanger-Lewandowski")  # recalled, and in no list of ours
        and (sweep.name, number.source) != ("scrn_table1", "table 2")
    }
    assert shown == known - {None}


def test_rows_of_another_table_have_its_numbers() -> None:
    other = {row.identity: row.published for row in EVERY["scrn_table2"].rows}
    rows = [row for row in EVERY["scrn_table1"].rows if row.name.endswith("-two-level")]
    assert [row.published for row in rows] == [other[row.identity] for row in rows] != []


def test_tables_of_our_own_show_numbers_of_the_papers() -> None:
    """Each is that of some row with the same run, or with the same label where nothing is run."""
    rows = [(sweep, row) for sweep in SWEEPS.values() for row in sweep.rows]
    papers = {
        (row.identity or row.label, number.value, number.verified)
        for sweep, row in rows
        if sweep.name not in OURS
        for number in row.published.values()
    }
    shown = {
        (row.identity or row.label, number.value, number.verified)
        for sweep, row in rows
        if sweep.name in OURS
        for number in row.published.values()
    }
    assert shown
    assert shown <= papers


def test_all_tables_of_the_papers_are_there() -> None:
    assert EVERY.keys() >= PAPERS | HEADS
    for name in HEADS:
        rows = [row.name for row in EVERY[name.removesuffix("_head")].rows]
        assert ([row.name for row in EVERY[name].rows], EVERY[name].published_on) == (rows, "text8")
