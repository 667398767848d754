"""What the node `sweep` of a config says of a table: its rows, their seeds, and the rows that others start from."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser

from hornn.command_line.messages import check_once
from hornn.reporting.schema import ROW_KEYS, SWEEP_KEYS, check_known, read_seeds, rows_named
from hornn.run.identity import INIT_FROM
from hornn.sweep.expand import keys_of


def check_table(table: Mapping[str, Any], chosen: str | None) -> None:
    """Raise ValueError for a key that no table takes, and where a sweep file defines a table without rows.

    table: the node `sweep` of the config; chosen: the sweep file, None where the command line says it all.
    """
    where = f"sweep {table.get('name') or chosen!r}"
    check_known(table, SWEEP_KEYS, where)
    rows = table.get("rows")
    needed = (chosen and table and "grid" not in table) or "rows" in table
    if needed and not (isinstance(rows, list) and rows):
        raise ValueError(f"{where}: rows must list the rows of the table, got {rows!r}")
    for number, row in enumerate(rows or (), start=1):
        if not isinstance(row, dict):
            raise ValueError(f"{where}: row {number} must hold keys and values, got {row!r}")
        check_known(row, ROW_KEYS, f"{where}, row {row.get('name', number)!r}")


def seeds_of(table: Mapping[str, Any], default: int, asked: bool) -> dict[str, list[list[str]]]:
    """The overrides of the seeds of each row: its own, or the table's; `asked`: the command line gives the table's."""
    common = read_seeds(table.get("seeds", [default]), "sweep.seeds")
    found = {}
    for row in table["rows"]:
        own = "seeds" in row and not asked
        seeds = read_seeds(row["seeds"], f"row {row['name']!r}: seeds") if own else common
        found[str(row["name"])] = [[f"seed={seed}"] for seed in seeds]
    return found


def runs_of(
    table: Mapping[str, Any], given: Collection[str], parser: OverridesParser
) -> dict[str, list[str]]:
    """The overrides of each row that is a run; `given`: keys that the command line sets."""
    runs: dict[str, list[str]] = {}
    names = [str(row.get("name")) for row in table["rows"]]
    for row, name in zip(table["rows"], names, strict=True):
        where = f"row {name!r} of sweep {table.get('name')!r}"
        if not row.get("name") or "'" in name or names.count(name) > 1:
            raise ValueError(f"{where}: each row has a name of its own, without quotes")
        if "run" not in row or not isinstance(row["run"], list | None):
            raise ValueError(
                f"{where} has no list 'run' of its overrides: write one, or run: null with a state"
            )
        if row["run"] is None:
            continue
        words = [str(word) for word in row["run"]]
        check_once(words, f"{where}: ")
        for override in parser.parse_overrides(words):
            if override.is_sweep_override():
                raise ValueError(f"{where}: {override.input_line} is several runs; a row is one")
            for key in keys_of(override):
                if key == "seed":
                    raise ValueError(f"{where} sets the seed: seeds: [{override.value()}] does so for a row")
                if key in given:
                    raise ValueError(
                        f"{where} sets {key} itself: the command line cannot set it for the whole table"
                    )
        runs[name] = words
    if not runs:
        raise ValueError(f"sweep {table.get('name')!r} has no row that can be run yet")
    return runs


def starts_of(
    table: Mapping[str, Any], runs: Mapping[str, list[str]], given: Collection[str]
) -> dict[str, list[str]]:
    """Row -> the rows whose networks the row starts from or mixes. `given`: keys that the command line sets."""
    starting = [row for row in table["rows"] if "start" in row]
    names = {str(row["name"]) for row in starting}
    common = table.get("seeds", [1])
    listed = {str(row["name"]): row.get("seeds", common) for row in table["rows"]}
    starts = {}
    for row in starting:
        name, where = str(row["name"]), f"row {row['name']!r} of sweep {table.get('name')!r}"
        starts[name] = rows_named(row["start"], where)
        for start in starts[name]:
            if start not in runs or start in names or name not in runs:
                raise ValueError(
                    f"{where} starts from {start!r}: name a row with a run that starts from no other"
                )
            seeds = [sorted(read_seeds(listed[each], f"row {each!r}: seeds")) for each in (name, start)]
            if seeds[0] != seeds[1]:
                raise ValueError(
                    f"{where} starts from {start!r}: give both the same seeds, got {seeds[0]} and {seeds[1]}"
                )
        if INIT_FROM in given:
            raise ValueError(
                f"{where} sets {INIT_FROM} itself: the command line cannot set it for the whole table"
            )
    return starts


def with_starts(names: Sequence[str], starts: Mapping[str, Sequence[str]]) -> list[str]:
    """These rows, each behind the rows that `starts` has for it."""
    return list(dict.fromkeys(each for name in names for each in (*starts.get(name, ()), name)))


def picked(runs: Mapping[str, list[str]], only: Any) -> list[str]:
    """The rows that `only` names, in its order; None: all, in the table's."""
    if only is None:
        return list(runs)
    if not isinstance(only, Sequence) or isinstance(only, str) or not only:
        raise ValueError(
            f"hydra.sweeper.only must be a list of rows such as [{next(iter(runs))}], got {only!r}"
        )
    names = [str(name) for name in only]  # a row may be called 2
    for name in names:
        if name not in runs:
            raise ValueError(f"hydra.sweeper.only: no row {name!r} to run; the table has: {', '.join(runs)}")
    return list(dict.fromkeys(names))
