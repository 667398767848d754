"""Settings that cannot be: one line that says so before any training."""

from pathlib import Path

import pytest
import torch
import yaml

from commands.outcomes import refusal, result_of
from outcome import Command

# Setting -> what the one line says of it.
VALUES = {
    # below 1
    "data.batch_size=0": "data.batch_size must be a whole number >= 1, got 0",
    "data.batch_size=-4": "data.batch_size must be a whole number >= 1, got -4",
    "data.eval_batch_size=0": "data.eval_batch_size must be a whole number >= 1, got 0",
    "data.seq_len=0": "data.seq_len must be a whole number >= 1, got 0",
    "model.order=0": "order must be a whole number >= 1, got 0",
    "model.hidden_size=0": "size must be a whole number >= 1, got 0",
    "model.hidden_size=-1": "size must be a whole number >= 1, got -1",
    "network.num_layers=0": "num_layers must be a whole number >= 1, got 0",
    "trainer.max_epochs=0": "trainer.max_epochs must be >= 1, or -1 for no bound, got 0",
    "trainer.max_steps=0": "trainer.max_steps must be >= 1 update, or -1 for no bound, got 0",
    "checkpoint_every=-1": "checkpoint_every must be >= 0 updates, got -1",
    "seed=-1": "seed must be a whole number from 0 to 4294967295, got -1",
    # outside a range or a choice
    "model.alpha=0": "alpha must be a number strictly between 0 and 1, got 0",
    "model.alpha=1": "alpha must be a number strictly between 0 and 1, got 1",
    "model.alpha=nan": "alpha must be a number strictly between 0 and 1, got nan",
    "model.activation=softsign": "activation must be one of sigmoid, tanh, relu",
    "loss_reduction=median": "loss_reduction must be one of mean, sum_time",
    "optimizer.lr=0": "optimizer.lr must be > 0, got 0",
    "optimizer.lr=inf": "optimizer.lr must be > 0, got inf",
    "optimizer.weight_decay=inf": "optimizer.weight_decay must be >= 0, got inf",
    "weight_noise=inf": "weight_noise must be >= 0, got inf",
    "init_from_lr=-1": "init_from_lr must be >= 0, got -1",
    "init_from_lr=nan": "init_from_lr must be >= 0, got nan",
    "optimizer.momentum=1": "optimizer.momentum must be in [0, 1), got 1",
    "optimizer.clip_mode=both": "optimizer.clip_mode must be one of element, norm, got 'both'",
    "schedule.factor=1.5": "schedule.factor must be in (0, 1), got 1.5",
    "network.precision=half": "network.precision must be one of auto, fp32, bf16, fp16, got 'half'",
    "network.backend=fastest": "network.backend must be one of auto, eager, native, graph, parallel, got 'fastest'",
    "network.init_std=inf": "network.init_std must be >= 0 and finite, got inf",
    "network.initial_value=inf": "network.initial_value must be finite, got inf",
    "network.state_grad_norm=inf": "network.state_grad_norm must be > 0 and finite, or null, got inf",
    "optimizer=adamw optimizer.weight_decay=-1": "optimizer.weight_decay must be >= 0, got -1",
    "optimizer=asgd optimizer.weight_decay=-1": "optimizer.weight_decay must be >= 0, got -1",
    "optimizer=adamw optimizer.eps=inf": "optimizer.eps must be > 0, got inf",
    "model=dt_rnn model.learn_p=true": "learn_p=true is about lp units, and there are none: set",
    "network.tie_weights=true network.embedding_std=0.1": "embedding_std=0.1 has no effect with tie_weights=true",
    "network.tie_weights=true head=two_level": "one matrix, and this one has several: set network.tie_weights=false",
    "model=clockwork model.periods=1": "periods must be strictly rising integers >= 1, in steps, got 1",
    "model=hierarchical model.delays=[1,null]": "delays must be strictly rising integers >= 1, in steps, got [1, None]",
    "data.unit=line": "data.unit must be one of word, char, got 'line'",
    "data.max_size=2": "data.max_size must be null or a whole number >= 3 (<eos> and <unk> are counted), got 2",
    "data.min_count=1000": "no word occurs data.min_count=1000 times in the training text: lower it",
    # longer than the text
    "data.seq_len=71": "columns of 70 tokens, shorter than one chunk of data.seq_len=71: lower",
    "data.batch_size=100": "columns of 3 tokens, shorter than one chunk of data.seq_len=5: lower data.batch_size=100",
    "data.eval_batch_size=82": "data.eval_batch_size=82: 81 tokens cannot fill 82 columns: choose a smaller batch",
    # beyond memory
    "model.hidden_size=1000000": "weights need",
    "model.order=100000000": "lower model.hidden_size, model.order or network.num_layers",
    "model.hidden_size=100000000000": "the sizes of this model are beyond any memory (",
    "model.hidden_size=99999999999999999999": "hidden_size must be at most 9223372036854775807, got",
    "network.num_layers=10000000000": "num_layers must be at most 1000 layers, got 10000000000",
    # of another type
    "optimizer.lr=fast": "optimizer.lr must be a number, got 'fast'",
    "optimizer.lr=null": "optimizer.lr must be a number, got null",
    "optimizer.clip=x": "optimizer.clip must be a number or null, got 'x'",
    "schedule.factor=x": "schedule.factor must be a number, got 'x'",
    "model.order=1.5": "model.order must be a whole number, got 1.5",
    "model.order=true": "model.order must be a whole number, got True",
    "model.order=[1]": "model.order must be a whole number, got [1]",
    "trainer.max_steps=ten": "trainer.max_steps must be a whole number, got 'ten'",
    "trainer.max_epochs=1.5": "trainer.max_epochs must be a whole number or null, got 1.5",
    "checkpoint_every=x": "checkpoint_every must be a whole number, got 'x'",
    "seed=null": "seed must be a whole number, got null",
    "seed=1.5": "seed must be a whole number, got 1.5",
    "overwrite=no": "overwrite must be true or false, got 'no'",
    "model.bias=no": "model.bias must be true or false, got 'no'",
    "schedule.restore_best=no": "schedule.restore_best must be true or false, got 'no'",
    "data.eos=no": "data.eos must be true or false, got 'no'",
    "data.train=null": "data.train must be text, got null",
    "init_from=7": "init_from must be the path of a checkpoint or null, got 7",
    "init_from=[a]": "init_from must be the path of a checkpoint or null, got ['a']",
    "optimizer=adamw optimizer.betas=[a,b]": "optimizer.betas must be two numbers >= 0 and < 1 such as [0.9,0.999]",
    "optimizer=adamw optimizer.betas=[.9,.9,.9]": "optimizer.betas must be two numbers >= 0 and < 1",
    "optimizer=adamw optimizer.betas=[.9,2]": "such as [0.9,0.999], got [0.9, 2]",
    "optimizer=adamw optimizer.betas=0.9": "such as [0.9,0.999], got 0.9",
    "head.bias=true": "unknown key 'head.bias'",
    "network.input_width=7": "unknown key 'network.input_width'",
    "model._target_=os.system": "model._target_ is set by the choice of model: write conf/model/NAME.yaml",
    # from the environment
    "seed=${oc.env:HORNN_SEED}": "seed needs HORNN_SEED in the environment: set that, or give seed=VALUE",
    "optimizer.lr=${oc.env:HORNN_LR}": "optimizer.lr needs HORNN_LR in the environment",
    "seed=${oc.env:HORNN_ONE}": (
        "seed must be a whole number, got '1'; the environment gives text: write "
        "'seed=\"${oc.decode:${oc.env:HORNN_ONE}}\"', with all quotes"
    ),
    "optimizer.lr=${oc.env:HORNN_WORD}": "optimizer.lr must be a number, got 'fast'; the environment gives text",
    "seed=${run_dir} run_dir=${seed}": "seed is taken from itself, through other keys: give one of them a value",
    # figures that would not be those of the corpus
    "trainer.limit_val_batches=0": "trainer.limit_val_batches=0 would leave data unread or updates uncounted",
    "trainer.limit_test_batches=3": "trainer.limit_test_batches=3 would leave data unread",
    "trainer.fast_dev_run=true": "trainer.fast_dev_run=True would leave data unread",
    "trainer.accumulate_grad_batches=2": "trainer.accumulate_grad_batches=2 would leave data unread or updates",
    "trainer.check_val_every_n_epoch=2": "trainer.check_val_every_n_epoch=2 would leave data unread",
    "trainer.min_steps=50": "trainer.min_steps=50 would overrule trainer.max_steps",
    "trainer.min_epochs=3": "trainer.min_epochs=3 would overrule trainer.max_steps, trainer.max_epochs",
    "+trainer.sync_batchnorm=true": "trainer.sync_batchnorm=True would do nothing here: leave it out",
    "trainer.num_sanity_val_steps=2": "would count validation data twice",
    # numbers that would not be in fp32, clips that would not be made
    "trainer.precision=bf16-true": "trainer.precision=bf16-true would take the weights out of fp32",
    "trainer.precision=64": "leave it out; network.precision says how training multiplies",
    "trainer.gradient_clip_val=1": "trainer.gradient_clip_val=1 would clip nothing here",
    "trainer.strategy=ddp_spawn": "trainer.strategy=ddp_spawn is none of auto and ddp",
    "trainer.deterministic=foo": "trainer.deterministic=foo is none of true, false and warn",
    "trainer.log_every_n_steps=-3": "trainer.log_every_n_steps must be a whole number >= 0, got -3",
    "trainer.max_time=soon": "trainer.max_time must be a time such as 00:02:30:00 (DD:HH:MM:SS), got 'soon'",
    "trainer.max_time={days:nan}": "trainer.max_time must be a time such as",
    "callbacks=samples callbacks.samples.temperature=nan": "temperature must be >= 0 and finite, got nan",
    # the machine
    "trainer.devices=0": "trainer.devices must be a number >= 1, a list such as [0,1], or auto, got 0",
    "trainer.num_nodes=2": "trainer.num_nodes=2 needs MASTER_ADDR",
    "data.cache_dir=/proc/none": "cannot write the token cache into /proc/none",
    "data.train=/none/train.txt": "there is no text file data.train=/none/train.txt: give the path of an existing one",
    # names
    "model=hornn_foof": "did you mean 'hornn_fofe'?",
    "model.ordre=3": "did you mean 'model.order'?",
    "data.batchsize=3": "did you mean 'data.batch_size'?",
    "trainer.max_epoch=3": "did you mean 'trainer.max_epochs'?",
    "schedule.treshold=3": "did you mean 'schedule.threshold'?",
    "~model": "'model' cannot be left out: drop ~model",
    "~seed": "'seed' cannot be left out: drop ~seed",
    "model=lstm model.order=3": "model=lstm takes: ",
    "per_token=true": "; per_token is a key of score.py",
    "schedule=constant schedule.factor=0.5": "schedule=constant takes no keys; factor is a key of ",
    "experiment=hornn/modern schedule=constant": "unknown key 'schedule.constant_epochs', which an experiment or a "
    "sweep sets; schedule=constant does not take it: add ~schedule.constant_epochs ~schedule.factor",
}


