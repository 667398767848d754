"""From the words that choose a model, a head and a corpus to the objects that their config files name."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from hydra.utils import get_method, instantiate
from omegaconf import OmegaConf

from hornn.baselines.counts import FittedModel
from hornn.cells.base import Cell
from hornn.command_line.targets import resolve_target
from hornn.contract import in_part
from hornn.data.base import Data
from hornn.heads.base import Head
from hornn.machine import memory_bytes
from hornn.network import SequenceModel, natural_width
from hornn.recipe import COUNTED
from hornn.shown import first_line

Built = TypeVar("Built")
NETWORK = ("model", "network", "head")  # the groups whose nodes a network is built of


def build_network(
    config: Mapping[str, Any], counts: Sequence[int], input_width: int | None = None
) -> SequenceModel:
    """The network of a run's config, its nodes `model`, `network` and `head`, for data with these counts of outcomes.

    input_width: of the vectors that it reads; None where it reads ids of the outcomes. Nothing else that a node names
    is called. Raises ValueError if one does not name a cell, a head or the network.
    """
    cell, head = bound_cell(config["model"]), bound(config["head"], Head, "head")
    built: SequenceModel = bound(config["network"], SequenceModel, "network")(
        counts=counts, cell=cell, head=head, input_width=input_width
    )
    return built


def build_counts(model: Mapping[str, Any], vocab_size: int, eos_id: int | None) -> FittedModel:
    """The model of counts, or the mixture, that a config node names, not fitted yet. ValueError if it names none."""
    built: FittedModel = bound(model, FittedModel, "model")(vocab_size=vocab_size, eos_id=eos_id)
    return built


def build_data(node: Mapping[str, Any]) -> Data:
    """The data that a config node names. Raises ValueError for a setting that they do not have."""
    try:
        data: Data = get_method(node["_target_"])(**arguments(node))
    except TypeError as error:
        raise ValueError(f"data has other settings than these: {error}") from error
    return data


def call(config: Mapping[str, Any], group: str, **given: Any) -> Any:
    """What the config's node of a group names, called with its arguments and the given ones; an error names the
    group."""
    return instantiate(OmegaConf.create({group: config[group]})[group], **given, _convert_="all")


def bound(node: Mapping[str, Any], kind: type, name: str) -> partial[Any]:
    """The class that a config node names, a subclass of `kind`, with the node's arguments bound."""
    return partial(named_class(node, kind, name), **arguments(node))


def named_class(node: Mapping[str, Any], kind: type, name: str) -> type:
    """The class that a config node names. Raises ValueError where that is no subclass of `kind`."""
    named = node.get("_target_")
    target = resolve_target(named, f"{name}._target_") if named else None
    if not isinstance(target, type) or not issubclass(target, kind):
        raise ValueError(f"{name}._target_ must name a {kind.__module__}.{kind.__name__}, got {named}")
    return target


def check_model(model: Mapping[str, Any]) -> None:
    """Raise ValueError unless the node of a model names a cell, or a model that is counted where it says so."""
    named_class(model, FittedModel if model.get(COUNTED) else Cell, "model")


