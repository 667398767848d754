"""What the page's script knows of all runs: numbers, configs, curves, and where each comes from."""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hornn.checks import is_number
from hornn.metrics import bits
from hornn.recipe import flatten
from hornn.reporting.departures import departures
from hornn.reporting.grid import published_text
from hornn.reporting.lines import TIMES, Line, shared_its_gpu
from hornn.reporting.listening import Recordings, heard_by
from hornn.reporting.markdown import relative_address
from hornn.reporting.numbers import SIGN_MEANINGS
from hornn.reporting.panels import COLOURS, SHAPES, nth_style
from hornn.reporting.row_styles import row_styles, with_full_labels
from hornn.reporting.run_numbers import (
    NOT_DRAWN,
    SPLITS,
    known_name,
    means,
    measures,
    own_numbers,
    scores_of_table,
    shorter,
)
from hornn.reporting.runs import Run
from hornn.reporting.scores import of_characters
from hornn.reporting.tables import Table
from hornn.result import LETTERS, SAMPLES, content_of, score_of
from hornn.run.identity import INIT_FROM, default_folder, neutral_values

ORIGIN = {"finished": "finished", "device": "device", "backend": "time loop", "world_size": "processes"}


def page_data(tables: Sequence[Table], out: Path, recordings: Recordings) -> dict[str, Any]:
    """All rows and runs, each run once; equal configs and their keys are held once, too."""
    runs: list[dict[str, Any]] = []
    places: dict[Path, int] = {}
    rows: dict[str, Any] = {}
    lines: dict[str, Line] = {}
    configs, origins = Interned(), Interned()
    for table in tables:
        styles = row_styles(table.lines)
        for label, line in with_full_labels(table.lines):
            numbers, shown = [], [run for run in line.runs if has_view(run)]
            for run in shown:
                key = run.path or run.folder
                assert key
                if key not in places:
                    places[key] = len(runs)
                    runs.append(run_data(line, run, configs, origins, out, recordings))
                numbers_of = runs[places[key]]["numbers"]
                runs[places[key]]["numbers"] = scores_of_table(table, run) | numbers_of
                numbers.append(places[key])
            if numbers:
                style = styles[line.row.name]
                name = f"{table.sweep.name}/{line.row.name}"
                lines[name] = line
                rows[name] = {
                    "label": label,
                    "style": [style.colour, style.symbol],
                    "series": style.series[0],
                    "asks": list(line.row.run or line.row.name.split()),
                    "published": {
                        key: text
                        for key, score in line.scores.items()
                        if (text := published_text(key, score, line.row))
                    },
                    "runs": numbers,
                    "best": (line.best or min(shown, key=validation_so_far)).seed,
                }
    for name, row in rows.items():  # now that each run has the numbers of all tables in which it stands
        own = [runs[place]["numbers"] for place in row["runs"]]
        alone = len(own) == len(lines[name].measured) == 1  # the page then takes the run's numbers
        row["numbers"] = (
            {} if alone else means(lines[name], dict.fromkeys(key for each in own for key in each))
        )
    named = measures(tables, runs)
    return {
        "tables": {
            table.sweep.name: {
                "title": table.short_title,
                "command": table.sweep.command,
                "metrics": [metric.key for metric in table.sweep.metrics],
                "names": {
                    metric.key: metric.label
                    for metric in table.sweep.metrics
                    if metric.key in named and metric.label != named[metric.key][0]
                },
            }
            for table in tables
        },
        "rows": rows,
        "runs": runs,
        "configs": configs.packed(),
        "origins": origins.packed(),
        "measures": named,
        "times": TIMES,
        "signs": SIGN_MEANINGS,
        "shapes": SHAPES,
        "palette": [
            (style.colour, style.symbol) for style in map(nth_style, range(len(COLOURS) * len(SHAPES)))
        ],
    }


def address(table: str, row: str, seed: int | None = None) -> str:
    """Names a row, or one run of it, behind `#run=` and `#compare=`, written as browsers write it."""
    words = [table, row, *([str(seed)] if seed is not None else [])]
    return "/".join(quote(word, safe="-_.!~*'()") for word in words)


def has_view(run: Run) -> bool:
    """Whether a run has something to show: a result, or the first epochs of one."""
    return bool(run.result and run.path) or bool(run.records)


def validation_so_far(run: Run) -> float:
    return score_of(run.result or run.records[-1], "valid") or math.inf


