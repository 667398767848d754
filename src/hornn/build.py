"""From config nodes to the models that they name, and what a checkpoint keeps of both."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import yaml
from hydra.utils import get_class, get_method

from hornn.baselines.counts import CountModel
from hornn.cells.base import Cell
from hornn.checkpoint import FORMAT
from hornn.data.text import TextDataModule
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import Vocabulary
from hornn.heads import Head
from hornn.network import LanguageModel, natural_width

CONF = Path(__file__).parents[2] / "conf"
KINDS = {"model": "a model", "network": "the network", "head": "a head", "data": "a corpus"}
PLACES = ("root", "cache_dir", "url")  # of a corpus: a matter of this machine, no file may name them


@cache
def targets(group: str) -> frozenset[str]:
    """What the files of conf/<group> name: a checkpoint may have nothing else built."""
    files = (CONF / group).rglob("*.yaml")
    nodes = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in files)
    return frozenset(node["_target_"] for node in nodes if "_target_" in node)


def trusted(node: Any, group: str) -> dict[str, Any]:
    """The part of a node out of a checkpoint that may be used: a known target, and plain values for it.

    Raises ValueError for a target that no file of conf/<group> names, compared as a whole.
    """
    if not isinstance(node, Mapping) or node.get("_target_") not in targets(group):
        named = node.get("_target_") if isinstance(node, Mapping) else node
        raise ValueError(
            f"the checkpoint names {named!r} as {KINDS[group]}, which no file of conf/{group} does"
        )
    values = {key: value for key, value in node.items() if not str(key).startswith("_") and is_plain(value)}
    return {"_target_": node["_target_"], **values}


def is_plain(value: Any) -> bool:
    """Whether it is a number, a text without an interpolation, a truth value, nothing, or a list of these."""
    if isinstance(value, list):
        return all(map(is_plain, value))
    return (
        value is None
        or isinstance(value, bool | int | float)
        or (isinstance(value, str) and "${" not in value)
    )


def build_corpus(node: Any, places: Mapping[str, Any]) -> TextDataModule:
    """The corpus that a checkpoint names; `places`: where this machine keeps corpora. Errors: those of `trusted`."""
    known = trusted(node, "data")
    values = {key: value for key, value in known.items() if key not in ("_target_", *PLACES)}
    try:
        data: TextDataModule = get_method(known["_target_"])(**values, **places)
    except TypeError as error:
        raise ValueError(
            f"the checkpoint names other settings of a corpus than there are ({error})"
        ) from error
    return data


def build_network(
    model: Mapping[str, Any], network: Mapping[str, Any], counts: Sequence[int]
) -> LanguageModel:
    """The language model of two plain config nodes and the counts of its words.

    Nothing else that a node names is called: the nodes may come from a checkpoint. Raises ValueError if one does
    not name a cell, a head or the network.
    """
    parts = {**network, "head": bound(network["head"], Head, "head"), "cell": bound(model, Cell, "model")}
    built: LanguageModel = bound(parts, LanguageModel, "network")(counts=counts)
    return built


def rebuild_network(card: Mapping[str, Any], counts: Sequence[int]) -> LanguageModel:
    """The language model that a checkpoint's card describes. Errors: those of `trusted` and `build_network`."""
    network = trusted(card["network"], "network") | {"head": trusted(card["network"].get("head"), "head")}
    return build_network(trusted(card["model"], "model"), network, counts)


def bound(node: Mapping[str, Any], kind: type, name: str) -> partial[Any]:
    """The class that a config node names, a subclass of `kind`, with the node's arguments bound."""
    target = get_class(node["_target_"])
    if not issubclass(target, kind):
        raise ValueError(
            f"{name}._target_ must name a {kind.__module__}.{kind.__name__}, got {node['_target_']}"
        )
    return partial(target, **{key: value for key, value in node.items() if not key.startswith("_")})


def check_cell(model: Mapping[str, Any]) -> None:
    """Build the cell once without memory, so that a size that cannot be is refused before anything is read."""
    cell = bound(model, Cell, "model")
    with torch.device("meta"):
        cell(input_size=natural_width(cell))


def build_counts(model: Mapping[str, Any], vocabulary: Vocabulary, tokenizer: Tokenizer) -> CountModel:
    """The model of counts that a plain config node names, not fitted yet. ValueError if it names none."""
    built: CountModel = bound(model, CountModel, "model")(
        vocab_size=len(vocabulary), eos_id=vocabulary.eos_id if tokenizer.eos else None
    )
    return built


def make_card(config: Mapping[str, Any], digest: str, data: TextDataModule) -> dict[str, Any]:
    """What a checkpoint says of itself, so that the model can be built again from that file alone."""
    return {
        "format": FORMAT,
        "model": config["model"],
        "network": config["network"],
        "vocabulary": data.vocabulary.state(),
        "tokenizer": data.tokenizer.state(),
        "data": data.describe(),
        "data_config": config["data"],
        "config_hash": digest,
        "seed": config["seed"],
    }
