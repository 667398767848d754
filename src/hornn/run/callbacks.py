"""What else watches or steers a training, by the files of conf/callbacks: callbacks of Lightning, ours and a user's."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import lightning
import torch
from hydra.utils import instantiate
from lightning.pytorch.callbacks import (
    BaseFinetuning,
    BatchSizeFinder,
    Callback,
    DeviceStatsMonitor,
    EarlyStopping,
    GradientAccumulationScheduler,
    LearningRateFinder,
    ModelPruning,
    ProgressBar,
    StochasticWeightAveraging,
    Timer,
    WeightAveraging,
)
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from torch import Tensor

from hornn.checks import (
    is_number,
    require_package,
    require_positive,
    require_range,
    require_seed,
    require_temperature,
)
from hornn.data.base import Chunk, Data
from hornn.data.text import TextData
from hornn.data.vocabulary import count_classes
from hornn.metrics import Units, perplexity
from hornn.norm import norm
from hornn.result import LETTERS, SAMPLES
from hornn.run.announce import console
from hornn.run.code import WATCHES
from hornn.run.identity import SNAPSHOTS

# Callbacks of Lightning's that restore checkpoints of their own, want updates or weights of other kinds, or end a
# training within an epoch -> what to do instead.
UNFIT: dict[type[Callback], str] = {
    LearningRateFinder: "give -m optimizer.lr=A,B, or search by tune.py",
    BatchSizeFinder: "give -m data.batch_size=A,B",
    GradientAccumulationScheduler: "give a larger data.batch_size",
    ModelPruning: "leave it out",
    ProgressBar: "leave it out, as the program has its own; trainer.enable_progress_bar=false takes that away",
    BaseFinetuning: "leave it out; init_from_lr slows what another run has trained",
    Timer: "give trainer.max_time",
}


class OfText(Callback):
    """A callback that knows the run's text: `data` is set before the training."""

    data: TextData

    def check_text(self) -> None:
        """Raise ValueError, before the training, where it could not do its work on this text."""


def build_callbacks(nodes: Mapping[str, Any], data: Data) -> list[Callback]:
    """The callbacks that these nodes of the config name.

    Raises ValueError for a node that names none, for one whose package is not installed, and for an early stop by a
    number that is not measured.
    """
    built = []
    for name, node in nodes.items():
        if node is None:
            continue
        where = f"callbacks.{name}"
        if not isinstance(node, Mapping) or "_target_" not in node:
            raise ValueError(
                f"{where} must have a _target_, the class of a callback, got {node!r}: callbacks={name} chooses a "
                f"file, +{where}._target_=MODULE.CLASS a class"
            )
        try:
            callback = instantiate(
                {key: value for key, value in node.items() if key != WATCHES}, _convert_="all"
            )
        except TypeError as error:
            raise ValueError(f"{where}: {error}") from error
        if not isinstance(callback, Callback):
            raise ValueError(f"{where}._target_ must name a callback of Lightning's, got {node['_target_']}")
        check_callback(callback, where, data.units)
        if isinstance(callback, OfText):
            if not isinstance(data, TextData):
                raise ValueError(f"callbacks={name} speaks of words, and {data.name} has none: leave it out")
            callback.data = data
            callback.check_text()
        built.append(callback)
    return built


def check_callback(callback: Callback, where: str, units: Units) -> None:
    """Refuse what would only fail in the training."""
    for kind, remedy in UNFIT.items():
        if isinstance(callback, kind):
            raise ValueError(f"{where} is Lightning's {kind.__name__}, which does not work here: {remedy}")
    if isinstance(callback, DeviceStatsMonitor):
        require_package("psutil", where)
    if isinstance(callback, WeightAveraging | StochasticWeightAveraging):
        raise ValueError(
            f"{where} averages weights behind the back of best.ckpt and of the test, which would have others than "
            "validation: leave it out, optimizer=asgd averages for all of them"
        )
    monitored = tuple(units.logged("valid", 0.0))  # that an early stop can go by
    if isinstance(callback, EarlyStopping):
        # a loss that is not finite ends the run anyway; the perplexity, in fp32, is infinite from 88.7 nats on
        callback.check_finite = False
        if callback.monitor not in monitored:
            raise ValueError(f"{where}.monitor must be {' or '.join(monitored)}, got {callback.monitor!r}")
        if callback.mode != "min":
            raise ValueError(f"{where}.mode must be min, as lower scores are better, got {callback.mode!r}")
        patience, delta = callback.patience, callback.min_delta
        require_range(
            f"{where}.patience", patience, "a number of epochs", type(patience) is int and patience >= 0
        )
        require_range(f"{where}.min_delta", delta, "a finite number", is_number(delta))


