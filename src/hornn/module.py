"""The training of a language model: truncated back-propagation through time as a LightningModule."""

import math
import time
from collections.abc import Callable, Collection
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.distributed import all_gather, get_world_size, is_initialized
from torchmetrics import SumMetric

from hornn.checkpoint import CARD
from hornn.checks import require_choice, require_positive
from hornn.data.streams import Chunk
from hornn.graph import CapturedUpdate, Update
from hornn.heads import SoftmaxHead
from hornn.metrics import perplexity
from hornn.network import LanguageModel, NetworkState, detach_all
from hornn.optim import (
    AveragedSGD,
    Decision,
    DivergenceError,
    MomentumSGD,
    Schedule,
    WeightNoise,
    require_finite,
)
from hornn.provenance import Parts

SPLITS = ("train", "valid", "test")
REDUCTIONS = ("mean", "sum_time", "sum")
# A training has diverged whose loss exceeds DIVERGED times that of a uniform guess in LASTING updates in a row. A first
# rate too high for the first weights may take dozens of updates to recover from.
DIVERGED, LASTING = 4.0, 100

Record = dict[str, float]  # the measurements of one epoch


class Nats(SumMetric):
    """A sum in float64. Without this, SumMetric rounds each summand to fp32 once Lightning has moved it."""

    dtype = torch.float64


