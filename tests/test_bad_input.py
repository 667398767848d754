"""Whatever is wrong with the input: one line that says so before any training, and nothing lost that was there."""

import io
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

Command = Callable[..., Any]


def refusal(outcome: Any) -> str:
    """The one line of a command that was refused before training."""
    code, out, err = outcome
    assert code == 2, (out, err)
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert "epoch" not in out
    return str(err)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def train(command: Command, small: list[str], tmp_path: Path) -> Command:
    """`train.py` on the small corpus in tmp_path/run."""
    return lambda *words: command("train", *small, f"run_dir={tmp_path / 'run'}", *words)


@pytest.fixture
def finished(train: Command, tmp_path: Path) -> Path:
    assert train().code == 0
    return tmp_path / "run"


# Setting -> what the one line says of it.
VALUES = {
    # below 1
    "data.batch_size=0": "data.batch_size is 0; it must be a whole number, 1 or more",
    "data.batch_size=-4": "data.batch_size is -4; it must be a whole number, 1 or more",
    "data.eval_batch_size=0": "data.eval_batch_size is 0; it must be a whole number, 1 or more",
    "data.seq_len=0": "data.seq_len is 0; it must be a whole number, 1 or more",
    "model.order=0": "order must be an integer >= 1, got 0",
    "model.hidden_size=0": "size must be an integer >= 1, got 0",
    "model.hidden_size=-1": "size must be an integer >= 1, got -1",
    "network.num_layers=0": "num_layers must be an integer >= 1, got 0",
    "trainer.max_epochs=0": "trainer.max_epochs must be >= 1, or -1 for no bound, got 0",
    "trainer.max_steps=0": "trainer.max_steps must be >= 1 update, or -1 for no bound, got 0",
    "checkpoint_every=-1": "checkpoint_every must be >= 0 updates, got -1",
    "seed=-1": "seed must be from 0 to 4294967295, got -1",
    # outside a range or a choice
    "model.alpha=0": "alpha must be a number strictly between 0 and 1, got 0",
    "model.alpha=1": "alpha must be a number strictly between 0 and 1, got 1",
    "model.alpha=nan": "alpha must be a number strictly between 0 and 1, got nan",
    "model.activation=softsign": "activation must be one of sigmoid, tanh, relu",
    "loss_reduction=median": "loss_reduction must be one of mean, sum_time",
    "optimizer.lr=0": "optimizer.lr must be > 0, got 0",
    "optimizer.momentum=1": "optimizer.momentum must be in [0, 1), got 1",
    "optimizer.clip_mode=both": "optimizer.clip_mode must be one of element, norm, got 'both'",
    "schedule.factor=1.5": "schedule.factor must be in (0, 1), got 1.5",
    "network.precision=half": "network.precision must be one of auto, fp32, bf16, got 'half'",
    "chunks_per_batch=0": "chunks_per_batch must be an integer >= 1, got 0",
    "cuda_graph=true": "cuda_graph=true cannot hold a training with a cpu: use cuda_graph=false",
    "network.backend=fastest": "network.backend must be one of auto, eager, deferred, native, parallel, got 'fastest'",
    "data.unit=line": "data.unit is 'line'; allowed: word, char",
    "data.max_size=2": "data.max_size is 2; it must be null or a whole number, 3 or more",
    "data.min_count=1000": "no word occurs data.min_count=1000 times in the training text: lower it",
    # longer than the text
    "data.seq_len=71": "columns of 70 tokens, shorter than one chunk of data.seq_len=71: lower",
    "data.batch_size=100": "columns of 3 tokens, shorter than one chunk of data.seq_len=5: lower data.batch_size=100",
    "data.eval_batch_size=82": "data.eval_batch_size=82: 81 tokens cannot fill 82 columns: choose a smaller batch",
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
    # figures that would not be those of the corpus
    "trainer.limit_val_batches=0": "trainer.limit_val_batches=0 would leave data unread or updates uncounted",
    "trainer.limit_test_batches=3": "trainer.limit_test_batches=3 would leave data unread",
    "trainer.fast_dev_run=true": "trainer.fast_dev_run=True would leave data unread",
    "trainer.accumulate_grad_batches=2": "trainer.accumulate_grad_batches=2 would leave data unread or updates",
    "trainer.check_val_every_n_epoch=2": "trainer.check_val_every_n_epoch=2 would leave data unread",
    # the machine
    "trainer.devices=0": "trainer",
    "data.cache_dir=/proc/none": "cannot write the token cache into /proc/none",
    "data.train=/none/train.txt": "there is no text file data.train=/none/train.txt: give the path of an existing one",
    # names
    "model=hornn_foof": "did you mean 'hornn_fofe'?",
    "model.ordre=3": "did you mean 'model.order'?",
    "data.batchsize=3": "did you mean 'data.batch_size'?",
    "trainer.max_epoch=3": "did you mean 'trainer.max_epochs'?",
    "schedule.treshold=3": "did you mean 'schedule.threshold'?",
    "model=lstm model.order=3": "model=lstm takes: ",
}


