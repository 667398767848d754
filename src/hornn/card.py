"""The card of a checkpoint: what a checkpoint says of itself, and what is built again from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig

from hornn.baselines.counts import CountModel
from hornn.build import NETWORK, arguments, build_counts, build_data, build_network, check_memory, is_plain
from hornn.checkpoint import FORMAT, require_held, require_plain
from hornn.data.base import Data
from hornn.network import SequenceModel
from hornn.places import CONF, PLACES
from hornn.recipe import COUNTED, TEXT, read_choice

# Folders of choices that a caller in Python named.
OWN: ContextVar[tuple[Path, ...]] = ContextVar("OWN", default=())


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
    with torch.random.fork_rng(devices=[]):  # whoever loads a model draws the same numbers afterwards
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
