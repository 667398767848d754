"""generate.py on a finished run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import hornn
from commands.outcomes import close, refusal, rewrite
from hornn.shown import ACTING
from hornn.use import generate as generate_command
from outcome import Command


@pytest.fixture
def generate(command: Command, run_dir: Path) -> Callable[..., str]:
    def run(*words: str) -> str:
        done = command("generate", f"checkpoint={run_dir / 'best.ckpt'}", *words)
        assert (done.code, done.err) == (0, "")
        return str(done.out)

    return run


def test_generate_repeats_itself_for_a_seed(generate: Command) -> None:
    assert generate("seed=5") == generate("seed=5") != generate("seed=6")
    assert generate("temperature=0", "seed=1") == generate("temperature=0", "seed=2")


def test_generate_writes_as_much_as_asked(generate: Command) -> None:
    for length in (1, 7, 40):
        out = generate(f"length={length}", "prompt=a b")
        assert out.startswith("a b")
        # an <eos> is a line's end, and print ends the last line
        assert len(out.removesuffix("\n").replace("\n", " <eos> ").split()) == length + 2


def test_a_text_is_shown_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    generate_command.console.print("the :x: and [red]:key:", markup=False)
    assert capsys.readouterr().out == "the :x: and [red]:key:\n"


def test_a_word_of_a_vocabulary_is_no_command_to_the_terminal(
    command: Command, run_dir: Path, tmp_path: Path
) -> None:
    saved = torch.load(run_dir / "best.ckpt", weights_only=True)
    texts = [node for node in nodes_of(saved) if {"words", "counts"} <= node.keys()]
    for node in texts:
        node["words"] = [
            word if word in ("<unk>", "<eos>") else f"\x1b]0;{word}\x07\x1b[2J" for word in node["words"]
        ]
    assert texts
    torch.save(saved, tmp_path / "best.ckpt")
    code, out, err = command("generate", f"checkpoint={tmp_path / 'best.ckpt'}", "length=20")
    assert (code, err) == (0, "")
    assert "]0;" in out
    assert not ACTING.search(out.replace("\n", ""))


def nodes_of(value: Any) -> list[dict[str, Any]]:
    """All mappings of a nested one."""
    inner = [node for item in value.values() for node in nodes_of(item)] if isinstance(value, dict) else []
    return [value, *inner] if isinstance(value, dict) else []


def test_generate_tells_of_a_prompt_outside_the_vocabulary(command: Command, run_dir: Path) -> None:
    code, out, err = command("generate", f"checkpoint={run_dir / 'best.ckpt'}", "prompt=a zz", "length=3")
    assert code == 0
    assert out.startswith("a zz ")
    assert err == "not in the vocabulary, read as <unk>: zz\n"


def test_a_program_reads_each_text_as_json(generate: Command, run_dir: Path) -> None:
    words = {"length": 9, "num_samples": 3, "seed": 4}
    for prompt in ("", "a b\nc", "a"):
        out = generate("json=true", f"prompt={prompt}", *(f"{key}={value}" for key, value in words.items()))
        expected = hornn.load(run_dir / "best.ckpt").generate(prompt, **words)
        assert "\n" in "".join(expected)
        assert [json.loads(line) for line in out.splitlines()] == [
            {"sample": number, "prompt": prompt, "text": text}
            for number, text in enumerate(expected, start=1)
        ]


def test_samples_of_several_lines_have_a_blank_line_between_them(generate: Command, run_dir: Path) -> None:
    words = {"length": 9, "num_samples": 3, "seed": 4}
    out = generate("prompt=a", *(f"{key}={value}" for key, value in words.items()))
    texts = hornn.load(run_dir / "best.ckpt").generate("a", **words)
    assert any("\n" in text for text in texts)
    assert out == "\n\n".join(texts) + "\n"


def test_a_prompt_that_cannot_be_read_is_refused_without_a_note(
    command: Command, run_dir: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "closed.ckpt"
    checkpoint.write_bytes((run_dir / "best.ckpt").read_bytes())
    rewrite(checkpoint, close)
    line = refusal(command("generate", f"checkpoint={checkpoint}", "prompt=a zz"))
    assert line.startswith("error: 'zz' is none of the 9 symbols of the vocabulary; it has no <unk>")


PROMPTS = [
    *("what's (a) new?", "the, {function}", "'a", 'a \\" b\\', "[a]: b=c"),
    *(
        "null",
        "???",
        "true",
        '" a "',
        '"yes" he said "no"',
        "'null'",
        "a ${oc.env:SECRET}",
        "the ${",
        "a \\${b} '${c}'",
    ),
]


@pytest.mark.each(2)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_may_have_any_signs(
    command: Command, run_dir: Path, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    """Quotes are tokens, and what looks like a variable of the environment is not one."""
    monkeypatch.setenv("SECRET", "s3cret")
    words = (f"checkpoint={run_dir / 'best.ckpt'}", f"prompt={prompt}", "length=1")
    code, out, _ = command("generate", *words)
    assert code == 0
    assert out.startswith(f"{prompt} ")


def test_unk_is_written_on_demand_only(generate: Command) -> None:
    assert "<unk>" not in generate("length=400", "temperature=5")
    assert "<unk>" in generate("length=400", "temperature=5", "allow_unk=true")
