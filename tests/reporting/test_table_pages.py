"""The pages beside the results, and the blocks of pages that people write."""

import re
from typing import Any

import pytest

from hornn.reporting.commands import write_pages, write_report
from reporting.place import CLAIMS

BLOCKS = "before  \n\n<!-- {} -->\nold\n<!-- end -->\nafter"


def filled_block(place: Any, words: str, page: str = "docs/findings/toy.md") -> str:
    """What stands in the block after the pages were written."""
    path = place.folder / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BLOCKS.format(words))
    write_pages(place.results, place.sweeps, place.folder)
    before, _, rest = path.read_text().partition(f"<!-- {words} -->\n")
    text, _, after = rest.partition("<!-- end -->")
    assert (before, after) == ("before  \n\n", "\nafter")
    return text


def test_a_table_has_its_page_beside_its_results(filled: Any) -> None:
    write_pages(filled.results, filled.sweeps, filled.folder)
    folder = filled.results / "tables" / "toy"
    text = (folder / "README.md").read_text()
    assert text.startswith(
        "# Toy: order and pooling\n\nNobody 2000, table 1. Perplexity, test.\n\n[All tables](../README.md)"
    )
    assert "[Sweep file](../../../sweeps/toy.yaml)" in text
    assert "![Toy: order and pooling](figure.svg)\n\nPerplexity, test against order." in text
    assert "| [seed 1](sum-2-seed1.json), [seed 2](sum-2-seed2.json) |" in text
    assert text.endswith(
        "\n## Command\n\n```\npython src/train.py -m sweeps=toy\n```\n\nOne row and seed: the same command and "
        '`"hydra.sweeper.only=[rnn]" "sweep.seeds=[1]"`.\n'
    )
    for picture in ("figure.svg", "ranks-1.svg", "../overview.svg"):
        assert (folder / picture).read_text().rstrip().endswith("</svg>")
    assert "the paper separates stand in the same order." in text


def test_the_ranks_by_every_metric_are_shown(place: Any, broken: Any) -> None:
    broken(
        'metric: test_ppl\n  metric_label: "perplexity, test"',
        "metric: [{key: valid_ppl, label: valid}, {key: test_ppl, label: test}]",
    )
    path = place.sweeps / "toy.yaml"
    both = r"published: {valid_ppl: {\1}, test_ppl: {\1}}"
    path.write_text(re.sub(r"published: {(.*)}", both, path.read_text()))
    for row, score in (("sum-2", 120.0), ("sum-3", 110.0), ("max-2", 130.0)):
        place.commit(row, 1, score)
    write_pages(place.results, place.sweeps, place.folder)
    text = (place.results / "tables" / "toy" / "README.md").read_text()
    assert text.index("(ranks-1.svg)\n\nRanks by valid") < text.index("(ranks-2.svg)\n\nRanks by test")


def test_the_overview_leads_to_every_table(filled: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS.replace("three beat two", "three beat | two") + "  figure:")
    filled.write_sweep(
        "later",
        (filled.sweeps / "toy.yaml")
        .read_text()
        .replace("name: toy", "name: later", 1)
        .replace("[model", "[optimizer.lr=9, model"),
    )
    for seed in (1, 2):
        filled.commit("sum-3", seed, 100.0)
    write_pages(filled.results, filled.sweeps, filled.folder)
    text = (filled.results / "tables" / "README.md").read_text()
    assert "| [Toy: order and pooling](toy/README.md) | 3 of 4 | -0.9 %" in text
    assert "| three beat \\| two | [Toy](toy/README.md) | +1.8 %† | +8.3 % | a tendency for it |" in text
    assert (
        "- [Toy: order and pooling](../../sweeps/later.yaml), 5 rows: `python src/train.py -m sweeps=later`"
        in text
    )
    assert "lstm" not in text, "a run that only this checkout has"
    assert not (filled.results / "tables" / "later").exists()


def test_pages_are_the_same_each_time_and_go_with_their_results(filled: Any) -> None:
    def contents() -> dict[str, str]:
        return {str(path): path.read_text() for path in (filled.results / "tables").rglob("*.[ms][dv]*")}

    write_pages(filled.results, filled.sweeps, filled.folder)
    once = contents()
    write_pages(filled.results, filled.sweeps, filled.folder)
    assert contents() == once
    assert len(once) == 5
    for path in (filled.results / "tables" / "toy").glob("*.json"):
        path.unlink()
    write_pages(filled.results, filled.sweeps, filled.folder)
    assert [path.rpartition("/")[2] for path in contents()] == ["README.md"]
    page = (filled.results / "tables" / "README.md").read_text()
    assert "No published number has a measured one beside it yet." in page


def test_rows_of_a_table_in_a_page(filled: Any) -> None:
    for seed, score in ((1, 110.0), (2, 111.0), (3, 112.0), (4, 111.0), (5, 111.0)):
        filled.commit("rnn", seed, score)
    assert filled_block(filled, "rows: toy rnn sum-3 sum-2 stack").splitlines() == [
        "| network | published | measured | gain, published | gain, measured |",
        "|---|---:|---:|---:|---:|",
        "| RNN | 123‡ | 111.0 ± 0.3 (5 seeds) |  |  |",
        "| Sum, order 3 | 108† | 107.0 ± 0.7 (1 seed) | +12.2 %†‡ | +3.6 ± 0.7 % |",
        "| Sum, order 2 | 111 | 112.0 ± 0.5 (2 seeds) | +9.8 %‡ | -0.9 ± 0.5 % |",
        "| Stack &lt;RNN> | 110 | not built | +10.6 %‡ |  |",
        "",
        "Perplexity, test. Gains are relative to the RNN. ±: one standard error. "
        "†: recalled or second-hand: not read in the paper itself. "
        "‡: the published number used dynamic evaluation; the measured one did not. "
        "[All rows](../../outputs/tables/toy/README.md).",
    ]


