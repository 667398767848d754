"""Weights that a run starts from: another run's checkpoint gives them, where names and shapes are the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from hornn.checkpoint import CARD, read_checkpoint, require_plain
from hornn.network import SequenceModel
from hornn.run.keeper import PAYLOAD


def start_from(network: SequenceModel, path: str, interface: Mapping[str, Any]) -> list[str]:
    """Copy the weights of another run's checkpoint that have a parameter's name and shape; their names.

    interface: of this run's data (`hornn.data.base.Data.interface`), its vocabulary if it has one. The output layer
    starts afresh: in a deeper model it reads other features. Raises what `read_checkpoint` raises, and ValueError where
    vocabularies differ, no matrix that acts on a state matches (no parameter but the embedding, where the network has
    no such matrix) or a weight is not plain numbers in fp32.
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
    copied: list[str] = []
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            weight = weights[name]
            alike = isinstance(weight, torch.Tensor) and weight.shape == parameter.shape
            if alike and not name.startswith("head."):
                require_plain(Path(path), name, weight)
                parameter.copy_(weight)
                copied.append(name)
    recurrent = {id(weight) for weight in network.weights_on_states()}
    names = [name for name, weight in network.named_parameters() if id(weight) in recurrent]
    needed = names or [name for name, _ in network.named_parameters() if name != "embedding.weight"]
    if not set(copied) & set(needed):
        raise ValueError(
            f"init_from={path} has no recurrent parameter of this model's names and shapes ({', '.join(needed)}): give "
            "a checkpoint of a related model"
        )
    return copied


def taken_before(network: SequenceModel, last: Path) -> list[str] | None:
    """The names that `start_from` gave when a run began, by its checkpoint `last`; None for names of no weights here.

    All weights lie there, so that the run goes on without the checkpoint that it once started from.
    """
    payload = read_checkpoint(last).get(PAYLOAD)
    names = payload.get("pretrained") if isinstance(payload, Mapping) else None
    known = [name for name, _ in network.named_parameters()]
    return names if isinstance(names, list) and all(name in known for name in names) else None
