"""The streams of text corpora, over the user's own files."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from hornn.data import files
from hornn.data.text import TextData, encode, encode_text
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import Vocabulary

OwnText = Callable[..., TextData]


def test_streams_and_description(own_text: OwnText) -> None:
    data = own_text()
    assert data.name == "files"
    assert data.vocabulary.words == ["a", "<eos>", "b", "c", "<unk>"]
    assert data.tokens("train").shape == (100,)
    assert data.vocabulary.decode(data.tokens("test")) == ["b", "<unk>", "<eos>"]
    assert sum(chunk.count for chunk in data.stream("train")) == 100
    assert sum(chunk.count for chunk in data.stream("valid")) == 3
    assert sum(chunk.count for chunk in data.stream("test")) == 3
    first = next(iter(data.stream("train")))
    assert first.inputs[0, 0] == data.vocabulary.eos_id
    assert first.inputs.shape == (3, 2)
    about = data.describe()
    assert about["tokens"] == {"train": 100, "valid": 3, "test": 3}
    assert about["unknown_tokens"] == {"valid": 0, "test": 1}
    assert about["vocab_size"] == 5
    assert about["unit"] == "word"
    assert not about["valid_is_test"]
    assert data.has_split("valid")


def test_unigram_perplexity(own_text: OwnText) -> None:
    data = own_text(train="a b\n" * 10, valid="a\n", test="c\n")
    probability = {"a": 11 / 34, "<eos>": 11 / 34, "<unk>": 1 / 34}
    assert data.unigram_ppl("valid") == pytest.approx(1 / probability["a"])
    assert data.unigram_ppl("test") == pytest.approx(
        1 / math.sqrt(probability["<unk>"] * probability["<eos>"])
    )


def test_prepare_and_setup_may_be_repeated(own_text: OwnText, monkeypatch: pytest.MonkeyPatch) -> None:
    data = own_text()
    tokens = data.tokens("train")
    monkeypatch.setattr(files.TextFiles, "tokens", lambda *_: pytest.fail("tokenised again"))
    data.prepare_data()
    data.setup()
    assert data.tokens("train").tolist() == tokens.tolist()


def test_changed_text_is_tokenised_again(own_text: OwnText) -> None:
    assert own_text(valid="a b\n").tokens("valid").tolist() == [0, 2, 1]
    assert own_text(valid="a b a\n").tokens("valid").tolist() == [0, 2, 0, 1]


def test_columns_are_shared_by_ranks(own_text: OwnText) -> None:
    data = own_text(batch_size=4, eval_batch_size=2)
    whole = next(iter(data.stream("train")))
    part = next(iter(data.stream("train", rank=1, world_size=2)))
    assert torch.equal(part.targets, whole.targets[:, 2:])
    assert (part.count, part.width) == (whole.count, 4)


def test_tokens_before_setup(tmp_path: Path, own_text: OwnText) -> None:
    data = own_text()
    fresh = TextData(data.corpus, 2, 3, 1, tmp_path / "other cache")
    with pytest.raises(RuntimeError, match="prepare_data"):
        fresh.setup()


def test_units_and_vocabulary_keys(own_text: OwnText) -> None:
    data = own_text(train="Ab\n" * 20, valid="ab\n", test="A <b\n", unit="char", lowercase=True, eos=False)
    assert data.vocabulary.words == ["a", "b", "<eos>", "<unk>"]
    assert data.vocabulary.decode(data.tokens("test")) == ["a", "<unk>", "<unk>", "b"]
    assert own_text(min_count=21, seq_len=2).vocabulary.words == ["<unk>", "a", "<eos>"]
    assert len(own_text(max_size=4).vocabulary) == 4


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"batch_size": 0}, "data.batch_size must be a whole number >= 1, got 0"),
        ({"seq_len": -1}, "data.seq_len must be a whole number >= 1, got -1"),
        ({"eval_batch_size": 0}, "data.eval_batch_size must be a whole number >= 1, got 0"),
        ({"batch_size": 2.5}, "data.batch_size must be a whole number >= 1, got 2.5"),
        ({"unit": "english"}, "data.unit must be one of word, char, got 'english'"),
        ({"train": "a b\n"}, r"columns of 2 tokens, shorter than one chunk of data\.seq_len=3"),
        (
            {"eval_batch_size": 4},
            r"valid split of files with data\.eval_batch_size=4: 3 tokens cannot fill 4",
        ),
        ({"train": ""}, r"train\.txt is empty"),
        ({"valid": "\n \n", "eos": False}, r"the valid split of files \(.*valid\.txt\) holds no tokens"),
        ({"min_count": 1000}, "lower it"),
    ],
)
def test_bad_input(own_text: OwnText, keys: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        own_text(**keys)
    assert "\n" not in str(caught.value)


def test_the_share_of_unknown_words_of_own_files_is_told(
    own_text: OwnText, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remarks(unknown: int) -> list[str]:
        words = " ".join(["z"] * unknown + ["a"] * (99 - unknown))  # and the end of the line: 100 tokens
        return own_text(test=f"{words}\n").remarks()

    assert remarks(0) == []
    assert remarks(1) == ["unknown words: 1.0 % of the test text"]
    (some,) = remarks(2)
    remedy = "; set data.min_count=2, by which training shows unknown words, too, or bring more text"
    assert some.startswith("warning: unknown words: 2.0 % of the test text")
    assert some.endswith(remedy)
    (many,) = remarks(6)
    assert many.startswith(
        "warning: unknown words: 6.0 % of the test text: they are all read as one word, so the perplexity says little"
    )
    assert many.endswith(remedy)
    (few_kept,) = own_text(test="z z\n", min_count=3, max_size=3).remarks()
    assert few_kept.endswith(
        "; lower data.min_count below 3, or raise data.max_size above 3, or bring more text"
    )
    (twice,) = own_text(test="z z\n", min_count=2).remarks()
    assert twice.endswith("; bring more text"), "with 1, training would show no unknown word"
    (all_kept,) = own_text(test="z z\n", max_size=1000).remarks()
    assert all_kept.endswith(remedy), "a bound that left no word out is none to raise"
    monkeypatch.setattr(files.TextFiles, "published", True)
    assert remarks(6) == []


def test_unknown_split(own_text: OwnText) -> None:
    with pytest.raises(ValueError, match="split must be one of train, valid, test, got 'dev'"):
        own_text().tokens("dev")


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_absent_file(tmp_path: Path, split: str) -> None:
    paths = {name: str(tmp_path / f"{name}.txt") for name in ("train", "valid", "test")}
    for name, path in paths.items():
        if name != split:
            Path(path).write_text("a")
    with pytest.raises(FileNotFoundError, match=f"there is no text file data.{split}="):
        files.build_data(root="", cache_dir=str(tmp_path / "cache"), **paths).prepare_data()
    with pytest.raises(ValueError, match=f"data.{split} must be the path of a text file, got None"):
        files.build_data(root="", cache_dir=str(tmp_path / "cache"), **(paths | {split: None}))  # type: ignore[arg-type]


def test_a_path_in_the_home_of_nobody(tmp_path: Path) -> None:
    paths = {"train": "~nobody knows.txt", "valid": "a", "test": "a"}
    with pytest.raises(
        ValueError, match=r"^~nobody knows.txt begins with ~, .* write \./~nobody knows.txt where"
    ):
        files.build_data(root="", cache_dir=str(tmp_path / "cache"), **paths)  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"])
def test_bytes_that_are_not_utf8(tmp_path: Path, own_text: OwnText, prefix: bytes) -> None:
    data = own_text()
    text = tmp_path / "latin.txt"
    text.write_bytes(prefix + b"fine\nna\xefve\n")
    with pytest.raises(ValueError, match=f"latin.txt is not UTF-8: byte 0xef at offset {len(prefix) + 7}"):
        encode_text(text, data.tokenizer, data.vocabulary)


def test_foreign_text(tmp_path: Path, own_text: OwnText) -> None:
    data = own_text()
    text = tmp_path / "text.txt"
    text.write_bytes(b"\xef\xbb\xbfa b\r\n\r\nc <unk> zebra")
    ids, unknown, lengths = encode_text(text, data.tokenizer, data.vocabulary)
    assert data.vocabulary.decode(ids) == ["a", "b", "<eos>", "<eos>", "c", "<unk>", "<unk>", "<eos>"]
    assert unknown.tolist() == [False] * 5 + [True, True, False], "a written <unk> counts, as in a split"
    assert lengths.tolist() == [3, 1, 4]
    assert np.issubdtype(ids.dtype, np.integer)


@pytest.mark.parametrize(("content", "message"), [("", "is empty"), ("\n", "holds no tokens")])
def test_foreign_text_without_tokens(tmp_path: Path, own_text: OwnText, content: str, message: str) -> None:
    data = own_text(eos=False)
    text = tmp_path / "text.txt"
    text.write_text(content)
    with pytest.raises(ValueError, match=message):
        encode_text(text, data.tokenizer, data.vocabulary)
    with pytest.raises(FileNotFoundError, match="there is no text file"):
        encode_text(tmp_path / "absent.txt", data.tokenizer, data.vocabulary)


def test_a_token_that_is_unknown_has_the_number_of_its_line() -> None:
    vocabulary = Vocabulary(["a", "<eos>"], [1, 1])
    lines = [("a", True), ("", True), ("a ", False), ("a a", False), (" b", True)]
    with pytest.raises(ValueError, match="mine, line 3: 'b' is none of the 2 symbols"):
        encode(lines, Tokenizer("word", eos=True), vocabulary, "mine")


def test_columns_as_long_as_a_chunk_are_enough(own_text: OwnText) -> None:
    assert sum(chunk.count for chunk in own_text(train="a b c d e\n", batch_size=2).stream("train")) == 6
