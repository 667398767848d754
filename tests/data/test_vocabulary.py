from collections import Counter

import pytest

from hornn.data.vocabulary import EOS, UNK, Vocabulary, VocabularyRule


def build(text: str, **rule) -> Vocabulary:
    return VocabularyRule(**rule).build(Counter(text.split()))


def test_words_fall_in_count_and_ties_are_alphabetical() -> None:
    vocabulary = build("b a b c a d <eos> <eos> <eos>")
    assert vocabulary.words == [EOS, "a", "b", "c", "d", UNK]
    assert vocabulary.counts == [3, 2, 2, 1, 1, 0]
    assert vocabulary.eos_id == 0
    assert vocabulary.unk_id == 5


@pytest.mark.parametrize(("rule", "words"), [({"min_count": 2}, {"a", "b"}), ({"max_size": 3}, {"a"})])
def test_dropped_words_count_as_unknown(rule: dict, words: set[str]) -> None:
    text = "a a a b b c d <unk>"
    vocabulary = build(text, **rule)
    assert set(vocabulary.words) == words | {EOS, UNK}
    assert sum(vocabulary.counts) == len(text.split())
    assert vocabulary.counts == sorted(vocabulary.counts, reverse=True)
    assert vocabulary.decode(vocabulary.encode(["a", "c", "never seen"])) == ["a", UNK, UNK]


def test_special_words_of_the_text_are_the_special_words() -> None:
    vocabulary = build("a <unk> <unk> <eos>")
    assert vocabulary.words == [UNK, EOS, "a"]
    assert vocabulary.counts == [2, 1, 1]


def test_closed_vocabulary_refuses_the_unknown() -> None:
    vocabulary = build("a b", unk=False)
    assert vocabulary.unk_id is None
    assert len(vocabulary) == 3
    with pytest.raises(ValueError, match="'c' is none of the 3 symbols"):
        vocabulary.encode(["a", "c"])


def test_state_round_trip() -> None:
    vocabulary = build("a b a <eos>")
    copy = Vocabulary.from_state(vocabulary.state())
    assert (copy.words, copy.counts, copy.index) == (vocabulary.words, vocabulary.counts, vocabulary.index)


def test_type_of_the_ids() -> None:
    words = [EOS, *map(str, range(2**16))]
    assert Vocabulary(words[: 2**16], [1] * 2**16).dtype == "uint16"
    assert Vocabulary(words, [1] * len(words)).dtype == "int32"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"min_count": 0}, "data.min_count must be a whole number >= 1, got 0"),
        ({"max_size": 2}, r"data\.max_size must be null or a whole number >= 3 \(.*\), got 2"),
        ({"min_count": "x"}, "data.min_count must be a whole number >= 1, got 'x'"),
        ({"min_count": 9}, "no word occurs data.min_count=9 times"),
    ],
)
def test_impossible_rules(rule: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build("a b", **rule)
