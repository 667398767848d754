"""Finding the runs of each row of a table: the records that sweeps leave, result files, and what is wrong with them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hornn.reporting.departures import DEPARTS_FROM_RECIPE, departures
from hornn.reporting.running import has_begun, kept_name, read_run_so_far
from hornn.reporting.sweeps import Row, Sweep
from hornn.result import (
    LARGEST,
    MEMORY,
    RESULT,
    SCHEMA_VERSION,
    UTTERANCES,
    check_kinds,
    check_result,
    read_json,
    scores_of,
)
from hornn.run.code import CODE, other_code, own_source
from hornn.shown import shown, shown_texts
from hornn.sweep.record import RECORDINGS, Entry, read_record
from hornn.writing import write_atomically

# The parts of a result that a run has only where somebody asked for them.
ADDED_LATER = ("dynamic", MEMORY, UTTERANCES)
NEEDED = ("schema_version", "status", "seed", "name", "num_parameters")


class Run(NamedTuple):
    """One run of a row. `state`: done, diverged, damaged; without a result queued, unfinished, running, failed, lost.

    `result` holds result.json where it can be read, `problem` says why not, or what failed. `records` holds the epochs
    so far of one without a result, `progress` says how far it is. `again` is the same run, trained here once more,
    whose result does not count.
    """

    seed: int
    state: str
    path: Path | None = None
    result: Mapping[str, Any] = {}
    problem: str = ""
    name: str | None = None
    folder: Path | None = None
    records: tuple[Mapping[str, float], ...] = ()
    progress: str = ""
    again: "Run | None" = None

    @property
    def source(self) -> str:
        """The user's own classes, each with its source; empty where they are not known."""
        return own_source(self.result.get(CODE) or {})

    def has_source_of(self, other: "Run") -> bool:
        return self.source == other.source or "" in (self.source, other.source)


class FoundRuns(NamedTuple):
    """`runs`: identity of a row -> its runs; `warnings`: name of a sweep, or "", -> what was found and fits nowhere."""

    runs: dict[str, list[Run]]
    warnings: dict[str, list[str]]


def find_runs(
    sweeps: Sequence[Sweep], results: Path, committed_only: bool = False, refused: Collection[str] = ()
) -> FoundRuns:
    """The runs of all rows of all sweeps.

    `results`/tables/<sweep>/<row>-seed<k>.json are the committed results, `results`/sweeps/<sweep>.json the
    records of what was launched. A committed result wins over the run's own file where both are of one config, unless
    that mends it. Rows that are the same run share their runs, whichever sweep launched them. A committed result that
    departs from its row, as after an edit of the row, still serves the rows of other tables that it keeps to. refused:
    names of sweep files that cannot be read, whose results are passed over.
    """
    found, strays = FoundRuns({}, {}), list[Run]()
    for sweep in sweeps:
        for row, run in committed(sweep, results, found.warnings):
            add_run(found.runs.setdefault(row.identity, []), run)
            strays += [run] if run.result and departures(row.recipe, run.result) else []
    for run in strays:
        for _, row in rows_kept_to(run, sweeps):
            add_run(found.runs.setdefault(row.identity, []), run)
    if not committed_only:
        for sweep in sweeps:
            for row, run in recorded(sweep, results, found.warnings):
                add_run(found.runs.setdefault(row.identity, []), run)
    names = {*refused, *(sweep.name for sweep in sweeps)}
    for folder in sorted((results / "tables").glob("*/")):
        if folder.name not in {*names, RECORDINGS}:
            remedy = "give --config-dir=FOLDER where its file is yours, or name it after one"
            warn(found.warnings, "", f"{folder} belongs to no sweep file: {remedy}")
    return found


def rows_kept_to(run: Run, sweeps: Sequence[Sweep]) -> Iterator[tuple[Sweep, Row]]:
    """The rows, of any sweep file, whose recipe a run keeps to."""
    for sweep in sweeps:
        for row in sweep.rows:
            if row.run is not None and row.recipe.config and not departures(row.recipe, run.result):
                yield sweep, row


def add_run(runs: list[Run], new: Run) -> None:
    """Keep one result for each seed, config and source: the first, or the same run's that mends it.

    The first one then says what the same run has that does not count. What a record says counts where there is none.
    """
    if new.state == "damaged":
        if all(old.path != new.path for old in runs):
            runs.append(new)
        return
    rivals = [
        old
        for old in runs
        if (old.seed, old.state == "damaged") == (new.seed, False)
        and (old.name == new.name or None in (old.name, new.name))
        and old.has_source_of(new)
    ]
    if all(
        mends(new, old)
        if old.result and new.result and old.name == new.name
        else not old.result and (new.result or old.state == "queued")
        for old in rivals
    ):
        runs[:] = [old for old in runs if old not in rivals] + [new]
    elif new.result:
        runs[:] = [
            old._replace(again=new) if old in rivals and finish_time(old) != finish_time(new) else old
            for old in runs
        ]


