"""The table of tables: a line for each, with how much of it is measured and what became of its claims."""

from statistics import median

from hornn.reporting.claims import AGAINST, CONFIRMED, FOR, IN_DIRECTION, REFUTED, UNDECIDED, tally
from hornn.reporting.lines import by_data
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
    "tendency",
    "spread over seeds",
)
OVERVIEW_NOTE = (
    "Measured against published: the median, least and greatest of (measured - published) / published, without "
    f"dynamic evaluation and times. {UNVERIFIED_SIGN}: some published numbers are recalled or second-hand. The next "
    "five columns count claims; two claims may ask one thing in different words. Of 370 claims about rows that are "
    "equal in truth, chance decides one, where few seeds tell the standard error several. "
    f'{CONFIRMED.capitalize()}: the rows stand in the claimed order; of a claim that says "at most", the gain or the '
    f"number is no greater, or there is a loss. {IN_DIRECTION.capitalize()}: the rows stand in the claimed order, by "
    f"less than 50 % of the published gain. {REFUTED.capitalize()}: the claim does not hold. "
    f"{UNDECIDED.capitalize()}: the difference, or the distance from what a claim says at most, is under three "
    "standard errors, or more where few seeds tell their size. "
    "Tendency: the sign of the gain is for the claim or against it, and no standard error is known, as with one seed "
    "each; this decides nothing. "
    "Spread over seeds: the pooled relative standard deviation of all rows with several seeds, by the metric of the "
    "first claim, else by the first metric; from the least to the greatest, where corpora differ. It is empty where "
    "too few seeds are measured or all are alike."
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
        *(tally(outcome, table.verdicts) for outcome in (CONFIRMED, IN_DIRECTION, REFUTED, UNDECIDED)),
        ", ".join(
            f"{count} {word}"
            for outcome, word in ((FOR, "for"), (AGAINST, "against"))
            if (count := tally(outcome, table.verdicts))
        ),
        spread_of_table(table),
    )


def spread_of_table(table: Table) -> str:
    """The spread over seeds of what its first claim is about, else of its first metric; empty with too few seeds.

    Where corpora differ, from the least to the greatest.
    """
    metric = [*(claim.metric for claim in table.sweep.claims), table.sweep.metrics[0].key][0]
    groups = [*by_data(table.lines).values(), table.lines]
    known = [spread.share for lines in groups if (spread := spread_over_seeds(metric, lines))]
    shares = sorted(known[:-1] or known)  # the last one is of all corpora, for where none has its own
    return " to ".join(dict.fromkeys(percent(share) for share in (shares[:1] + shares[-1:])))
