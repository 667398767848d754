"""For those who try cells in Python: a network from the words of the command line, results as rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hornn.build import build_network, check_memory
from hornn.card import conf_folders, looked_up_in
from hornn.checks import is_whole, require_positive
from hornn.network import SequenceModel
from hornn.recipe import COUNTED, flatten, read_choice
from hornn.result import RESULT, read_result_file
from hornn.use.additions import SAME


def make_network(
    model: str,
    vocab_size: int,
    head: str = "softmax",
    network: dict[str, Any] | None = None,
    counts: Sequence[int] | None = None,
    input_width: int | None = None,
    config_dir: str | Path | None = None,
    **arguments: Any,
) -> SequenceModel:
    """The network of `model=MODEL model.KEY=VALUE ... network.KEY=VALUE`, with fresh weights.

    model, head: names of files in conf/model and conf/head. arguments: keys of the model's file. counts: how often
    each word occurs, for a head that needs to know; by default equally often. input_width: of vectors that the network
    reads in the place of ids; `vocab_size` then counts what it predicts. config_dir: a folder of your own
    choices that is read before conf. Raises ValueError for a name or a key that does not exist, or a value out of its
    range or too large for this machine, and FileNotFoundError for a folder that is not there.

    It computes as its cells are written, in fp32, until `network.prepare(device)` chooses the native kernels.
    """
    require_positive(vocab_size=vocab_size)
    arguments, network = plain(arguments), plain(network)
    for name, value in (("model", model), ("head", head)):
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a name, got {value!r}")
    if not isinstance(network, dict | None):
        raise ValueError(f"network must hold keys and values, got {network!r}")
    times = [1] * vocab_size if counts is None else plain(counts)
    if not isinstance(times, Sequence) or len(times) != vocab_size or not all(map(is_whole, times)):
        raise ValueError(
            f"counts must be a list of vocab_size={vocab_size} whole numbers, got {counts!r:.80}"
        )
    with looked_up_in(config_dir):
        config = {
            "model": choose("model", model, arguments),
            "head": choose("head", head, {}),
            "network": choose("network", "default", network or {}),
        }
    if config["model"].get(COUNTED):
        raise ValueError(f"model {model!r} is no network: it is counted or fitted, by the command train")
    check_memory(config, times, 1, plain(input_width))
    return build_network(config, times, plain(input_width))


def plain(value: Any) -> Any:
    """A value with Python's numbers in the place of NumPy's, and lists in the place of arrays."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def choose(group: str, choice: str, given: dict[str, Any]) -> dict[str, Any]:
    known = read_choice(group, choice, conf_folders())
    keys = [key for key in known if not key.startswith("_")]
    if unknown := sorted(given.keys() - set(keys)):
        raise ValueError(f"{group} {choice!r} has no key {unknown[0]!r}; it takes: {', '.join(keys)}")
    return {**known, **given}


def results(folder: str | Path = "outputs") -> list[dict[str, Any]]:
    """The results of all finished runs below a folder, one flat row each, ready for `pandas.DataFrame`.

    A row has the file, choices and config by their dotted names, and every figure of the run; the record of its epochs
    is left out. `status` is `completed` or `diverged`; a diverged run lacks figures. A run whose result was also kept
    for the commit has one row. ValueError for a file that is damaged, FileNotFoundError for a folder that is not there.
    """
    if not isinstance(folder, str | Path):
        raise ValueError(f"results takes the path of a folder, such as 'outputs', got {folder!r:.80}")
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give one that holds results")
    return list(rows(folder))


def is_kept(path: Path) -> bool:
    """Whether a file is named like a kept result, and is not the record of a sweep or a search, or a table."""
    of_others = path.parent.name in ("sweeps", "report") or path.parent.parent.name == "studies"
    return path.stem.rpartition("-seed")[2].isdecimal() and not of_others


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    kept = (path for path in folder.rglob("*-seed*.json") if is_kept(path))
    seen = set()
    for path in [*sorted(folder.rglob(RESULT)), *sorted(kept)]:
        result = read_result_file(path)
        run = tuple(result.get(key) for key in SAME)
        if None not in run and run in seen:
            continue
        seen.add(run)
        choices, config = result.pop("choices", {}), result.pop("config", {})
        for part in ("metrics", "starts", "where"):
            result.pop(part, None)
        yield {"file": str(path), **choices, **flatten(config), **flatten(result)}
