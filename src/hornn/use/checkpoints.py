"""Opens what a checkpoint or an ARPA file holds: a model of text, or of separate sequences."""

import codecs
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hornn.baselines.arpa import DATA, read_arpa
from hornn.baselines.counts import CountModel
from hornn.card import holds_counts, rebuild_counts, rebuild_network
from hornn.checkpoint import CARD, read_checkpoint, require_plain
from hornn.checks import require_choice
from hornn.data.midi import KEYS
from hornn.data.tokenizer import ArpaTokenizer, Tokenizer
from hornn.data.vocabulary import EOS, Vocabulary
from hornn.network import SequenceModel
from hornn.run.code import changed_since
from hornn.shown import first_line, shown
from hornn.speech.features import BANDS
from hornn.use.scorers import CountScorer, NetworkScorer
from hornn.use.sequences import SequenceScorer

Opened = NetworkScorer | CountScorer | SequenceScorer
ARPA = ".arpa"
GZIP = b"\x1f\x8b"
# What commands read of a card beside the model itself: each part by its keys, and its kind.
PARTS: dict[tuple[str, ...], type] = {
    ("name",): str,
    ("seed",): object,
    ("where",): dict,
    ("choices", "data"): object,
    ("config", "data"): dict,
    ("data", "name"): str,
    ("data", "text_checksum"): str,
}
PARTS_OF_TEXT: dict[tuple[str, ...], type] = {("data", "valid_is_test"): bool}


@torch.inference_mode(False)  # a caller's would make weights whose changes nobody counts
def open_checkpoint(path: Path, device: str | torch.device) -> Opened:
    """Rebuild the model of a checkpoint or of an ARPA file, which needs nothing beside that file.

    device: of a network, cpu or cuda; a line on stderr says why it has no native kernels, where that is so, and another
    one that a cell of the user's own has changed since the training. Raises what
    `read_checkpoint` and `read_arpa` raise, and ValueError where the weights are of another model than the checkpoint
    says, the device is not there, or the caller made torch's default type another one than fp32.
    """
    require_device(str(device))
    if (default := torch.get_default_dtype()) is not torch.float32:
        raise ValueError(
            f"torch's default type is {default}, a model computes in torch.float32: call "
            "torch.set_default_dtype(torch.float32) before you load it"
        )
    if is_arpa(path):
        return open_arpa(path)
    checkpoint = read_checkpoint(path)
    try:
        card, state = checkpoint[CARD], checkpoint["state_dict"]
        check_card(card)
        of_sequences = "vocabulary" not in card and "counts" in card
        opened = open_sequences(path, card, state) if of_sequences else open_text(path, card, state)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"checkpoint {path} lacks a part of a model ({error!r}): train it anew") from error
    network = opened.model if isinstance(opened, SequenceScorer) else getattr(opened, "network", None)
    if isinstance(network, SequenceModel):  # computed by what suits the device, whatever trained it
        network.backend = network.precision = "auto"
        network.to(device).eval().prepare(torch.device(device))
        if changed := changed_since(card, network.cells[0]):
            print(shown(f"warning: {path} was trained by other code: {changed}"), file=sys.stderr)
        if network.missing:
            print(f"{network.missing}; scores are the same to rounding, but take longer", file=sys.stderr)
    return opened


def is_arpa(path: Path) -> bool:
    """Whether a file is an ARPA file: by its name, or by what it begins with. ValueError for a compressed file."""
    begin = b""
    if path.is_file():
        with path.open("rb") as file:
            begin = file.read(1000)
    if begin.startswith(GZIP):
        raise ValueError(f"{path} is compressed: gunzip -c FILE > NEW, and give that file")
    return path.suffix == ARPA or begin.removeprefix(codecs.BOM_UTF8).lstrip().startswith(DATA)


def check_card(card: Mapping[str, Any]) -> None:
    """Raise KeyError or TypeError where a part of a card is absent or of another kind."""
    for keys, kind in {**PARTS, **(PARTS_OF_TEXT if "vocabulary" in card else {})}.items():
        part: Any = card
        for key in keys:
            part = part[key]
        if not isinstance(part, kind):
            raise TypeError(f"{'.'.join(keys)} is {part!r:.80}")


def require_text(opened: Opened) -> NetworkScorer | CountScorer:
    """Raise ValueError for a model of separate sequences."""
    if isinstance(opened, SequenceScorer):
        raise ValueError(
            f"{opened.name} is no model of text: evaluate, generate and transcribe take it by checkpoint=, in Python "
            "hornn.load_music or hornn.load_speech"
        )
    return opened


