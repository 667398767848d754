"""What holds for every text: of streams, vocabularies and tokenizers."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from hornn.data.base import IGNORE
from hornn.data.files import TextFiles
from hornn.data.streams import ChunkStream
from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import EOS, UNK, Vocabulary, VocabularyRule

START = 10_000
SIZES = st.tuples(st.integers(1, 300), st.integers(1, 12), st.integers(1, 40)).filter(lambda s: s[0] >= s[1])
WORDS = st.text("abc\N{LATIN SMALL LETTER E WITH ACUTE}\N{SNOWMAN}", min_size=1, max_size=3)
COUNTS = st.dictionaries(st.one_of(WORDS, st.sampled_from([EOS, UNK])), st.integers(1, 50), min_size=1)
LINES = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=40)


def stream(tokens: int, columns: int, length: int) -> ChunkStream:
    return ChunkStream(np.arange(tokens, dtype=np.int32), START, columns, length)


@given(SIZES)
def test_a_column_reads_its_text_in_order_and_every_token_is_a_target_once(
    sizes: tuple[int, int, int],
) -> None:
    chunks = list(stream(*sizes))
    inputs, targets = (torch.cat([chunk[i] for chunk in chunks]) for i in (0, 1))
    kept = targets != IGNORE
    assert targets.T[kept.T].tolist() == list(range(sizes[0]))
    for column in range(sizes[1]):
        own = targets[kept[:, column], column].tolist()
        assert inputs[: len(own), column].tolist() == [START, *own[:-1]]
        assert kept[: len(own), column].all()


@given(SIZES, st.data())
def test_what_is_continued_anywhere_is_the_rest(sizes: tuple[int, int, int], data: st.DataObject) -> None:
    whole = [(chunk.inputs.tolist(), chunk.targets.tolist(), chunk.first) for chunk in stream(*sizes)]
    seen = data.draw(st.integers(1, len(whole)))
    running, resumed = stream(*sizes), stream(*sizes)
    iterator = iter(running)
    for _ in range(seen):
        next(iterator)
    resumed.load_state_dict(running.state_dict())
    rest = [(chunk.inputs.tolist(), chunk.targets.tolist(), chunk.first) for chunk in resumed]
    assert rest == whole[seen % len(whole) :]


@given(COUNTS, st.integers(1, 5), st.one_of(st.none(), st.integers(3, 10)))
def test_a_vocabulary_counts_every_token_and_ranks_its_words(
    counts: dict[str, int], min_count: int, max_size: int | None
) -> None:
    own = {word: count for word, count in counts.items() if word not in (EOS, UNK)}
    assume(any(count >= min_count for count in own.values()))
    vocabulary = VocabularyRule(min_count, max_size).build(Counter(counts))
    assert sum(vocabulary.counts) == sum(counts.values())
    assert vocabulary.counts == sorted(vocabulary.counts, reverse=True)
    assert len(vocabulary) == len(set(vocabulary.words)) <= (max_size or len(counts) + 2)
    kept = {word: counts[word] for word in vocabulary.words if word not in (EOS, UNK)}
    dropped = {word: count for word, count in own.items() if word not in kept}
    assert all(count >= min_count for count in kept.values())
    assert max(dropped.values(), default=0) <= max(min(kept.values()), min_count - 1)
    ids = vocabulary.encode([*counts, "never seen"])
    assert vocabulary.decode(ids) == [
        word if word in vocabulary.index else UNK for word in [*counts, "never seen"]
    ]
    copy = Vocabulary.from_state(vocabulary.state())
    assert (copy.words, copy.counts, copy.eos_id) == (vocabulary.words, vocabulary.counts, vocabulary.eos_id)


@given(COUNTS)
def test_a_closed_vocabulary_loses_nothing(counts: dict[str, int]) -> None:
    assume(UNK not in counts)
    vocabulary = VocabularyRule(unk=False).build(Counter(counts))
    assert vocabulary.decode(vocabulary.encode(counts)) == list(counts)
    with pytest.raises(ValueError, match="is none of the"):
        vocabulary.encode(["never seen"])


@given(st.lists(LINES, max_size=6), st.sampled_from(["word", "char"]))
def test_text_that_is_cut_and_joined_is_the_text_but_for_its_blanks(lines: list[str], unit: str) -> None:
    assume(not any(EOS in line for line in lines))
    tokenizer = Tokenizer(unit, eos=True)
    text = tokenizer.join([token for line in lines for token in tokenizer.tokens(line)])
    expected = [" ".join(line.split()) if unit == "word" else line.rstrip() for line in lines]
    assert text == "".join(f"{line}\n" for line in expected)


@given(LINES, st.sampled_from(["word", "char", "english"]), st.booleans())
def test_tokens_are_not_empty_and_hold_no_white_space(line: str, unit: str, lowercase: bool) -> None:
    for token in Tokenizer(unit, eos=False, lowercase=lowercase).tokens(line):
        assert token
        assert unit == "char" or token.split() == [token]


@given(
    st.lists(LINES, min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["word", "char"]),
)
def test_the_tokens_of_a_file_are_those_of_its_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, mark: bool, unit: str
) -> None:
    assume(not lines[0].startswith("\ufeff"))
    folder: Path = tmp_path_factory.mktemp("lines")
    (folder / "text").write_bytes(("\ufeff" * mark + "".join(line + end for line in lines)).encode())
    tokenizer = Tokenizer(unit, eos=True)
    corpus = TextFiles({"train": folder / "text"}, tokenizer, VocabularyRule(), folder)
    found = [token for block in corpus.tokens("train") for token in block]
    assert found == [token for line in lines for token in tokenizer.tokens(line)]