def arguments(node: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config node its target is called with."""
    return {key: value for key, value in node.items() if not key.startswith("_")}


def bound_cell(model: Mapping[str, Any], choice: str = "NAME") -> partial[Cell]:
    """The cell that the node of a model names, with its arguments bound. ValueError if the node lacks one of them.

    choice: the word that chose the node's file.
    """
    cell: partial[Cell] = bound(model, Cell, "model")
    parameters = inspect.signature(cell.func).parameters.values()
    required = [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    needed = dict.fromkeys(["hidden_size", *required])
    if lacking := [name for name in needed if name not in (*cell.keywords, "input_size")]:
        raise ValueError(f"model/{choice}.yaml lacks {', '.join(lacking)}: give it a value there")
    return cell


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a text without an interpolation, a truth value, nothing, or a list of these."""
    if isinstance(value, list):
        return all(map(is_plain, value))
    plain_text = isinstance(value, str) and "${" not in value
    return value is None or isinstance(value, bool | int | float) or plain_text


def check_plain(config: Mapping[str, Any]) -> None:
    """Raise ValueError where an argument of the network is one that no checkpoint gives back (`chosen`)."""
    for group in NETWORK:
        for key, value in arguments(config[group]).items():
            if not is_plain(value):
                raise ValueError(
                    f"{group}.{key} must be a number, a text, true, false, null or a list of these, which a checkpoint "
                    f"can give back, got {value!r}: give each of its values a key of its own"
                )


def check_cell(model: Mapping[str, Any], choice: str) -> None:
    """Build the cell once without memory, so that what cannot be is refused before anything is read.

    Raises ValueError where the file of the choice lacks an argument, and for a class that cannot be built.
    """
    cell = bound_cell(model, choice)
    kind: type[Cell] = cell.func  # type: ignore[assignment]
    if lacking := sorted(kind.__abstractmethods__):
        raise ValueError(f"{kind.__module__}.{kind.__qualname__} lacks {', '.join(lacking)}: write it")
    with in_part(kind, "__init__"):
        built = shaped(lambda: cell(input_size=natural_width(cell)))
    for key in ("input_size", "hidden_size", "output_size"):
        if not isinstance(size := getattr(built, key, None), int):
            raise ValueError(
                f"{kind.__module__}.{kind.__qualname__}.__init__ must set self.{key} to a whole number, got {size}: "
                "super().__init__(input_size, hidden_size, output_size) does"
            )


def check_head(config: Mapping[str, Any], choices: Mapping[str, str], data: Data) -> None:
    """Raise ValueError where the output layer predicts something else than the data hold."""
    head: type[Head] = bound(config["head"], Head, "head").func  # type: ignore[assignment]
    check_predicts(f"head={choices['head']}", head.predicts, data.predicts, choices)


def check_predicts(what: str, predicts: str, wanted: str, choices: Mapping[str, str]) -> None:
    """Raise ValueError where the part `what` predicts something else than the data hold."""
    if predicts != wanted:
        raise ValueError(
            f"{what} predicts {predicts} and data={choices['data']} holds {wanted}: choose another one"
        )


def check_memory(
    config: Mapping[str, Any], counts: Sequence[int], copies: int, input_width: int | None = None
) -> dict[str, tuple[torch.Size, torch.dtype]]:
    """The shape and the type of each weight of a network, found without memory, by its name.

    copies: how many numbers each weight takes; with its gradient and momentum 3. Raises ValueError where this machine
    does not have the memory for them, or for the states of one column before and after a step.
    """
    network = shaped(lambda: build_network(config, counts, input_width))
    weights = network.state_dict()
    number, held = sum(weight.numel() for weight in weights.values()), count_state(network)
    needed, what = max(
        (4 * copies * number, f"{number:,} weights"), (8 * held, f"two states of {held:,} numbers")
    )
    if needed > (there := memory_bytes()):
        raise ValueError(
            f"{what} need {needed / 2**30:,.1f} GiB, this process may have {there / 2**30:,.1f}: lower "
            "model.hidden_size, model.order or network.num_layers, or look back by fewer steps"
        )
    return {name: (weight.shape, weight.dtype) for name, weight in weights.items()}


def count_state(network: SequenceModel) -> int:
    """How many numbers the state of one column has; 0 where they cannot be counted without memory."""
    if network.device.type != "meta":
        return 0
    try:
        with without_memory():
            return sum(tensor.numel() for state in network.initial_state(1) for tensor in state)
    except ValueError:
        raise
    except Exception:  # a cell that `check_contract` refuses, or that reads a number of its weights
        return 0


def shaped(build: Callable[[], Built]) -> Built:
    """What `build` makes, without memory for its numbers; where a constructor reads a number (`.item()`), with memory.

    The random numbers of the process stay as they were.
    """
    random = torch.get_rng_state()
    try:
        with without_memory():
            return build()
    except ValueError:
        raise
    except Exception:  # each library has a type of its own for numbers that are not there
        return build()
    finally:
        torch.set_rng_state(random)


@contextmanager
def without_memory() -> Iterator[None]:
    """A context in which tensors have shapes alone. Raises ValueError for a size that no number of bytes can hold."""
    try:
        with torch.device("meta"):
            yield
    except (RuntimeError, OverflowError, TypeError) as error:
        if "overflow" not in str(error).lower():  # which is how torch says that a size is too large
            raise
        raise ValueError(f"the sizes of this model are beyond any memory ({first_line(error)})") from error
