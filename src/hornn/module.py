"""The training of a language model: truncated back-propagation through time as a LightningModule."""

import math
import time
from collections.abc import Callable
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.distributed import all_gather, get_world_size, is_initialized
from torchmetrics import SumMetric

from hornn.cells.base import require_choice
from hornn.checkpoint import CARD
from hornn.data.streams import Chunk
from hornn.heads import resolve_precision
from hornn.metrics import perplexity
from hornn.network import LanguageModel, NetworkState
from hornn.optim import Decision, DivergenceError, Schedule

SPLITS = ("train", "valid", "test")
REDUCTIONS = ("mean", "sum_time")
DIVERGED = 4.0  # a chunk's loss above this many times that of a uniform guess is no longer learning

Record = dict[str, float]  # the measurements of one epoch


class TruncatedBptt(lightning.LightningModule):
    """Truncated BPTT: one chunk is one batch; the state is carried from chunk to chunk, detached.

    With nll the chunk's summed negative log-likelihood in nats, the loss that is differentiated is
    nll / (number of its targets) where `loss_reduction` is `mean`, and nll / B (sum over time, mean over
    the B columns) where it is `sum_time`; number and B count the columns of all ranks.

    All that a resumed run needs beside the weights travels in the checkpoint: the carried state, the sums of
    the running epoch, the records of the past ones, the schedule and the random state.

    Raises ValueError for an unknown reduction; DivergenceError in training for a loss that is not finite
    or exceeds 4 ln V nats per token.
    """

    def __init__(
        self,
        network: LanguageModel,
        optimizer: Callable[..., torch.optim.Optimizer],
        schedule: Schedule,
        loss_reduction: str = "mean",
    ) -> None:
        super().__init__()
        require_choice("loss_reduction", loss_reduction, REDUCTIONS)
        self.network = network
        self.build_optimizer = optimizer
        self.schedule = schedule
        self.loss_reduction = loss_reduction
        self.max_nll = DIVERGED * math.log(network.embedding.num_embeddings)
        self.card: dict[str, Any] = {}  # what a reader of the checkpoint needs to rebuild the model
        self.sums = torch.nn.ModuleDict(
            {f"{split}_nll": SumMetric().set_dtype(torch.float64) for split in SPLITS}
        )
        self.tokens = dict.fromkeys(SPLITS, 0)  # targets behind each sum, over all ranks
        self.states: dict[str, NetworkState] = {}  # carried along each split
        self.records: list[Record] = []
        self.best: Record | None = None
        self.stopped = False  # training is over, though trainer.max_epochs may not be reached
        self.grad_norms: list[float] = []
        self.seconds = 0.0  # of training in the running epoch, up to `tick`
        self.tick: float | None = None  # since when the clock runs

    def configure_optimizers(self) -> torch.optim.Optimizer:
        embedding = self.network.embedding.weight
        others = [p for p in self.network.parameters() if p is not embedding]
        # a word's embedding is no unit's vector of incoming weights, so max-norm spares it
        return self.build_optimizer([{"params": others}, {"params": [embedding], "max_norm": None}])

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        return optimizer

    def on_fit_start(self) -> None:
        self.network.head.precision = resolve_precision(self.network.precision, self.device)
        group = get_world_size() if is_initialized() else 1
        if group != self.trainer.world_size:
            raise RuntimeError(
                f"the trainer counts {self.trainer.world_size} processes but their group has {group}: "
                "start each distributed run as a process of its own"
            )

    def nll(self, split: str) -> SumMetric:
        """The running sum of negative log-likelihoods of `split`, in nats."""
        metric = self.sums[f"{split}_nll"]
        assert isinstance(metric, SumMetric)
        return metric

    def advance(self, batch: Chunk, split: str) -> Tensor:
        """Features (T, B, H) of the chunk, from the state carried along `split`."""
        if batch.first:
            self.states[split] = self.network.initial_state(batch.inputs.size(1))
        features, self.states[split] = self.network(batch.inputs, self.states[split])
        return features

    def training_step(self, batch: Chunk, batch_idx: int) -> Tensor:
        if self.tick is None:
            self.tick = time.perf_counter()
        features = self.advance(batch, "train")
        nll = self.network.head.loss(features, batch.targets)
        mean = float(nll.detach()) * self.trainer.world_size / batch.count
        if not mean <= self.max_nll:
            raise DivergenceError(f"the loss is {mean:.4g} nats per token")
        self.nll("train").update(nll.detach().double())
        self.tokens["train"] += batch.count
        if self.is_due(batch_idx):
            self.log("train/saturation", self.network.saturation(features.detach()))
        divisor = batch.count if self.loss_reduction == "mean" else batch.width
        # DistributedDataParallel averages the gradients of the ranks: world_size makes that their sum
        return nll * (self.trainer.world_size / divisor)

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        super().optimizer_step(*args, **kwargs)
        if (norm := getattr(self.optimizer, "grad_norm", None)) is not None:
            self.grad_norms.append(norm)

    def on_train_batch_end(self, outputs: Any, batch: Chunk, batch_idx: int) -> None:
        if self.is_due(batch_idx):
            if self.grad_norms:
                self.log("train/grad_norm", self.grad_norms[-1])
            self.log("train/ppl", self.running_ppl())
            self.log("lr", self.optimizer.param_groups[0]["lr"])

    def is_due(self, batch_idx: int) -> bool:
        """Whether this update is logged."""
        every = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        return bool(every) and batch_idx % every == 0

    def on_validation_start(self) -> None:
        self.pause_clock()

    def validation_step(self, batch: Chunk, batch_idx: int) -> None:
        self.score(batch, "valid")

    def test_step(self, batch: Chunk, batch_idx: int) -> None:
        self.score(batch, "test")

    def score(self, batch: Chunk, split: str) -> None:
        """Add the chunk's exact negative log-likelihood to the sum of `split`."""
        if batch.first:
            self.clear(split)
        nll = self.network.head.nll(self.advance(batch, split), batch.targets)
        self.nll(split).update(nll.sum(dtype=torch.float64))
        self.tokens[split] += batch.count

    def on_validation_epoch_end(self) -> None:
        self.log("valid/ppl", self.mean_ppl("valid"))

    def on_test_epoch_end(self) -> None:
        self.log("test/ppl", self.mean_ppl("test"))

    def mean_nll(self, split: str) -> float:
        """Nats per token of what the running sum of `split` holds, over all ranks."""
        return float(self.nll(split).compute()) / max(self.tokens[split], 1)

    def mean_ppl(self, split: str) -> float:
        return perplexity(self.mean_nll(split))

    def running_ppl(self) -> float:
        """Training perplexity of the running epoch so far, by this rank's columns alone: no rank waits."""
        nll = float(self.nll("train").sum_value) * self.trainer.world_size
        return perplexity(nll / max(self.tokens["train"], 1))

    def clear(self, split: str) -> None:
        self.nll(split).reset()
        self.tokens[split] = 0

    def pause_clock(self) -> None:
        if self.tick is not None:
            self.seconds += time.perf_counter() - self.tick
            self.tick = None

    def speed(self) -> float:
        """Tokens per second of training so far in the running epoch, over all ranks."""
        seconds = self.seconds + (time.perf_counter() - self.tick if self.tick is not None else 0.0)
        return self.tokens["train"] / seconds if seconds else 0.0

    def close_epoch(self) -> Decision:
        """Record the epoch that training and validation have just finished; what the schedule asks for."""
        self.pause_clock()
        nll = {"train": self.mean_nll("train"), "valid": self.mean_nll("valid")}
        if not math.isfinite(nll["valid"]):
            raise DivergenceError(f"the validation loss is {nll['valid']}")
        epoch = self.trainer.global_step / float(self.trainer.num_training_batches)
        record: Record = {
            "epoch": int(epoch) if epoch.is_integer() else round(epoch, 4),
            "step": self.trainer.global_step,
            "lr": self.optimizer.param_groups[0]["lr"],
            "train_nll": nll["train"],
            "train_ppl": perplexity(nll["train"]),
            "valid_nll": nll["valid"],
            "valid_ppl": perplexity(nll["valid"]),
            "grad_norm": sum(self.grad_norms) / max(len(self.grad_norms), 1),
            "max_grad_norm": max(self.grad_norms, default=0.0),
            "seconds": self.seconds,
            "tokens_per_second": self.speed(),
        }
        self.records.append(record)
        if self.best is None or record["valid_nll"] < self.best["valid_nll"]:
            self.best = record
        self.clear("train")
        self.grad_norms, self.seconds = [], 0.0
        return self.schedule.decide(len(self.records), nll["valid"])

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[CARD] = self.card
        self.pause_clock()
        states = self.states.get("train", ())
        checkpoint["training"] = {
            "states": [[gather_columns(tensor) for tensor in state] for state in states],
            "nll": self.nll("train").compute().clone() if self.tokens["train"] else torch.zeros(()),
            "tokens": self.tokens["train"],
            "records": self.records,
            "best": self.best,
            "stopped": self.stopped,
            "grad_norms": self.grad_norms,
            "seconds": self.seconds,
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        saved = checkpoint["training"]
        rank, world_size = self.trainer.global_rank, self.trainer.world_size
        self.states["train"] = tuple(
            type(empty)(*(t.chunk(world_size, dim=-2)[rank].to(self.device) for t in state))
            for empty, state in zip(self.network.initial_state(1), saved["states"], strict=True)
        )
        self.clear("train")
        if rank == 0:
            self.nll("train").update(saved["nll"])
        self.tokens["train"] = saved["tokens"]
        self.records = saved["records"]
        self.best = saved["best"]
        self.stopped = saved["stopped"]
        self.grad_norms = saved["grad_norms"]
        self.seconds = saved["seconds"]
        self.schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["random"])


def gather_columns(tensor: Tensor) -> Tensor:
    """A state tensor (..., B, width) with the columns of all ranks, in rank order."""
    if not is_initialized():
        return tensor
    parts = [torch.empty_like(tensor) for _ in range(get_world_size())]
    all_gather(parts, tensor.contiguous())
    return torch.cat(parts, dim=-2)