def load_ready(
    paths: Sequence[Path], device: str | torch.device, seq_len: int, precision: str
) -> list[NetworkScorer | CountScorer]:
    """The models of these files; networks are ready to read a text exactly from left to right. Errors: as in `load`."""
    scorers = [require_text(open_checkpoint(path, device)) for path in paths]
    require_precision_of(scorers, precision)
    for scorer in scorers:
        if isinstance(scorer, NetworkScorer):
            scorer.prepare(batch_size=1, seq_len=seq_len, precision=precision)
    return scorers


def require_precision_of(scorers: Sequence[NetworkScorer | CountScorer], precision: str) -> None:
    """Raise ValueError for a precision that no network reads: counts have their own."""
    if precision != "fp32" and not any(isinstance(scorer, NetworkScorer) for scorer in scorers):
        raise ValueError(
            f"precision={precision} is for a network, and {scorers[0].name} counts: leave it out"
        )


def require_device(device: str) -> None:
    """Raise ValueError for a device that is not there."""
    require_choice("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device=cuda needs a CUDA device and this machine has none: use device=cpu")


def open_text(path: Path, card: Mapping[str, Any], state: Mapping[str, Any]) -> NetworkScorer | CountScorer:
    vocabulary = Vocabulary.from_state(card["vocabulary"])
    if not holds_counts(card):
        network = rebuild_network(path, card, vocabulary.counts, weights_of_network(state))
        require_classes(path, network.head.predicts)
        return NetworkScorer(str(path), network, card, vocabulary)
    tokenizer = Tokenizer.from_state(card["tokenizer"])
    model = rebuild_counts(card, len(vocabulary), vocabulary.eos_id if tokenizer.eos else None)
    require_classes(path, model.predicts)
    counts = {name: numbers_of(path, name, value) for name, value in state.items()}
    try:
        model.load_state(counts)
    except ValueError as error:
        raise ValueError(f"checkpoint {path} holds the counts of another model: {error}") from error
    return CountScorer(str(path), model, vocabulary, tokenizer, card)


def require_classes(path: Path, predicts: str) -> None:
    """Raise ValueError for a model that predicts something else than one of its words."""
    if predicts != "classes":
        raise ValueError(
            f"checkpoint {path} predicts {predicts}, and a model of text predicts classes: train it anew"
        )


def open_sequences(path: Path, card: Mapping[str, Any], state: Mapping[str, Any]) -> SequenceScorer:
    counts, width = card["counts"], card["input_width"]
    if not (isinstance(counts, list) and counts and all(type(each) is int for each in [*counts, width])):
        raise TypeError("its counts are no whole numbers")
    if not holds_counts(card):
        network = rebuild_network(path, card, counts, weights_of_network(state), width)
        return fitting(SequenceScorer(str(path), card, network))
    model = rebuild_counts(card, len(counts), None)
    scorer = fitting(SequenceScorer(str(path), card, model))
    model.load_state({name: np.asarray(numbers_of(path, name, value)) for name, value in state.items()})
    return scorer


def fitting(scorer: SequenceScorer) -> SequenceScorer:
    """The scorer. ValueError where a model of speech or music reads or predicts something else than its task has."""
    width, number, predicts = scorer.card["input_width"], len(scorer.card["counts"]), scorer.predicts
    if "recogniser" in scorer.card:
        fits = width == BANDS and predicts == (
            "states" if isinstance(scorer.model, CountModel) else "classes"
        )
    else:  # a task of one's own may read vectors of another width
        fits = width != KEYS or (number, predicts) == (KEYS, "keys")
    if not fits:
        raise ValueError(
            f"the parts of checkpoint {scorer.name} do not fit: it reads {width} numbers a step and predicts {number} "
            f"{predicts}: train it anew"
        )
    return scorer


def numbers_of(path: Path, name: str, value: Any) -> Any:
    """A part of a model of counts, a tensor as an array. ValueError for a tensor that is none."""
    if not isinstance(value, torch.Tensor):
        return value
    require_plain(path, name, value, value.dtype)
    try:
        return value.numpy()
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"checkpoint {path} holds {name} as no plain numbers ({first_line(error)}): train it anew"
        ) from error


def open_arpa(path: Path) -> CountScorer:
    words, model = read_arpa(path)
    if EOS not in words:
        raise ValueError(f"{path} has no </s> among its words: give a model that ends its sentences")
    return CountScorer(str(path), model, Vocabulary(words, [0] * len(words)), ArpaTokenizer(), None)


def weights_of_network(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The network's part of what a training keeps."""
    prefix = "network."
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
