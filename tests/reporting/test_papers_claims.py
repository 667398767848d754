"""The sweep files judge what a paper claims on the networks that the paper compares, by the measure that it names."""

import os
import re
from pathlib import Path

import pytest

from hornn.reporting.sweeps import Sweep
from reporting.shipped import SWEEPS


def compared(sweep: Sweep, metric: str) -> set[tuple[str, str]]:
    """The rows that some claim compares by this metric."""
    claims = [claim for claim in sweep.claims if claim.metric == metric]
    return {(one, other) for claim in claims for one in claim.better for other in claim.than}


def test_what_the_poster_says_of_word_errors_is_judged_by_word_errors() -> None:
    """By the loss of frames, too, but never by this loss alone; with one grammar in both tables."""
    sweep = SWEEPS["acoustic_figure2"]
    of_poster = [claim for claim in sweep.claims if claim.where and claim.metric != "num_parameters"]
    assert of_poster
    for claim in of_poster:
        assert (claim.better[0], claim.than[0]) in compared(sweep, "test_wer_bigram"), claim.says


def test_each_projected_hornn_is_compared_with_the_lstm_of_as_many_layers() -> None:
    sweep = SWEEPS["acoustic_table1"]
    lstms = {"1": "lstmp-1-1.1", "2": "lstmp-2-1.9"}
    names = [row.name for row in sweep.rows if row.name.startswith("hornnp")]
    assert len(names) == 8
    for name in names:
        lstm = lstms[name.split("-")[1]]
        assert {(name, lstm), (lstm, name)} & compared(sweep, "test_wer_bigram"), name


def test_a_claim_of_a_paper_shows_the_paper_s_gain_where_its_rows_have_one() -> None:
    """A row of our own, such as one at another learning rate, hides it: it belongs to a claim of our own."""
    for sweep in SWEEPS.values():
        known = {
            (row.name, key)
            for row in sweep.rows
            for key, number in row.published.items()
            if number.value is not None
        }
        for claim in sweep.claims:
            sides = [
                [(name, claim.metric) in known for name in names] for names in (claim.better, claim.than)
            ]
            if claim.where and all(any(side) for side in sides):
                assert all(all(side) for side in sides), claim.says


def test_each_network_that_the_deep_rnns_by_words_and_characters_are_compared_with_is_in_a_claim() -> None:
    sweep = SWEEPS["deep_rnn_table3"]
    quoted = {row.name for row in sweep.rows if row.state == "quoted"}
    assert quoted
    assert quoted <= {name for claim in sweep.claims for name in (*claim.better, *claim.than)}


def test_each_scrn_of_a_table_is_compared_with_a_simple_rnn() -> None:
    sweep = SWEEPS["scrn_table1"]
    names = [row.name for row in sweep.rows if row.name.startswith("scrn") and "valid_ppl" in row.published]
    assert len(names) == 4
    beaten = compared(sweep, "test_ppl")
    assert [
        name for name in names if not any((name, f"srn-{units}") in beaten for units in (50, 100, 300))
    ] == []


@pytest.mark.reference
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("thesis_figure61", "between 0.5 and 0.7"),
        ("alpha", "between 0.5 and 0.7"),
        ("ptb_modern_recipe", "slows down the training"),
    ],
)
def test_the_section_of_the_thesis_that_a_claim_names_makes_the_claim(name: str, says: str) -> None:
    thesis = Path(os.environ.get("HORNN_REFERENCE", ""), "papers", "hornn_thesis.txt")
    if not thesis.is_file():
        pytest.skip("needs the papers' texts in the folder that HORNN_REFERENCE names")
    _, *parts = re.split(r"^(\d\.\d\.\d) ", thesis.read_text(), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    named = [claim.where.split()[-1] for claim in SWEEPS[name].claims if "thesis" in claim.where]
    assert named
    assert all(says in " ".join(sections.get(section, "").split()) for section in named)