@pytest.mark.parametrize("setting", VALUES)
def test_a_bad_value_is_one_line(train: Command, tmp_path: Path, setting: str) -> None:
    assert VALUES[setting] in refusal(train(*setting.split()))
    run_dir = tmp_path / "run"
    assert [path.name for path in run_dir.rglob("*") if path.suffix in (".ckpt", ".json", ".csv")] == []


def test_a_table_is_not_one_run(command: Command, tmp_path: Path) -> None:
    line = refusal(command("train", "sweeps=hornn_table1", "seed=2", f"run_dir={tmp_path}"))
    assert "sweeps=hornn_table1 is a table of 13 runs: add -m to run it" in line
    assert line.endswith(" what one of its rows runs, such as model=rnn\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.parametrize("trainer", ["trainer=gpu", "trainer=ddp", "trainer.accelerator=cuda"])
def test_no_gpu(train: Command, trainer: str) -> None:
    assert "needs a CUDA device, this machine has none: use trainer=cpu" in refusal(train(trainer))


@pytest.mark.parametrize("folder", ["train.txt/run", "train.txt"])
def test_an_output_folder_that_cannot_be(train: Command, tmp_path: Path, folder: str) -> None:
    line = refusal(train(f"run_dir={tmp_path / folder}"))
    assert f"run_dir {tmp_path / folder} is not writable (" in line
    assert "give run_dir=FOLDER" in line


def test_an_output_folder_that_the_system_owns(train: Command) -> None:
    assert "run_dir /proc/run is not writable (" in refusal(train("run_dir=/proc/run"))


# -- nothing is lost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [
        "overwrite=no",
        "seed=2",
        "model=rnn",
        "overwrite=true optimizer.lr=-1",
        "overwrite=true optimizer.clip_mode=both",
        "overwrite=true model.order=0",
        "overwrite=true schedule.factor=7",
        "overwrite=true data.batch_size=1000",
        "overwrite=true data.train=/none/train.txt",
        "overwrite=true trainer.max_epochs=0",
        "overwrite=true trainer.devices=0",
        "overwrite=true trainer=ddp trainer.accelerator=cpu trainer.devices=3",  # 4 columns
        "overwrite=true checkpoint_every=-1",
        "overwrite=true network.precision=half",
        "overwrite=true logger=wandbb",
    ],
)
def test_a_finished_run_survives_a_refused_command(train: Command, finished: Path, setting: str) -> None:
    before = contents(finished)
    refusal(train(*setting.split()))
    assert contents(finished) == before


def test_an_unfinished_run_of_other_settings_is_kept(train: Command, finished: Path) -> None:
    (finished / "result.json").unlink()
    before = contents(finished)
    for setting in ("model=rnn", "seed=2"):
        line = refusal(train(setting))
        assert "holds an unfinished run of config (" in line
        assert "give another run_dir, or overwrite=true to replace it" in line
    assert contents(finished) == before


@pytest.mark.parametrize("damaged", ["", "{", '{"schema_version": 99}'])
def test_a_damaged_result_is_kept(train: Command, finished: Path, damaged: str) -> None:
    (finished / "result.json").write_text(damaged)
    before = contents(finished)
    assert "result.json" in refusal(train())
    assert contents(finished) == before


