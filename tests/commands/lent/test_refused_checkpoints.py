"""Checkpoints that are damaged, of another format or model, or not there."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands.outcomes import refusal, rewrite
from outcome import Command

PARTS = ("name", "seed", "where", "choices", "config", "data")


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


@pytest.mark.each(6)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_checkpoint(
    command: Command, train: Command, run_dir: Path, tmp_path: Path, damage: str
) -> None:
    content = DAMAGE[damage]((run_dir / "last.ckpt").read_bytes())
    broken = tmp_path / "broken.ckpt"
    broken.write_bytes(content)
    for entry in ("evaluate", "generate"):
        line = refusal(command(entry, f"checkpoint={broken}"))
        assert f"checkpoint {broken} is corrupt or no checkpoint (" in line
        assert line.endswith("): give the path of a best.ckpt or last.ckpt, or copy or train it again\n")
    (run_dir / "last.ckpt").write_bytes(content)
    (run_dir / "result.json").unlink()
    assert "last.ckpt is corrupt or no checkpoint (" in refusal(train())
    assert (run_dir / "last.ckpt").read_bytes() == content


def test_a_folder_is_no_checkpoint(command: Command, run_dir: Path, tmp_path: Path) -> None:
    for folder, remedy in (
        (run_dir, run_dir / "best.ckpt"),
        (tmp_path, "the path of a best.ckpt or last.ckpt"),
    ):
        line = refusal(command("evaluate", f"checkpoint={folder}"))
        assert f"{folder} is a folder: give {remedy}" in line


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["hornn"].update(format=99), "has format 99, this program reads format 2"),
        (
            lambda c: c["hornn"].update(format=1),
            "has format 1, this program reads format 2: train it anew, or",
        ),
        (lambda c: c.pop("hornn"), "was not written by this program: it has no 'hornn' part"),
    ],
)
def test_a_checkpoint_of_another_format(
    command: Command, train: Command, run_dir: Path, change: Any, message: str
) -> None:
    for name in ("best.ckpt", "last.ckpt"):
        rewrite(run_dir / name, change)
    for entry in ("evaluate", "generate"):
        assert message in refusal(command(entry, f"checkpoint={run_dir / 'best.ckpt'}"))
    (run_dir / "result.json").unlink()
    assert message in refusal(train())


@pytest.mark.each(4)
@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.pop("pytorch-lightning_version"),
        lambda c: c.pop("training"),
        lambda c: c["training"].update(starts=7),
        lambda c: c["training"].update(starts=[{"dirty": False}]),
        lambda c: c["training"]["records"][-1].pop("step"),
        lambda c: c.update(loops=None),
        lambda c: c["loops"]["fit_loop"]["state_dict"].update(combined_loader=[]),
        lambda c: c["state_dict"].pop("network.embedding.weight"),
    ],
)
def test_an_unfinished_run_whose_checkpoint_lacks_a_part(train: Command, run_dir: Path, change: Any) -> None:
    rewrite(run_dir / "last.ckpt", change)
    (run_dir / "result.json").unlink()
    line = refusal(train())
    assert f"the run cannot go on from {run_dir / 'last.ckpt'} (" in line
    assert line.endswith("only where the checkpoint itself is to blame, overwrite=true starts anew\n")


@pytest.mark.each(4)
@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["hornn"]["config"]["model"].update(hidden_size=7),
        lambda c: c["hornn"]["config"]["model"].update(order=2),
        lambda c: c["hornn"]["config"]["network"].update(num_layers=2),
        lambda c: c["state_dict"].pop("network.embedding.weight"),
    ],
)
def test_a_checkpoint_of_another_model(command: Command, run_dir: Path, change: Any) -> None:
    rewrite(run_dir / "best.ckpt", change)
    for entry in ("evaluate", "generate"):
        line = refusal(command(entry, f"checkpoint={run_dir / 'best.ckpt'}"))
        assert "holds the weights of another model: " in line


@pytest.mark.each(8)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            (lambda card, key=key: card.pop(key), f"lacks a part of a model (KeyError('{key}'))")
            for key in PARTS
        ),
        *(
            (lambda card, key=key: card["data"].pop(key), f"lacks a part of a model (KeyError('{key}'))")
            for key in ("name", "text_checksum", "valid_is_test")
        ),
        (lambda card: card.update(data=5), "lacks a part of a model (TypeError("),
        (lambda card: card["data"].update(text_checksum=5), "(TypeError('data.text_checksum is 5'))"),
        (lambda card: card["config"].update(data=5), "(TypeError('config.data is 5'))"),
        (lambda card: card["where"].clear(), "the checkpoint does not say where its data.train lies"),
    ],
)
def test_a_checkpoint_that_lacks_a_part(
    command: Command, text: list[str], run_dir: Path, tmp_path: Path, change: Any, message: str
) -> None:
    """Whether it is used alone or in a mixture that is a run."""
    best = run_dir / "best.ckpt"
    rewrite(best, lambda checkpoint: change(checkpoint["hornn"]))
    evaluate = ("evaluate", f"checkpoint={best}", f"data.cache_dir={tmp_path / 'cache'}")
    words = ("logger=csv", "model.lengths=[5]", f"init_from=[{best}]", f"run_dir={tmp_path / 'mixture'}")
    for entry, *given in (evaluate, ("train", *text, "model=mixture", *words)):
        if entry == "evaluate" or "where" not in message:  # a mixture knows where its text lies
            assert message in refusal(command(entry, *given))


def test_a_checkpoint_with_weights_that_are_no_numbers(
    command: Command, run_dir: Path, tmp_path: Path
) -> None:
    rewrite(run_dir / "best.ckpt", lambda c: c["state_dict"]["network.head.W_out"].fill_(float("nan")))
    words = (f"checkpoint={run_dir / 'best.ckpt'}", f"data.cache_dir={tmp_path / 'cache'}")
    assert "gives no finite perplexity (nan nats per token): its weights are damaged" in refusal(
        command("evaluate", *words)
    )
    assert "gives no finite probabilities" in refusal(command("generate", words[0]))


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("size", "message"),
    [
        (10**7, "weights need"),
        (10**12, "are beyond any memory"),
        ("6", "hidden_size must be a whole number >= 1, got '6'"),
    ],
)
def test_a_checkpoint_that_claims_a_size(command: Command, run_dir: Path, size: Any, message: str) -> None:
    rewrite(run_dir / "best.ckpt", lambda c: c["hornn"]["config"]["model"].update(hidden_size=size))
    assert message in refusal(command("generate", f"checkpoint={run_dir / 'best.ckpt'}"))


def test_a_checkpoint_whose_choice_is_gone(command: Command, run_dir: Path) -> None:
    rewrite(run_dir / "best.ckpt", lambda c: c["hornn"]["choices"].update(model="gone"))
    line = refusal(command("generate", f"checkpoint={run_dir / 'best.ckpt'}"))
    assert "the checkpoint's unknown model 'gone'; it is one of: clockwork, " in line
    assert "add conf/model/gone.yaml, or name a folder of yours that has it: --config-dir=FOLDER" in line


@pytest.mark.each(2)
@pytest.mark.parametrize("entry", ["evaluate", "generate"])
def test_no_checkpoint(command: Command, tmp_path: Path, entry: str) -> None:
    assert "missing value 'checkpoint': give checkpoint=..." in refusal(command(entry))
    for path in ("/none/best.ckpt", "null", "5"):
        assert "there is no checkpoint " in refusal(command(entry, f"checkpoint={path}"))
