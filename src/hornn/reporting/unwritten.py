"""Tables of sweeps that were given on the command line alone: their records say what they have."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hornn.checks import FILE_NAME
from hornn.recipe import read_yaml
from hornn.reporting.grid_rows import Axis, GridRow, as_text, main_axis, short_names
from hornn.reporting.run_numbers import known_name
from hornn.reporting.runs import read_run
from hornn.reporting.scores import TEST_SCORES, key_of
from hornn.reporting.sweeps import Figure, Metric, Row, Sweep, place
from hornn.result import LARGEST, RESULT, score_of
from hornn.sweep.record import Entry, read_record

WORD_ERRORS = ("test_wer", "test_wer_bigram")
FILE_ELSEWHERE = (
    "The file sweeps/{}.yaml, which has the title, labels and claims of this table, was not read: --config-dir=FOLDER "
    "of the report names the folder that holds it."
)


def unwritten_sweeps(sweeps: Collection[Sweep], results: Path, refused: Collection[str] = ()) -> list[Sweep]:
    """A table for each record of a sweep that has no file. Its axes are the keys in which its jobs differ.

    refused: names of files that cannot be read.
    """
    names = {*refused, *(sweep.name for sweep in sweeps)}
    paths = sorted((results / "sweeps").glob("*.json"))
    return [unwritten_sweep(path, results) for path in paths if path.stem not in names]


def misnamed_records(results: Path) -> dict[str, str]:
    """By their names the records that have the name of no sweep, and what is wrong."""
    paths = sorted((results / "sweeps").glob("*.json"))
    wrong = [path for path in paths if not FILE_NAME.fullmatch(path.stem)]
    return {path.stem: f"{path} has a name that no sweep can have: rename or remove it" for path in wrong}


def unwritten_sweep(path: Path, results: Path) -> Sweep:
    """The table of a record in the folder `results`."""
    try:
        entries = read_record(path)
    except (OSError, ValueError):
        entries = []
    jobs = {job.row: job for job in entries}
    axes, places = axes_of(list(jobs.values()))
    rows = []
    for label, at in zip(jobs, places, strict=True):
        row = Row(name=label, label=label, run=(), identity=f"{path.stem}: {label}")
        rows.append(place(row, axes, at) if at.place else row)
    main = main_axis(axes)
    given = any(f"sweeps={path.stem}" in job.overrides for job in entries)
    return Sweep(
        name=path.stem,
        title=path.stem,
        paper="",
        metrics=metrics_of(job.folder(results) / RESULT for job in entries),
        rows=tuple(rows),
        path=path,
        figure=Figure(main.label) if main else None,
        axes=axes,
        note=FILE_ELSEWHERE.format(path.stem) if given else "",
    )


def metrics_of(paths: Iterable[Path]) -> tuple[Metric, ...]:
    """The scores by which the results in these files are read, perplexity where there is none yet."""
    results = [read_run(path, 0).result for path in paths]
    keys = {key_of(result, "test") for result in results if score_of(result, "test") is not None}
    keys |= {key for result in results for key in WORD_ERRORS if key in result}
    shown = [key for key in (*TEST_SCORES, *WORD_ERRORS) if key in (keys or {"test_ppl"})]
    return tuple(Metric(key, known_name(key), True) for key in shown)


def axes_of(jobs: Sequence[Entry]) -> tuple[tuple[Axis, ...], list[GridRow]]:
    """The keys in which the overrides of the jobs differ, and each job's place among them."""
    settings = [settings_of(job.overrides) for job in jobs]
    keys = dict.fromkeys(key for each in settings for key in each)
    differing = [key for key in keys if len({repr(each.get(key, ...)) for each in settings}) > 1]
    short = short_names(differing)
    axes = tuple(
        Axis(
            key,
            short[key].replace("_", " "),
            tuple(dict.fromkeys(each[key] for each in settings if key in each)),
        )
        for key in differing
    )
    places = []
    for each in settings:
        at = {key: each[key] for key in differing if key in each}
        words = {
            key: str(value) if isinstance(value, str) else f"{short[key].replace('_', ' ')} {as_text(value)}"
            for key, value in at.items()
        }
        places.append(GridRow("", "", (), at, words))
    return axes, places


def settings_of(overrides: Sequence[str]) -> Mapping[str, Any]:
    """Key -> value of a job's overrides, those without part in what it computes left out."""
    settings = {}
    for word in overrides:
        key, sign, text = word.lstrip("+").partition("=")
        if (
            not sign
            or key.startswith(("-", "~", "hydra", "sweep."))
            or key in ("seed", "overwrite", "run_dir")
        ):
            continue
        try:
            value = read_yaml(text)
        except ValueError:
            value = text
        fits = isinstance(value, str | bool | None) or (
            isinstance(value, int | float) and abs(value) <= LARGEST
        )
        settings[key] = value if fits else text
    return settings
