"""Weights that a run starts from: another run's checkpoint gives them, where names and shapes are the same."""

from pathlib import Path

import torch

from hornn.checkpoint import CARD, read_checkpoint
from hornn.data.vocabulary import Vocabulary
from hornn.network import LanguageModel


def start_from(network: LanguageModel, path: str, vocabulary: Vocabulary) -> set[str]:
    """Copy the weights of another run's checkpoint that have a parameter's name and shape; their names.

    The output layer starts afresh: in a deeper model it reads other features. Raises what `read_checkpoint`
    raises, and ValueError where vocabularies differ or no parameter matches.
    """
    checkpoint = read_checkpoint(Path(str(path)))
    try:
        words, state = checkpoint[CARD]["vocabulary"]["words"], checkpoint["state_dict"].items()
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"init_from={path} lacks a part of a model ({error!r}): give another one") from error
    if words != vocabulary.words:
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
