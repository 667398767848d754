"""Over a thousand commands that cannot be: keys times values that are bad for their kind, words, files. No torch here.

`{folder}` in a word is the folder of `places.py`, which has a text, a finished run and a model of counts.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from faults.bad_files import ARPAS, CHECKPOINTS, RESULTS, SWEEPS, TEXTS


class Bad(NamedTuple):
    """entry: the program; words: its command line; file: what `{folder}/bad` holds."""

    entry: str
    words: tuple[str, ...]
    file: bytes | None = None

    @property
    def label(self) -> str:
        shown = "" if self.file is None else f" bad={self.file[:30]!r}"
        return f"{self.entry} {' '.join(self.words)}{shown}"


# Values that are bad for a kind of key; what only its own bounds forbid stands beside the key.
NO_NUMBER = ("x", "true", "[1]", "{a:1}", "''", "1e", "0x10")
KINDS: dict[str, tuple[str, ...]] = {
    "whole": (*NO_NUMBER, "null", "1.5", "nan", "inf", "-1"),
    "whole or null": (*NO_NUMBER, "1.5", "nan", "inf", "-3"),
    "number": (*NO_NUMBER, "null", "nan", "inf", "-inf", "-0.5"),
    "number or null": (*NO_NUMBER, "nan", "inf", "-0.5"),
    "any number or null": ("x", "true", "[1]", "{a:1}", "nan", "inf"),
    "truth": ("no", "1", "0", "x", "null", "[true]", "{a:1}", "''"),
    "choice": ("x", "1", "true", "null", "[a]", "{a:1}", "''"),
    "choice or null": ("x", "1", "true", "[a]", "{a:1}", "''"),
    "list": (
        "x",
        "1",
        "true",
        "[]",
        "[a]",
        "[0]",
        "[-1,2]",
        "[2,1]",
        "[1.5]",
        "[[1]]",
        "{a:1}",
        "[null]",
        "[nan]",
    ),
    "file": ("null", "/none/file", "/", "{folder}", "/dev/null", "''", "[a]", "{a:1}", "3"),
    "group": ("x", "1", "true", "1.5", "../config", "[a,b]", "{a:1}", "''", "/etc/passwd"),
}

# Key -> its kind and further bad values of its own.
TRAIN: dict[str, tuple[str, ...]] = {
    "seed": ("whole", "4294967296", "99999999999999999999"),
    "overwrite": ("truth",),
    "loss_reduction": ("choice",),
    "bptt_window": ("whole or null", "0", "1"),
    "weight_noise": ("number",),
    "recurrent_dropout": ("number", "1", "2"),
    "init_from": ("/none/best.ckpt", "{folder}", "{folder}/train.txt", "[a]", "{a:1}"),
    "init_from_head": ("truth", "true"),
    "init_from_lr": ("number",),
    "continue_from": ("/none", "{folder}", "{folder}/train.txt", "[a]", "{a:1}", "''"),
    "checkpoint_every": ("whole",),
    "data.batch_size": ("whole", "0", "100", "99999999999999999999"),
    "data.seq_len": ("whole", "0", "71", "99999999999999999999"),
    "data.eval_batch_size": ("whole", "0", "82"),
    "data.unit": ("choice", "english"),
    "data.eos": ("truth",),
    "data.lowercase": ("truth",),
    "data.min_count": ("whole", "0", "1000"),
    "data.max_size": ("whole or null", "0", "2"),
    "data.train": ("file",),
    "data.valid": ("file",),
    "data.test": ("file",),
    "data.cache_dir": ("/proc/none", "/dev/null", "{folder}/train.txt", "null", "[a]", "{a:1}"),
    "model.hidden_size": ("whole", "0", "1000000", "100000000000", "99999999999999999999"),
    "model.order": ("whole", "0", "100000000", "99999999999999999999"),
    "model.alpha": ("number", "0", "1", "2"),
    "model.learn_alpha": ("truth",),
    "model.activation": ("choice",),
    "model.bias": ("truth",),
    "network.num_layers": ("whole", "0", "10000000000"),
    "network.embedding_size": ("whole or null", "0", "10000000000"),
    "network.init_std": ("number",),
    "network.embedding_std": ("number or null",),
    "network.output_std": ("number or null",),
    "network.recurrent_fan_in": ("whole or null", "0", "7"),
    "network.dropout": ("number", "1", "2"),
    "network.input_dropout": ("number or null", "1", "2"),
    "network.variational": ("truth",),
    "network.tie_weights": ("truth",),
    "network.initial_value": ("any number or null",),
    "network.state_grad_norm": ("number or null", "0"),
    "network.output_bias": ("truth",),
    "network.precision": ("choice", "fp16"),
    "network.backend": ("choice",),
    "optimizer.lr": ("number", "0"),
    "optimizer.momentum": ("number", "1"),
    "optimizer.weight_decay": ("number",),
    "optimizer.max_norm": ("number or null", "0"),
    "optimizer.clip": ("number or null", "0"),
    "optimizer.clip_mode": ("choice",),
    "schedule.factor": ("number", "0", "1"),
    "schedule.threshold": ("number",),
    "schedule.restore_best": ("truth",),
    "schedule.max_falls": ("whole or null",),
    "trainer.max_epochs": ("whole or null", "0"),
    "trainer.max_steps": ("-2", "0", "1.5", "x", "null", "true"),
    "trainer.devices": ("0", "-5", "x", "1.5", "[]", "{a:1}"),
    "trainer.accelerator": ("x", "1", "gpu", "[cpu]"),
    "trainer.enable_progress_bar": ("no", "1", "x", "[true]", "{a:1}"),
    "model": ("group",),
    "data": ("group",),
    "network": ("group",),
    "head": ("group",),
    "optimizer": ("group",),
    "schedule": ("group",),
    "trainer": ("group",),
    "logger": ("group",),
    "experiment": ("group",),
    "sweeps": ("group",),
}

# Words that make a key be there -> keys, as above.
WITH: dict[str, dict[str, tuple[str, ...]]] = {
    "model=clockwork model.hidden_size=8": {"model.periods": ("list",), "model.hidden_size": ("7",)},
    "model=hierarchical model.hidden_size=8": {"model.delays": ("list",), "model.hidden_size": ("7",)},
    "model=kn": {
        "model.order": ("whole", "0"),
        "model.fallback_discounts": (
            "x",
            "1",
            "[1]",
            "[a,b,c]",
            "[0,1,2,3]",
            "[-1,1,1]",
            "[nan,1,1]",
            "{a:1}",
        ),
    },
    "model=mixture": {"model.lengths": ("list",)},
    "model=kn_cache": {"model.lengths": ("list",), "model.combine": ("truth",)},
    "optimizer=adamw": {"optimizer.eps": ("number",), "optimizer.lr": ("number", "0")},
    "optimizer=asgd": {"optimizer.start": ("whole",)},
    "schedule=inverse_time": {"schedule.tau": ("number", "0")},
    "schedule=constant_then_halve": {
        "schedule.constant_epochs": ("whole", "0"),
        "schedule.factor": ("number", "1"),
    },
    "head=two_level": {"head.num_clusters": ("whole or null", "0", "1000")},
}

EVALUATE: dict[str, tuple[str, ...]] = {
    "checkpoint": ("file",),
    "mix": ("x", "[]", "[/none/a.ckpt]", "{a:1}", "1", "[1,1]"),
    "cache": ("x", "true", "1.5", "nan", "-1", "0", "[]", "[0]", "[a]", "{a:1}"),
    "split": ("choice or null",),
    "text": ("/none/a.txt", "{folder}", "/dev/null", "''", "[a]", "{a:1}", "3"),
    "batch_size": ("whole", "0", "82"),
    "seq_len": ("whole", "0"),
    "dynamic_lr": ("x", "true", "nan", "inf", "-1", "0", "[]", "[a]", "[[1]]", "[0.1,-1]", "{a:1}"),
    "record": ("truth", "true"),
    "precision": ("choice",),
    "device": ("choice", "tpu"),
    "arpa": ("/none/a.arpa", "{folder}", "{folder}/new.arpa"),
    "result": ("/none/a.json", "{folder}"),
    "data.cache_dir": ("/proc/none", "/dev/null", "null"),
}
SCORE: dict[str, tuple[str, ...]] = {
    "checkpoint": ("file",),
    "text": ("/none/a.txt", "{folder}", "/dev/null", "''", "[a]", "{a:1}", "3", "-"),
    "per_token": ("truth",),
    "batch_size": ("whole", "0"),
    "seq_len": ("whole", "0"),
    "precision": ("choice",),
    "device": ("choice", "tpu"),
    "result": ("/none/a.json", "{folder}"),
}
RESCORE: dict[str, tuple[str, ...]] = {
    "nbest": ("/none/a.tsv", "{folder}", "/dev/null", "''", "[a]", "{a:1}", "3", "{folder}/train.txt", "-"),
    "lm_weight": NO_NUMBER,
    "word_penalty": NO_NUMBER,
    "costs": ("truth",),
}
GENERATE: dict[str, tuple[str, ...]] = {
    "checkpoint": ("file",),
    "length": ("whole", "0"),
    "temperature": ("number",),
    "seed": ("whole", "4294967296"),
    "allow_unk": ("truth",),
    "device": ("choice", "tpu"),
    "prompt": ("{a:1}",),
}
ANALYSE: dict[str, tuple[str, ...]] = {
    "checkpoint": ("file",),
    "sweep": ("/none", "{folder}", "a/b", "[a]", "{a:1}", "none"),
    "split": ("choice",),
    "lags": ("whole", "0"),
    "windows": ("whole", "0"),
    "targets": ("whole", "0"),
    "record": ("truth",),
    "device": ("choice", "tpu"),
    "result": ("/none/a.json", "{folder}"),
}
TUNE: dict[str, tuple[str, ...]] = {
    "trials": ("whole", "0"),
    "study": ("a/b", "..", "[a]", "{a:1}"),
    "pruning": ("x", "1", "[1]"),
    "pruning.trials": ("whole", "0"),
    "space": ("x", "1", "[1]", "null"),
    "space.optimizer.lr": (
        "x",
        "1",
        "[]",
        "[[1]]",
        "{low:2,high:1}",
        "{low:a,high:b}",
        "{low:1}",
        "{low:0,high:1,log:true}",
    ),
    "run_dir": ("{folder}/here",),
    "overwrite": ("true",),
    "sweeps": ("hornn_table1",),
}
LAUNCH: dict[str, tuple[str, ...]] = {
    "hydra.launcher.jobs": ("whole", "0"),
    "hydra.launcher.per_gpu": ("whole", "0"),
    "hydra.launcher.gpus": ("x", "1", "{a:1}"),
    "hydra.launcher.on_failure": ("choice",),
    "hydra.sweeper.retry_failed": ("truth",),
    "hydra.sweeper.only": ("[rnn]", "x", "[]"),
    "hydra/launcher": ("x", "joblibb"),
    "sweep.seeds": ("x", "[]", "[a]", "1", "[1.5]"),
}

# Whole command lines of train.py.
WORDS = (
    "=", "==", "=3", "model", "model=", "~model", "~none", "~seed", "~data", "~trainer", "~optimizer",
    "~logger", "~sweep",
    "~data.train", "~model.hidden_size", "+model=rnn",
    "++model=none", "a=b=c", "seed=[",
    "seed={",
    "seed=(1", "seed='1", "seed=1,2", "seed=range(1,3)", "seed=choice(1,2)", "model.=3", ".model=3",
    "model..order=3",
    "modle=rnn", "model.ordre=3", "modl.order=3", "sede=1", "data.trian=a", "trainer.epochs=3", "--none",
    "-x",
    "--config-name=none", "--config-dir=/none", "--config-path=/none", "model@x=rnn",
    "model=rnn model=lstm model=none",
    "model._target_=os.system", "model._partial_=false", "data._target_=os.getcwd",
    "optimizer._target_=a.b.C",
    "network._target_=x", "head._target_=1", "logger._target_=os.system", "trainer._target_=os.system",
    "+a=1", "+a.b=1",
    "trainer.limit_train_batches=3", "trainer.fast_dev_run=true", "trainer.precision=x", "trainer.strategy=x",
    "trainer.num_nodes=0", "trainer.num_nodes=x", "trainer.gradient_clip_val=x",
    "trainer.accumulate_grad_batches=2",
    "trainer.callbacks=x", "trainer.profiler=x", "trainer.max_time=x", "trainer.devices=64 trainer=ddp",
    "hydra.none=1", "hydra.run.dir={a:1}", "run_dir=/proc/run", "run_dir={folder}/train.txt",
    "run_dir=/dev/null/a",
    "run_dir=[a]", "run_dir={a:1}", "sweeps=hornn_table1", "experiment=none/ptb", "experiment=hornn",
    "seed=${none}", "seed=${seed}", "model.order=${model.order}", "optimizer.lr=${none.x}", "data.train=???",
)  # fmt: skip


def of_table(entry: str, table: Mapping[str, tuple[str, ...]], *words: str) -> Iterator[Bad]:
    for key, (first, *rest) in table.items():
        values = [*KINDS[first], *rest] if first in KINDS else [first, *rest]
        yield from (Bad(entry, (*words, f"{key}={value}")) for value in values)


def of_files() -> Iterator[Bad]:
    run = ("checkpoint={folder}/run/best.ckpt",)
    for text in TEXTS:
        if text not in (b"a b c\n", b"\n", b"\xef\xbb\xbf"):
            yield Bad("evaluate", (*run, "text={folder}/bad"), text)
        yield from (Bad("train", (f"data.{split}={{folder}}/bad",), text) for split in ("train",))
    for content in CHECKPOINTS:
        for entry in ("evaluate", "generate"):
            yield Bad(entry, ("checkpoint={folder}/bad",), content)
        yield Bad("train", ("init_from={folder}/bad",), content)
    for arpa in ARPAS:
        yield Bad("evaluate", ("checkpoint={folder}/bad.arpa", "text={folder}/test.txt"), arpa)
    for result in RESULTS:
        yield Bad("train", ("run_dir={folder}/bad-run",), result)
    for sweep in SWEEPS:
        yield Bad(
            "train", ("-m", "--config-dir={folder}/bad-conf", "sweeps=bad"), b"# @package _global_\n" + sweep
        )


def bad_inputs() -> list[Bad]:
    found = [*of_table("train", TRAIN)]
    for words, table in WITH.items():
        found += of_table("train", table, *words.split())
    found += of_table("evaluate", EVALUATE)
    found += of_table("score", SCORE)
    found += of_table("rescore", RESCORE, "lm_weight=1")
    found += of_table("generate", GENERATE)
    found += of_table("analyse", ANALYSE)
    found += of_table("tune", TUNE)
    found += of_table("train", LAUNCH, "-m")
    found += [Bad("train", tuple(line.split(" "))) for line in WORDS]
    found += of_files()
    return found
