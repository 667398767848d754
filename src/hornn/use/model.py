"""A trained model in Python: `hornn.load` and what can be done with what it gives."""

import errno
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from hornn.baselines.cache import require_lengths
from hornn.card import looked_up_in
from hornn.checks import require_positive, require_seed, require_string, require_truth
from hornn.data.text import encode, encode_text
from hornn.metrics import perplexity
from hornn.use.checkpoints import load_ready
from hornn.use.figures import require_probabilities
from hornn.use.growing import GrowingText, tokens_of
from hornn.use.scorers import Mixture, NetworkScorer, Scorer
from hornn.use.scoring import Score, sample

SEQ_LEN = 100  # tokens that a network reads at a time; no score depends on it
BATCH_SIZE = 64  # texts that are scored side by side; likewise
ROUNDING = 0.01  # nats a token, by which numbers of few digits make a text likelier than 1

Encoded = tuple[np.ndarray, np.ndarray, np.ndarray]  # what `encode` gives
TEMPERATURE = 0.8  # of texts, unless another one is asked for


class TokenScores(NamedTuple):
    """The tokens of one text: as they are written, whether each is read as `<unk>`, ln P of each."""

    texts: list[str]
    unknown: np.ndarray
    log_probs: np.ndarray


class UnreadableText(ValueError):
    """A text has a token that is unknown to a vocabulary without `<unk>`, or a score that no model of text can give.

    place: how many texts come before it. reason: what is wrong with it.
    """

    def __init__(self, text: str, reason: str, place: int) -> None:
        super().__init__(f"{text}: {reason}")
        self.reason, self.place = reason, place


class Model:
    """A trained language model, whatever it is inside: a network, counts, or several models mixed.

    Texts are cut into tokens as the training text was. A token outside the vocabulary is read as `<unk>`.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    def __repr__(self) -> str:
        return f"<hornn.Model {self.scorer.name}: {len(self.scorer.vocabulary):,} words>"

    @property
    def network(self) -> torch.nn.Module:
        """The network itself, a `hornn.network.SequenceModel`. ValueError for a model of another kind."""
        if isinstance(self.scorer, Mixture):
            raise ValueError(
                f"a mixture of {len(self.scorer.parts)} models is no network: load one of them alone"
            )
        if not isinstance(self.scorer, NetworkScorer):
            raise ValueError(f"{self.scorer.name} is no network")
        return self.scorer.network

    @property
    def words(self) -> list[str]:
        """The vocabulary, by id."""
        return list(self.scorer.vocabulary.words)

    def perplexity(self, text: str | Path) -> float:
        """exp of the mean of -ln P over the tokens of a text, or of a text file, each token given all before it.

        Raises ValueError for a text without tokens, FileNotFoundError for a path that leads nowhere.
        """
        ids, _, _ = self.encode(text)
        mean = float(self.scorer.score(ids).mean())
        require_probabilities(mean, self.scorer.name)
        return perplexity(mean)

    def score(
        self, texts: Iterable[str], per_token: bool = False, batch_size: int = BATCH_SIZE
    ) -> list[Score]:
        """The score of each text, read by itself from the initial state.

        batch_size: texts that a network reads side by side; more are faster and take more memory. ValueError for one
        string instead of several.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ValueError(f"score takes a list of texts, got {texts!r:.80}: put one text into a list")
        require_truth(per_token=per_token)
        return [
            Score(
                float(scores.log_probs.sum()),
                len(scores.texts),
                int(scores.unknown.sum()),
                tuple(scores.log_probs.tolist()) if per_token else None,
                tuple(scores.texts) if per_token else None,
                tuple(scores.unknown.tolist()) if per_token else None,
            )
            for scores in self.score_tokens(texts, batch_size)
        ]

    def score_tokens(
        self, texts: Iterable[str], batch_size: int, name: str = "text", first: int = 1
    ) -> list[TokenScores]:
        """What `score` is made of, for each text. name, first: what an error calls the texts, the number of the first.

        UnreadableText for the first text with an unknown token, and then for the first with a score that is none.
        """
        require_positive(batch_size=batch_size)
        vocabulary, tokenizer = self.scorer.vocabulary, self.scorer.tokenizer
        tokens, ids = [], []
        for number, text in enumerate(texts, start=first):
            require_string(f"{name} {number}", text)
            tokens.append([token for line in split_lines(text) for token in tokenizer.tokens(line)])
            try:
                ids.append(np.array(vocabulary.encode(tokens[-1]), dtype=vocabulary.dtype))
            except ValueError as error:
                raise UnreadableText(f"{name} {number}", str(error), number - first) from None
        lengths = np.array([len(each) for each in ids], dtype=np.int64)
        if not lengths.sum():
            return [TokenScores([], np.zeros(0, dtype=bool), np.zeros(0)) for _ in tokens]
        log_p = -self.scorer.score_lines(np.concatenate(ids), lengths, batch_size)
        scores = np.split(log_p, lengths.cumsum()[:-1])
        for place, each in enumerate(scores):
            mean = -float(each.mean()) if len(each) else 0.0
            if not -ROUNDING <= mean < math.inf:
                try:
                    require_probabilities(mean, self.scorer.name)
                except ValueError as error:
                    raise UnreadableText(f"{name} {first + place}", str(error), place) from None
        unknown = [vocabulary.are_unknown(each) for each in ids]
        return list(map(TokenScores, tokens, unknown, scores))

    def generate(
        self,
        prompt: str = "",
        length: int = 50,
        temperature: float = TEMPERATURE,
        top_k: int | None = None,
        top_p: float | None = None,
        num_samples: int = 1,
        seed: int = 1,
        allow_unk: bool = False,
    ) -> list[str]:
        """`num_samples` continuations of `prompt` by `length` tokens each, the prompt included.

        Each token is drawn from P(w)^(1/temperature), renormalised; temperature 0 takes the likeliest one. `top_k`
        keeps that many of the likeliest tokens; `top_p` in (0, 1] then the fewest whose probabilities reach that sum.
        Without `allow_unk` no `<unk>` is written, and an end of a line only where the training text had one.
        Raises ValueError for an argument out of its range, and where no token is left to write.
        """
        require_positive(num_samples=num_samples)
        seed = require_seed(seed)
        require_truth(allow_unk=allow_unk)
        tokens, vocabulary = self.prompt_tokens(prompt), self.scorer.vocabulary
        banned = [] if allow_unk or vocabulary.unk_id is None else [vocabulary.unk_id]
        if not (self.scorer.tokenizer.eos or vocabulary.counts[vocabulary.eos_id]):
            banned.append(vocabulary.eos_id)  # which training never showed
        generator = torch.Generator().manual_seed(seed)
        reading = self.scorer.begin(vocabulary.encode(tokens))
        drawn = (
            sample(reading, length, temperature, generator, banned, top_k, top_p) for _ in range(num_samples)
        )
        return [self.scorer.tokenizer.join([*tokens, *vocabulary.decode(each)]) for each in drawn]

    def read(self, text: str = "") -> GrowingText:
        """A text that is to grow, read so far: all its lines but the last have ended."""
        return GrowingText(
            self.scorer, self.scorer.begin(self.scorer.vocabulary.encode(self.prompt_tokens(text)))
        )

    def next_words(self, prompt: str = "", k: int = 10) -> list[tuple[str, float]]:
        """The `k` likeliest tokens after `prompt`, or all, each with its probability, the likeliest first.

        Raises ValueError for a model without finite probabilities.
        """
        return self.read(prompt).next_words(k)

    def unknown(self, prompt: str) -> list[str]:
        """The tokens of a prompt that the vocabulary lacks."""
        return [token for token in self.prompt_tokens(prompt) if token not in self.scorer.vocabulary.index]

    def prompt_tokens(self, prompt: str) -> list[str]:
        """The tokens of a text that goes on: all its lines but the last have ended."""
        return tokens_of(self.scorer.tokenizer, "prompt", prompt)

    def encode(self, text: str | Path) -> Encoded:
        """The ids of a text, whether each is read as `<unk>`, and the number of tokens of each line, as arrays.

        text: or a text file, as a Path or a string that is the name of a file. The ids are uint16, or int32 for more
        than 65,536 words: `ids.astype("int64")` is what torch works with.
        """
        require_string("text", text, Path)
        if text == "":
            raise ValueError("the text is empty: give one that has words")
        if isinstance(text, Path) or names_a_file(text):
            try:
                return encode_text(Path(text), self.scorer.tokenizer, self.scorer.vocabulary)
            except FileNotFoundError as error:
                if isinstance(text, str):
                    raise FileNotFoundError(f"{error}; a text of one word ends in \\n") from None
                raise
        lines = ((line, True) for line in split_lines(text))
        return encode(lines, self.scorer.tokenizer, self.scorer.vocabulary, "the text")


