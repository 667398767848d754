import random
from pathlib import Path

import pytest

from hornn.data.lines import read_lines
from hornn.data.tokenizer import ArpaTokenizer, Tokenizer
from hornn.data.vocabulary import EOS


def test_words() -> None:
    tokenizer = Tokenizer("word", eos=True)
    assert tokenizer.tokens(" The <unk> fell N %\t") == ["The", "<unk>", "fell", "N", "%", EOS]
    assert tokenizer.tokens("") == [EOS]
    assert Tokenizer("word", eos=False).tokens("") == []
    assert tokenizer.join(["a", "b", EOS, "c"]) == "a b\nc"


def test_a_no_break_space_is_part_of_a_word_of_an_arpa_file() -> None:
    assert ArpaTokenizer().tokens("le 10\u00a0000 \u00a0\r") == ["le", "10\u00a0000", "\u00a0", EOS]


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
        ("N-4 or n-4", "N-N or n-4"),
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
    with pytest.raises(ValueError, match="unit must be one of word, char, english, got 'byte'"):
        Tokenizer("byte", eos=True)


ALPHABET = [*"ab\u03a3\u03c3\u0130\u00aaN1.,'-()", "\u5b57", "\u00ad", "\U0001f600", "<unk>", "<eos>"]
BLANKS = [" ", " ", "\t", "\r", "\u2028", "\u00a0", "\n"]


@pytest.mark.each(2)
@pytest.mark.parametrize("unit", ["word", "char", "english", "arpa"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_pieces_of_a_line_give_the_tokens_of_the_line(tmp_path: Path, unit: str, lowercase: bool) -> None:
    """A capital sigma becomes another letter at the end of a word, a dotted capital I becomes two."""
    draw = random.Random(0)
    path = tmp_path / "text.txt"
    tokenizer = ArpaTokenizer() if unit == "arpa" else Tokenizer(unit, eos=True, lowercase=lowercase)
    for case in range(300):
        text = "".join(
            draw.choice(ALPHABET if draw.random() < 0.7 else BLANKS) for _ in range(draw.randint(1, 40))
        )
        path.write_text(text, encoding="utf-8", newline="")
        lines = text.split("\n")[: None if text[-1] != "\n" else -1]
        expected = [tokenizer.tokens(line) for line in lines]
        for size in (1, 2, 3, 5, 9, 1000):
            found: list[list[str]] = [[]]
            for tokens, ends in tokenizer.blocks(read_lines(path, size)):
                found[-1] += tokens
                found += [[]] if ends else []
            assert found == [*expected, []], (case, size, text)


def test_pieces_do_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a " * 5000, encoding="utf-8")
    for unit in ("word", "char"):
        assert (
            max(len(tokens) for tokens, _ in Tokenizer(unit, eos=True).blocks(read_lines(path, 100))) <= 101
        )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_a_byte_order_mark_and_bytes_that_are_not_utf8_in_pieces(tmp_path: Path, size: int) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbfa\xc3\xa4\nb")
    assert "".join(text + "|" * ends for text, ends in read_lines(path, size)) == "a\xe4|b|"
    for content, byte, offset in (
        (b"ab\xc3", 0xC3, 2),
        (b"ab\xc3\nd", 0xC3, 2),
        (b"\xef\xbb\xbf\xe4\xb8a", 0xE4, 3),
    ):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=f"is not UTF-8: byte {byte:#04x} at offset {offset}, line 1: convert"
        ):
            list(read_lines(path, size))
    for content in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is empty"):
            list(read_lines(path, size))
