import pytest

from hornn.data.tokenizer import Tokenizer
from hornn.data.vocabulary import EOS


def test_words() -> None:
    tokenizer = Tokenizer("word", eos=True)
    assert tokenizer.tokens(" The <unk> fell N %\t") == ["The", "<unk>", "fell", "N", "%", EOS]
    assert tokenizer.tokens("") == [EOS]
    assert Tokenizer("word", eos=False).tokens("") == []
    assert tokenizer.join(["a", "b", EOS, "c"]) == "a b\nc"


def test_characters_keep_their_blanks_but_those_at_the_end() -> None:
    tokenizer = Tokenizer("char", eos=True)
    assert tokenizer.tokens(" a <b \r") == [" ", "a", " ", "<", "b", EOS]


def test_lower_case() -> None:
    assert Tokenizer("word", eos=False, lowercase=True).tokens("The CAT") == ["the", "cat"]
    assert Tokenizer("char", eos=False, lowercase=True).tokens("Ab") == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("Don't stop, it's built-in.", "don't stop , it's built-in ."),
        ("Since 3.11, 2,000 of 0x1F and 2nd.", "since N , N of N and N ."),
        ("A 3-tuple in utf-8 of os.path()...", "a N-tuple in utf-8 of os.path () ..."),
        ('The "x" (or y) -- e.g. __init__!', 'the " x " ( or y ) -- e.g . __init__ !'),
        ("N <unk> Ünï ²", "N <unk> ünï ²"),
    ],
)
def test_english(line: str, tokens: str) -> None:
    assert Tokenizer("english", eos=False).tokens(line) == tokens.split()


@pytest.mark.parametrize(
    "text",
    [
        "don't stop, it's built-in.",
        'the "x" (or y) -- see [N] for more; call append() twice...',
        "a N-tuple of <unk>: 'yes', 'no'?",
    ],
)
def test_english_round_trip(text: str) -> None:
    tokenizer = Tokenizer("english", eos=True)
    assert tokenizer.join(tokenizer.tokens(text)) == text + "\n"


@pytest.mark.parametrize("unit", ["word", "char", "english"])
def test_lines_round_trip(unit: str) -> None:
    tokenizer = Tokenizer(unit, eos=True)
    lines = ["the cat sat", "", "it purred"]
    tokens = [token for line in lines for token in tokenizer.tokens(line)]
    assert tokenizer.join(tokens) == "the cat sat\n\nit purred\n"
    assert Tokenizer.from_state(tokenizer.state()) == tokenizer


def test_unknown_unit() -> None:
    with pytest.raises(ValueError, match="'byte'; allowed: word, char, english"):
        Tokenizer("byte", eos=True)
