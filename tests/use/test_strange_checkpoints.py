"""Checkpoints whose weights, counts or words are damaged, or a stranger's: each is refused, and says why."""

import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from functools import reduce
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hornn
from hornn.checkpoint import read_checkpoint

NAMES = ["network/best.ckpt", "counts/best.ckpt"]
TEXT = "a b c\nd e\n"


class Call:
    """A part of a checkpoint that calls a function when it is read."""

    def __init__(self, function: Callable[..., Any], *given: Any) -> None:
        self.reduced = function, given

    def __reduce__(self) -> Any:
        return self.reduced


def attributed() -> OrderedDict[str, int]:
    """A mapping with an attribute, which takes a copy."""
    held = OrderedDict(a=1)
    held.more = 2  # type: ignore[attr-defined]
    return held


SHAPE = (1,)
STORAGE = torch.zeros(1)._typed_storage()


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Call(bytearray, 10), "asks for __builtin__.bytearray"),
        (b"bytes", "asks for _codecs.encode"),
        (torch.zeros(2, 2).to_sparse(), "asks for torch._utils._rebuild_sparse_tensor"),
        (torch.zeros(2, device="meta"), "asks for torch._utils._rebuild_meta_tensor_no_storage"),
        (Call(OrderedDict, {"a": 1}), "has a content that cannot be read"),
        (
            Call(torch._utils._rebuild_tensor_v2, STORAGE, 0, SHAPE, SHAPE, False, OrderedDict()),
            "has a content that cannot be read",
        ),
        ("0\0again", "has a content that cannot be read"),
        ([attributed() for _ in range(11)], "has a content that cannot be read"),
    ],
)
def test_what_may_grow_without_bound_is_not_made(tmp_path: Path, part: Any, said: str) -> None:
    """Else a file of a few hundred bytes would take any amount of memory, though nothing in it is code."""
    torch.save({"state_dict": part}, tmp_path / "other.ckpt")
    with pytest.raises(
        ValueError, match=rf"other.ckpt {said}, and those of this program hold numbers and text"
    ):
        read_checkpoint(tmp_path / "other.ckpt")


def listed(content: bytes, place: int, value: bytes) -> bytes:
    """An archive with other bytes in the first entry of its list of parts."""
    at = content.index(b"PK\1\2") + place
    return content[:at] + value + content[at + len(value) :]


def packed_anew(content: bytes) -> bytes:
    """An archive with the same parts, compressed."""
    file = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(content)) as given,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in given.namelist():
            archive.writestr(name, given.read(name))
    return file.getvalue()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: listed(content, 10, b"\x08"), "other/data.pkl is compressed"),
        (
            lambda content: listed(content, 24, b"\xff\xff\xff"),
            r"its parts claim 16,\d{3},\d{3} bytes in a file of",
        ),
        (
            lambda content: content.replace(b"/data.pkl", b"/DATA.PKL"),
            "it holds 'other/DATA.PKL', which torch does not",
        ),
        (packed_anew, "it is no archive that torch writes"),
        # Python finds an archive behind anything; torch reads the pickle before it.
        (lambda content: pickle.dumps({}) + content, "it is no archive that torch writes"),
        # Python finds the list of parts before its end, and torch where the archive says.
        (lambda content: content[:4] + b"more" + content[4:], "it is no archive that torch writes"),
    ],
)
def test_an_archive_takes_no_more_memory_than_its_file(
    tmp_path: Path, change: Callable[[bytes], bytes], said: str
) -> None:
    path = tmp_path / "other.ckpt"
    torch.save({"state_dict": {}}, path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"other.ckpt is corrupt or no checkpoint \({said}"):
        read_checkpoint(path)


