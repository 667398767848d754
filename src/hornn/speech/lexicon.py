"""How words sound: the phones of each word, and the states of each phone."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hornn.shown import shown
from hornn.speech.corpus import lines_of, word_of

SILENCE = "SIL"
STATES = 3  # of a phone's hidden Markov model: its beginning, middle and end


class Lexicon(NamedTuple):
    """Words and their pronunciations; state k of phone p has the number 3 p + k, and silence is phone 0."""

    words: tuple[str, ...]  # in the order of their names, each once
    phones: tuple[str, ...]  # silence first
    pronunciations: tuple[tuple[int, tuple[int, ...]], ...]  # a word and its phones, by their places above

    @property
    def number(self) -> int:
        """How many states there are."""
        return STATES * len(self.phones)

    def states(self, phones: Iterable[int]) -> list[int]:
        """The states that these phones go through."""
        return [STATES * phone + k for phone in phones for k in range(STATES)]

    def spelled(self) -> list[list[str]]:
        """Each pronunciation as its word and its phones, in plain values."""
        return [[self.words[w], *(self.phones[p] for p in phones)] for w, phones in self.pronunciations]


def read_lexicon(path: Path) -> Lexicon:
    """The lexicon of a dictionary: on each line a word and its phones, `WORD(2)` for a second way to say it.

    Raises ValueError for a file that cannot be read, and for a word without phones.
    """
    entries = [line.split() for line in lines_of(path)]
    try:
        return make_lexicon([[word_of(entry), *phones] for entry, *phones in entries])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def make_lexicon(spelled: Sequence[Sequence[str]]) -> Lexicon:
    """The lexicon of pronunciations, each a word and its phones; one that comes twice counts once.

    Raises ValueError for a word without phones, one that is said by silence alone, a name that cannot be shown, and
    where there are no words.
    """
    for word, *phones in spelled:
        if unfit := [name for name in (word, *phones) if not is_name(name)]:
            raise ValueError(
                f"{unfit[0]!r} has characters that cannot be shown: give the word or phone another name"
            )
        if not phones or SILENCE in phones:
            raise ValueError(
                f"the word {word!r} needs phones, which are not {SILENCE}: write them behind the word"
            )
    if not spelled:
        raise ValueError("the dictionary has no words: give it some")
    words = sorted({word for word, *_ in spelled})
    phones = [SILENCE, *sorted({phone for _, *said in spelled for phone in said})]
    word_ids, phone_ids = ({name: i for i, name in enumerate(names)} for names in (words, phones))
    entries = [(word_ids[word], tuple(phone_ids[phone] for phone in said)) for word, *said in spelled]
    return Lexicon(tuple(words), tuple(phones), tuple(dict.fromkeys(entries)))


def is_name(value: Any) -> bool:
    """Whether a value can be a word or a phone of a dictionary, and be shown."""
    return type(value) is str and value.split() == [value] and shown(value) == value
