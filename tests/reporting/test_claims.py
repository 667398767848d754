"""What became of a paper's claims."""

import json
import re
from typing import Any

import pytest

from hornn.reporting.commands import write_report
from hornn.reporting.json_table import table_json
from hornn.reporting.markdown import claims_markdown, table_markdown
from hornn.reporting.scoreboard import draw_bars, list_claims, summarise
from hornn.reporting.tables import Table
from reporting.place import CLAIMS, cells_of, claims_of, read_sweep, table_of

RECALLED = "†: recalled or second-hand: not read in the paper itself."
QUOTED = """    - name: others
      label: "Others"
      run: null
      state: quoted
      published: {value: 105, verified: false, source: "recalled"}
      dynamic: true
"""


def markdown_of(table: Table) -> str:
    return "\n\n".join(claims_markdown([(table, verdict) for verdict in table.verdicts], "## {}"))


def test_claims_are_judged_by_our_numbers(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-3", 1, 100.0)
    place.commit("sum-2", 1, 130.0)
    assert claims_of(place) == []
    place.commit("max-2", 1, 125.0)
    assert claims_of(place) == [
        "Claim: three beat two. Published: Sum, order 3: 108†; Max, order 2: 110; 1.8 % better. "
        "Measured: Sum, order 3: 100; Max, order 2: 125; 20.0 % better (one seed each; "
        "Max, order 2 itself is 14 % worse than published). Outcome: a tendency for it.",
        "Claim: little is gained over max. Published: Sum, order 3: 108†; Max, order 2: 110; 1.8 % better. "
        "Measured: Sum, order 3: 100; Max, order 2: 125; 20.0 % better (one seed each; "
        "Max, order 2 itself is 14 % worse than published). Outcome: a tendency against it.",
    ]
    place.commit("rnn", 1, 120.0)
    assert claims_of(place)[2] == (
        "Claim: max beats the RNN. Published: Max, order 2: 110; RNN: 123; 10.6 % better "
        "(one of them by dynamic evaluation). "
        "Measured: Max, order 2: 125; RNN: 120; 4.2 % worse (one seed each; "
        "Max, order 2 itself is 14 % worse than published). Outcome: a tendency against it."
    )
    place.commit("rnn", 1, 120.0, dynamic={"test_ppl": 110.0})
    assert (
        "worse than published; RNN by dynamic evaluation, as published: 110). Outcome: a tendency against it."
        in claims_of(place)[2]
    )


def test_published_gains_are_marked(filled: Any, broken: Any) -> None:
    """In every place: nobody has read the 108 of three in the paper; the RNN's 123 used dynamic evaluation."""
    broken("  figure:", CLAIMS + "  figure:")
    filled.commit("rnn", 1, 120.0)
    table = table_of(filled)
    assert [claim["published_signs"] for claim in json.loads(table_json(table))["claims"]] == ["†", "†", "‡"]
    text = markdown_of(table)
    assert re.findall(r"\+[\d.]+ %[†‡]? \|", text)[::2] == ["+1.8 %† |", "+1.8 %† |", "+10.6 %‡ |"]
    assert text.endswith(
        f"\n\n{RECALLED} ‡: the published number used dynamic evaluation; the measured one did not."
    )
    assert "†" not in markdown_of(table._replace(verdicts=table.verdicts[2:]))
    write_report(filled.results, filled.sweeps, filled.folder / "report")
    page = (filled.folder / "report" / "index.html").read_text()
    assert re.findall(r'class="gain soft">published ([^<]+)<', page)[1:] == ["+1.8 %†", "+1.8 %†", "+10.6 %‡"]
    assert page.count(RECALLED) == 3, "first screen, list, table"


def test_a_claim_whose_rows_are_not_measured_is_listed(filled: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    table = table_of(filled)
    waiting = table.verdicts[2]
    assert str(waiting) == (
        "Claim: max beats the RNN. Published: Max, order 2: 110; RNN: 123; 10.6 % better "
        "(one of them by dynamic evaluation). Outcome: not measured yet."
    )
    assert "| max beats the RNN | +10.6 %‡ |  | not measured yet |" in markdown_of(table)
    assert "gain" not in json.loads(table_json(table))["claims"][2]
    claims = list_claims([table])
    assert summarise([claim for claim in claims if not claim.claim.main]) == [], "no empty entry"
    (finding,) = summarise(claims)
    assert finding.outcomes == [
        ("▲", "open", "2", "a tendency for it"),
        ("○", "open", "1", "not measured yet"),
    ]
    assert 'class="full"' not in draw_bars(waiting)


def test_a_claim_says_what_it_was_judged_on(filled: Any, broken: Any) -> None:
    """Where that is not the test split."""
    metrics = """metric:
    - {key: valid_ppl, label: valid}
    - {key: test_ppl, label: test}
    - {key: seconds_per_epoch, label: seconds}
"""
    claims = "".join(
        f'    - {{says: "by {key}", better: sum-3, than: max-2, metric: {key}}}\n'
        for key in ("valid_ppl", "test_ppl", "seconds_per_epoch")
    )
    path = broken('metric: test_ppl\n  metric_label: "perplexity, test"\n', metrics)
    text = re.sub(r"\n +published: .*", "", path.read_text())
    path.write_text(text.replace("  figure:", f"  claims:\n{claims}  figure:"))
    table = table_of(filled)
    assert [verdict.judged_on for verdict in table.verdicts] == ["validation", "", "seconds"]
    text = markdown_of(table)
    assert [row.split(" | ")[2] for row in text.splitlines()[4:]] == [
        "+1.8 % (validation)",
        "+1.8 %",
        "+0.0 % (seconds)",
    ]
    judged = [claim["metric"] for claim in json.loads(table_json(table))["claims"]]
    assert judged == ["valid_ppl", "test_ppl", "seconds_per_epoch"]
    write_report(filled.results, filled.sweeps, filled.folder / "report")
    page = (filled.folder / "report" / "index.html").read_text()
    assert (
        page.count("%<small>validation</small></span>") == page.count("%<small>seconds</small></span>") == 1
    )


def test_a_claim_may_hold_in_direction_alone(place: Any, broken: Any) -> None:
    """Published: 1.8  % better."""
    broken("  figure:", CLAIMS + "  figure:")
    for seed, off in ((1, -0.1), (2, 0.0), (3, 0.1)):
        for name, value in (("sum-2", 130.0), ("max-2", 120.0), ("sum-3", 119.0)):
            place.commit(name, seed, value + off)
    several, little = claims_of(place)
    assert several.endswith(
        "worse than published). Outcome: confirmed in direction (less than 50 % of the published gain)."
    )
    assert little.endswith(
        "3 and 3 seeds; Sum, order 3 itself is 10 % worse than published). Outcome: confirmed."
    )


def test_a_claim_that_the_published_numbers_contradict_says_so(place: Any, broken: Any) -> None:
    """Published: the row of order 3 is 1.8 % better than the one that the claim calls better."""
    broken("  figure:", CLAIMS.replace("sum-3, than: max-2, at_most: 2", "max-2, than: sum-3") + "  figure:")
    place.commit("sum-3", 1, 120.0)
    place.commit("max-2", 1, 100.0)
    (claim,) = (text for text in claims_of(place) if "little" in text)
    assert claim.endswith("Outcome: a tendency for it (against the published numbers).")
    assert "| a tendency for it (against the published numbers) |" in table_markdown(table_of(place))
    place.commit("max-2", 1, 130.0)
    assert "(against the published" not in table_markdown(table_of(place))


def test_a_gain_on_another_corpus_need_not_be_as_large(place: Any, broken: Any) -> None:
    broken("  figure:", "  published_on: news\n" + CLAIMS + "  figure:")
    for name, value in (("sum-2", 130.0), ("max-2", 120.0), ("sum-3", 119.0)):
        place.commit(name, 1, value)
    several = claims_of(place)[0]
    assert "1.8 % better (on news). Measured" in several
    assert "worse than published" not in several
    assert several.endswith("Outcome: a tendency for it.")
    assert table_of(place).verdicts[0].published_signs == "†§"


def test_a_quoted_row_stands_by_its_published_number(place: Any, broken: Any) -> None:
    """Its sign is behind the measured gain, too, and no error is known of it."""
    claims = '  claims: [{says: "they win", better: others, than: sum-2}, {says: so, better: max-2, than: others}]\n'
    path = broken("  figure:", QUOTED + claims + "  figure:")
    assert claims_of(place) == []
    for seed, value in enumerate((119.0, 120.0, 121.0), 1):
        for name in ("sum-2", "sum-3"):
            place.commit(name, seed, value)
    assert claims_of(place) == [
        "Claim: they win. Published: Others: 105†; Sum, order 2: 111; 5.4 % better "
        "(one of them by dynamic evaluation). "
        "Measured: Others: 105†; Sum, order 2: 120; 12.5 % better (27.8 standard errors, 3 seeds; "
        "Others by dynamic evaluation). Outcome: confirmed."
    ]
    table = table_of(place)
    assert "| they win | +5.4 %†‡ | +12.5 ± 0.4 %†‡ | confirmed |" in markdown_of(table)
    assert markdown_of(table._replace(verdicts=table.verdicts[:1])).count(RECALLED) == 1
    write_report(place.results, place.sweeps, place.folder / "report")
    assert "+12.5 ± 0.4 %†‡<" in (place.folder / "report" / "index.html").read_text()
    path.write_text(path.read_text().replace("  title:", "  published_on: news\n  title:"))
    with pytest.raises(
        ValueError, match="'they win': the quoted row 'others' has no test_ppl on the text that the"
    ):
        read_sweep(path)


def test_a_quoted_row_is_alone_on_its_side(broken: Any) -> None:
    path = broken(
        "  figure:", QUOTED + "  claims: [{says: so, better: sum-2, than: [rnn, others]}]\n  figure:"
    )
    with pytest.raises(
        ValueError, match="'so' names the quoted row 'others' beside others: give it a claim alone"
    ):
        read_sweep(path)


@pytest.mark.parametrize("rival", ["than: more", "at_most: 120"])
def test_a_claim_of_quoted_rows_alone_is_refused(broken: Any, rival: str) -> None:
    more = QUOTED.replace("others", "more").replace("105", "110")
    path = broken("  figure:", f"{QUOTED}{more}  claims: [{{says: so, better: others, {rival}}}]\n  figure:")
    with pytest.raises(ValueError, match="'so' names quoted rows alone, of which nothing is measured"):
        read_sweep(path)


def test_claims_with_the_same_words_are_refused(broken: Any) -> None:
    claims = "[{says: so, better: sum-2, than: rnn}, {says: so, better: sum-3, than: rnn}]"
    path = broken("  figure:", f"  claims: {claims}\n  figure:")
    with pytest.raises(ValueError, match="two claims say 'so': give each words of its own"):
        read_sweep(path)


def test_a_claim_of_little_holds_where_nothing_is_gained(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-3", 1, 100.0)
    for value in (100.0, 99.0):
        place.commit("max-2", 1, value)
        assert claims_of(place)[0].startswith("Claim: little is gained over max.")
        assert claims_of(place)[0].endswith(": a tendency for it.")


def test_a_claim_where_more_is_better(place: Any, broken: Any) -> None:
    broken("  lower_is_better: true", f"{CLAIMS}  lower_is_better: false")
    place.commit("max-2", 1, 150.0)
    place.commit("rnn", 1, 120.0)
    assert "25.0 % better" in claims_of(place)[0]


def test_more_of_an_accuracy_is_better_in_a_table_where_less_is(place: Any, broken: Any) -> None:
    path = broken(
        "  figure:", "  claims: [{says: so, better: max-2, than: rnn, metric: test_accuracy}]\n  figure:"
    )
    metrics = "[{key: test_ppl, label: perplexity}, {key: test_accuracy, label: accuracy}]"
    text = re.sub("  metric: .*\n  metric_label.*", f"  metric: {metrics}", path.read_text())
    path.write_text(re.sub(" {6}published: ({.*})", r"      published: {test_ppl: \1}", text))
    place.commit("max-2", 1, test_accuracy=0.5)
    place.commit("rnn", 1, test_accuracy=0.4)
    assert "25.0 % better (one seed each). Outcome: a tendency for it." in claims_of(place)[0]


def test_validation_says_which_of_several_rows_a_claim_is_judged_by(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("sum-3", 1, 100.0)
    place.commit("sum-2", 1, 104.0, valid_ppl=140.0)
    place.commit("max-2", 1, 125.0, valid_ppl=130.0)
    assert "Measured: Sum, order 3: 100; Max, order 2: 125; 20.0 % better" in claims_of(place)[0]


def test_a_claim_across_corpora_is_not_judged(place: Any, broken: Any) -> None:
    """Perplexities of two texts do not compare."""
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("max-2", 1, 100.0, corpus={"name": "A", "text_checksum": "a"})
    place.commit("rnn", 1, 120.0, corpus={"name": "B", "text_checksum": "b"})
    verdict = table_of(place).verdicts[2]
    assert "RNN: 120. Outcome: not judged (on different data)" in str(verdict)
    assert verdict.gain is None


def test_a_claim_of_a_row_that_diverged_says_so(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("max-2", 1, 100.0)
    for seed in (1, 2):
        place.commit("rnn", seed, status="diverged")
    verdict = table_of(place).verdicts[2]
    assert str(verdict).endswith("Outcome: not measured yet (RNN diverged).")


def test_a_claim_of_a_row_in_conflict_says_so(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("max-2", 1, 100.0)
    for seed, name in ((1, "aaaa"), (2, "bbbb")):
        place.commit("rnn", seed, 120.0, name=name)
    verdict = table_of(place).verdicts[2]
    assert str(verdict).endswith("Outcome: not judged (the runs of RNN do not agree).")
    assert verdict.gain is None


TIME = "seconds_per_epoch"


@pytest.mark.parametrize("device", ["cpu (abacus)", "cpu (quipu)"])
def test_times_compare_on_one_device_alone(place: Any, broken: Any, device: str) -> None:
    """Neither a claim nor a ratio nor an order is drawn from two devices."""
    path = broken("metric: test_ppl", f"metric: {TIME}")
    path.write_text(path.read_text().replace("  figure:", CLAIMS + "  relative_to: rnn\n  figure:"))
    for seconds, (row, on) in enumerate((("max-2", device), ("rnn", "cpu (abacus)"), ("sum-2", device)), 1):
        place.commit(row, 1, device=on, metrics=[], seconds_per_epoch=seconds)
    place.commit("sum-3", 1, device=device, metrics=[], seconds_per_epoch=4)
    table, is_one = table_of(place), device == "cpu (abacus)"
    claim, verdict = claims_of(place)[2], table.verdicts[2]
    assert ("max beats the RNN", 0.5 if is_one else None) == (verdict.says, verdict.gain)
    assert ("tendency for it" if is_one else "Outcome: not judged (on different devices)") in claim
    assert ("50.0 % better" in claim) == is_one
    assert cells_of(table, "max-2")["measured / RNN"] == ("0.50" if is_one else "")
    place.commit("sum-3", 1, device="cpu (abacus)", metrics=[], seconds_per_epoch=4)
    assert len(table_of(place).orders) == is_one


def test_one_reading_of_a_clock_confirms_nothing(place: Any, broken: Any) -> None:
    """A model without a seed has no error over seeds in its scores, but its times vary."""
    path = broken("metric: test_ppl", f"metric: {TIME}")
    path.write_text(path.read_text().replace("  figure:", CLAIMS + "  figure:"))
    path.write_text(re.sub("model=(rnn|hornn_max)", "model=kn", path.read_text()))
    (place.folder / "conf" / "model" / "kn.yaml").write_text("{_target_: Kn, order: 5}")
    for seconds, row in enumerate(("max-2", "rnn"), 1):
        place.commit(row, 1, choices={"model": "kn"}, metrics=[], seconds_per_epoch=seconds)
    (claim,) = claims_of(place)
    assert claim.endswith("one seed each). Outcome: a tendency for it.")


def test_a_claim_between_recipes_is_not_judged(place: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    place.commit("max-2", 1, 100.0)
    place.commit(
        "rnn", 1, 120.0, config={"model": {"_target_": "Rnn", "hidden_size": 400}, "weight_noise": 1}
    )
    assert claims_of(place)[0].endswith(
        "16.7 % better (one seed each). Outcome: not judged (the rows are not trained by one recipe)."
    )


def test_a_bound_is_not_judged_by_a_run_that_departs_from_its_recipe(broken: Any, place: Any) -> None:
    broken("  figure:", '  claims: [{says: "at most 130", better: sum-2, at_most: 130}]\n  figure:')
    config = {"model": {"order": 2}, "data": {"unit": "word"}, "trainer": {"max_epochs": 3}}
    place.commit("sum-2", 1, 120.0, config=config)
    (claim,) = claims_of(place)
    assert claim.endswith("Outcome: not judged (the row departs from its recipe).")


def test_more_tokens_per_second_are_better_beside_a_perplexity(broken: Any, place: Any) -> None:
    metrics = '[{key: test_ppl, label: ppl}, {key: tokens_per_second, label: "tokens per second"}]'
    claims = "  claims: [{says: faster, better: sum-3, than: sum-2, metric: tokens_per_second}]\n"
    path = broken("  figure:", claims + "  figure:")
    text = (
        path.read_text()
        .replace("metric: test_ppl", f"metric: {metrics}")
        .replace("published: {", "published: {test_ppl: {")
    )
    text = text.replace('"table 1"}', '"table 1"}}').replace('"recalled"}', '"recalled"}}')
    path.write_text(text.replace('  metric_label: "perplexity, test"\n', ""))
    for row, speed in (("sum-2", 10_000.0), ("sum-3", 20_000.0)):
        place.commit(row, 1, 120.0, tokens_per_second=speed)
    (claim,) = claims_of(place)
    assert "100.0 % better" in claim
    assert claim.endswith("Outcome: a tendency for it.")