def why_stopped(callbacks: Iterable[Callback], stopped: bool) -> str:
    """What an early stop says of itself, empty where there was none. stopped: whether somebody asked for an end."""
    said = [each.stopping_reason_message for each in callbacks if isinstance(each, EarlyStopping)]
    reasons = [
        " ".join(message.split()).removesuffix(" Signaling Trainer to stop.") for message in said if message
    ]
    return f"ended early: {' '.join(reasons) or 'a callback asked for it'}" if reasons or stopped else ""


def samples_of(callbacks: Iterable[Callback]) -> dict[str, Any]:
    """The samples that a result keeps, empty where nobody asked for any."""
    kept = [each.kept for each in callbacks if isinstance(each, Samples) and each.kept]
    return {"samples": kept[0]} if kept else {}


class LayerNorms(Callback):
    """Logs the Euclidean norm of each weight and of its gradient before the clip.

    At the updates whose losses are logged, as `weight_norm/NAME` and `grad_norm/NAME`.
    """

    def on_before_optimizer_step(
        self, trainer: lightning.Trainer, module: Any, optimizer: torch.optim.Optimizer
    ) -> None:
        every = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if not every or trainer.global_step % every:
            return
        norms = {}
        for name, weight in module.network.named_parameters():
            norms[f"weight_norm/{name}"] = float(norm([weight.detach()]))
            if weight.grad is not None:
                norms[f"grad_norm/{name}"] = float(norm([dense(weight.grad)]))
        module.report(norms, updates=1)


def dense(gradient: Tensor) -> Tensor:
    """The numbers of a gradient that are not 0 by construction, in fp32."""
    return (gradient.coalesce().values() if gradient.is_sparse else gradient).float()


class Snapshots(Callback):
    """Keeps the weights of some epochs, counted from 1, beside best.ckpt: as epoch-N.ckpt.

    Raises ValueError unless `epochs` are whole numbers of 1 or more.
    """

    def __init__(self, epochs: list[int]) -> None:
        if not epochs or not all(type(epoch) is int and epoch >= 1 for epoch in epochs):
            raise ValueError(f"callbacks.snapshots.epochs must list whole numbers >= 1, got {epochs}")
        self.epochs = epochs

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: Any) -> None:
        epoch = trainer.current_epoch + 1
        if epoch in self.epochs:
            module.swap_averages()
            name = SNAPSHOTS.replace("*", str(epoch))
            trainer.save_checkpoint(Path(trainer.default_root_dir) / name, weights_only=True)
            module.swap_averages()

    def on_fit_end(self, trainer: lightning.Trainer, module: Any) -> None:
        absent = [epoch for epoch in self.epochs if epoch > trainer.current_epoch]
        if absent and trainer.is_global_zero:
            console.print(
                f"callbacks.snapshots kept no weights of epochs {absent}: training did not come there"
            )