def split_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def names_a_file(text: str) -> bool:
    """Whether a string names a file, or looks as if it should: one word with a slash, or that ends in .txt."""
    if not text or "\n" in text or "\0" in text:
        return False
    looks = not any(letter.isspace() for letter in text) and ("/" in text or text.endswith(".txt"))
    try:
        return Path(text).is_file() or looks
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # no file has a name of more than 255 bytes
            raise
        return False


def load(
    path: str | Path | Sequence[str | Path],
    fit_on: str | Path | None = None,
    device: str | torch.device = "cpu",
    config_dir: str | Path | None = None,
    cache: int | Sequence[int] | None = None,
) -> Model:
    """The model of a checkpoint or of an ARPA file; of several, their linear interpolation.

    The weights of an interpolation suit the text, or text file, `fit_on`, which no model was trained on; they are equal
    without `fit_on`. device: of networks, cpu or cuda. config_dir: a folder of your own choices, such as
    model/mine.yaml, that is read before conf, as --config-dir is. cache: a unigram cache of so many last tokens of a
    text, or several, mixed in under a weight from `fit_on`. Raises FileNotFoundError or ValueError for a file that is
    absent, damaged or of another program, and ValueError for models of different vocabularies.
    """
    paths = [path] if isinstance(path, str | Path) else list(path) if isinstance(path, Iterable) else []
    if not paths or not all(isinstance(each, str | Path) for each in paths):
        raise ValueError(f"load takes a path, or several, got {path!r:.80}")
    if len({Path(each).resolve() for each in paths}) < len(paths):
        raise ValueError("load names a model twice: name each once")
    lengths = () if cache is None else require_lengths("cache", cache)
    if lengths and fit_on is None:
        raise ValueError("the weight of a cache follows from a text: give fit_on")
    with looked_up_in(config_dir):
        scorers = load_ready([Path(each) for each in paths], device, SEQ_LEN, "fp32")
    if len(scorers) == 1 and not lengths:
        if fit_on is not None:
            raise ValueError(
                "fit_on chooses the weights of several models, got one: leave it out, or give a cache"
            )
        return Model(scorers[0])
    mixture = Mixture(scorers, lengths)
    model = Model(mixture)
    if fit_on is not None:
        mixture.fit(model.encode(fit_on)[0])
    return model
