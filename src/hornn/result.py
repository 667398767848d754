"""The result of a run, `result.json`: what was run, on what, and what came out. No torch here."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

from hornn.metrics import CHARACTERS, FRAMES, Units
from hornn.metrics import WORDS as WORDS_OF_TEXT
from hornn.writing import write_atomically

SCHEMA_VERSION = 2
RESULT = "result.json"
STATUSES = ("completed", "diverged")
# What readers of a result take for granted of its keys, where they are there; `float` stands for any number.
KINDS: dict[str, tuple[type, ...]] = {
    "status": (str,),
    "name": (str,),
    "seed": (int,),
    "num_parameters": (int,),
    "valid_ppl": (float, NoneType),
    "test_ppl": (float, NoneType),
    "valid_nll": (float, NoneType),
    "test_nll": (float, NoneType),
    "valid_accuracy": (float, NoneType),
    "test_accuracy": (float, NoneType),
    "test_words": (str,),
    "test_speakers": (str,),
    "test_errors": (str,),
    "test_errors_bigram": (str,),
    "utterances": (list,),
    "epochs": (float, NoneType),
    "best_epoch": (float, NoneType),
    "seconds_per_epoch": (float, NoneType),
    "tokens_per_second": (float, NoneType),
    "wall_seconds": (float, NoneType),
    "peak_memory_mb": (float, NoneType),
    "device": (str, NoneType),
    "runs_on_gpu": (int, NoneType),
    "commit": (str, NoneType),
    "finished": (str, NoneType),
    "error": (str, NoneType),
    "choices": (dict,),
    "config": (dict,),
    "corpus": (dict,),
    "dtype": (dict,),
    "code": (dict,),
    "versions": (dict,),
    "starts": (list,),
    "dynamic": (dict,),
    "samples": (dict,),
    "memory": (dict,),
    "metrics": (list,),
}
# Of its part `memory`, which `hornn.analysis` writes: docs/memory.md says what each is.
MEMORY, MEMORY_VERSION = "memory", 1
MEMORY_KINDS: dict[str, tuple[type, ...]] = {
    "summary": (dict,),
    "stages": (list,),
    "known": (dict,),
    "factors": (list,),
}
STAGE_KINDS: dict[str, tuple[type, ...]] = {
    "stage": (str,),
    "epoch": (int,),
    "gradient": (dict,),
    "saturation": (list,),
    "paths": (dict,),
}
# Of its part `utterances`, which `hornn.speech.data` writes: an utterance, and what was heard by grammar.
UTTERANCES = "utterances"
UTTERANCE: dict[str, tuple[type, ...]] = {"id": (str,), "said": (str,), "heard": (dict,)}
FINITE = sys.float_info.max
LARGEST = 1e150  # of a number that a report reads: its square, and sums over runs, are finite
DEPTH = 100  # of nested values in a file: what walks through them calls itself for each
TOO_DEEP = "its brackets are nested too deeply"
SHOWN = 60  # characters of a value in a message
SAMPLES, LETTERS = 10, 2000  # texts that a network wrote, and characters of each, that a result keeps
WORDS = {str: "text", int: "a whole number", float: "a number", dict: "keys and values", list: "a list"}


class Damaged(ValueError):
    """A result file does not hold what it should."""


def write_result(run_dir: Path, result: dict[str, Any]) -> None:
    """Write result.json: `schema_version`, then `result` as `hornn.run.train` or `hornn.run.count` built it.

    Numbers that are not finite become null: JSON has none.
    """
    text = json.dumps({"schema_version": SCHEMA_VERSION, **finite(result)}, indent=2, allow_nan=False)
    write_atomically(run_dir / RESULT, text + "\n")


def read_result(run_dir: Path) -> dict[str, Any] | None:
    """The result of a run, or None where there is none yet. Errors: as in `read_result_file`."""
    path = run_dir / RESULT
    return read_result_file(path) if path.exists() else None


def read_result_file(path: Path) -> dict[str, Any]:
    """The result that a file holds.

    Raises Damaged, which names the file, where it holds anything else or is of another schema version; OSError where
    it cannot be read.
    """
    remedy = "remove it, or give another run_dir"
    try:
        result = read_json(path)
        version = result.get("schema_version", SCHEMA_VERSION) if isinstance(result, dict) else None
        if version not in (None, SCHEMA_VERSION):
            raise Damaged(
                f"{path} has schema version {version}, this program reads {SCHEMA_VERSION}: {remedy}"
            )
        check_result(result, ("schema_version", "status"))
    except Damaged:
        raise
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error}): {remedy}") from error
    assert isinstance(result, dict)
    return result


def read_json(path: Path, largest: float = FINITE) -> Any:
    """What a JSON file holds, no number beyond `largest` among it, and nothing nested more than `DEPTH` deep.

    Raises ValueError that says what is wrong with it, OSError where it cannot be read.
    """

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number")

    def bounded(text: str, kind: Callable[[str], Any] = float) -> Any:
        if abs(float(text)) > largest:
            raise ValueError(f"a number must be at most {largest:.3g}, got {text[:SHOWN]}")
        return kind(text)

    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device has no end
        raise ValueError("it is no plain file")
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(
            text, parse_float=bounded, parse_int=lambda digits: bounded(digits, int), parse_constant=refuse
        )
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    require_flat(value)
    return value


def require_flat(value: Any) -> None:
    """Raise ValueError for a value that is nested more than `DEPTH` deep."""
    level = [value]
    for _ in range(DEPTH):
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (node.values() if isinstance(node, dict) else node)
        ]
    if level:
        raise ValueError(TOO_DEEP)


def check_result(result: Any, needed: Collection[str]) -> None:
    """Raise ValueError unless `result` has the keys `needed` and each of its keys in `KINDS` is of its kind."""
    check_kinds(result, KINDS, needed)
    if result["status"] not in STATUSES:
        raise ValueError(f"status must be {' or '.join(STATUSES)}, got {shorten(result['status'])}")
    records = result.get("metrics", ())
    for record in records:
        check_kinds(
            record, dict.fromkeys(("epoch", "seconds", "valid_ppl", "valid_nll"), (float, NoneType)), ()
        )
    scores = [(record, "valid_ppl") for record in records]
    if result["status"] == "completed":
        check_kinds(result, KINDS, scores_of(result))
        scores += [(result, key) for key in ("valid_ppl", "test_ppl")]
    for node, key in scores:
        if node.get(key) is not None and node[key] <= 0:
            raise ValueError(f"{key} must be above 0, got {shorten(node[key])}")
    choices = result.get("choices", {})
    check_kinds(choices, dict.fromkeys(choices, (str, NoneType)), ())
    for part in ("dtype", "code"):
        texts = result.get(part, {})
        check_kinds(texts, dict.fromkeys(texts, (str, NoneType)), ())
    check_kinds(result.get("dynamic", {}), {"seq_len": (int, NoneType)}, ())
    for start in result.get("starts", ()):
        check_kinds(start, {"started": (str,)}, ())
    for utterance in result.get(UTTERANCES, ()):
        check_kinds(utterance, UTTERANCE, UTTERANCE)
        check_kinds(utterance["heard"], dict.fromkeys(utterance["heard"], (str,)), ())
    if MEMORY in result:
        check_measurements(result[MEMORY])


def check_measurements(memory: Any) -> None:
    """Raise ValueError unless the measurements of a network's memory hold what a report draws."""
    version = memory.get("schema_version")
    if version != MEMORY_VERSION:
        raise ValueError(
            f"its memory is of schema version {shorten(version)}, this program reads {MEMORY_VERSION}: analyse anew"
        )
    check_kinds(memory, MEMORY_KINDS, MEMORY_KINDS)
    check_curve(memory["known"], ("perplexity",))
    check_kinds(memory["known"], {"whole": (float, NoneType)}, ("whole",))
    for layer in memory["factors"]:
        check_kinds(
            layer, {"layer": (int,), "values": (list,), "units": (list,)}, ("layer", "values", "units")
        )
        for value in layer["values"] or [None]:
            check_kinds({"values": value}, {"values": (float,)}, ())
        for unit in layer["units"]:
            check_kinds(unit, {"factor": (float,), "words": (list,)}, ("factor", "words"))
            for word in unit["words"]:
                check_kinds({"words": word}, {"words": (str,)}, ())
    for stage in memory["stages"]:
        check_kinds(stage, STAGE_KINDS, STAGE_KINDS)
        check_curve(stage, ("saturation",))
        for norms in stage["gradient"].values():
            check_curve(norms, ("q25", "q50", "q75"))
        for path in stage["paths"].values():
            check_curve(path, ("rms_by_step",))
            check_kinds(
                path, dict.fromkeys(("low", "high", "rms"), (float, NoneType)), ("low", "high", "rms")
            )
    if not memory["stages"]:
        raise ValueError("its memory holds no stage")


