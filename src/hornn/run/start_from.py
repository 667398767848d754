"""Weights that a run starts from: another run's checkpoint gives them, where names and shapes are the same."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hornn.checkpoint import CARD, read_checkpoint, require_plain
from hornn.checks import require_truth
from hornn.data.vocabulary import EOS, UNK, Vocabulary
from hornn.network import SequenceModel
from hornn.run.identity import INIT_FROM
from hornn.run.keeper import PAYLOAD

EMBEDDING = "embedding.weight"
HEAD = "head."  # how the names of the output layer's parameters begin

# The parameters that another run gave -> how many words kept their row, None: the parameter is as it was there.
Taken = dict[str, int | None]


def start_of(
    network: SequenceModel, config: Mapping[str, Any], interface: Mapping[str, Any], left_off: Path | None
) -> Taken:
    """Copy the weights that a run's config asks for.

    left_off: the checkpoint that the run goes on from, where all weights lie, so that the run goes on without the
    checkpoint that it once started from. Raises ValueError for a learning rate of 0 where words start anew, and what
    `start_from` raises.
    """
    path, head = config[INIT_FROM], config["init_from_head"]
    require_truth(init_from_head=head)
    if path is None:
        return {}
    taken = taken_before(network, left_off) if left_off else None
    if taken is None:
        taken = start_from(network, path, interface, head)
    if not config["init_from_lr"] and any(kept is not None for kept in taken.values()):
        raise ValueError(
            "init_from_lr=0 would keep the words that start anew as they are drawn: give a rate above 0"
        )
    return taken


def start_from(network: SequenceModel, path: str, interface: Mapping[str, Any], head: bool = False) -> Taken:
    """Copy the weights of another run's checkpoint that have a parameter's name and shape.

    interface: of this run's data (`hornn.data.base.Data.interface`), its vocabulary if it has one. head: whether the
    output layer is copied, too; in a deeper model it reads other features. With tied weights it is the embedding, which
    is copied without being asked for. Where the vocabularies differ, a word that both have keeps its row of the
    embedding and of the output layer; the rows of the others start afresh.

    Raises what `read_checkpoint` raises, and ValueError where the vocabularies have no word in common or other units,
    no matrix that acts on a state matches (no parameter but the embedding, where the network has no such matrix),
    nothing of an output layer matches that is asked for, the output layer is of other phones, or a weight is not finite
    numbers in fp32.
    """
    checkpoint = read_checkpoint(Path(path))
    try:
        card, state = checkpoint[CARD], checkpoint["state_dict"]
        names = [f"{HEAD}W_out", *(name for name, _ in network.named_parameters())]
        weights = {name: state.get(f"network.{name}") for name in names}
        then, unit = words_of(card)
        phones = phones_of(card)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"init_from={path} lacks a part of a model ({error!r}): give another one") from error
    now, own_unit = words_of(interface)
    if head and phones != phones_of(interface):
        raise ValueError(
            f"init_from_head=true: {path} has an output layer of other phones than this run's: leave it out"
        )
    require_kind(path, unit, own_unit)
    rows = shared_rows(path, then, now) if then and now and then.words != now.words else None
    by_word = {EMBEDDING, *(f"{HEAD}{name}" for name in network.head.by_word)} if rows else set[str]()
    # its rows are in an order that the counts decide
    clusters_differ = not network.head.by_word and then and now and then.state() != now.state()
    taken: Taken = {}
    for name, parameter in network.named_parameters():
        if name.startswith(HEAD) and (not head or clusters_differ):
            continue
        weight = weights[f"{HEAD}W_out" if network.tied and head and name == EMBEDDING else name]
        wanted = (len(then or ()), *parameter.shape[1:]) if name in by_word else parameter.shape
        if not isinstance(weight, Tensor) or weight.shape != wanted:
            continue
        require_plain(Path(path), name, weight)
        if not weight.isfinite().all():
            raise ValueError(
                f"init_from={path}: {name} is not finite: its weights are damaged or have diverged"
            )
        here, there = rows if rows and name in by_word else (..., ...)
        with torch.no_grad():
            parameter[here] = weight[there]
        taken[name] = len(rows[0]) if rows and name in by_word else None
    require_enough(network, path, taken, head)
    return taken


def shared_rows(path: str, then: Vocabulary, now: Vocabulary) -> tuple[list[int], list[int]]:
    """The rows of the words that both have, in the present vocabulary and in the checkpoint's. ValueError: none."""
    shared = [word for word in now.words if word in then.index]
    if not set(shared) - {EOS, UNK}:
        raise ValueError(
            f"init_from={path} has no word of this run's vocabulary: give a checkpoint trained on text of the same "
            "language"
        )
    return [now.index[word] for word in shared], [then.index[word] for word in shared]


