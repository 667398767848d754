"""The table of tables: a line for each, with how much of it is measured and what became of its claims."""

from statistics import median

from hornn.reporting.claims import CONFIRMED, IN_DIRECTION, REFUTED, UNDECIDED
from hornn.reporting.grid import UNVERIFIED_SIGN
from hornn.reporting.seeds import spread_over_seeds
from hornn.reporting.tables import Table

OVERVIEW_HEADER = (
    "table",
    "rows",
    "ours beside the published",
    "claims confirmed",
    "in direction alone",
    "not confirmed",
    "undecided",
    "deviation over seeds",
)
OVERVIEW_NOTE = (
    "Rows: measured, of those that can be run. Ours beside the published: the median, least and greatest of "
    "(ours - published) / published, neither by dynamic evaluation nor times; "
    f"{UNVERIFIED_SIGN} some of the published are recalled or second-hand. Claims: those whose rows are all measured; "
    "in direction alone: with less than half of the published gain; undecided: within three standard errors, of the "
    "deviation over seeds of all rows of the table, which stands last. A table without it has too few seeds, and its "
    "claims are taken by their direction."
)


def overview_cells(table: Table) -> tuple[str, ...]:
    """Its line in the table of tables, as `OVERVIEW_HEADER` names the cells; the first is its title."""
    shares = [round(score.relative_difference or 0.0, 3) + 0.0 for score in table.compared]  # no -0.0
    sign = (
        ""
        if all(score.published and score.published.verified for score in table.compared)
        else UNVERIFIED_SIGN
    )
    ends = f" ({min(shares):+.1%} to {max(shares):+.1%})" if len(shares) > 1 else ""
    return (
        table.sweep.title,
        f"{table.measured} of {table.runnable}" if table.runnable else "not built",
        f"{median(shares):+.1%}{ends}{sign}" if shares else "",
        *(str(table.count(outcome) or "") for outcome in (CONFIRMED, IN_DIRECTION, REFUTED, UNDECIDED)),
        spread_of_claims(table),
    )


def spread_of_claims(table: Table) -> str:
    """The deviation over seeds of what its claims are about, relative to the mean; empty with too few seeds."""
    share = spread_over_seeds(table.sweep.claims[0].metric, table.lines) if table.sweep.claims else None
    return f"{share:.1%}" if share else ""