def check_curve(node: Any, keys: Collection[str]) -> None:
    """Raise ValueError unless these keys of a node hold lists of numbers, or of null where one was not finite."""
    check_kinds(node, dict.fromkeys(keys, (list,)), keys)
    for key in keys:
        for value in node[key]:
            check_kinds({key: value}, {key: (float, NoneType)}, ())


def unit_of(node: Mapping[str, Any]) -> str:
    """The unit in which a result, or the record of an epoch, is read: perplexity, or where it has none nats."""
    return "nll" if "valid_ppl" not in node and "valid_nll" in node else "ppl"


def units_of(node: Mapping[str, Any]) -> Units:
    """In what a person reads the scores of a result, or of the record of an epoch."""
    if unit_of(node) == "nll":
        return FRAMES
    return CHARACTERS if "valid_bpc" in node or of_characters(node) else WORDS_OF_TEXT


def of_characters(result: Mapping[str, Any]) -> bool:
    return bool((result.get("corpus") or {}).get("unit") == "char")


def scores_of(result: Mapping[str, Any]) -> list[str]:
    """The keys of the scores that a completed run has."""
    return [f"{split}_{unit_of(result)}" for split in ("valid", "test")]


def content_of(corpus: Mapping[str, Any]) -> str:
    """What two corpora differ in where their content differs: the checksum, and the number of tokens of each split.

    A checksum of text is of all splits in a row, and does not tell where one split ends. corpus: of `Data.describe`.
    """
    checksum, tokens = corpus.get("text_checksum", ""), corpus.get("tokens")
    if not isinstance(tokens, Mapping) or not tokens:
        return str(checksum)
    return f"{checksum} of {', '.join(f'{split} {number}' for split, number in tokens.items())}"


