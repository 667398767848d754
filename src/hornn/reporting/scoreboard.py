"""The claims as a scoreboard: a mark and a word for the outcome, both gains as bars."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hornn.reporting.claimed import Claim
from hornn.reporting.claims import (
    AGAINST,
    CONFIRMED,
    FOR,
    IN_DIRECTION,
    NOT_MEASURED,
    REFUTED,
    UNDECIDED,
    Verdict,
    tally,
)
from hornn.reporting.tables import Table

# Each outcome has a sign of its own, so that nobody has to tell colours apart; the open ones share a colour.
STYLES = {
    CONFIRMED: ("✔", "yes"),
    IN_DIRECTION: ("◐", "partly"),
    REFUTED: ("✘", "no"),
    UNDECIDED: ("?", "open"),
    FOR: ("▲", "open"),
    AGAINST: ("▼", "open"),
    NOT_MEASURED: ("○", "open"),
}
WIDTH, HEIGHT, LOW, HIGH = 170.0, 26.0, -0.2, 0.2  # gains beyond +-20 % end at the edge, with an arrow


class Claimed(NamedTuple):
    """A line of the scoreboard."""

    table: Table
    verdict: Verdict

    @property
    def mark(self) -> str:
        return STYLES.get(self.verdict.outcome, ("-", "open"))[0]

    @property
    def style(self) -> str:
        return STYLES.get(self.verdict.outcome, ("-", "open"))[1]

    @property
    def paper(self) -> str:
        return self.table.paper

    @property
    def place(self) -> tuple[str, str]:
        """Table and words, by which it differs from all others."""
        return self.table.sweep.name, self.verdict.says

    @property
    def anchor(self) -> str:
        """Where it stands in the page."""
        return f"claim-{self.table.sweep.name}-{self.table.sweep.claims.index(self.claim)}"

    @property
    def rank(self) -> tuple[bool, bool]:
        """The greatest first: whether it is measured, and whether on the data of the paper."""
        return self.verdict.outcome != NOT_MEASURED, not self.table.sweep.published_on

    @property
    def asked_by(self) -> str:
        return "the paper" if self.verdict.of_paper else "us"

    @property
    def cells(self) -> list[str]:
        """The models of its rows."""
        return self.choices("model")

    @property
    def data(self) -> list[str]:
        return self.choices("data")

    @property
    def claim(self) -> Claim:
        return next(claim for claim in self.table.sweep.claims if claim.says == self.verdict.says)

    def choices(self, group: str) -> list[str]:
        """What its rows choose of a group of configs."""
        names = {*self.claim.better, *self.claim.than}
        rows = [row for row in self.table.sweep.rows if row.name in names]
        return sorted({row.recipe.choices[group] for row in rows if group in row.recipe.choices})

    @property
    def bars(self) -> str:
        return draw_bars(self.verdict)


def list_claims(tables: Iterable[Table]) -> list[Claimed]:
    return [Claimed(table, verdict) for table in tables for verdict in table.verdicts]


def each_once(claims: Sequence[Claimed]) -> list[Claimed]:
    """The claims, without the copies that a second table repeats because it trains the same rows on other data.

    A measured claim comes before one that is not measured. Of two measured claims, the one on the paper's data stays.
    """
    best: dict[tuple[str, str], tuple[bool, bool]] = {}
    for claim in claims:
        key = claim.paper, claim.verdict.says
        best[key] = max(claim.rank, best.get(key, claim.rank))
    return [claim for claim in claims if claim.rank == best[claim.paper, claim.verdict.says]]


class Finding(NamedTuple):
    """What became of a paper's claims: its main ones, and mark, style, count and word of each outcome of all."""

    paper: str
    main: list[Claimed]
    outcomes: list[tuple[str, str, str, str]]


def summarise(claims: Sequence[Claimed]) -> list[Finding]:
    """For each paper with a main claim what became of its own claims, the paper with most claims first.

    A main claim may be a question of our own that tells how far a claim of the paper carries.
    """
    own = [claim for claim in claims if claim.verdict.of_paper]
    found = []
    for paper, _ in Counter(claim.paper for claim in own).most_common():
        main = [claim for claim in claims if claim.paper == paper and claim.claim.main]
        verdicts = [claim.verdict for claim in own if claim.paper == paper]
        known = [
            (mark, style, count, outcome)
            for outcome, (mark, style) in STYLES.items()
            if (count := tally(outcome, verdicts))
        ]
        if main:
            found.append(Finding(paper, main, known))
    return found


def draw_bars(verdict: Verdict) -> str:
    """The published gain as a hollow bar above the measured gain as a full bar with its standard error.

    A picture for the page, whose style it needs and whose words beside it say the same.
    """
    paths = [f'<path class="zero" d="M{place(0):g} 0V{HEIGHT:g}"/>']
    if verdict.published_gain is not None:
        paths.append(bar(verdict.published_gain, 3, "hollow"))
    if verdict.gain is not None:
        paths.append(bar(verdict.gain, 15, "full"))
    if verdict.gain is not None and verdict.error is not None:
        low, high = (place(verdict.gain + sign * verdict.error) for sign in (-1, 1))
        paths.append(f'<path class="error" d="M{low:g} 19H{high:g}"/>')
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}">{"".join(paths)}</svg>'


def place(gain: float) -> float:
    return round(WIDTH * (min(max(gain, LOW), HIGH) - LOW) / (HIGH - LOW), 1)


def bar(gain: float, top: float, style: str) -> str:
    left, right = sorted((place(0), place(gain)))
    drawn = f'<path class="{style}" d="M{left:g} {top:g}h{max(round(right - left, 1), 1):g}v8H{left:g}z"/>'
    if not LOW <= gain <= HIGH:
        x, step = (WIDTH - 1, -6) if gain > 0 else (1, 6)
        drawn += f'<path class="beyond" d="M{x:g} {top + 4:g}l{step:g} -4v8z"/>'
    return drawn