def test_a_full_disk_leaves_no_half_checkpoint(train: Command, tmp_path: Path) -> None:
    """The limit on a file's size stands for the disk's end: torch.save fails in the middle of its writing."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        code, _, err = train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert err.count("\n") == 1
    assert "best.ckpt" in err
    assert "is the disk full?" in err
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left <= {".lock", "config.yaml", "csv"}
    assert train().code == 0  # with space again, the same command runs


# -- corpora -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "content", "message"),
    [
        ("train", b"", "is empty: give a file that holds text"),
        ("valid", b"", "is empty: give a file that holds text"),
        ("train", b"a b c\nd \xff e\n", "is not UTF-8: byte 0xff at offset 8: convert it to UTF-8"),
        (
            "test",
            "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode("latin-1"),
            "is not UTF-8: byte 0xe9 at offset 3",
        ),
        ("train", "a b".encode("utf-16"), "is not UTF-8: byte 0xff at offset 0"),
        ("train", b"a b c\n", "shorter than one chunk of data.seq_len=5"),
        ("valid", b"a", "tokens cannot fill"),
    ],
)
def test_own_text(train: Command, tmp_path: Path, split: str, content: bytes, message: str) -> None:
    (tmp_path / f"{split}.txt").write_bytes(content)
    words = ["data.eval_batch_size=3"] if message == "tokens cannot fill" else []
    line = refusal(train(*words))
    assert message in line
    assert "UTF-8" not in message or f"{split}.txt" in line


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_own_text_that_is_not_there(train: Command, tmp_path: Path, split: str) -> None:
    (tmp_path / f"{split}.txt").unlink()
    line = refusal(train())
    assert (
        f"there is no text file data.{split}={tmp_path / split}.txt: give the path of an existing one" in line
    )


def test_own_text_without_words(train: Command, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("\n \n")
    assert "the test split of files" in refusal(train("data.eos=false"))


@pytest.fixture
def published(command: Command, tmp_path: Path) -> Command:
    """`train.py` on a published corpus under tmp_path/root; what would be downloaded is nowhere."""
    nowhere = (tmp_path / "nowhere").as_uri()
    common = [f"data.root={tmp_path / 'root'}", f"data.cache_dir={tmp_path / 'cache'}", f"data.url={nowhere}"]
    rest = ["logger=csv", f"run_dir={tmp_path / 'run'}"]
    return lambda *words: command("train", *words, *common, *rest)


def test_ptb_that_cannot_be_had(published: Command, tmp_path: Path) -> None:
    line = refusal(published("data=ptb"))
    assert "cannot download file://" in line
    assert f"put ptb.train.txt into {tmp_path / 'root' / 'ptb'}" in line


@pytest.mark.parametrize("content", [b"", b" aer banknote berlitz \n", b"\xff\xfe"])
def test_ptb_that_is_not_the_published_one(published: Command, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "root" / "ptb" / "ptb.train.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    line = refusal(published("data=ptb"))
    assert f"{file} ({len(content)} bytes) has the checksum md5:" in line
    assert "expected md5:f26c4b92c5fdc7b3f8c7cdcb991d8420: delete it to download it again" in line
    assert file.read_bytes() == content


@pytest.mark.corpus
def test_ptb_cut_short(published: Command, corpus_root: Callable[[str], str], tmp_path: Path) -> None:
    source = Path(corpus_root("ptb/ptb.train.txt"), "ptb", "ptb.train.txt").read_bytes()
    file = tmp_path / "root" / "ptb" / "ptb.train.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(source[:-1])
    assert f"({len(source) - 1:,} bytes) has the checksum" in refusal(published("data=ptb"))


@pytest.mark.slow
def test_text8_that_is_not_the_published_one(published: Command, tmp_path: Path) -> None:
    folder = tmp_path / "root" / "text8"
    folder.mkdir(parents=True)
    assert "cannot download" in refusal(published("data=text8"))
    with zipfile.ZipFile(folder / "text8.zip", "w") as archive:
        archive.writestr("text8", "anarchism originated")
    assert "has the checksum sha256:" in refusal(published("data=text8"))
    (folder / "text8").write_text(" anarchism originated")
    assert "(21 bytes) has the checksum md5:" in refusal(published("data=text8"))
    assert "data.variant=full" in refusal(published("data=text8", "data.variant=head"))
    (folder / "text8.head").write_bytes(b"")
    assert "(0 bytes) has the checksum md5:" in refusal(published("data=text8", "data.variant=head"))
    assert "data.variant is 'tail'; allowed: full, head" in refusal(
        published("data=text8", "data.variant=tail")
    )


# -- checkpoints ---------------------------------------------------------------------------------------------


def flip_a_weight(content: bytes) -> bytes:
    """One bit of the largest member of the archive, which torch alone would load without a word."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = max(archive.infolist(), key=lambda info: info.file_size)
        place = content.index(archive.read(member), member.header_offset)
    return content[:place] + bytes([content[place] ^ 64]) + content[place + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "text": lambda content: b"hello, this is no checkpoint\n",
    "cut": lambda content: content[: len(content) // 2],
    "last byte lost": lambda content: content[:-1],
    "beginning lost": lambda content: content[1000:],
    "zeros": lambda content: bytes(len(content)),
    "one bit": flip_a_weight,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_checkpoint(
    command: Command, train: Command, finished: Path, tmp_path: Path, damage: str
) -> None:
    content = DAMAGE[damage]((finished / "last.ckpt").read_bytes())
    broken = tmp_path / "broken.ckpt"
    broken.write_bytes(content)
    for entry in ("evaluate", "generate"):
        line = refusal(command(entry, f"checkpoint={broken}"))
        assert f"checkpoint {broken} is corrupt or no checkpoint (" in line
    (finished / "last.ckpt").write_bytes(content)
    (finished / "result.json").unlink()
    assert "last.ckpt is corrupt or no checkpoint (" in refusal(train())
    assert (finished / "last.ckpt").read_bytes() == content


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    checkpoint = torch.load(path, weights_only=True)
    change(checkpoint)
    torch.save(checkpoint, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["hornn"].update(format=99), "has format 99, this program reads format 1"),
        (lambda c: c.pop("hornn"), "was not written by this program: it has no 'hornn' part"),
    ],
)
def test_a_checkpoint_of_another_format(
    command: Command, train: Command, finished: Path, change: Any, message: str
) -> None:
    for name in ("best.ckpt", "last.ckpt"):
        rewrite(finished / name, change)
    for entry in ("evaluate", "generate"):
        assert message in refusal(command(entry, f"checkpoint={finished / 'best.ckpt'}"))
    (finished / "result.json").unlink()
    assert message in refusal(train())


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["hornn"]["model"].update(hidden_size=7),
        lambda c: c["hornn"]["model"].update(order=2),
        lambda c: c["hornn"]["network"].update(num_layers=2),
        lambda c: c["state_dict"].pop("network.embedding.weight"),
    ],
)
def test_a_checkpoint_of_another_model(command: Command, finished: Path, change: Any) -> None:
    rewrite(finished / "best.ckpt", change)
    for entry in ("evaluate", "generate"):
        line = refusal(command(entry, f"checkpoint={finished / 'best.ckpt'}"))
        assert "holds the weights of another model: " in line


