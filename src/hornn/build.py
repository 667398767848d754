"""From config nodes to the models that they name, and what a checkpoint keeps of both."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from hydra.utils import get_class

from hornn.baselines.counts import CountModel
from hornn.cells.base import Cell
from hornn.checkpoint import FORMAT
from hornn.data.text import TextDataModule
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import Vocabulary
from hornn.heads import Head
from hornn.network import LanguageModel, natural_width


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
