"""Weights that a run starts from: another run's checkpoint gives them, where names and shapes are the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from hornn.checkpoint import CARD, read_checkpoint
from hornn.network import SequenceModel


def start_from(network: SequenceModel, path: str, interface: Mapping[str, Any]) -> set[str]:
    """Copy the weights of another run's checkpoint that have a parameter's name and shape; their names.

    interface: of this run's data (`hornn.data.base.Data.interface`), its vocabulary if it has one. The output layer
    starts afresh: in a deeper model it reads other features. Raises what `read_checkpoint` raises, and ValueError where
    vocabularies differ or no parameter matches.
    """
    checkpoint = read_checkpoint(Path(str(path)))
    try:
        card, state = checkpoint[CARD], checkpoint["state_dict"].items()
        words = card["vocabulary"]["words"] if "vocabulary" in {**card, **interface} else None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"init_from={path} lacks a part of a model ({error!r}): give another one") from error
    if words != interface.get("vocabulary", {}).get("words"):
        raise ValueError(
            f"init_from={path} has another vocabulary: give a checkpoint trained on the same data"
        )
    weights = {key.removeprefix("network."): value for key, value in state if isinstance(value, torch.Tensor)}
    copied = set()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name in weights and weights[name].shape == parameter.shape and not name.startswith("head."):
                parameter.copy_(weights[name])
                copied.add(name)
    if not copied - {"embedding.weight"}:
        raise ValueError(
            f"init_from={path} has no recurrent parameter of this model's names and shapes "
            f"({', '.join(name for name, _ in network.named_parameters())}): give a checkpoint of a related model"
        )
    return copied