def words_of(held: Mapping[str, Any]) -> tuple[Vocabulary | None, str | None]:
    """The vocabulary of a checkpoint's card, or of data, and its unit; nothing of data that are no text."""
    if "vocabulary" not in held:
        return None, None
    return Vocabulary.from_state(held["vocabulary"]), str(held["tokenizer"]["unit"])


def phones_of(held: Mapping[str, Any]) -> set[str]:
    """The phones whose states an output layer tells apart; none but of speech."""
    return {phone for _, *phones in held.get("recogniser", {}).get("pronunciations", ()) for phone in phones}


def require_kind(path: str, then: str | None, now: str | None) -> None:
    """Raise ValueError where one of two units is characters and the other is not, or one is of text alone."""
    kinds = [
        "no text" if unit is None else "characters" if unit == "char" else "words" for unit in (then, now)
    ]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"init_from={path} reads {kinds[0]}, and this run reads {kinds[1]}: give a checkpoint of the same kind"
        )


def require_enough(network: SequenceModel, path: str, taken: Collection[str], head: bool) -> None:
    """Raise ValueError where the parameters that were taken are no start of the network."""
    recurrent = {id(weight) for weight in network.weights_on_states()}
    names = [name for name, weight in network.named_parameters() if id(weight) in recurrent]
    needed = names or [name for name, _ in network.named_parameters() if name != EMBEDDING]
    if not set(taken) & set(needed):
        raise ValueError(
            f"init_from={path} has no recurrent parameter of this model's names and shapes ({', '.join(needed)}): give "
            "a checkpoint of a related model"
        )
    outputs = [name for name, _ in network.named_parameters() if name.startswith(HEAD)]
    outputs += [EMBEDDING] if network.tied else []
    if head and not set(taken) & set(outputs):
        raise ValueError(
            f"init_from_head=true: {path} has no output layer that fits this run's ({', '.join(outputs)}): leave "
            "init_from_head out, or give a checkpoint of the same head and sizes"
        )


def taken_before(network: SequenceModel, last: Path) -> Taken | None:
    """What `start_from` gave when a run began, by its checkpoint `last`; None where that holds no names of ours."""
    payload = read_checkpoint(last).get(PAYLOAD)
    held = payload.get("pretrained") if isinstance(payload, Mapping) else None
    taken = dict.fromkeys(held) if isinstance(held, list) else held  # a list before words could differ
    known = {name for name, _ in network.named_parameters()}
    whole = isinstance(taken, dict) and all(
        name in known and (kept is None or type(kept) is int) for name, kept in taken.items()
    )
    return taken if whole else None


def describe_start(network: SequenceModel, taken: Taken, rate: float) -> str:
    """What another run gave, and at how many times the learning rate it learns."""
    rows = {name: f"{name} ({kept:,} words)" for name, kept in taken.items() if kept is not None}
    rest = ["the other words"] if rows else []
    anew = ", ".join([*rest, *(name for name, _ in network.named_parameters() if name not in taken)])
    said = ", ".join(rows.get(name, name) for name in taken)
    return f"taken from init_from, at {rate:g} times the learning rate: {said}; anew: {anew or 'nothing'}"
