"""The results in the README."""

from typing import Any

from hornn.reporting.commands import renew_readme, write_report
from hornn.reporting.markdown import table_markdown
from hornn.reporting.readme import contents_markdown
from reporting.place import README_BEGIN, README_END, table_of


def test_the_overview_leads_to_the_headings(place: Any) -> None:
    title = "HORNN, section 4.1.1: weights, time"
    text = (place.sweeps / "toy.yaml").read_text()
    place.write_sweep("toy", text.replace("Toy: order and pooling", title))
    place.commit("sum-2", 1)
    table = table_of(place)
    assert f"| [{title}](#hornn-section-411-weights-time) | 1 of 4 |" in contents_markdown([table])
    assert table_markdown(table, place.folder).startswith(
        f"### {title}\n\nNobody 2000, table 1; perplexity, test\n"
    )


def test_readme_holds_the_tables_of_committed_results(filled: Any) -> None:
    readme = filled.folder / "README.md"
    readme.write_text(f"before\n{README_BEGIN}\nold\n{README_END}\nafter\n")
    renew_readme(filled.results, filled.sweeps, readme)
    text = readme.read_text()
    assert text.startswith(f"before\n{README_BEGIN}\n| table | rows |")
    assert "\n\n### Toy: order and pooling\n\nNobody 2000, table 1; perplexity, test\n" in text
    assert text.endswith(f"\n{README_END}\nafter\n")
    assert "[seed 1](outputs/tables/toy/sum-2-seed1.json)" in text
    assert "lstm" not in text
    assert (
        "![Toy: order and pooling](outputs/tables/toy/figure.svg)\n\n● sum, ■ max: perplexity, test against"
        in text
    )
    assert "</svg>" in (filled.results / "tables" / "toy" / "figure.svg").read_text()
    renew_readme(filled.results, filled.sweeps, readme)
    assert readme.read_text() == text


def test_the_claims_of_all_tables_come_first(filled: Any) -> None:
    path = filled.sweeps / "toy.yaml"
    claim = '{says: "two beat | one", better: sum-2, than: max-2}'
    path.write_text(path.read_text().replace("  figure:", f"  claims: [{claim}]\n  figure:"))
    for row in ("sum-2", "max-2"):
        filled.commit(row, 1, {"sum-2": 100.0, "max-2": 125.0}[row])
        filled.commit(row, 2, {"sum-2": 100.0, "max-2": 125.0}[row])
    readme = filled.folder / "README.md"
    readme.write_text(f"{README_BEGIN}{README_END}")
    renew_readme(filled.results, filled.sweeps, readme)
    first, _, rest = readme.read_text().partition("### Toy: order and pooling")
    assert "| two beat \\| one | Toy | Sum, order 2: 111; Max, order 2: 110; 0.9% worse |" in first
    assert "20.0% better" in first
    assert "two beat" not in rest
    write_report(filled.results, filled.sweeps, filled.folder / "report")
    page = (filled.folder / "report" / "index.html").read_text()
    assert page.index("two beat | one") < page.index('<section id="toy">')


def test_readme_without_results_says_so(place: Any) -> None:
    readme = place.folder / "README.md"
    readme.write_text(f"{README_BEGIN}{README_END}")
    renew_readme(place.results, place.sweeps, readme)
    assert readme.read_text() == f"{README_BEGIN}\nNo runs yet.\n{README_END}"
