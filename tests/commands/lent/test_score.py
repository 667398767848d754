"""score.py: a record for each line, while lines still come."""

import json
import math
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
import torch

import hornn
from commands.lent.conftest import Lent
from commands.outcomes import close, refusal, rewrite
from hornn.use import scorers
from outcome import Command

ROOT = Path(__file__).parents[3]
LINES = ["a b c", "", "a \N{SNOWMAN} zz f", "a b c", "c d " * 150]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(LINES).encode())  # without an end of the last line
    return path


@pytest.fixture
def start(run_dir: Path, forked_python: str) -> Callable[..., subprocess.Popen[str]]:
    """`score.py` in a process whose input is a pipe that the test writes."""

    def run(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [forked_python, str(ROOT / "src" / "score.py"), f"checkpoint={run_dir / 'best.ckpt'}", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


def test_a_record_a_line_and_the_perplexity_of_all(
    command: Command, run_dir: Path, lines: Path, tmp_path: Path
) -> None:
    """As in Python, and whatever number of lines is read side by side."""
    model, figures = hornn.load(run_dir / "best.ckpt"), tmp_path / "figures.json"
    expected = model.score(LINES, per_token=True)
    for batch_size in (1, 2, 64):
        words = [f"batch_size={batch_size}", "per_token=true", f"result={figures}"]
        code, out, err = command("score", f"checkpoint={run_dir / 'best.ckpt'}", f"text={lines}", *words)
        assert code == 0, err
        rows = [json.loads(line) for line in out.splitlines()]
        assert [row["text"] for row in rows] == LINES
        assert [(row["tokens"], row["unknown"]) for row in rows] == [(4, 0), (1, 0), (5, 2), (4, 0), (301, 0)]
        for row, score in zip(rows, expected, strict=True):
            assert row["log_prob"] == pytest.approx(score.log_prob, rel=1e-5)
            tokens = row["per_token"]
            assert tuple(token["token"] for token in tokens) == score.token_texts
            assert sum(token["log_prob"] for token in tokens) == pytest.approx(row["log_prob"], rel=1e-12)
            assert sum(token["unknown"] for token in tokens) == row["unknown"]
        total = json.loads(figures.read_text())
        nll = -sum(row["log_prob"] for row in rows)
        assert total["perplexity"] == pytest.approx(math.exp(nll / 315))
        known = [token["log_prob"] for row in rows for token in row["per_token"] if not token["unknown"]]
        assert total["perplexity_known"] == pytest.approx(math.exp(-sum(known) / 313))
        assert (total["lines"], total["tokens"], total["out_of_vocabulary"]) == (5, 315, 2)
        assert total["bits_per_token"] == pytest.approx(nll / 315 / math.log(2))
        assert f"perplexity  {total['perplexity']:,.2f}" in err


def test_the_batch_size_is_that_of_the_network(
    command: Command, run_dir: Path, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns: list[int] = []
    original = scorers.score_lines

    def spy(network: Any, *arguments: Any) -> Any:
        def watch(module: Any, given: tuple[torch.Tensor, Any]) -> None:
            columns.append(given[0].size(1))

        handle = network.register_forward_pre_hook(watch)
        found = original(network, *arguments)
        handle.remove()
        return found

    monkeypatch.setattr(scorers, "score_lines", spy)
    for batch_size, expected in ((2, {2, 1}), (3, {3, 1}), (64, {4, 1})):  # the last line comes alone
        columns.clear()
        words = (f"checkpoint={run_dir / 'best.ckpt'}", f"text={lines}", f"batch_size={batch_size}")
        assert command("score", *words).code == 0
        assert set(columns) == expected


@pytest.mark.slow
def test_lines_are_scored_as_they_come(start: Callable[..., subprocess.Popen[str]]) -> None:
    score = start()
    assert score.stdin is not None
    assert score.stdout is not None
    for line in ("a b", "c d e"):
        score.stdin.write(f"{line}\n")
        score.stdin.flush()
        assert json.loads(score.stdout.readline())["text"] == line  # the input is still open
    out, err = score.communicate("f g")
    assert json.loads(out)["text"] == "f g"
    assert "lines  3" in err
    assert score.returncode == 0


@pytest.mark.slow
def test_a_record_is_json_in_any_encoding(
    command: Command, fresh_process: Command, run_dir: Path, tmp_path: Path
) -> None:
    """Where a character cannot be written, it has its escape of JSON."""
    (tmp_path / "accent.txt").write_text("a \N{LATIN SMALL LETTER E WITH ACUTE} \N{SNOWMAN}\n")
    words = (f"checkpoint={run_dir / 'best.ckpt'}", f"text={tmp_path / 'accent.txt'}", "per_token=true")
    done = fresh_process("score", *words, PYTHONIOENCODING="ascii")
    assert done.code == 0, done.err
    assert done.out.isascii()
    written = command("score", *words).out
    assert "\N{SNOWMAN}" in written
    records = [json.loads(out.splitlines()[0]) for out in (done.out, written)]
    assert [record["text"] for record in records] == ["a \N{LATIN SMALL LETTER E WITH ACUTE} \N{SNOWMAN}"] * 2


def lose_the_reader(score: subprocess.Popen[str]) -> IO[str]:
    """Let a reader go away after the record of the first line; the input, which is still open."""
    assert score.stdin is not None
    assert score.stdout is not None
    score.stdin.write("a b\n")
    score.stdin.flush()
    score.stdout.readline()
    score.stdout.close()
    return score.stdin


@pytest.mark.slow
def test_it_ends_with_its_reader(start: Callable[..., subprocess.Popen[str]]) -> None:
    """In silence, though the input has no end."""
    score = start()
    assert score.stderr is not None
    given = lose_the_reader(score)
    given.write("a b\n")
    given.flush()
    assert score.wait(timeout=60) == 0
    assert score.stderr.read() == ""
    score.stderr.close()
    given.close()


@pytest.mark.slow
def test_the_figures_are_of_all_lines_also_without_a_reader(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    score = start(f"result={tmp_path / 'figures.json'}")
    given = lose_the_reader(score)
    for _ in range(2):
        given.write("c d e\n")
        given.flush()
        time.sleep(0.5)
    given.close()
    assert score.stderr is not None
    assert "lines  3" in score.stderr.read()
    score.stderr.close()
    assert score.wait(timeout=60) == 0
    assert json.loads((tmp_path / "figures.json").read_text())["lines"] == 3


@pytest.mark.slow
def test_evaluate_reads_standard_input_too(run_dir: Path, tmp_path: Path, forked_python: str) -> None:
    results = []
    (tmp_path / "own.txt").write_text("a b c\nd e\n")
    for source in ("-", tmp_path / "own.txt"):
        figures = tmp_path / "figures.json"
        words = [f"checkpoint={run_dir / 'best.ckpt'}", f"text={source}", f"result={figures}"]
        with (tmp_path / "own.txt").open() as own:
            done = subprocess.run(
                [forked_python, str(ROOT / "src" / "evaluate.py"), *words], stdin=own, capture_output=True
            )
        assert (done.returncode, done.stderr) == (0, b"")
        results.append(json.loads(figures.read_text()))
    assert results[0]["perplexity"] == results[1]["perplexity"]
    assert results[0]["tokens"] == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\nc\nd \xff\ne\n", "bad.txt is not UTF-8: byte 0xff at offset 8, line 3: convert it to UTF-8"),
        (b"a b\nc\nd zz\ne\n", "bad.txt, line 3: 'zz' is none of the 9 symbols of the vocabulary"),
        (b"a b\nc\nd zz", "bad.txt, line 3: 'zz' is none of the 9 symbols of the vocabulary"),
        (b"zz\na b\n", "bad.txt, line 1: 'zz' is none of the 9 symbols of the vocabulary"),
    ],
)
def test_the_lines_before_a_bad_one_have_their_records(
    command: Command, run_dir: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    checkpoint = tmp_path / "closed.ckpt"
    checkpoint.write_bytes((run_dir / "best.ckpt").read_bytes())
    rewrite(checkpoint, close)
    path, figures = tmp_path / "bad.txt", tmp_path / "figures.json"
    path.write_bytes(content)
    good = content.split(b"\n")[: int(message.split("line ")[1][0]) - 1]
    done = command("score", f"checkpoint={checkpoint}", f"text={path}", "batch_size=1", f"result={figures}")
    assert message in refusal(done)
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["text"].encode() for row in rows] == good
    expected = hornn.load(checkpoint).score([row["text"] for row in rows])
    assert [row["log_prob"] for row in rows] == pytest.approx([score.log_prob for score in expected])
    assert not figures.exists()


ARPA = "\\data\\\nngram 1=4\n\n\\1-grams:\n-99\t<s>\n-0.30103\t</s>\n-0.30103\ta\n-inf\tb\n\n\\end\\\n"


@pytest.mark.parametrize(
    ("content", "bad"), [("a\n\na b\na\nb\n", 3), ("a\nb\nzz\n", 2), ("a\nzz\nb\n", 2), ("b\n", 1)]
)
def test_the_lines_before_one_of_probability_0_have_their_records(
    command: Command, tmp_path: Path, content: str, bad: int
) -> None:
    """It is the line that is named, also where one behind it cannot be read."""
    (tmp_path / "b.arpa").write_text(ARPA)
    (tmp_path / "own.txt").write_text(content)
    done = command("score", f"checkpoint={tmp_path / 'b.arpa'}", f"text={tmp_path / 'own.txt'}")
    what = (
        "'zz' is none of"
        if content.split("\n")[bad - 1] == "zz"
        else f"{tmp_path / 'b.arpa'} gives no finite perplexity (inf nats per token): a token has the probability 0"
    )
    assert f"own.txt, line {bad}: {what}" in refusal(done)
    assert [json.loads(line)["text"] for line in done.out.splitlines()] == content.split("\n")[: bad - 1]


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "own.txt holds no tokens: give a text that has some"),
        (b"\xef\xbb\xbf", "own.txt holds no tokens: give a text that has some"),
        (b"a b\nc \xff\n", "own.txt is not UTF-8: byte 0xff at offset 6"),
    ],
)
def test_a_text_that_cannot_be_scored_is_said(
    command: Command, lent: Lent, tmp_path: Path, content: bytes, message: str
) -> None:
    own = tmp_path / "own.txt"
    own.write_bytes(content)
    assert message in refusal(command("score", f"checkpoint={lent.run / 'best.ckpt'}", f"text={own}"))


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("word", "message"),
    {
        "text=/none.txt": "there is no text file /none.txt",
        "text=null": "text= names no text file: give the path of one, or - for standard input",
        "text=": "text= names no text file: give the path of one, or - for standard input",
        "text=/tmp": "/tmp is a folder: give the path of a text file",
        "batch_size=0": "batch_size must be a whole number >= 1, got 0",
        "seq_len=0": "seq_len must be a whole number >= 1, got 0",
        "result=/none/x.json": "the folder of /none/x.json does not exist",
        "sentences=x": "unknown key 'sentences'",
        "device=tpu": "device must be one of cpu, cuda, got 'tpu'",
    }.items(),
)
def test_what_cannot_be_scored_is_said(
    command: Command, lent: Lent, tmp_path: Path, word: str, message: str
) -> None:
    own = tmp_path / "own.txt"
    own.write_text("a b\n")
    given = [f"checkpoint={lent.run / 'best.ckpt'}", f"text={own}", word]
    assert message in refusal(command("score", *given))
