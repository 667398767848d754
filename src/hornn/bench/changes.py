"""A benchmark beside an earlier one: what got slower."""

from collections.abc import Mapping
from typing import Any

from hornn.bench.meter import Row
from hornn.bench.tables import cells, header, origin, place

ENOUGH = 5  # rounds that show how far a ratio strays


def identity(row: Row) -> tuple[Any, ...]:
    """What makes two rows the same measurement."""
    return tuple(row.get(key) for key in ("section", "work", "ours", "backend", "precision", "other"))


def compare_rows(now: list[Row], then: list[Row]) -> list[Row]:
    """For each row that both have with a time or a memory of ours: now / then, of the value and of its ratio to the
    other."""
    before = {identity(row): row for row in then}
    changes = []
    for row in now:
        old = before.get(identity(row), {})
        for unit, key in (("ms", "ours_ms"), ("MB", "ours_mb")):
            if key in row and key in old:
                noise = "never quiet" if False in (row.get("quiet"), old.get("quiet")) else None
                change = {"now": row[key], "then": old[key], "unit": unit, "change": row[key] / old[key]}
                change["noise"] = noise
                change |= {
                    "spread_now": spread_of(row),
                    "spread_then": spread_of(old),
                    "ratio_then": old["ratio"],
                }
                changes.append({**row, **change, "ratio_change": row["ratio"] / old["ratio"]})
    return changes


def find_slower(changes: list[Row]) -> list[str]:
    """What got slower, or larger, than either measurement's own spread explains, each in words.

    A ratio to the other side did: its median now lies above all that was then, and then's below all that is now. A row
    that was never quiet, or has few rounds, says nothing.
    """
    found = []
    for row in changes:
        now, then = row["spread_now"], row["spread_then"]
        if row["noise"] or now is None or then is None:
            continue
        if row["ratio"] > then[1] and row["ratio_then"] < now[0]:
            what = " ".join(
                [f"{row['section']}, {row['work']}, {row['ours']}", row.get("backend", "")]
            ).strip()
            found.append(f"{what}: {row['ratio']:.2f} of {row['other']}, was {row['ratio_then']:.2f}")
    return found


def spread_of(row: Row) -> list[float] | None:
    """The least and the largest ratio of a row, where it has enough rounds, or processes, to show them."""
    if "ours_range" in row:
        return [size / row["other_mb"] for size in row["ours_range"]]
    return row["spread"] if row.get("rounds", 0) >= ENOUGH else None


def render_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> str:
    """The comparison as a table. The last column does not depend on how fast the machine is."""
    changes = compare_rows(now["rows"], then["rows"])
    columns = {
        "section": "{section}",
        "work": "{work}",
        "ours": "`{ours}`",
        "backend": "{backend}",
        "asked for": "{precision}",
        "other": "{other}",
        "now": "{now:.1f} {unit}",
        "then": "{then:.1f} {unit}",
        "now / then": "{change:.2f}",
        "ratio now / then": "{ratio_change:.2f}",
        "noise": "{noise}",
    }
    places = [place(results) for results in (now, then)]
    where = "" if places[0] == places[1] else f" Now on {places[0]}; then on {places[1]}."
    title = f"**Against {origin(then)}:** {len(changes)} rows of both.{where}"
    return "\n".join([title, "", *header(columns), *(cells(columns.values(), row) for row in changes)])
