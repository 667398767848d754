"""The weights of a run at its start, on its way and where it ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hornn.card import draw_network, rebuild_network
from hornn.checkpoint import CARD, read_checkpoint
from hornn.network import SequenceModel
from hornn.run.identity import INIT_FROM, SNAPSHOTS
from hornn.use.checkpoints import weights_of_network
from hornn.use.scorers import NetworkScorer

START, DURING, AFTER = "start", "during", "after"


class Stage(NamedTuple):
    """`epoch`: how many epochs the weights have seen, the one that was not finished included."""

    name: str
    epoch: int
    network: SequenceModel


def find_stages(path: Path, scorer: NetworkScorer) -> Iterator[Stage]:
    """The stages of the run whose checkpoint is `path`, which `scorer` was loaded from.

    The start is drawn again from config and seed; a run that began with the weights of another one (`init_from`) has
    none. On the way are the snapshots beside the checkpoint (`callbacks=snapshots`) that are of this run, of earlier
    epochs. Raises what `read_checkpoint` and `rebuild_network` raise.
    """
    assert scorer.card is not None
    card, counts = scorer.card, scorer.vocabulary.counts
    if card["config"].get(INIT_FROM) is None:
        yield Stage(START, 0, draw_network(card, counts))
    last = epoch_of(path)
    found = {epoch_of(snapshot): snapshot for snapshot in path.parent.glob(SNAPSHOTS) if snapshot != path}
    for epoch in sorted(epoch for epoch in found if epoch < last):
        checkpoint = read_checkpoint(found[epoch])
        if all(checkpoint[CARD].get(key) == card[key] for key in ("name", "seed")):
            weights = weights_of_network(checkpoint["state_dict"])
            yield Stage(DURING, epoch, rebuild_network(found[epoch], card, counts, weights))
    yield Stage(AFTER, last, scorer.network)


def epoch_of(path: Path) -> int:
    """The epoch, counted from 1, at whose end a checkpoint was written. ValueError where it does not say."""
    checkpoint = read_checkpoint(path)
    epoch, state = checkpoint.get("epoch"), checkpoint.get("state_dict")
    if type(epoch) is not int or not isinstance(state, dict):
        raise ValueError(f"checkpoint {path} lacks a part of a model ('epoch'): train it anew")
    return epoch + 1