def test_rows_without_published_numbers_and_of_another_metric(place: Any, broken: Any) -> None:
    broken(
        'metric: test_ppl\n  metric_label: "perplexity, test"',
        "metric: [{key: valid_ppl, label: valid}, {key: test_ppl, label: test}]",
    )
    path = place.sweeps / "toy.yaml"
    path.write_text(re.sub(r"\n +published: .*", "", path.read_text()))
    place.commit("sum-2", 1, 100.0)
    text = filled_block(place, "rows: toy sum-2 metric=valid_ppl", page="README.md")
    assert text.startswith(
        "| network | measured |\n|---|---:|\n| Sum, order 2 | 105.0 (1 seed) |\n\nValid. [All rows]("
    )
    assert "| 100.0 (1 seed) |" in filled_block(place, "rows: toy sum-2", page="README.md")


def test_claims_in_a_page(filled: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    text = (filled.sweeps / "toy.yaml").read_text().replace("name: toy", "name: toy_two", 1)
    filled.write_sweep("toy_two", re.sub(r"\n +published: .*", "", text))
    link = "[Toy](../../outputs/tables/toy/README.md)"
    judged = f"{link} | +1.8 %† | +1.8 % | a tendency for it |"
    head = ["", "| claim | table | gain, published | gain, measured | outcome |", "|---|---|---:|---:|---|"]
    text = filled_block(filled, "claims: toy")
    lines = text.splitlines()
    assert lines[:6] == [
        "**Claims of the papers**",
        *head,
        f"| three beat two | {judged}",
        f"| little is gained over max | {judged}",
    ]
    assert lines[6] == f"| max beats the RNN | {link} | +10.6 %‡ |  | not measured yet |"
    assert lines[-10:-5] == ["", "**Questions of our own**", *head], (
        "of the other sweep, without published numbers"
    )
    assert len(lines) == 17
    assert "toy_two" not in filled_block(filled, "claims: toy_two").replace("tables/toy_two", "")
    few = filled_block(filled, "claims: toy_two says=gained_over says=the_RNN").splitlines()
    assert [line.split(" | ")[0] for line in few if "tables/" in line] == [
        "| little is gained over max",
        "| max beats the RNN",
    ]
    with pytest.raises(ValueError, match="no claim of toy_two says 'three win'"):
        filled_block(filled, "claims: toy_two says=two says=three_win")


def test_the_picture_in_a_page(filled: Any, place: Any) -> None:
    text = filled_block(filled, "overview", page="README.md")
    assert text.startswith(
        "![Published and measured numbers of all tables](outputs/tables/overview.svg)\n\nPublished → "
    )
    assert "all 3 rows with both numbers" in text
    assert text.endswith("[All tables and claims](outputs/tables/README.md).\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rows: tpy rnn", "there is no sweep 'tpy'; there are: toy"),
        ("rows: toy rnn sum-9", "toy has no row 'sum-9'; its rows are: rnn, sum-2, sum-3, max-2, stack"),
        ("rows: toy", "name rows behind toy; its rows are: rnn"),
        ("rows: toy rnn metric=ppl", "toy has no metric 'ppl'; its metrics are: test_ppl"),
        ("rows", "there is no sweep ''; there are: toy"),
        ("claims: tpy", "there is no sweep 'tpy'; there are: toy"),
        ("claims: toy", "no claims in toy: name sweeps that have some"),
    ],
)
def test_a_wrong_word_in_a_block_is_named_with_its_place(place: Any, words: str, message: str) -> None:
    page = place.folder / "README.md"
    page.write_text(BLOCKS.format(words))
    with pytest.raises(ValueError, match="^" + re.escape(f"{page}, line 3: {message}")):
        write_pages(place.results, place.sweeps, place.folder)
    assert page.read_text() == BLOCKS.format(words)


def test_the_claims_of_all_tables_come_first_on_the_page(filled: Any, broken: Any) -> None:
    broken("  figure:", CLAIMS + "  figure:")
    write_report(filled.results, filled.sweeps, filled.folder / "report")
    page = (filled.folder / "report" / "index.html").read_text()
    assert page.index("three beat two") < page.index('<section class="view" id="table-toy">')


def test_a_table_whose_file_was_not_read_is_not_dropped(filled: Any) -> None:
    """As where --config-dir was forgotten: the pages count all tables."""
    write_pages(filled.results, filled.sweeps, filled.folder)
    page = filled.results / "tables" / "README.md"
    before = page.read_text()
    filled.commit("rnn", 1, sweep="mine")
    with pytest.raises(
        ValueError, match=r"mine belongs to no sweep file: give --config-dir=FOLDER where its file is"
    ):
        write_pages(filled.results, filled.sweeps, filled.folder)
    assert page.read_text() == before