# A part of a checkpoint -> what a stranger may write there, to have code run or a server asked; all of it is plain
# text, which weights_only=True lets pass.
HOSTILE: dict[str, dict[str, Any]] = {
    "hub": {
        "_target_": "hornn.data.streams.torch.hub.load",
        "repo_or_dir": "HUB",
        "model": "m",
        "source": "local",
    },
    "builder": {"_target_": "hornn.data.files.build_data.__globals__", "repo_or_dir": "HUB"},
    "folders": {"_target_": "hornn.data.download.os.makedirs", "name": "HUB/made"},
    "pickle": {"_target_": "hornn.data.text.np.load", "file": "HUB/hubconf.py", "allow_pickle": True},
    "module": {"_target_": "hubconf.m"},
}


@pytest.mark.parametrize("part", ["data_config", "model", "network", "head"])
@pytest.mark.parametrize("node", HOSTILE.values(), ids=HOSTILE)
def test_a_checkpoint_runs_no_code_of_its_author(
    command: Command, finished: Path, tmp_path: Path, monkeypatch: Any, part: str, node: dict[str, Any]
) -> None:
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "hubconf.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef m(*a, **k): pass\n")
    monkeypatch.syspath_prepend(hub)
    hostile = {key: str(value).replace("HUB", str(hub)) for key, value in node.items()}

    def poison(checkpoint: dict[str, Any]) -> None:
        card = checkpoint["hornn"]
        (card["network"] if part == "head" else card)[part] = hostile

    rewrite(finished / "best.ckpt", poison)
    line = refusal(
        command("evaluate", f"checkpoint={finished / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'c'}")
    )
    assert f"the checkpoint names {hostile['_target_']!r} as " in line
    assert not (tmp_path / "ran").exists()
    assert not (hub / "made").exists()


