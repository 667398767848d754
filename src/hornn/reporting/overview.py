"""The table of tables: a line for each, with how much of it is measured and what became of its claims."""

from statistics import median

from hornn.reporting.claims import CONFIRMED, IN_DIRECTION, REFUTED, UNDECIDED
from hornn.reporting.numbers import UNVERIFIED_SIGN, percent
from hornn.reporting.seeds import spread_over_seeds
from hornn.reporting.tables import Table

OVERVIEW_HEADER = (
    "table",
    "rows measured",
    "measured against published",
    CONFIRMED,
    IN_DIRECTION,
    REFUTED,
    UNDECIDED,
    "spread over seeds",
)
OVERVIEW_NOTE = (
    "Measured against published: the median, least and greatest of (measured - published) / published, without "
    f"dynamic evaluation and times. {UNVERIFIED_SIGN}: some published numbers are recalled or second-hand. The next "
    "four columns count claims. "
    f"{CONFIRMED.capitalize()}: the rows stand in the claimed order. {IN_DIRECTION.capitalize()}: they do, by less "
    f"than 50 % of the published gain. {REFUTED.capitalize()}: they do not. {UNDECIDED.capitalize()}: the difference "
    "is under three standard errors. "
    "Spread over seeds: the pooled relative standard deviation of all rows with several seeds; it serves as every "
    "row's standard deviation. A table without it has too few seeds, and the sign of a difference decides its claims."
)


def overview_cells(table: Table) -> tuple[str, ...]:
    """Its line in the table of tables, as `OVERVIEW_HEADER` names the cells; the first is its title."""
    shares = [score.relative_difference or 0.0 for score in table.compared]
    sign = (
        ""
        if all(score.published and score.published.verified for score in table.compared)
        else UNVERIFIED_SIGN
    )
    low, middle, high = (percent(take(shares), signed=True) if shares else "" for take in (min, median, max))
    ends = f" ({low} to {high})" if len(shares) > 1 else ""
    return (
        table.sweep.title,
        f"{table.measured} of {table.runnable}" if table.runnable else "not built",
        f"{middle}{ends}{sign}",
        *(str(table.count(outcome) or "") for outcome in (CONFIRMED, IN_DIRECTION, REFUTED, UNDECIDED)),
        spread_of_claims(table),
    )


def spread_of_claims(table: Table) -> str:
    """The spread over seeds of what its claims are about; empty with too few seeds."""
    share = spread_over_seeds(table.sweep.claims[0].metric, table.lines) if table.sweep.claims else None
    return percent(share) if share else ""