class WordFrequency(OfText):
    """The test perplexity of words by how often the training text has them.

    A class holds the words whose count is at least one bound and below the next one. The sums are over all ranks.
    Raises ValueError for bounds that do not rise from 1 or more.
    """

    def __init__(self, bounds: list[int]) -> None:
        whole = isinstance(bounds, list) and bounds and all(type(bound) is int for bound in bounds)
        if not whole or any(low >= high for low, high in zip([0, *bounds], bounds, strict=False)):
            raise ValueError(f"callbacks.word_frequency.bounds must be counts that rise, got {bounds}")
        self.bounds = bounds
        self.labels = count_classes(bounds)

    def on_test_start(self, trainer: lightning.Trainer, module: Any) -> None:
        counts = torch.tensor(self.data.vocabulary.counts)
        self.class_of = torch.bucketize(counts, torch.tensor(self.bounds), right=True).to(module.device)
        self.sums = torch.zeros(2, len(self.labels), dtype=torch.float64, device=module.device)

    def on_test_batch_end(
        self, trainer: lightning.Trainer, module: Any, outputs: Any, batch: Chunk, *args: Any
    ) -> None:
        scored = batch.targets >= 0
        classes, nll = self.class_of[batch.targets[scored]], module.last_nll[scored].double()
        self.sums[0].index_add_(0, classes, nll)
        self.sums[1].index_add_(0, classes, torch.ones_like(nll))

    def on_test_end(self, trainer: lightning.Trainer, module: Any) -> None:
        nll, number = trainer.strategy.reduce(self.sums, reduce_op="sum").tolist()
        rows = [
            [label, int(tokens), round(perplexity(total / tokens), 2)]
            for label, total, tokens in zip(self.labels, nll, number, strict=True)
            if tokens
        ]
        if trainer.is_global_zero:
            log_table(
                trainer.loggers, "test/ppl_by_frequency", ["count in training", "tokens", "perplexity"], rows
            )
            console.print("test perplexity by word frequency:")
            for label, tokens, ppl in rows:
                console.print(f"  {ppl:>10,.2f} on {tokens:,} tokens that training has {label} times")


class Samples(OfText):
    """Logs texts that the network writes after each epoch that is the best so far, by a generator of their own.

    The run's result keeps the texts of the best epoch: at most SAMPLES of them, LETTERS characters of each.
    """

    def __init__(
        self,
        prompt: str = "",
        num_samples: int = 3,
        length: int = 30,
        temperature: float = 0.8,
        seed: int = 1,
    ) -> None:
        require_positive(num_samples=num_samples, length=length)
        require_temperature(temperature)
        require_seed(seed)
        self.prompt, self.num_samples, self.length = prompt, num_samples, length
        self.temperature, self.seed = temperature, seed
        self.rows: list[list[Any]] = []

    def check_text(self) -> None:
        try:
            for line in self.prompt.split("\n"):
                self.data.vocabulary.encode(self.data.tokenizer.cut(line))
        except ValueError as error:
            raise ValueError(f"callbacks.samples.prompt: {error}") from None

    def on_train_epoch_end(self, trainer: lightning.Trainer, module: Any) -> None:
        best = trainer.checkpoint_callback.best  # type: ignore[union-attr]
        nll = module.tally("valid").mean_nll
        bound = math.inf if best is None else best["valid_nll"]
        if not trainer.is_global_zero or not nll < bound:  # false for nan: the keeper refuses it
            return
        epoch = trainer.current_epoch + 1
        self.rows += [[epoch, round(perplexity(nll), 2), text] for text in self.write(module)]
        log_table(trainer.loggers, "samples", ["epoch", "valid/ppl", "text"], self.rows, trainer.global_step)

    def write(self, module: Any) -> list[str]:
        """Texts by the weights that validation has scored."""
        from hornn.use.model import Model  # both take a while to load
        from hornn.use.scorers import NetworkScorer

        card = {"tokenizer": self.data.tokenizer.state()}
        module.swap_averages()
        try:
            model = Model(NetworkScorer("the network", module.network, card, self.data.vocabulary))
            return model.generate(
                self.prompt, self.length, self.temperature, num_samples=self.num_samples, seed=self.seed
            )
        finally:
            module.swap_averages()

    @property
    def kept(self) -> dict[str, Any]:
        """The samples of the best epoch, for a result."""
        best = [row for row in self.rows if row[0] == self.rows[-1][0]][-self.num_samples :]
        texts = [text[:LETTERS] for *_, text in best[:SAMPLES]]
        return {"epoch": best[0][0], "temperature": self.temperature, "texts": texts} if best else {}

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows = state_dict["rows"]


def log_table(
    loggers: Iterable[Logger], key: str, columns: list[str], rows: list[list[Any]], step: int | None = None
) -> None:
    """Log a table where a logger shows one: in Weights & Biases, and as text in TensorBoard."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.log_table(key, columns=columns, data=rows, step=step)
        elif isinstance(logger, TensorBoardLogger):
            lines = [columns, ["---"] * len(columns), *rows]
            text = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
            logger.experiment.add_text(key, text, step)