@pytest.mark.each(14)
@pytest.mark.parametrize("setting", VALUES)
def test_a_bad_value_is_one_line(
    train: Command, tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORNN_ONE", "1")
    monkeypatch.setenv("HORNN_WORD", "fast")
    assert VALUES[setting] in refusal(train(*setting.split()))
    run_dir = tmp_path / "run"
    assert [path.name for path in run_dir.rglob("*") if path.suffix in (".ckpt", ".json", ".csv")] == []


def test_a_value_from_the_environment(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORNN_ONE", "1")
    """By the words of the remedy, whose outer quotes a shell takes away."""
    assert train('seed="${oc.decode:${oc.env:HORNN_ONE}}"').code == 0
    assert result_of(tmp_path / "run")["seed"] == 1


def test_no_home(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the environment nor of a user whom the system knows."""

    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "HORNN_DATA", "HORNN_CACHE"):
        monkeypatch.delenv(name, raising=False)
    assert refusal(command("train", f"run_dir={tmp_path / 'run'}")) == (
        "error: data.root needs HORNN_DATA or HOME, data.cache_dir needs HORNN_CACHE or HOME in the environment: "
        "set that, or give data.root=VALUE data.cache_dir=VALUE\n"
    )


@pytest.mark.parametrize(
    ("same", "line"),
    [
        (
            ("train", "valid", "test"),
            "data.train, data.valid and data.test hold the same text: perplexity on valid and test says nothing of "
            "text that is new; give other files",
        ),
        (
            ("valid", "test"),
            "data.valid and data.test hold the same text: the best epoch is chosen on the test text; give another file",
        ),
    ],
)
def test_splits_of_one_text_are_told(
    train: Command, tmp_path: Path, same: tuple[str, ...], line: str
) -> None:
    for split in same[1:]:
        (tmp_path / f"{split}.txt").write_text((tmp_path / f"{same[0]}.txt").read_text())
    code, out, _ = train("trainer.max_steps=1")
    assert code == 0
    assert f"warning: {line}\n" in out
    assert result_of(tmp_path / "run")["corpus"]["valid_is_test"] is True


@pytest.mark.parametrize("entry", ["train", "tune"])
@pytest.mark.parametrize("named", ["torch.nn.Linear", "torch.relu", "hornn.baselines.ngram.KneserNey"])
def test_a_model_is_a_cell(command: Command, tmp_path: Path, entry: str, named: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text(f"_target_: {named}\n_partial_: true\nhidden_size: 4\n")
    line = refusal(command(entry, f"--config-dir={tmp_path}", "model=mine", f"run_dir={tmp_path / 'run'}"))
    assert line == f"error: model._target_ must name a hornn.cells.base.Cell, got {named}\n"


def test_a_table_is_not_one_run(command: Command, tmp_path: Path) -> None:
    line = refusal(command("train", "sweeps=hornn_table1", "seed=2", f"run_dir={tmp_path}"))
    table = yaml.safe_load((Path(__file__).parents[2] / "sweeps" / "hornn_table1.yaml").read_text())
    number = len(table["sweep"]["rows"])
    assert f"sweeps=hornn_table1 is a table of {number} runs: add -m to run it" in line
    assert line.endswith(" what one of its rows runs, such as model=rnn\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.each(3)
@pytest.mark.parametrize("trainer", ["trainer=gpu", "trainer=ddp", "trainer.accelerator=cuda"])
def test_no_gpu(train: Command, trainer: str) -> None:
    assert "needs a CUDA device, this machine has none: use trainer=cpu" in refusal(train(trainer))


@pytest.mark.each(2)
@pytest.mark.parametrize("folder", ["train.txt/run", "train.txt"])
def test_an_output_folder_that_cannot_be(train: Command, tmp_path: Path, folder: str) -> None:
    line = refusal(train(f"run_dir={tmp_path / folder}"))
    assert f"run_dir {tmp_path / folder} is not writable (" in line
    assert "give another folder" in line


def test_an_output_folder_behind_a_link_that_leads_nowhere(train: Command, tmp_path: Path) -> None:
    (tmp_path / "scratch").symlink_to("/nowhere")
    line = refusal(train(f"run_dir={tmp_path / 'scratch' / 'run'}"))
    assert "give another folder; a file is in the way, or a link that leads nowhere" in line


def test_a_job_whose_sweep_was_edited_since_it_began(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORNN_RUN", "0000000000")
    line = refusal(train(f"run_dir={tmp_path / 'run'}"))
    assert "the sweep began this job as run 0000000000, and its words now make run " in line
    assert not (tmp_path / "run").exists()


def test_an_output_folder_that_the_system_owns(train: Command) -> None:
    assert "run_dir /proc/run is not writable (" in refusal(train("run_dir=/proc/run"))