def score_of(node: Mapping[str, Any], split: str) -> float | None:
    """The score on `valid` or `test` of a result, or of the record of an epoch; None where it has none."""
    value: float | None = node.get(f"{split}_{unit_of(node)}")
    return value


def check_kinds(node: Any, kinds: Mapping[str, tuple[type, ...]], needed: Collection[str]) -> None:
    """Raise ValueError unless `node` holds keys and values, all those `needed`, each of its kind in `kinds`."""
    if not isinstance(node, dict):
        raise ValueError(f"it must hold keys and values, got {shorten(node)}")
    if missing := [key for key in needed if key not in node]:
        raise ValueError(f"it is without {', '.join(missing)}")
    for key, known in kinds.items():
        if key in node and not any(is_of(node[key], kind) for kind in known):
            words = " or ".join(WORDS.get(kind, "null") for kind in known)
            raise ValueError(f"{key} must be {words}, got {shorten(node[key])}")


def is_of(value: Any, kind: type) -> bool:
    """Whether a value is of a kind; true and false are no numbers, and neither is infinity."""
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= FINITE
    return isinstance(value, kind) and not isinstance(value, bool)


def shorten(value: Any) -> str:
    """A value as it is shown in a message."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def finite(value: Any) -> Any:
    """The nested value with None in place of each number that is not finite."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