@pytest.mark.parametrize("change", ["double", "int"])
def test_weights_of_another_kind_are_refused(folder: Path, tmp_path: Path, change: str) -> None:
    checkpoint = torch.load(folder / "network/best.ckpt", weights_only=True)
    name = next(key for key, weight in checkpoint["state_dict"].items() if weight.dim() == 2)
    checkpoint["state_dict"][name] = getattr(checkpoint["state_dict"][name], change)()
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match="a run keeps it in float32: train it anew"):
        hornn.load(tmp_path / "other.ckpt")


def test_a_weight_has_numbers_of_its_own(folder: Path, tmp_path: Path) -> None:
    """Else a network would take more memory than its file does."""
    checkpoint = torch.load(folder / "network/best.ckpt", weights_only=True)
    weights, W_out = checkpoint["state_dict"], checkpoint["state_dict"]["network.head.W_out"]
    weights["network.head.W_out"] = torch.zeros(1, 1).expand(W_out.shape)
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=rf"holds 4 bytes of head.W_out, which has {W_out.numel()} numbers"):
        hornn.load(tmp_path / "other.ckpt")
    weights["network.head.W_out"] = W_out
    checkpoint["hornn"]["config"]["network"]["num_layers"] = 4
    first = {name: weight for name, weight in weights.items() if ".cells.0." in name}
    for layer in "123":
        weights |= {name.replace(".0.", f".{layer}."): weight for name, weight in first.items()}
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=r"holds no numbers of its own for cells\.2\.\w+: train it anew"):
        hornn.load(tmp_path / "other.ckpt")


def test_no_probability_is_given_that_is_no_number(folder: Path) -> None:
    model = hornn.load(folder / "network/best.ckpt")
    with torch.no_grad():
        model.network.head.W_out.fill_(math.nan)
    for use in (model.next_words, model.generate):
        with pytest.raises(
            ValueError, match="the model gives no finite probabilities: its weights are damaged"
        ):
            use("a b")


def endless() -> list[Any]:
    """A list that holds itself."""
    held: list[Any] = []
    held.append(held)
    return held


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "place", [("vocabulary", "counts"), ("tokenizer", "eos"), ("config", "model", "order")]
)
def test_a_tensor_is_no_setting(folder: Path, tmp_path: Path, name: str, place: tuple[str, ...]) -> None:
    """With a stride of 0 it would be a list of any length in a file of some bytes."""
    checkpoint = torch.load(folder / name, weights_only=True)
    node = checkpoint["hornn"]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = torch.zeros(1, dtype=torch.int64).as_strided((10**12,), (0,))
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=r"other.ckpt holds a tensor among its settings: give the path of"):
        hornn.load(tmp_path / "other.ckpt")


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_of_the_tokenizer_is_true_or_false(folder: Path, tmp_path: Path, name: str) -> None:
    checkpoint = torch.load(folder / name, weights_only=True)
    checkpoint["hornn"]["tokenizer"]["eos"] = "no"
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=r"eos must be true or false, got 'no'"):
        hornn.load(tmp_path / "other.ckpt")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value",
    [
        endless(),
        reduce(lambda inner, _: [inner, inner], range(40), []),
        reduce(lambda inner, _: [inner], range(100), []),
    ],
)
@pytest.mark.parametrize("place", [("config", "model"), ()])
def test_lists_without_end_are_refused(
    folder: Path, tmp_path: Path, name: str, value: list[Any], place: tuple[str, ...]
) -> None:
    """Which hold themselves, one another in 2^40 places, or one another a hundred times over."""
    checkpoint = torch.load(folder / name, weights_only=True)
    node = checkpoint["hornn"]
    for key in place:
        node = node[key]
    node["name"] = value
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(
        ValueError, match=r"other.ckpt holds lists within one another, and no end of them: give"
    ):
        hornn.load(tmp_path / "other.ckpt")


