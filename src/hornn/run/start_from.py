"""Weights that a run starts from: another run's checkpoint gives them, where names and shapes are the same."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hornn.checkpoint import CARD, read_checkpoint, require_plain
from hornn.checks import require_truth
from hornn.data.vocabulary import EOS, UNK
from hornn.network import SequenceModel
from hornn.run.identity import INIT_FROM
from hornn.run.keeper import PAYLOAD

EMBEDDING = "embedding.weight"
HEAD = "head."  # how the names of the output layer's parameters begin


class Start(NamedTuple):
    """The names of the parameters that another run gave, and what is to be said of them at the run's begin."""

    names: Sequence[str] = ()
    note: str = ""


def start_of(
    network: SequenceModel, config: Mapping[str, Any], interface: Mapping[str, Any], left_off: Path | None
) -> Start:
    """Copy the weights that a run's config asks for.

    left_off: the checkpoint that the run goes on from, where all weights lie, so that the run goes on without the
    checkpoint that it once started from. Raises ValueError where the output layer alone is asked for, and what
    `start_from` raises.
    """
    path, head = config[INIT_FROM], config["init_from_head"]
    require_truth(init_from_head=head)
    if path is None:
        if head:
            raise ValueError(
                "init_from_head=true is of a run that starts from another one: give init_from=, too"
            )
        return Start()
    names = taken_before(network, left_off) if left_off else None
    return start_from(network, path, interface, head) if names is None else Start(names)


def start_from(network: SequenceModel, path: str, interface: Mapping[str, Any], head: bool = False) -> Start:
    """Copy the weights of another run's checkpoint that have a parameter's name and shape.

    interface: of this run's data (`hornn.data.base.Data.interface`), its vocabulary if it has one. head: whether the
    output layer is copied, too; in a deeper model it reads other features. Where the vocabularies differ, a word that
    both have keeps its row of the embedding and of the output layer's matrix; all other words start afresh.

    Raises what `read_checkpoint` raises, and ValueError where the two have no word in common, one reads no words or
    other tokens, no matrix that acts on a state matches (no parameter but the embedding, where the network has no such
    matrix), nothing of an output layer matches that is asked for, or a weight is not plain numbers in fp32.
    """
    checkpoint = read_checkpoint(Path(path))
    try:
        card, state = checkpoint[CARD], checkpoint["state_dict"]
        weights = {name: state.get(f"network.{name}") for name, _ in network.named_parameters()}
        then = list(card["vocabulary"]["words"]) if "vocabulary" in card else None
        place = {word: row for row, word in enumerate(then or ())}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"init_from={path} lacks a part of a model ({error!r}): give another one") from error
    now = interface.get("vocabulary", {}).get("words")
    shared = [] if then == now else shared_words(path, place, now)
    by_word = (EMBEDDING, *(f"{HEAD}{name}" for name in network.head.by_word))
    copied: list[str] = []
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            weight = weights[name]
            if not isinstance(weight, Tensor) or (name.startswith(HEAD) and not head):
                continue
            if shared and name in by_word:
                alike = weight.shape == (len(then or ()), *parameter.shape[1:])
            else:
                alike = weight.shape == parameter.shape and not (shared and name.startswith(HEAD))
            if not alike:
                continue
            require_plain(Path(path), name, weight)
            if shared and name in by_word:
                parameter[[row for row, _ in shared]] = weight[[row for _, row in shared]]
            else:
                parameter.copy_(weight)
            copied.append(name)
    require_enough(network, path, copied, head)
    part = f"; of the {len(now or ()):,} words {len(shared):,} keep their rows, the others start anew"
    return Start(copied, part if shared else "")


def shared_words(path: str, place: Mapping[str, int], now: Sequence[str] | None) -> list[tuple[int, int]]:
    """The rows, here and in the checkpoint, of each word that is in both vocabularies. ValueError where none is."""
    if not place or now is None:
        has = (
            "has no vocabulary, and this run's data have one"
            if now
            else "has a vocabulary, and this run's data none"
        )
        raise ValueError(f"init_from={path} {has}: give a checkpoint trained on data of the same kind")
    shared = [(row, place[word]) for row, word in enumerate(now) if word in place]
    if all(now[row] in (EOS, UNK) for row, _ in shared):
        raise ValueError(
            f"init_from={path} has no word of this run's vocabulary: give a checkpoint trained on text of the same "
            "language and unit"
        )
    return shared


def require_enough(network: SequenceModel, path: str, copied: Sequence[str], head: bool) -> None:
    """Raise ValueError where the copied parameters are no start of the network."""
    recurrent = {id(weight) for weight in network.weights_on_states()}
    names = [name for name, weight in network.named_parameters() if id(weight) in recurrent]
    needed = names or [name for name, _ in network.named_parameters() if name != EMBEDDING]
    if not set(copied) & set(needed):
        raise ValueError(
            f"init_from={path} has no recurrent parameter of this model's names and shapes ({', '.join(needed)}): give "
            "a checkpoint of a related model"
        )
    outputs = [name for name, _ in network.named_parameters() if name.startswith(HEAD)]
    if head and outputs and not set(copied) & set(outputs):
        raise ValueError(
            f"init_from_head=true: {path} has no output layer that fits this run's ({', '.join(outputs)}): leave "
            "init_from_head out, or give a checkpoint of the same head and sizes"
        )


def taken_before(network: SequenceModel, last: Path) -> list[str] | None:
    """The names that `start_from` gave when a run began, by its checkpoint `last`; None for no names of ours."""
    payload = read_checkpoint(last).get(PAYLOAD)
    names = payload.get("pretrained") if isinstance(payload, Mapping) else None
    known = [name for name, _ in network.named_parameters()]
    return names if isinstance(names, list) and all(name in known for name in names) else None
