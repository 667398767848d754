"""The training of a network: truncated back-propagation through time as a LightningModule."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from hornn import columns
from hornn.cells.base import is_bias
from hornn.checks import require_choice, require_positive, require_range
from hornn.data.base import SPLITS, Chunk
from hornn.metrics import WORDS, Units
from hornn.network import NetworkState, SequenceModel, detach_all
from hornn.optim.adaptive import AveragedSGD
from hornn.optim.descent import ClippedOptimizer, tell_versions
from hornn.optim.divergence import LossWatch
from hornn.optim.noise import DroppedWeights, WeightNoise
from hornn.optim.schedules import Schedule
from hornn.optim.spared import spare_work
from hornn.recorded_updates import Outcome, RecordedUpdates, record_updates
from hornn.tally import Tally

REDUCTIONS = ("mean", "sum_time", "sum")


class TruncatedBptt(lightning.LightningModule):
    """Truncated BPTT: one chunk is one batch; the state is carried from chunk to chunk, detached.

    nll is the chunk's summed negative log-likelihood in nats. By `loss_reduction` the loss that is differentiated is
    nll / (number of its targets) for `mean`, nll / B (sum over time, mean over the B columns) for `sum_time`, nll for
    `sum`. Number and B count the columns of all ranks.

    Gradients flow back through the last `bptt_window` tokens (None: through the chunk alone), of which only
    the chunk's are scored: windows overlap. The tokens before the chunk are read again with the current weights, from
    the state that earlier weights had before them. So the gradient is exact for that state. The output layer, most of
    the work, runs for the chunk alone. (The code released with Mikolov et al. 2015 keeps the activations of the older
    weights instead, and counts one step of six twice.)

    `weight_noise` is the standard deviation of `hornn.optim.noise.WeightNoise`, `recurrent_dropout` the share of the
    weights that act on a state that `hornn.optim.noise.DroppedWeights` drops. Parameters named in `pretrained` (see
    `hornn.run.start_from.Taken`) learn at `pretrained_lr` times the learning rate.

    `carried` gives what a resumed run needs beside weights, schedule and random state; `carry_on` takes it up. On a GPU
    updates are recorded and replayed (`hornn.recorded_updates`); `settle` takes in what became of them.

    Raises ValueError for an unknown reduction; DivergenceError in training for a loss that is not finite
    or exceeds 4 times the loss of a uniform guess in 100 updates in a row; of replayed updates at most 50 later.
    """

    def __init__(
        self,
        network: SequenceModel,
        optimizer: Callable[..., torch.optim.Optimizer],
        schedule: Schedule,
        loss_reduction: str = "mean",
        bptt_window: int | None = None,
        seq_len: int = 1,
        weight_noise: float = 0.0,
        recurrent_dropout: float = 0.0,
        pretrained: Mapping[str, int | None] | None = None,
        pretrained_lr: float = 1.0,
        units: Units = WORDS,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        require_choice("loss_reduction", loss_reduction, REDUCTIONS)
        require_range("init_from_lr", pretrained_lr, ">= 0", pretrained_lr >= 0)
        if bptt_window is not None:
            require_positive(bptt_window=bptt_window)
            holds = bptt_window % seq_len == 0
            require_range("bptt_window", bptt_window, f"a multiple of data.seq_len={seq_len}, or null", holds)
        self.window_chunks = 1 if bptt_window is None else bptt_window // seq_len
        table = None if network.tied else network.table
        self.noise = WeightNoise(network.named_parameters(), weight_noise, table)
        recurrent = network.recurrent_weights("recurrent_dropout") if recurrent_dropout else []
        self.dropped = DroppedWeights(recurrent, recurrent_dropout)
        self.pretrained = dict(pretrained or {})
        self.pretrained_lr = pretrained_lr
        self.leading = 0  # the group of parameters whose learning rate is told
        self.network = network
        self.build_optimizer = optimizer
        self.schedule = schedule
        self.loss_reduction = loss_reduction
        self.units = units  # of the targets
        self.watch = LossWatch(network.head.chance_nll, units.target)
        self.tallies = torch.nn.ModuleDict({f"{split}_sums": Tally() for split in SPLITS})
        self.states: dict[str, NetworkState] = {}  # carried along each split
        self.window: list[Tensor] = []  # inputs (T, B) of past training chunks that are read again
        self.grad_norms: list[float] = []  # of the running epoch's updates
        self.factors: dict[str, float] = {}  # that are learned, at the last validation
        self.recorded: RecordedUpdates | None = None  # where nothing keeps updates from being recorded
        self.last_nll = torch.empty(0)  # of each target (T, B) of the chunk that was scored last

    def configure_optimizers(self) -> torch.optim.Optimizer:
        groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
        for name, parameter in self.network.named_parameters():
            # a row of these is no unit's vector of incoming weights, so max-norm spares it; vectors it spares anyway
            spared = parameter is self.network.table or (is_bias(name) and parameter.ndim > 1)
            groups.setdefault((spared, name in self.pretrained), []).append(parameter)
        optimizer = self.build_optimizer(
            [
                {"params": members, **({"max_norm": None} if spared else {})}
                for (spared, _), members in groups.items()
            ]
        )
        new = [place for place, (_, is_pretrained) in enumerate(groups) if not is_pretrained]
        self.leading = new[0] if new else 0
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
        """The learning rate of the last update, of parameters that are not pretrained where there are any."""
        return float(self.optimizer.param_groups[self.leading]["lr"])

    def on_fit_start(self) -> None:
        group = columns.world_size()
        if group != self.trainer.world_size:
            raise RuntimeError(
                f"the trainer counts {self.trainer.world_size} processes but their group has {group}: "
                "start each distributed run as a process of its own"
            )
        self.network.prepare(self.device)
        self.noise.native = self.network.native
        self.record_updates()
        if self.device.type == "cpu":
            wrapped = isinstance(self.trainer.strategy.model, DistributedDataParallel)
            spare_work(self.network, self.optimizer, wrapped)

    def record_updates(self) -> None:
        """From here on, recurring updates are recorded anew, where they can be."""
        what = self.network, self.optimizer, self.differentiate
        self.recorded = record_updates(*what, self.trainer.callbacks)  # type: ignore[attr-defined]

    def restore(self, weights: dict[str, Any]) -> None:
        """Go back to these weights, without momentum; where weights are averaged, a new average begins."""
        self.load_state_dict(weights)
        if isinstance(self.optimizer, AveragedSGD):
            self.optimizer.forget()
        else:
            self.optimizer.state.clear()
        self.record_updates()  # as momentum will lie elsewhere

    def tally(self, split: str) -> Tally:
        tally = self.tallies[f"{split}_sums"]
        assert isinstance(tally, Tally)
        return tally

    def training_step(self, batch: Chunk, batch_idx: int) -> None:
        """One update."""
        started = self.trainer.global_step
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * self.schedule.rate(started)
        if batch.first:
            self.states["train"], self.window = self.network.initial_state(batch.inputs.size(1)), []
        features = self.update(batch)
        every = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        if every and started % every == 0:
            self.report(
                {
                    f"train/{self.units.key}": self.running_score(),
                    "train/saturation": self.network.saturation(features),
                    "lr": self.learning_rate,
                    **({"train/grad_norm": self.grad_norms[-1]} if self.grad_norms else {}),
                }
            )

    def update(self, chunk: Chunk) -> Tensor:
        """Forward and backward pass over one chunk and one step of the optimizer.

        Returns the features (T, B, H) of this rank's columns, as they are before `network.dropout`.
        """
        columns.set_width(chunk.width)
        chunks, state = [*self.window, chunk.inputs], self.states["train"]
        scale = self.loss_scale(chunk)
        if self.recorded is not None:
            kind = chunks, state, chunk.targets, scale
            replayed = self.recorded.replay(*kind, chunk.count, self.optimizers().step)  # type: ignore[union-attr]
            if replayed is not None:
                features, state = replayed
                self.pass_on(chunks, state)
                if self.recorded.log.is_full:
                    self.settle()
                return features
        self.settle()
        features, state, nll = self.differentiate(chunks, state, chunk.targets, scale)
        self.pass_on(chunks, state)
        self.watch.check(float(nll), chunk.count)
        self.optimizers().step()  # type: ignore[union-attr]
        if isinstance(self.optimizer, ClippedOptimizer):
            self.grad_norms.append(self.optimizer.grad_norm)
        else:  # one of the user's measures no norm, and may be fused
            tell_versions(self.network.parameters())
        self.optimizers().zero_grad()  # type: ignore[union-attr]
        self.tally("train").add(nll, chunk.count)
        return features

    def differentiate(
        self, chunks: Sequence[Tensor], state: NetworkState, targets: Tensor, scale: float
    ) -> Outcome:
        """The gradient of `scale` times the loss of the last chunk; that loss is the one over all ranks."""
        self.noise.add(chunks)
        self.dropped.drop()
        y, after = self.read_window(chunks, state)
        loss = self.network.head.loss(self.network.drop(y, self.network.dropout), targets, scale)
        nll = columns.total(loss.detach().double() / scale)
        self.manual_backward(loss)
        self.dropped.restore()
        self.noise.remove()
        return Outcome(y.detach(), after, nll)

    def settle(self) -> None:
        """Take in the losses and norms of the updates that were replayed. It waits for the GPU."""
        if self.recorded is None:
            return
        for nll, grad_norm, count in self.watch.checked(self.recorded.log.take()):
            self.grad_norms.append(grad_norm)
            self.tally("train").add(torch.tensor(nll, dtype=torch.float64), count)

    def loss_scale(self, chunk: Chunk) -> float:
        """What the summed loss is multiplied by before it is differentiated.

        DistributedDataParallel averages the gradients of the ranks: world_size makes that their sum.
        """
        divisor = {"mean": chunk.count, "sum_time": chunk.width, "sum": 1}[self.loss_reduction]
        return self.trainer.world_size / divisor

    def read_window(self, chunks: Sequence[Tensor], state: NetworkState) -> tuple[Tensor, NetworkState]:
        """Features (T, B, H), not dropped, of the last of these chunks, and the state before the next window, detached.

        Gradients flow back through all chunks. The next window starts one chunk later, once the window is full.
        """
        y, after = self.network.run_cells(chunks[0], state)
        later = detach_all(after) if len(chunks) == self.window_chunks else state
        if len(chunks) > 1:
            y, _ = self.network.run_cells(torch.cat(list(chunks[1:])), after, last=chunks[-1].size(0))
        return y, later

    def pass_on(self, chunks: Sequence[Tensor], state: NetworkState) -> None:
        """Keep what the next window begins with."""
        self.states["train"] = state
        self.window = list(chunks[1:] if len(chunks) == self.window_chunks else chunks)

    def report(self, metrics: dict[str, float], updates: int = 0) -> None:
        """Log under the number of updates so far, and of those under way."""
        for logger in self.loggers:
            logger.log_metrics(metrics, step=self.trainer.global_step + updates)

    def on_validation_start(self) -> None:
        self.settle()
        self.tally("valid").clear()
        self.swap_averages()

    def on_validation_end(self) -> None:
        self.swap_averages()

    def swap_averages(self) -> None:
        """Exchange the weights with their averages, where the optimizer in use keeps any."""
        if isinstance(self.optimizer, AveragedSGD):
            self.optimizer.swap_averages()

    def on_test_start(self) -> None:
        self.tally("test").clear()

    def validation_step(self, batch: Chunk, batch_idx: int) -> None:
        self.score(batch, "valid")

    def test_step(self, batch: Chunk, batch_idx: int) -> None:
        self.score(batch, "test")

    def score(self, batch: Chunk, split: str) -> None:
        """Add the chunk's exact negative log-likelihood to the sum of `split`, and what its accuracy is made of."""
        if batch.first:
            self.states[split] = self.network.initial_state(batch.inputs.size(1))
        features, state = self.network(batch.inputs, self.states[split])
        self.states[split] = detach_all(state)
        nll = self.last_nll = self.network.head.nll(features, batch.targets)
        hits = self.network.head.hits(features, batch.targets) if self.units.accuracy else None
        hits = None if hits is None else columns.total(hits)
        self.tally(split).add(columns.total(nll.sum(dtype=torch.float64)), batch.count, hits)

    def on_validation_epoch_end(self) -> None:
        self.log_dict(self.scores("valid"), logger=False)  # for callbacks; the epoch's end reports them
        self.factors = self.network.learned_factors()

    def on_test_epoch_end(self) -> None:
        self.log_dict(self.scores("test"), logger=False)
        self.report(self.scores("test"))

    def scores(self, split: str) -> dict[str, float]:
        """What the running sums of `split` say, as they are logged."""
        return self.units.logged(split, self.tally(split).mean_nll, self.accuracy(split))

    def figures(self, split: str) -> dict[str, float]:
        """What the running sums of `split` say, by the keys of a result."""
        return self.units.figures(split, self.tally(split).mean_nll, self.accuracy(split))

    def accuracy(self, split: str) -> float | None:
        """None where it is not measured: in training, and in units without one."""
        return self.tally(split).accuracy if self.units.accuracy and split != "train" else None

    def running_score(self) -> float:
        """Training perplexity, or whatever else is read, of the running epoch so far."""
        self.settle()
        return self.units.read(self.tally("train").mean_nll)

    def carried(self) -> dict[str, Any]:
        """What a resumed run goes on with: the state of the columns of all ranks, and the sums of the running epoch."""
        self.settle()
        states = self.states.get("train", ())
        return {
            "states": [[columns.gather(tensor) for tensor in state] for state in states],
            "window": [gather_inputs(inputs) for inputs in self.window],
            "nll": self.tally("train").nll,
            "tokens": self.tally("train").targets,
            "grad_norms": self.grad_norms,
            "above": self.watch.above,
        }

    def carry_on(self, saved: dict[str, Any]) -> None:
        """Go on from what `carried` gave, this rank with its columns."""
        trainer = self.trainer
        device = trainer.strategy.root_device  # where Lightning has not moved the network yet

        def own(width: int) -> slice:
            return columns.share(width, trainer.global_rank, trainer.world_size).read

        self.states["train"] = tuple(
            type(empty)(*(tensor[..., own(tensor.size(-2)), :].to(device) for tensor in state))
            for empty, state in zip(self.network.initial_state(1), saved["states"], strict=True)
        )
        self.window = [inputs[:, own(inputs.size(1))].to(device) for inputs in saved["window"]]
        self.tally("train").clear()
        self.tally("train").add(saved["nll"], saved["tokens"])
        self.grad_norms, self.watch.above = saved["grad_norms"], saved["above"]


def gather_inputs(inputs: Tensor) -> Tensor:
    """Inputs (T, B) or (T, B, I) of the columns of this process -> of all processes."""
    return columns.gather(inputs) if inputs.ndim > 2 else columns.gather(inputs.unsqueeze(-1)).squeeze(-1)