def test_a_list_may_stand_in_several_places(folder: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(folder / NAMES[0], weights_only=True)
    checkpoint["hornn"]["more"] = [[1, 2, 3]] * 10_000
    torch.save(checkpoint, tmp_path / "other.ckpt")
    assert hornn.load(tmp_path / "other.ckpt").perplexity(TEXT) > 1


def test_a_format_that_is_no_number_is_refused(folder: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(folder / NAMES[0], weights_only=True)
    checkpoint["hornn"]["format"] = torch.tensor([2, 2])
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=r"has format tensor\(\[2, 2\]\), this program reads format 2"):
        hornn.load(tmp_path / "other.ckpt")


@pytest.mark.parametrize("change", ["requires_grad_", "bfloat16"])
def test_counts_of_another_kind_are_refused(folder: Path, tmp_path: Path, change: str) -> None:
    checkpoint = torch.load(folder / "counts/best.ckpt", weights_only=True)
    checkpoint["state_dict"]["p_2"] = getattr(checkpoint["state_dict"]["p_2"], change)()
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=r"other.ckpt holds p_2 as .*: train it anew"):
        hornn.load(tmp_path / "other.ckpt")


def test_counts_of_an_infinite_probability_are_refused(folder: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(folder / "counts/best.ckpt", weights_only=True)
    checkpoint["state_dict"]["p_1"].fill_(math.inf)
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match="the probabilities after 0 words sum to inf, not to 1"):
        hornn.load(tmp_path / "other.ckpt")


@pytest.mark.parametrize(
    ("nll", "said"),
    [(math.inf, "no finite perplexity"), (math.nan, "no finite perplexity"), (-0.5, "above 1")],
)
def test_a_text_with_a_score_that_no_model_gives_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, nll: float, said: str
) -> None:
    """However likely the texts beside it make it look; what is rounded may seem a little likelier than 1."""
    model = hornn.load(folder / NAMES[1])
    given = {"a": 9.0, "b": nll, "c": -1e-6}
    texts = ["a", "b", "c"]
    monkeypatch.setattr(
        model.scorer, "score_lines", lambda ids, *_: np.repeat([given[text] for text in texts], 2)[: len(ids)]
    )
    with pytest.raises(ValueError, match=rf"^text 2: .*best\.ckpt gives .*{said}"):
        model.score(texts)
    given["b"] = 9.0
    assert model.score(texts)[2].log_prob > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("words", lambda words: [*words, "more"]),
        ("words", lambda words: words[:-1]),
        ("words", lambda words: [*words[:-1], 5]),
        ("words", lambda words: [*words[:-1], words[0]]),
        ("counts", lambda counts: [*counts[:-1], "9"]),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(
    folder: Path, tmp_path: Path, name: str, part: str, change: Any
) -> None:
    checkpoint = torch.load(folder / name, weights_only=True)
    vocabulary = checkpoint["hornn"]["vocabulary"]
    vocabulary[part] = change(vocabulary[part])
    torch.save(checkpoint, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=r"lacks a part of a model \(.* vocabulary .*\): train it anew"):
        hornn.load(tmp_path / "other.ckpt")


def test_a_name_does_not_act_on_the_terminal(command: Any, folder: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(folder / "network/best.ckpt", weights_only=True)
    checkpoint["hornn"]["data"]["name"] = "\x1b[31mred\n\nlines"
    torch.save(checkpoint, tmp_path / "best.ckpt")
    done = command("evaluate", f"checkpoint={tmp_path / 'best.ckpt'}", "split=test")
    assert "scored   [31mred lines test" in done.out, done.err


def test_a_class_that_a_checkpoint_names_acts_on_no_terminal(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = torch.load(folder / NAMES[0], weights_only=True)
    checkpoint["hornn"]["code"] = {"class": "theirs.\x1b[2JCell"}
    torch.save(checkpoint, tmp_path / "x.ckpt")
    hornn.load(tmp_path / "x.ckpt")
    said = capsys.readouterr().err
    assert "x.ckpt was trained by other code: the class was theirs. [2JCell there" in said
    assert "\x1b" not in said
