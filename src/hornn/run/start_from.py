"""Weights that a run starts from: another run's checkpoint gives them, where names and shapes are the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from hornn.checkpoint import CARD, read_checkpoint, require_plain
from hornn.network import SequenceModel


def start_from(network: SequenceModel, path: str, interface: Mapping[str, Any]) -> set[str]:
    """Copy the weights of another run's checkpoint that have a parameter's name and shape; their names.

    interface: of this run's data (`hornn.data.base.Data.interface`), its vocabulary if it has one. The output layer
    starts afresh: in a deeper model it reads other features. Raises what `read_checkpoint` raises, and ValueError where
    vocabularies differ, no parameter matches or a weight is not plain numbers in fp32.
    """
    checkpoint = read_checkpoint(Path(path))
    try:
        card, state = checkpoint[CARD], checkpoint["state_dict"]
        weights = {name: state.get(f"network.{name}") for name, _ in network.named_parameters()}
        words = card["vocabulary"]["words"] if "vocabulary" in {**card, **interface} else None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"init_from={path} lacks a part of a model ({error!r}): give another one") from error
    if words != interface.get("vocabulary", {}).get("words"):
        raise ValueError(
            f"init_from={path} has another vocabulary: give a checkpoint trained on the same data"
        )
    copied = set()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            weight = weights[name]
            alike = isinstance(weight, torch.Tensor) and weight.shape == parameter.shape
            if alike and not name.startswith("head."):
                require_plain(Path(path), name, weight)
                parameter.copy_(weight)
                copied.add(name)
    if not copied - {"embedding.weight"}:
        raise ValueError(
            f"init_from={path} has no recurrent parameter of this model's names and shapes "
            f"({', '.join(name for name, _ in network.named_parameters())}): give a checkpoint of a related model"
        )
    return copied
