"""Options of evaluate.py and generate.py that cannot be."""

import errno
import os
from pathlib import Path

import pytest

from commands.lent.conftest import Lent
from commands.outcomes import contents, refusal
from outcome import Command

EVALUATE = {
    "split=dev": "split must be one of train, valid, test, got 'dev'",
    "batch_size=0": "batch_size must be a whole number >= 1, got 0",
    "batch_size=x": "batch_size must be a whole number, got 'x'",
    "batch_size=82": "81 tokens cannot fill 82 columns: choose a smaller batch",
    "seq_len=0": "seq_len must be a whole number >= 1, got 0",
    "device=tpu": "device must be one of cpu, cuda, got 'tpu'",
    "text=/none.txt": "there is no text file /none.txt: give the path of an existing one",
    "text=a.txt split=test": "text= is scored in place of a split, got split=test, too: leave out one of the two",
    "text=": "text= names no text file: give the path of one, or - for standard input",
    "text=7": "there is no text file 7: give the path of an existing one",
    "arpa=kn.arpa text=a.txt": "arpa= writes the n-grams of one model and scores nothing: give its checkpoint=",
    "arpa=/tmp/x.arpa result=/tmp/./x.arpa": "arpa= and result= would both write /tmp/x.arpa: give each a file of",
    "result=/none/figures.json": "the folder of /none/figures.json does not exist: make it",
    "result=/tmp": "/tmp is a folder: give the path of a file to write",
    "result=/proc/figures.json": "cannot write /proc/figures.json (",
    "result=/tmp/result.json": "/tmp/result.json has the name of a run's own file, which only a run writes",
    "result=/tmp/metrics.csv": "/tmp/metrics.csv has the name of a run's own file",
    "result=/tmp/config.yaml": "/tmp/config.yaml has the name of a run's own file",
    "arpa=/tmp/best.ckpt": "/tmp/best.ckpt has the name of a run's own file",
    "arpa=/tmp/last.ckpt": "/tmp/last.ckpt has the name of a run's own file",
    "arpa=/tmp/epoch-3.ckpt": "/tmp/epoch-3.ckpt has the name of a run's own file",
    "arpa=/proc/kn.arpa": "cannot write /proc/kn.arpa (",
    "dynamic_lr=inf": "dynamic_lr must be > 0 and finite, or a list of such rates, got inf",
    "dynamic_lr=true": "dynamic_lr must be > 0 and finite, or a list of such rates, got True",
    "dynamic_lr=1e30 seq_len=5": "gives no finite perplexity",
    "cache=99999999999999999999": "cache must be at most 9223372036854775807, got",
    "seq_len=99999999999999999999": "seq_len must be at most 9223372036854775807, got",
    "splt=test": "did you mean 'split'?",
}


@pytest.mark.each(4)
@pytest.mark.parametrize("setting", EVALUATE)
def test_evaluate_refuses(command: Command, lent: Lent, tmp_path: Path, setting: str) -> None:
    common = [f"checkpoint={lent.run / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'cache'}"]
    assert EVALUATE[setting] in refusal(command("evaluate", *common, *setting.split()))


@pytest.mark.slow
def test_evaluate_refuses_files(command: Command, run_dir: Path, tmp_path: Path) -> None:
    """To write to, which a new file would replace, and to read, which hold no text."""
    common = [f"checkpoint={run_dir / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'cache'}"]
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(tmp_path / "figures.json")
    os.mkfifo(pipe)
    for special in (link, pipe):
        line = refusal(command("evaluate", *common, "split=test", f"result={special}"))
        assert f"{special} is a link, a pipe or a device, and a new file would take its place" in line
    assert link.is_symlink()
    assert pipe.is_fifo()
    own = tmp_path / "own.txt"
    for content, message in ((b"", "is empty"), (b"a \xff", "is not UTF-8: byte 0xff at offset 2")):
        own.write_bytes(content)
        assert message in refusal(command("evaluate", *common, f"text={own}"))


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("entry", "reads"),
    [
        ("evaluate", "text"),
        ("evaluate", "checkpoint"),
        ("score", "text"),
        ("score", "mix"),
        ("analyse", "checkpoint"),
    ],
)
def test_a_file_that_is_read_is_not_written(
    command: Command, run_dir: Path, tmp_path: Path, entry: str, reads: str
) -> None:
    model, text = tmp_path / "mine.ckpt", tmp_path / "mine.txt"
    model.write_bytes((run_dir / "best.ckpt").read_bytes())
    text.write_text("a b c\n")
    link = tmp_path / "link"
    link.symlink_to(text if reads == "text" else model)
    words = {
        "text": [f"checkpoint={model}", f"text={text}"],
        "mix": [f"mix=[{model},{model}]", f"text={text}"],
    }
    before = contents(tmp_path)
    line = refusal(command(entry, *words.get(reads, [f"checkpoint={model}"]), f"result={link}"))
    assert f"{link} is a file that this command reads: give another name to write to" in line
    assert contents(tmp_path) == before


def test_a_full_disk_leaves_another_path(
    command: Command, run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This command has no run_dir= to write elsewhere with."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    figures = tmp_path / "figures.json"
    (tmp_path / "own.txt").write_text("a b\n")
    monkeypatch.setattr("hornn.writing.os.fsync", fail)
    words = (f"checkpoint={run_dir / 'best.ckpt'}", f"text={tmp_path / 'own.txt'}", f"result={figures}")
    code, _, err = command("evaluate", *words)
    said = "No space left on device; free some space on that disk or give another path"
    assert (code, err) == (2, f"error: {figures}: {said}\n")


GENERATE = {
    "length=0": "length must be a whole number >= 1, got 0",
    "length=x": "length must be a whole number, got 'x'",
    "temperature=-1": "temperature must be >= 0 and finite, got -1",
    "temperature=inf": "temperature must be >= 0 and finite, got inf",
    "temperature=hot": "temperature must be >= 0 and finite, got 'hot'",
    "seed=null": "seed must be a whole number, got null",
    "seed=-1": "seed must be a whole number from 0 to 4294967295, got -1",
    "allow_unk=no": "allow_unk must be true or false, got 'no'",
    "json=7": "json must be true or false, got 7",
    "top_p=true": "top_p must be in (0, 1] or null, got True",
    "to=x.mid": "to= is for models of music, and ",
    "piece=3": "piece= is for models of music, and ",
    "frames=7": "frames= is for models of music, and ",
    "lenght=3": "did you mean 'length'?",
}


@pytest.mark.each(4)
@pytest.mark.parametrize("setting", GENERATE)
def test_generate_refuses(command: Command, lent: Lent, setting: str) -> None:
    done = command("generate", f"checkpoint={lent.run / 'best.ckpt'}", setting)
    assert GENERATE[setting] in refusal(done)