class TruncatedBptt(lightning.LightningModule):
    """Truncated BPTT: one chunk is one batch; the state is carried from chunk to chunk, detached.

    With nll the chunk's summed negative log-likelihood in nats, the loss that is differentiated is
    nll / (number of its targets) where `loss_reduction` is `mean`, nll / B (sum over time, mean over the
    B columns) where it is `sum_time`, nll where it is `sum`; number and B count the columns of all ranks.

    Gradients flow back through the last `bptt_window` tokens (None: through the chunk alone), of which only
    the chunk's are scored: windows overlap. The tokens before the chunk are read again with the weights of
    now, from the state that the weights of then had before them, so the gradient is exact for that
    state; the output layer, most of the work, runs for the chunk alone. (The code released with Mikolov et al.
    2015 keeps the activations of the older weights instead, and counts one step of six twice.)

    `weight_noise` is the standard deviation of `hornn.optim.WeightNoise`. Parameters named in `pretrained`
    learn at `pretrained_lr` times the rate.

    `cuda_graph` runs each update as one CUDA graph (`hornn.graph`).

    All that a resumed run needs beside the weights travels in the checkpoint: the carried state, the sums of
    the running epoch, the records of the past ones, the schedule and the random state.

    Raises ValueError for an unknown reduction; DivergenceError in training for a loss that is not finite
    or exceeds 4 ln V nats per token in 100 updates in a row.
    """

    def __init__(
        self,
        network: LanguageModel,
        optimizer: Callable[..., torch.optim.Optimizer],
        schedule: Schedule,
        loss_reduction: str = "mean",
        bptt_window: int | None = None,
        seq_len: int = 1,
        weight_noise: float = 0.0,
        pretrained: Collection[str] = (),
        pretrained_lr: float = 1.0,
        cuda_graph: bool = False,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        require_choice("loss_reduction", loss_reduction, REDUCTIONS)
        if bptt_window is not None:
            require_positive(bptt_window=bptt_window)
        if bptt_window is not None and bptt_window % seq_len:
            raise ValueError(
                f"bptt_window must be a multiple of data.seq_len={seq_len}, got {bptt_window}: give one, or null"
            )
        self.window_chunks = 1 if bptt_window is None else bptt_window // seq_len
        self.cuda_graph = cuda_graph
        self.captured = CapturedUpdate(self.update_alone)
        self.max_updates: int | None = None
        table = None if network.tied else network.embedding.weight
        self.noise = WeightNoise(network.named_parameters(), weight_noise, table)
        self.pretrained = pretrained
        self.pretrained_lr = pretrained_lr
        self.network = network
        self.build_optimizer = optimizer
        self.schedule = schedule
        self.loss_reduction = loss_reduction
        self.max_nll = DIVERGED * math.log(network.embedding.num_embeddings)
        self.above = 0  # updates in a row, up to now, whose loss exceeds max_nll
        self.parts = Parts({})  # the starts of this run
        self.card: dict[str, Any] = {}  # what a reader of the checkpoint needs to rebuild the model
        self.sums = torch.nn.ModuleDict({f"{split}_nll": Nats().set_dtype(torch.float64) for split in SPLITS})
        self.tokens = dict.fromkeys(SPLITS, 0)  # targets behind each sum, over all ranks
        self.states: dict[str, NetworkState] = {}  # carried along each split
        self.window: list[Tensor] = []  # inputs (T, B) of past training chunks that are read again
        self.records: list[Record] = []
        self.best: Record | None = None
        self.stopped = False  # training is over, though trainer.max_epochs may not be reached
        self.grad_norms: list[float] = []
        self.seconds = 0.0  # of training in the running epoch, up to `tick`
        self.factors: dict[str, float] = {}  # that are learned, at the last validation
        self.tick: float | None = None  # since when the clock runs

    def configure_optimizers(self) -> torch.optim.Optimizer:
        embedding = self.network.embedding.weight
        groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
        for name, parameter in self.network.named_parameters():
            groups.setdefault((parameter is embedding, name in self.pretrained), []).append(parameter)
        # a word's embedding is no unit's vector of incoming weights, so max-norm spares it
        optimizer = self.build_optimizer(
            [
                {"params": members, **({"max_norm": None} if is_embedding else {})}
                for (is_embedding, _), members in groups.items()
            ]
        )
        for (_, is_pretrained), group in zip(groups, optimizer.param_groups, strict=True):
            group["initial_lr"] = group["lr"] * (self.pretrained_lr if is_pretrained else 1.0)
        return optimizer

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        return optimizer

    @property
    def learning_rate(self) -> float:
        """The rate of the last update, of parameters that are not pretrained where there are any."""
        return float(max(group["lr"] for group in self.optimizer.param_groups))

    def on_fit_start(self) -> None:
        group = get_world_size() if is_initialized() else 1
        if group != self.trainer.world_size:
            raise RuntimeError(
                f"the trainer counts {self.trainer.world_size} processes but their group has {group}: "
                "start each distributed run as a process of its own"
            )
        self.network.prepare(self.device)
        self.noise.native = self.network.native
        if isinstance(self.optimizer, MomentumSGD) and self.device.type == "cpu" and group == 1:
            match(self.network, self.optimizer)

    def check_graph(self, device: torch.device, world_size: int, optimizer: torch.optim.Optimizer) -> None:
        """Raise ValueError for a training that a CUDA graph of one chunk's update cannot hold."""
        obstacles = {
            f"a {device.type}": device.type != "cuda",
            "several processes": world_size > 1,
            "bptt_window": self.window_chunks > 1,
            "weight_noise": self.noise.std > 0,
            f"the optimizer {type(optimizer).__name__}": not isinstance(optimizer, MomentumSGD),
            f"the head {type(self.network.head).__name__}": not isinstance(self.network.head, SoftmaxHead),
        }
        if found := [name for name, holds in obstacles.items() if holds]:
            raise ValueError(
                f"cuda_graph=true cannot hold a training with {' and '.join(found)}: use cuda_graph=false"
            )

    def restore(self, weights: dict[str, Any]) -> None:
        """Go back to these weights, without momentum."""
        self.load_state_dict(weights)
        self.optimizer.state.clear()
        self.captured = CapturedUpdate(self.update_alone)  # the old one's momentum is gone

    def nll(self, split: str) -> SumMetric:
        """The running sum of negative log-likelihoods of `split`, in nats."""
        metric = self.sums[f"{split}_nll"]
        assert isinstance(metric, SumMetric)
        return metric

    def training_step(self, batch: list[Chunk], batch_idx: int) -> None:
        """One update for each chunk. A GPU is read once, when all of them are on their way."""
        if self.tick is None:
            self.tick = time.perf_counter()
        started = self.trainer.global_step
        updates = []
        for chunk in batch:
            if self.trainer.global_step == self.max_updates:
                break
            for group in self.optimizer.param_groups:
                group["lr"] = group["initial_lr"] * self.schedule.rate(self.trainer.global_step)
            self.begin(chunk)
            updates.append(self.replay(chunk) if self.cuda_graph else self.update(chunk))
            self.tokens["train"] += chunk.count
        if updates[-1].nll.is_cuda:
            nlls = torch.stack([update.nll for update in updates]).tolist()
            norms = torch.stack([torch.as_tensor(update.grad_norm) for update in updates]).tolist()
            for chunk, nll, norm in zip(batch, nlls, norms, strict=False):
                self.check_nll(nll, chunk)
                self.grad_norms.append(require_finite(norm))
        total = torch.stack([update.nll for update in updates]).sum()
        self.nll("train").update(total)
        every = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        if every and -started % every < len(updates):
            self.report(
                {
                    "train/saturation": self.network.saturation(updates[-1].features),
                    "train/ppl": self.running_ppl(),
                    "lr": self.learning_rate,
                    **({"train/grad_norm": self.grad_norms[-1]} if self.grad_norms else {}),
                }
            )

    def update(self, chunk: Chunk) -> Update:
        """Forward and backward pass over one chunk and one step of the optimizer."""
        self.noise.add([*self.window, chunk.inputs])
        features = self.read_window(chunk)
        scale = self.loss_scale(chunk)
        loss = self.network.head.loss(features, chunk.targets, scale)
        nll = loss.detach().double() / scale
        if not nll.is_cuda:
            self.check_nll(float(nll), chunk)
        self.manual_backward(loss)
        self.noise.remove()
        optimizer = self.optimizers()
        optimizer.step()  # type: ignore[union-attr]
        optimizer.zero_grad()  # type: ignore[union-attr]
        norm = getattr(self.optimizer, "grad_norm", math.nan)
        if not nll.is_cuda:
            self.grad_norms.append(norm)
        return Update(features.detach(), nll, norm, self.states["train"])

    def replay(self, chunk: Chunk) -> Update:
        """The same by a CUDA graph."""
        optimizer = self.optimizers()
        rates = tuple(group["lr"] for group in self.optimizer.param_groups)
        optimizer._on_before_step()  # type: ignore[union-attr]  # counts the update, as optimizer.step() does
        state, scale = self.states["train"], self.loss_scale(chunk)
        update = self.captured(chunk.inputs, chunk.targets, state, scale, rates)
        optimizer._on_after_step()  # type: ignore[union-attr]
        self.states["train"] = update.state
        return update._replace(nll=update.nll.clone(), grad_norm=torch.as_tensor(update.grad_norm).clone())

    def update_alone(self, inputs: Tensor, targets: Tensor, state: NetworkState, scale: float) -> Update:
        """An update that a CUDA graph can hold: of nothing but its arguments and the weights."""
        self.optimizer.zero_grad()
        features, state = self.network(inputs, state)
        loss = self.network.head.loss(features, targets, scale)
        loss.backward()
        self.optimizer.step()
        norm = self.optimizer.grad_norm  # type: ignore[attr-defined]
        return Update(features.detach(), loss.detach().double() / scale, norm, detach_all(state))

    def loss_scale(self, chunk: Chunk) -> float:
        """What the summed loss is multiplied by before it is differentiated.

        DistributedDataParallel averages the gradients of the ranks: world_size makes that their sum.
        """
        divisor = {"mean": chunk.count, "sum_time": chunk.width, "sum": 1}[self.loss_reduction]
        return self.trainer.world_size / divisor

    def check_nll(self, nll: float, chunk: Chunk) -> None:
        mean = nll * self.trainer.world_size / chunk.count
        self.above = self.above + 1 if mean > self.max_nll else 0
        if not math.isfinite(mean):
            raise DivergenceError(f"the loss is {mean:.4g} nats per token")
        if self.above == LASTING:
            limit = f"{self.max_nll:.4g} nats per token"
            raise DivergenceError(f"the loss is {mean:.4g}, above {limit} for {LASTING} updates in a row")

    def begin(self, chunk: Chunk) -> None:
        """At the first chunk of the text, forget what was read before."""
        if chunk.first:
            self.states["train"], self.window = self.network.initial_state(chunk.inputs.size(1)), []

    def read_window(self, chunk: Chunk) -> Tensor:
        """Features (T, B, H) of a training chunk, at the end of the window that gradients flow back through."""
        chunks = [*self.window, chunk.inputs]
        features, state = self.network(chunks[0], self.states["train"])
        if len(chunks) == self.window_chunks:  # the next window starts one chunk later
            self.states["train"], self.window = detach_all(state), chunks[1:]
        else:
            self.window = chunks
        if len(chunks) > 1:
            features, _ = self.network(torch.cat(chunks[1:]), state)
        return features[-chunk.inputs.size(0) :]

    def report(self, metrics: dict[str, float]) -> None:
        """Log under the number of updates so far."""
        for logger in self.loggers:
            logger.log_metrics(metrics, step=self.trainer.global_step)

    def on_validation_start(self) -> None:
        self.pause_clock()
        self.swap_averages()

    def on_validation_end(self) -> None:
        self.swap_averages()

    def swap_averages(self) -> None:
        """Exchange the weights with their averages, where the optimizer in use keeps any."""
        if isinstance(self.optimizer, AveragedSGD):
            self.optimizer.swap_averages()

    def validation_step(self, batch: Chunk, batch_idx: int) -> None:
        self.score(batch, "valid")

    def test_step(self, batch: Chunk, batch_idx: int) -> None:
        self.score(batch, "test")

    def score(self, batch: Chunk, split: str) -> None:
        """Add the chunk's exact negative log-likelihood to the sum of `split`."""
        if batch.first:
            self.clear(split)
            self.states[split] = self.network.initial_state(batch.inputs.size(1))
        features, state = self.network(batch.inputs, self.states[split])
        self.states[split] = detach_all(state)
        nll = self.network.head.nll(features, batch.targets)
        self.nll(split).update(nll.sum(dtype=torch.float64))
        self.tokens[split] += batch.count

    def on_validation_epoch_end(self) -> None:
        ppl = self.mean_ppl("valid")
        self.log("valid/ppl", ppl, logger=False)
        self.factors = self.network.learned_factors()
        self.report({"valid/ppl": ppl, **self.factors})

    def on_test_epoch_end(self) -> None:
        ppl = self.mean_ppl("test")
        self.log("test/ppl", ppl, logger=False)
        self.report({"test/ppl": ppl})

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
        epoch = self.trainer.global_step / len(self.trainer.train_dataloader.stream)  # type: ignore[union-attr]
        record: Record = {
            "epoch": int(epoch) if epoch.is_integer() else round(epoch, 4),
            "step": self.trainer.global_step,
            "lr": self.learning_rate,
            "train_nll": nll["train"],
            "train_ppl": perplexity(nll["train"]),
            "valid_nll": nll["valid"],
            "valid_ppl": perplexity(nll["valid"]),
            "grad_norm": sum(self.grad_norms) / max(len(self.grad_norms), 1),
            "max_grad_norm": max(self.grad_norms, default=0.0),
            **self.factors,
            "seconds": self.seconds,
            "tokens_per_second": self.speed(),
        }
        self.records.append(record)
        if self.best is None or record["valid_nll"] < self.best["valid_nll"]:
            self.best = record
        self.clear("train")
        self.grad_norms, self.seconds = [], 0.0
        return self.schedule.decide(len(self.records), self.trainer.global_step, nll["valid"])

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[CARD] = self.card
        self.pause_clock()
        states = self.states.get("train", ())
        checkpoint["training"] = {
            "states": [[gather_columns(tensor) for tensor in state] for state in states],
            "window": [gather_columns(inputs.unsqueeze(-1)).squeeze(-1) for inputs in self.window],
            "nll": self.nll("train").compute().clone() if self.tokens["train"] else torch.zeros(()),
            "tokens": self.tokens["train"],
            "records": self.records,
            "best": self.best,
            "stopped": self.stopped,
            "grad_norms": self.grad_norms,
            "above": self.above,
            "seconds": self.seconds,
            "parts": self.parts.all(),
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
        self.window = [inputs.chunk(world_size, dim=-1)[rank].to(self.device) for inputs in saved["window"]]
        self.clear("train")
        if rank == 0:
            self.nll("train").update(saved["nll"])
        self.tokens["train"] = saved["tokens"]
        self.records = saved["records"]
        self.best = saved["best"]
        self.stopped = saved["stopped"]
        self.grad_norms = saved["grad_norms"]
        self.seconds = saved["seconds"]
        self.above = saved.get("above", 0)  # an older program kept none
        self.parts.past = saved.get("parts", [])  # an older program kept none
        self.schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["random"])


def match(network: LanguageModel, optimizer: MomentumSGD) -> None:
    """Spare an update on the CPU, all of it in one process, what only this optimizer can do without.

    The gradient of the embedding has the rows of the chunk's words alone. With native kernels that of the output
    layer stays in bf16 where it was computed so, and the update writes the next bf16 copy of the weights.
    """
    head = network.head
    optimizer.native = network.native
    network.embedding.sparse = not network.tied
    if network.native and not network.tied and isinstance(head, SoftmaxHead) and head.precision == "bf16":
        head.W_out.grad_dtype = torch.bfloat16
        optimizer.narrow = head.narrow


def gather_columns(tensor: Tensor) -> Tensor:
    """A state tensor (..., B, width) with the columns of all ranks, in rank order."""
    if not is_initialized():
        return tensor
    parts = [torch.empty_like(tensor) for _ in range(get_world_size())]
    all_gather(parts, tensor.contiguous())
    return torch.cat(parts, dim=-2)