class Interned:
    """Mappings of which each is held once: as a list of values, beside the keys of all of them."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}
        self.found: dict[str, int] = {}
        self.all: list[dict[str, Any]] = []

    def add(self, mapping: dict[str, Any]) -> int:
        self.keys |= dict.fromkeys(mapping)
        text = json.dumps(mapping, sort_keys=True, default=str)
        if text not in self.found:
            self.found[text] = len(self.all)
            self.all.append(mapping)
        return self.found[text]

    def packed(self) -> dict[str, Any]:
        """An empty text stands for a key that a mapping does not have."""
        return {
            "keys": list(self.keys),
            "values": [
                ["" if key not in each else plain(each[key]) for key in self.keys] for each in self.all
            ],
        }


def plain(value: Any) -> Any:
    """A value of a config as the page shows it: as it would be typed."""
    return value if isinstance(value, int | float) else json.dumps(value) if value is None else str(value)


def run_data(
    line: Line, run: Run, configs: Interned, origins: Interned, out: Path, recordings: Recordings
) -> dict[str, Any]:
    result = run.result
    config = result if result else {"choices": line.row.recipe.choices, "config": line.row.recipe.config}
    return {
        "seed": run.seed,
        "state": run.state,
        "progress": run.progress or run.problem,
        "numbers": own_numbers(result or run.records[-1]),
        "config": configs.add(settings_of(config.get("choices") or {}, config.get("config") or {})),
        "origin": origins.add(origin(result) | flatten(result.get("versions") or {})),
        "corpus": corpus_of(result),
        "curves": curves(
            result.get("metrics") or run.records, of_characters(result), timed=not shared_its_gpu(result)
        ),
        "samples": samples(result),
        "notes": texts_of(result.get("notes")),
        "heard": [heard._asdict() for heard in heard_by(result, recordings)],
        "departures": departures(line.row.recipe, result) if result else [],
        "folder": folder_of(result, run.seed),
        **({"asks": "data.root=FOLDER"} if reads_own_folder(result) else {}),
        "file": relative_address(run.path, out) if run.path else "",
    }


def settings_of(choices: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The choices and all keys of a training, a younger key than the training at the value under which it ran."""
    neutral = neutral_values(choices) if "optimizer" in choices else {}
    return {**choices, **neutral, **flatten(config)}


def corpus_of(result: Mapping[str, Any]) -> str:
    """What a score is of: scores of another text, in other units or over other words do not compare. Empty: unknown."""
    corpus = result.get("corpus") or {}
    said = [*(corpus[key] for key in ("name", "unit", "vocab_size") if key in corpus), content_of(corpus)]
    return json.dumps(said) if any(said) else ""


def samples(result: Mapping[str, Any]) -> dict[str, Any]:
    """What the run wrote at its best epoch."""
    found = result.get("samples") or {}
    texts = texts_of(found.get("texts"))
    told = {key: found[key] for key in ("epoch", "temperature") if is_number(found.get(key))}
    return {"texts": texts, **told} if texts else {}


def texts_of(found: Any) -> list[str]:
    """The texts of a list, as many and as much as the page has room for; a stranger's file may hold anything."""
    return (
        [text[:LETTERS] for text in found[:SAMPLES] if isinstance(text, str)]
        if isinstance(found, list)
        else []
    )


def origin(result: Mapping[str, Any]) -> dict[str, Any]:
    """Where a result comes from, in words; empty without one."""
    if not result:
        return {}
    changed = ", with changes of its own" if result.get("dirty") else ""
    said = {"commit": f"{(result.get('commit') or 'unknown')[:10]}{changed}"}
    said |= {words: result[key] for key, words in ORIGIN.items() if result.get(key) is not None}
    said |= {"finished": said["finished"][:16].replace("T", " ")} if "finished" in said else {}
    return said | {"starts": len(result.get("starts") or ()) or 1}


def folder_of(result: Mapping[str, Any], seed: int) -> str:
    """Where the command of a run leaves a model; empty for a mixture, and where a result does not say what it chose."""
    choices, config = result.get("choices") or {}, result.get("config") or {}
    mixed = bool(config.get(INIT_FROM)) and "optimizer" not in choices  # it mixes models and trains none
    chosen = choices.get("model") and choices.get("data")
    if mixed or not chosen or not isinstance(config.get("data"), Mapping):
        return ""
    return str(default_folder(choices, config, result["name"], seed))


def reads_own_folder(result: Mapping[str, Any]) -> bool:
    """Whether the corpus is music or speech of somebody's own, whose folder no checkpoint knows."""
    data, name = (result.get("choices") or {}).get("data"), (result.get("corpus") or {}).get("name")
    return data == "midi" or (data == "an4" and name != "an4")


def curves(records: Sequence[Mapping[str, Any]], characters: bool, timed: bool) -> dict[str, list[Any]]:
    """The epochs as columns: scores to four digits, norms of gradients, which leap, to two, the rest to three.

    `seconds` are counted from the start of the training.
    """
    if not records:
        return {}
    keys = dict.fromkeys(key for record in records for key, value in record.items() if is_number(value))
    drawn = [key for key in keys if key not in NOT_DRAWN]
    drawn = [key for key in drawn if not (key.endswith("_nll") and key.replace("_nll", "_ppl") in drawn)]
    drawn = [key for key in drawn if known_name(key)]
    columns: dict[str, list[Any]] = {"epoch": [record.get("epoch") for record in records]}
    if "step" in keys:
        columns["step"] = [record.get("step") for record in records]
    if timed and all(is_number(record.get("seconds")) for record in records):
        columns["seconds"] = summed([record["seconds"] for record in records])
    for key in drawn:
        values = [value if is_number(value := record.get(key)) else None for record in records]
        if characters and key.endswith("_ppl"):
            key = key.replace("_ppl", "_bpc")
            values = [bits(math.log(value)) if value and value > 0 else None for value in values]
        digits = 4 if key.partition("_")[0] in SPLITS else 2 if key.endswith("grad_norm") else 3
        columns[key] = [None if value is None else shorter(value, digits) for value in values]
    return columns


def summed(seconds: Sequence[float]) -> list[float]:
    """The sums of the first epochs, all to the place that is the fourth digit of the last one."""
    sums = list(accumulate(seconds))
    last = f"{sums[-1]:.3e}"
    return [round(value, 3 - int(last.partition("e")[2])) for value in sums]