def mends(new: Run, old: Run) -> bool:
    """Whether the new result of a run takes the old one's place: the old one diverged, or the new one is better known.

    A new result that lacks a part of the old one, or diverged, does not, unless the old one diverged.
    """
    if old.state == "diverged" and new.state == "done":
        return True
    return is_better_known(new, old) and not parts_lost(new, old) and old.state == new.state


def is_better_known(new: Run, old: Run) -> bool:
    """Whether the new result of a run has more parts, or finished later by other source code or a clean tree."""
    other = other_code(old.result.get(CODE), new.result.get(CODE) or {})
    cleaned = old.result.get("dirty") and not new.result.get("dirty")
    later = finish_time(new) > finish_time(old)
    return bool(parts_added(new, old) or (later and (other or cleaned)))


def parts_added(new: Run, old: Run) -> list[str]:
    return [part for part in ADDED_LATER if new.result.get(part) not in (None, old.result.get(part))]


def parts_lost(new: Run, old: Run) -> list[str]:
    return [part for part in ADDED_LATER if part in old.result and part not in new.result]


def committed(sweep: Sweep, results: Path, warnings: dict[str, list[str]]) -> list[tuple[Row, Run]]:
    found, strange = [], list[str]()
    rows = {row.name: row for row in sweep.rows}
    for path in sorted((results / "tables" / sweep.name).glob("*.json")):
        name, _, seed = path.stem.rpartition("-seed")
        row = rows.get(name)
        if row is None or row.run is None or not seed.isdecimal():
            strange.append(str(path))
            continue
        run = read_run(path, int(seed))
        if run.result and run.result["seed"] != run.seed:
            problem = f"its name says seed {run.seed}, it holds seed {run.result['seed']}"
            run = Run(run.seed, "damaged", path, problem=problem)
        found.append((row, run))
    if strange:
        told = named(strange, "belongs to no row", "belong to no row")
        remedy = f"give them the names <row>-seed<number>.json of rows that {sweep.path} has, or delete them"
        warn(warnings, sweep.name, f"{told}: {remedy}")
    return found


def named(all_of: Sequence[str], one: str, several: str) -> str:
    """The only one, or the first and how many others, with what is said of them."""
    return f"{all_of[0]} {one}" if len(all_of) == 1 else f"{all_of[0]} and {len(all_of) - 1} more {several}"


def recorded(sweep: Sweep, results: Path, warnings: dict[str, list[str]]) -> list[tuple[Row, Run]]:
    """The runs of the sweep's record."""
    path = results / "sweeps" / f"{sweep.name}.json"
    found, rows, gone = [], {row.name: row for row in sweep.rows}, list[str]()
    try:
        jobs = read_record(path)
    except OSError as error:
        warn(
            warnings,
            sweep.name,
            f"{path} cannot be read ({error.strerror}): remove it or mend its permissions",
        )
        return []
    except ValueError as error:
        warn(warnings, sweep.name, str(error))
        return []
    for job in jobs:
        row = rows.get(job.row)
        if row is None or row.run is None:
            gone.append(repr(job.row))
            continue
        try:
            found.append((row, run_of(job, job.folder(results) / RESULT)))
        except OSError as error:
            warn(
                warnings,
                sweep.name,
                f"{path}: the folder of {job.row!r} cannot be looked into ({error.strerror})",
            )
    if gone:
        told = named([*dict.fromkeys(gone)], "is a row", "are rows")
        remedy = "give the name back, or delete what the record has under it"
        warn(warnings, sweep.name, f"{told} of {path} that {sweep.path} does not run: {remedy}")
    return found


def run_of(job: Entry, file: Path) -> Run:
    """The run of a job on record, whose result is this file. Raises OSError where nobody can look for it."""
    if file.exists():
        run = read_run(file, job.seed)
        if run.result and job.name != run.name:
            return Run(job.seed, "damaged", file, problem=f"it is run {run.name}, the record's is {job.name}")
        return run
    return unfinished(job, file.parent)


def unfinished(job: Entry, folder: Path) -> Run:
    """A run without a result: how far it is says its folder, as in `hornn.sweep.status`; the record may be older."""
    so_far = read_run_so_far(folder)
    state, problem = "unfinished" if has_begun(folder) else "queued", job.error or ""
    if so_far.at_work:
        state, problem = "running", ""
    elif job.status == "done":
        state, problem = "lost", f"{folder / RESULT} is gone"
    elif job.status == "failed":
        state = job.status
    return Run(job.seed, state, None, {}, problem, job.name, folder, so_far.records, so_far.in_words())


