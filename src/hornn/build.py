"""From the words that choose a model, a head and a corpus to the objects that their config files name."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.utils import get_class, get_method, instantiate
from omegaconf import OmegaConf

from hornn.baselines.counts import CountModel, FittedModel
from hornn.cells.base import Cell
from hornn.checkpoint import FORMAT, first_line, require_held, require_plain
from hornn.contract import in_part
from hornn.data.base import Data
from hornn.heads.base import Head
from hornn.machine import memory_bytes
from hornn.network import SequenceModel, natural_width
from hornn.places import CONF
from hornn.recipe import COUNTED, TEXT, read_choice

Built = TypeVar("Built")
NETWORK = ("model", "network", "head")  # the groups whose nodes a network is built of
PLACES = ("root", "cache_dir", "url")  # of a corpus: a matter of this machine, no file may name them
# Folders of choices that a caller in Python named.
OWN: ContextVar[tuple[Path, ...]] = ContextVar("OWN", default=())


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
    named = node.get("_target_")
    target = get_class(named) if named else None
    if target is None or not issubclass(target, kind):
        raise ValueError(f"{name}._target_ must name a {kind.__module__}.{kind.__name__}, got {named}")
    return partial(target, **arguments(node))


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
        raise ValueError(f"conf/model/{choice}.yaml lacks {', '.join(lacking)}: give it a value there")
    return cell


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


# -- checkpoints ---------------------------------------------------------------------------------------------


def make_card(identity: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """What a checkpoint says of itself. The model can be built again from the checkpoint and the files of its choices.

    identity: what a run says of who it is (`hornn.run.identity.Identity.to_dict`).
    """
    return {
        "format": FORMAT,
        **identity,
        **data.interface(),
        "data": data.describe(),
    }


def chosen(card: Mapping[str, Any], group: str) -> dict[str, Any]:
    """The node of a group that a card describes: its choice's file says what is built, the card with which values.

    A card may come from a stranger: it names no class, no key of instruction, no nested node and no interpolation.
    Raises ValueError for a choice that no config file has.
    """
    try:
        known = read_choice(group, str(card["choices"][group]), conf_folders())
    except ValueError as error:
        raise ValueError(
            f"the checkpoint's {error}: add conf/{group}/{card['choices'][group]}.yaml, or name a folder of yours that "
            "has it: --config-dir=FOLDER, in Python config_dir"
        ) from error
    instructions = {key: value for key, value in known.items() if key.startswith("_")}
    given = {key: value for key, value in arguments(card["config"].get(group, {})).items() if is_plain(value)}
    return {**given, **instructions}


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a text without an interpolation, a truth value, nothing, or a list of these."""
    if isinstance(value, list):
        return all(map(is_plain, value))
    plain_text = isinstance(value, str) and "${" not in value
    return value is None or isinstance(value, bool | int | float) or plain_text


@contextmanager
def looked_up_in(folder: str | Path | None) -> Iterator[None]:
    """Within it choices are looked up in this folder first. FileNotFoundError where it is none."""
    if folder is not None and not (isinstance(folder, str | Path) and Path(folder).is_dir()):
        raise FileNotFoundError(
            f"there is no folder {folder}: config_dir takes one like conf, with model/NAME.yaml"
        )
    before = OWN.set(() if folder is None else (Path(folder),))
    try:
        yield
    finally:
        OWN.reset(before)


def conf_folders() -> Iterable[Path]:
    """Where choices are looked up: `OWN`, then the folders of the command line, --config-dir's among them.

    Where Hydra runs a program of somebody else, which calls us, its command line says nothing of our choices.
    """
    sources = HydraConfig.get().runtime.config_sources if HydraConfig.initialized() else ()
    folders = [Path(source.path) for source in sources if source.schema == "file"]
    return (*OWN.get(), *(folders if CONF in folders else [CONF]))


def holds_counts(card: Mapping[str, Any]) -> bool:
    """Whether a checkpoint holds a model of counts."""
    return bool(chosen(card, "model").get(COUNTED))


def draw_network(card: Mapping[str, Any], counts: Sequence[int]) -> SequenceModel:
    """The network that a card describes with the weights that its run began with: they follow from config and seed."""
    seed = card["seed"]
    if type(seed) is not int:
        raise ValueError(f"the checkpoint's seed must be a whole number, got {seed!r}")
    torch.manual_seed(seed)
    return build_network({group: chosen(card, group) for group in NETWORK}, counts)


def rebuild_network(
    path: Path,
    card: Mapping[str, Any],
    counts: Sequence[int],
    weights: Mapping[str, torch.Tensor],
    input_width: int | None = None,
) -> SequenceModel:
    """The network that the card of a checkpoint describes, with its weights.

    Raises ValueError, before the network takes memory, where the weights are of another model. Other errors: as in
    `chosen` and `build_network`.
    """
    config = {group: chosen(card, group) for group in NETWORK}
    claimed = check_memory(config, counts, 1, input_width)
    for name, weight in weights.items():
        require_plain(path, name, weight, claimed[name][1] if name in claimed else torch.float32)
    held = {name: (weight.shape, weight.dtype) for name, weight in weights.items()}
    if different := sorted(name for name in claimed | held if claimed.get(name) != held.get(name)):
        name = different[0]
        shapes = [list(each[name][0]) if name in each else "absent" for each in (held, claimed)]
        raise ValueError(
            f"checkpoint {path} holds the weights of another model: {name} is {shapes[0]}, its choices and values "
            f"describe {shapes[1]}"
        )
    require_held(path, weights)
    network = build_network(config, counts, input_width)
    network.load_state_dict(weights)
    return network


def rebuild_counts(card: Mapping[str, Any], vocab_size: int, eos_id: int | None) -> CountModel:
    """The model of counts that a checkpoint's card describes, not fitted yet. ValueError if it describes another."""
    model = build_counts(chosen(card, "model"), vocab_size, eos_id)
    if not isinstance(model, CountModel):
        raise ValueError(f"no checkpoint holds a {type(model).__name__}: name its models in mix=[...]")
    return model


def rebuild_data(card: Mapping[str, Any], places: Mapping[str, Any]) -> Data:
    """The data that a checkpoint's card describes; `places`: where this machine keeps corpora, and texts of the user's
    own that lie elsewhere than in training, null for those that do not.

    Raises ValueError where the card does not say where such a text lies, or the data have no text of that name, and
    what `build_data` raises.
    """
    node = {key: value for key, value in chosen(card, "data").items() if key not in (*PLACES, "text")}
    files = node[TEXT] if isinstance(node.get(TEXT), list) else []
    moved = {key: str(path) for key, path in places.items() if key not in PLACES and path is not None}
    if strange := [key for key in moved if key not in files]:
        raise ValueError(
            f"data.{strange[0]}= says where a text of one's own lies, and this model was trained on "
            f"data={card['choices']['data']}, which has none: leave it out"
        )
    known = {key: card["where"].get(f"data.{key}") for key in files} | moved
    if missing := [f"data.{key}" for key, path in known.items() if path is None]:
        raise ValueError(f"the checkpoint does not say where its {missing[0]} lies: give {missing[0]}=FILE")
    paths = {key: path for key, path in known.items() if is_plain(path)}
    columns = {"batch_size": 1, "seq_len": 1, "eval_batch_size": 1}  # only its tokens are wanted
    return build_data({**node, **columns, **paths, **{key: places[key] for key in PLACES if key in places}})