@pytest.mark.parametrize("corpus", ["ptb", "text8"])
def test_a_checkpoint_sends_nothing_to_a_server(
    command: Command, finished: Path, tmp_path: Path, monkeypatch: Any, corpus: str
) -> None:
    asked: list[str] = []

    def ask(request: Any, **_: Any) -> None:
        asked.append(getattr(request, "full_url", request))
        raise OSError("no network")

    monkeypatch.setattr("hornn.data.download.urlopen", ask)
    monkeypatch.setenv("SECRET", "s3cret")
    node = {"_target_": f"hornn.data.{corpus}.build_data", "url": "http://127.0.0.1:9/${oc.env:SECRET}"}
    rewrite(finished / "best.ckpt", lambda c: c["hornn"].update(data_config=node))
    refusal(command("evaluate", f"checkpoint={finished / 'best.ckpt'}", f"data.root={tmp_path}"))
    assert asked
    assert not any("127.0.0.1" in str(url) or "s3cret" in str(url) for url in asked)


@pytest.mark.parametrize("entry", ["evaluate", "generate"])
def test_no_checkpoint(command: Command, tmp_path: Path, entry: str) -> None:
    assert "missing value 'checkpoint': give checkpoint=..." in refusal(command(entry))
    for path in ("/none/best.ckpt", tmp_path, "null", "5"):
        assert "there is no checkpoint " in refusal(command(entry, f"checkpoint={path}"))


def test_another_corpus_than_the_checkpoint_s(command: Command, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("x y z\n" * 50)
    line = refusal(
        command("evaluate", f"checkpoint={finished / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'cache'}")
    )
    assert "is not the one that this checkpoint was trained on" in line
    assert "give the same corpus, or text=FILE" in line


EVALUATE = {
    "split=dev": "split must be one of train, valid, test, got 'dev'",
    "batch_size=0": "batch_size must be an integer >= 1, got 0",
    "batch_size=x": "batch_size must be a whole number, got 'x'",
    "batch_size=82": "81 tokens cannot fill 82 columns: choose a smaller batch",
    "seq_len=0": "seq_len must be an integer >= 1, got 0",
    "device=tpu": "device must be one of cpu, cuda, got 'tpu'",
    "text=/none.txt": "there is no text file /none.txt: give the path of an existing one",
    "text=7": "there is no text file 7: give the path of an existing one",
    "sentences=scores.jsonl": "sentences= writes a score for each line of a text: give text=FILE too",
    "result=/none/figures.json": "the folder of /none/figures.json does not exist: make it",
    "result=/tmp": "/tmp is a folder: give the path of a file to write",
    "splt=test": "did you mean 'split'?",
}


@pytest.mark.slow
def test_evaluate_refuses(command: Command, finished: Path, tmp_path: Path) -> None:
    common = [f"checkpoint={finished / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'cache'}"]
    for setting, message in EVALUATE.items():
        assert message in refusal(command("evaluate", *common, setting))
    own = tmp_path / "own.txt"
    for content, message in ((b"", "is empty"), (b"a \xff", "is not UTF-8: byte 0xff at offset 2")):
        own.write_bytes(content)
        assert message in refusal(command("evaluate", *common, f"text={own}"))


GENERATE = {
    "length=0": "length must be >= 1 token, got 0",
    "length=x": "length must be a whole number, got 'x'",
    "temperature=-1": "temperature must be >= 0 and finite, got -1",
    "temperature=inf": "temperature must be >= 0 and finite, got inf",
    "temperature=hot": "temperature must be a number, got 'hot'",
    "seed=null": "seed must be a whole number, got null",
    "seed=-1": "seed must be from 0 to 4294967295, got -1",
    "allow_unk=no": "allow_unk must be true or false, got 'no'",
    "lenght=3": "did you mean 'length'?",
}


@pytest.mark.slow
def test_generate_refuses(command: Command, finished: Path) -> None:
    for setting, message in GENERATE.items():
        assert message in refusal(command("generate", f"checkpoint={finished / 'best.ckpt'}", setting))


# -- in a shell ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["train", "evaluate", "generate"])
def test_a_shell_sees_one_line(process: Command, small: list[str], tmp_path: Path, entry: str) -> None:
    bad = tmp_path / "bad.ckpt"
    bad.write_text("nothing")
    if entry == "train":
        outcome = process(entry, *small, "model.alpha=1", f"run_dir={tmp_path / 'run'}")
    else:
        outcome = process(entry, f"checkpoint={bad}")
    assert "alpha" in refusal(outcome) or "bad.ckpt is corrupt" in outcome.err
    assert outcome.out == ""