def keep_results(sweeps: Sequence[Sweep], results: Path, warnings: dict[str, list[str]]) -> list[Path]:
    """Copy the results of finished runs to `results`/tables, where they can be committed; the files written.

    A run that several tables share has one file there. A run by another config or source takes the place of one that
    diverged or departs from the row's recipe; else of one that finished before it, unless the new run diverged or
    departs. So does the same run where it mends the kept one. A result that keeps to another row is kept there before
    another takes its place.
    """
    kept: dict[tuple[str, int], Run] = {}
    for sweep in sweeps:
        for row, run in committed(sweep, results, warnings):
            kept.setdefault((row.identity, run.seed), run)
    written = []
    for sweep in sweeps:
        for row, run in recorded(sweep, results, warnings):
            old = kept.get((row.identity, run.seed))
            if run.state == "damaged":
                warn(warnings, sweep.name, f"{run.path}: {run.problem}")
            if run.state not in ("done", "diverged"):
                continue
            if old and old.name == run.name and old.has_source_of(run):
                if not mends(run, old):
                    if is_better_known(run, old) and (lost := parts_lost(run, old)):
                        text = f"{run.path} lacks {lost[0]}, add that too: {old.path} stays"
                        warn(warnings, sweep.name, text)
                    continue
            elif old:
                if not takes_the_place(row, run, old):
                    fault = find_faults(row, run) - find_faults(row, old)
                    if fault and finish_time(run) >= finish_time(old):
                        warn(warnings, sweep.name, f"{run.path} {min(fault)}: {old.path} stays")
                    continue
                if DEPARTS_FROM_RECIPE in find_faults(row, old):
                    home = next(rows_kept_to(old, sweeps), None)
                    if home and (home[1].identity, old.seed) not in kept:
                        written.append(keep(*home, old, results, kept))
            written.append(keep(sweep, row, run, results, kept))
    return written


def keep(sweep: Sweep, row: Row, run: Run, results: Path, kept: dict[tuple[str, int], Run]) -> Path:
    """Copy the result of a run to the file of its row and seed, which is in `kept` from then on."""
    old = kept.get((row.identity, run.seed))
    assert run.path is not None
    path = (old and old.path) or results / "tables" / sweep.name / kept_name(row.name, run.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, run.path.read_text(encoding="utf-8"))
    kept[row.identity, run.seed] = run._replace(path=path)
    return path


def takes_the_place(row: Row, run: Run, old: Run) -> bool:
    """Whether a run by another config or source does so: it has no other fault, and mends one or finished later."""
    faults, before = find_faults(row, run), find_faults(row, old)
    return faults <= before and (faults != before or finish_time(run) >= finish_time(old))


def find_faults(row: Row, run: Run) -> set[str]:
    """Why a result is not what its row asks for."""
    found = {"diverged"} if run.state == "diverged" else set()
    departed = departures(row.recipe, run.result)
    return found | ({DEPARTS_FROM_RECIPE} if departed else set())


def finish_time(run: Run) -> str:
    """When a run finished, in order as text; empty where its result does not say."""
    return str(run.result.get("finished") or "")


def read_run(path: Path, seed: int) -> Run:
    """A result file, its texts fit to be shown; one that cannot be used becomes a damaged run that says why."""
    try:
        result = shown_texts(read_json(path, LARGEST))
        version = result.get("schema_version", SCHEMA_VERSION) if isinstance(result, dict) else SCHEMA_VERSION
        if version != SCHEMA_VERSION:
            raise ValueError(f"of schema version {version}, this program reads {SCHEMA_VERSION}")
        check_result(result, NEEDED)
        if result.get("device"):  # a result keeps its plural, by which devices compare
            result["device"] = result["device"].replace(", 1 threads)", ", 1 thread)")
        if result["status"] == "completed":
            check_kinds(result, dict.fromkeys(scores_of(result), (float,)), scores_of(result))
    except OSError as error:
        return Run(seed, "damaged", path, problem=f"it cannot be read ({error.strerror}): remove it")
    except ValueError as error:
        return Run(seed, "damaged", path, problem=f"not a whole result file: {error}; remove it")
    state = "done" if result["status"] == "completed" else "diverged"
    return Run(seed, state, path, result, result.get("error") or "", result["name"])


def warn(warnings: dict[str, list[str]], sweep: str, text: str) -> None:
    if (line := shown(text)) not in warnings.setdefault(sweep, []):
        warnings[sweep].append(line)


def commits(runs: Collection[Run]) -> list[str]:
    """Commits that the results come from, shortened, a `+` for a tree with changes of its own."""
    found = {
        (run.result.get("commit") or "unknown")[:7] + ("+" if run.result.get("dirty") else "")
        for run in runs
        if run.result
    }
    return sorted(found)
