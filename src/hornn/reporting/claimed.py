"""What a sweep file claims of its rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hornn.reporting.schema import CLAIM_KEYS, NEEDED, check, rows_named

QUOTED = "quoted"  # the state of a row whose number is of others


class Claim(NamedTuple):
    """The best row of `better` beats the best of `than`; of measured rows, the best on validation.

    A quoted row stands by its published number, alone on its side; one row at least is not quoted.

    With `at_most` the claim is that `better` is ahead by so many percent at most, or behind; without `than`, that its
    number is so much at most.

    `says` puts the claim in words; `metric` is the key of the numbers that decide. `where` says which part of the paper
    makes the claim, if its rows have no published numbers; a claim without either is a question of our own. `main`: it
    stands on the page's first screen.
    """

    says: str
    better: tuple[str, ...]
    than: tuple[str, ...]
    metric: str
    at_most: float | None = None
    where: str = ""
    main: bool = False

    @property
    def limit(self) -> float:
        """The gain in percent that parts a claim that holds from one that does not."""
        return self.at_most or 0.0

    def holds(self, gain: float) -> bool:
        """Whether a gain, relative and not in percent, bears the claim."""
        return gain > 0 if self.at_most is None else 100 * gain <= self.at_most

    def is_against(self, gain: float) -> bool:
        """Whether a published gain contradicts the claim; no gain at all leaves open who is ahead."""
        return not self.holds(gain) and gain != 0


def read_claims(
    nodes: Sequence[Any], keys: Sequence[str], rows: Mapping[str, Any], path: Path
) -> tuple[Claim, ...]:
    """The claims of a file. Raises ValueError for a wrong one, and where two say the same."""
    claims = tuple(read_claim(node, keys, rows, path) for node in nodes)
    said: set[str] = set()
    for claim in claims:
        if claim.says in said:
            raise ValueError(
                f"{path}: sweep.claims: two claims say {claim.says!r}: give each words of its own"
            )
        said.add(claim.says)
    return claims


def read_claim(node: Any, keys: Sequence[str], rows: Mapping[str, Any], path: Path) -> Claim:
    """A claim of a file whose metrics have these keys. Raises ValueError for a wrong one.

    rows: each `hornn.reporting.sweeps.Row` by its name.
    """
    where = f"{path}: sweep.claims"
    check(node, CLAIM_KEYS, where, NEEDED - {"metric"})
    if "than" not in node and "at_most" not in node:
        raise ValueError(f"{where}: {node['says']!r} needs than, the rows that lose, or at_most, a bound")
    place = f"{where}: {node['says']!r}"
    better, than = (
        tuple(rows_named(node[key], place, key)) if key in node else () for key in ("better", "than")
    )
    for name in (*better, *than):
        if name not in rows:
            raise ValueError(f"{place} names {name!r}, which is no row")
    if twice := set(better) & set(than):
        raise ValueError(f"{place} names {min(twice)!r} in better and in than: leave it out of one")
    for side in (better, than):
        if len(side) > 1 and (quoted := [name for name in side if rows[name].state == QUOTED]):
            raise ValueError(
                f"{place} names the quoted row {quoted[0]!r} beside others: give it a claim alone"
            )
    if all(rows[name].state == QUOTED for name in (*better, *than)):
        raise ValueError(f"{place} names quoted rows alone, of which nothing is measured: leave it out")
    metric = node.get("metric", keys[0])
    if metric not in keys:
        raise ValueError(f"{place} names the metric {metric!r}, which the table has not")
    for name in (*better, *than):
        published = rows[name].published.get(metric)
        if rows[name].state == QUOTED and (published is None or published.value is None or published.corpus):
            raise ValueError(
                f"{place}: the quoted row {name!r} has no {metric} on the text that the runs read"
            )
    limit, source = node.get("at_most"), node.get("where", "")
    if not than and limit <= 0:
        raise ValueError(f"{place}: at_most must be above 0 where no row is named in than, got {limit!r}")
    return Claim(node["says"], better, than, metric, limit, source, node.get("main", False))
