"""Utterances as separate sequences: from the features of the frames, the network names the state of each frame."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hornn.checks import in_home, require_file_name, require_range
from hornn.data.base import IGNORE, SPLITS, Judgement
from hornn.data.content import CHANGED
from hornn.data.download import checksum
from hornn.data.sequences import Example, SequenceData
from hornn.metrics import FRAMES
from hornn.result import UTTERANCES
from hornn.speech import gmm
from hornn.speech.corpus import Recording, SpeechCorpus, read_corpus
from hornn.speech.features import BANDS, cepstra, normalise_speakers, read_wave
from hornn.speech.gmm_counts import Utterances
from hornn.speech.grammar import BIGRAM, SHIPPED, estimate_bigram, read_shipped
from hornn.speech.lexicon import Lexicon, read_lexicon
from hornn.speech.packages import require_packages
from hornn.speech.prepared import Prepared, SpeechCache, Train
from hornn.speech.recogniser import Recogniser, acoustic_scores, choose_scale
from hornn.speech.release import AN4, Release, fetch_release
from hornn.speech.word_errors import aligned, compare, errors_of

GRAMMARS = {SHIPPED: "", BIGRAM: f"_{BIGRAM}"}  # grammar -> how its keys in a result end
MOST_DELAY = 1000  # frames
SHOWN = 4  # utterances
SPEAKERS = 3  # of the test set: what is heard in the first utterance of each is kept in a result


class SpeechData(SequenceData):
    """Frames of speech, and at each the state of a hidden Markov model that an alignment found.

        x_t = f_t (80,),   y_t = s_{t-delay}, one of V states

    f_t is frame t of an utterance of N frames, mean and variance normalised for each speaker; after the last frame it
    is 0. The network has seen `delay` frames of the future when it names a state, so a sequence has N + delay steps;
    the first `delay` of them have no target. Every frame of every utterance is a target exactly once. Validation takes
    whole speakers (`hornn.speech.corpus`).

    train: what trains the model that aligns. release: where the corpus is published and what it holds; None for one of
    your own. Raises ValueError for a delay that is not from 0 to 1,000, and for streams of chunks that are not longer
    than the delay.
    """

    units = FRAMES
    predicts = "classes"
    counted = "states"
    input_width = BANDS

    def __init__(
        self,
        folder: Path,
        cache_dir: Path,
        train: Train,
        delay: int,
        sizes: tuple[int, int, int],
        release: Release | None = None,
    ) -> None:
        super().__init__(*sizes)
        holds = 0 <= delay <= MOST_DELAY
        require_range("data.delay", delay, f"from 0 to {MOST_DELAY:,} frames", holds)
        self.folder, self.cache_dir = folder, cache_dir
        self.train = train
        self.delay = delay
        self.release = release
        self.name = folder.name
        self._corpus: SpeechCorpus | None = None
        self._prepared: Prepared | None = None

    @property
    def corpus(self) -> SpeechCorpus:
        if self._corpus is None:
            self._corpus = read_corpus(self.folder)
        return self._corpus

    @property
    def prepared(self) -> Prepared:
        if self._prepared is None:
            raise RuntimeError("the frames are not there yet: call prepare_data() and then setup()")
        return self._prepared

    def prepare_data(self) -> None:
        require_packages()
        if self.release is not None:
            fetch_release(self.folder, self.release)
        cache = SpeechCache(self.cache_dir, self.corpus, self.name)
        if self.release is not None:
            self.release.verify(self.corpus, cache.content)
        self._prepared = cache.read()
        if self._prepared is None:
            cache.write(self.train)

    def setup(self) -> None:
        if self._prepared is None:
            self._prepared = SpeechCache(self.cache_dir, self.corpus, self.name).read()
        if self._prepared is None:
            raise ValueError(f"{self.folder} {CHANGED}")

    @property
    def counts(self) -> list[int]:
        """How many frames of training each state has."""
        states = np.concatenate(self.prepared.states["train"])
        return np.bincount(states, minlength=self.prepared.number).tolist()

    def training_examples(self) -> list[Example]:
        within = self.seq_len > self.delay  # else the first chunk has no target to learn from
        require_range("data.seq_len", self.seq_len, f"above data.delay={self.delay}", within)
        return super().training_examples()

    def examples(self, split: str) -> list[Example]:
        return [
            Example(self.inputs(features), np.concatenate([np.full(self.delay, IGNORE), states]))
            for features, states in zip(
                self.prepared.features[split], self.prepared.states[split], strict=True
            )
        ]

    def inputs(self, features: np.ndarray) -> np.ndarray:
        """Frames (N, 80) -> what the network reads at each step, (N + delay, 80)."""
        return np.pad(features, ((0, self.delay), (0, 0)))

    def whole(self, split: str) -> Utterances:
        """The cepstra are computed anew, because only Gaussian mixtures read them, in the way of their training."""
        recordings = self.corpus.splits[split]
        here = {each.speaker for each in recordings}  # a speaker of training may be in the test set, too
        heard = [each for part in SPLITS for each in self.corpus.splits[part] if each.speaker in here]
        coefficients = normalise_speakers(
            {each.id: cepstra(read_wave(each.path)) for each in heard},
            {each.id: each.speaker for each in heard},
            variance=False,
        )
        states, model = self.prepared.states[split], self.prepared.model
        return Utterances([coefficients[each.id] for each in recordings], states, model)

    def size(self, split: str) -> int:
        return sum(map(len, self.prepared.states[split]))

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "text_checksum": self.prepared.checksum if self.release else self.own_checksum,
            "path": str(self.folder),
            "states": self.prepared.number,
            "utterances": {split: len(self.corpus.splits[split]) for split in SPLITS},
            "speakers": {split: self.speakers(split) for split in SPLITS},
            "words": {split: self.words(split) for split in SPLITS},
            "frames": {split: self.size(split) for split in SPLITS},
        }

    @property
    def own_checksum(self) -> str:
        """The checksum of a corpus of one's own, whose grammar no release vouches for."""
        both = f"{self.prepared.checksum} {checksum(self.corpus.grammar, 'sha256')}"
        return f"sha256:{hashlib.sha256(both.encode()).hexdigest()}"

    def speakers(self, split: str) -> int:
        return len({each.speaker for each in self.corpus.splits[split]})

    def baselines(self) -> dict[str, dict[str, float]]:
        p = np.array(self.counts, dtype=np.float64) + 1
        nats = -np.log(p / p.sum())
        found: dict[str, float] = {}
        for split in ("valid", "test"):
            states = np.concatenate(self.prepared.states[split])
            found[f"{split}_nll"] = float(nats[states].mean())
            found[f"{split}_accuracy"] = float((states == p.argmax()).mean())
        return {"state frequencies": found}

    def judge(self, log_probs: Callable[[str], list[np.ndarray]]) -> Judgement:
        """Word errors in percent on validation and test with each grammar, and the errors of each test utterance.

        The acoustic scale of each grammar is the one with the fewest errors on validation. `utterances` holds what is
        heard in a few, which `first_of_speakers` chooses.
        """
        valid, test = (self.scores(split, log_probs(split)) for split in ("valid", "test"))
        recordings = self.corpus.splits["test"]
        speakers = list(dict.fromkeys(each.speaker for each in recordings))
        found: dict[str, Any] = {
            "test_words": " ".join(str(len(words)) for words in self.said("test")),
            "test_speakers": " ".join(str(speakers.index(each.speaker)) for each in recordings),
        }
        kept: dict[int, dict[str, Any]] = {
            place: {"id": recordings[place].id, "said": " ".join(recordings[place].words), "heard": {}}
            for place in first_of_speakers(recordings, SPEAKERS)
        }
        found[UTTERANCES] = list(kept.values())
        lines = []
        for grammar, end in GRAMMARS.items():
            scale, rate = choose_scale(self.recogniser, grammar, valid, self.said("valid"))
            heard = self.recogniser.hear(scale, test, grammar)
            for place, utterance in kept.items():
                utterance["heard"][grammar] = " ".join(heard[place])
            errors = errors_of(self.said("test"), heard)
            tested = 100 * int(errors.sum()) / self.words("test")
            found |= {
                f"acoustic_scale{end}": scale,
                f"valid_wer{end}": rate,
                f"test_wer{end}": tested,
                f"test_errors{end}": " ".join(map(str, errors)),
            }
            lines.append(f"word errors by the {grammar} grammar: valid {rate:.2f} %, test {tested:.2f} %")
        return Judgement(found, lines)

    def examine(self, split: str, log_probs: Callable[[str], list[np.ndarray]]) -> Judgement:
        """Word errors of a split with each grammar, by the acoustic scale that validation chooses.

        What was heard in the first utterances is shown with the shipped grammar.
        """
        valid = self.scores("valid", log_probs("valid"))
        scores = valid if split == "valid" else self.scores(split, log_probs(split))
        said, names = self.said(split), [each.id for each in self.corpus.splits[split]]
        found: dict[str, Any] = {}
        lines, examples = [], list[str]()
        for grammar, end in GRAMMARS.items():
            scale, _ = choose_scale(self.recogniser, grammar, valid, self.said("valid"))
            heard = self.recogniser.hear(scale, scores, grammar)
            errors = compare(said, heard)
            found |= {f"wer{end}": 100 * errors.wer, f"acoustic_scale{end}": scale}
            lines.append(
                f"word errors by the {grammar} grammar: {100 * errors.wer:.2f} % of {self.words(split):,} words "
                f"({errors.substitutions} substituted, {errors.deletions} deleted, {errors.insertions} inserted); "
                f"acoustic scale {scale:g} by validation"
            )
            examples = examples or aligned(names[:SHOWN], said[:SHOWN], heard[:SHOWN])
        return Judgement(found, [*lines, f"the first utterances by the {SHIPPED} grammar:", *examples])

    def scores(self, split: str, log_probs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """ln p(s | x) - ln p(s) of each utterance, (N, V), from what is said at each step: its last N steps count."""
        counts = self.counts
        return [
            acoustic_scores(each[len(each) - len(states) :], counts)
            for each, states in zip(log_probs, self.prepared.states[split], strict=True)
        ]

    def words(self, split: str) -> int:
        """How many words are said in a split."""
        return sum(map(len, self.said(split)))

    def said(self, split: str) -> list[tuple[str, ...]]:
        """The words of each utterance."""
        return [each.words for each in self.corpus.splits[split]]

    @cached_property
    def recogniser(self) -> Recogniser:
        """What finds words, by the shipped grammar and by a bigram of what is said in training."""
        grammars = {
            SHIPPED: read_shipped(self.corpus.grammar),
            BIGRAM: self.bigram[0],
        }
        return Recogniser(self.lexicon, self.prepared.model["stay"], grammars)

    @cached_property
    def lexicon(self) -> Lexicon:
        return read_lexicon(self.corpus.dictionary)

    @cached_property
    def bigram(self) -> tuple[str, list[str]]:
        """As `estimate_bigram` gives it, of what is said in training."""
        return estimate_bigram(self.lexicon, self.said("train"))

    def remarks(self) -> list[str]:
        return [
            *(f"warning: the {BIGRAM} grammar: {note}" for note in self.bigram[1]),
            *self.unheard(),
        ]

    def unheard(self) -> list[str]:
        """A warning where words are said in test that the shipped grammar of a corpus of one's own lacks."""
        known = set(self.recogniser.grammars[SHIPPED].words)
        lacking = [word for said in self.said("test") for word in said if word not in known]
        if not lacking or self.release:
            return []
        return [
            f"warning: the {SHIPPED} grammar lacks {len(lacking):,} of the {self.words('test'):,} words of test, "
            f"such as {lacking[0]!r}: each is an error; add them to {self.corpus.grammar}"
        ]

    def interface(self) -> dict[str, Any]:
        return {
            "counts": self.counts,
            "input_width": self.input_width,
            "delay": self.delay,
            "recogniser": self.recogniser.plain(),
        }

    def summary(self) -> list[str]:
        sizes = ", ".join(
            f"{split} {self.size(split):,} in {len(self.corpus.splits[split])} utterances "
            f"(speakers: {self.speakers(split)})"
            for split in SPLITS
        )
        return [f"frames of {self.prepared.number} states: {sizes}"]


def first_of_speakers(recordings: Sequence[Recording], speakers: int) -> list[int]:
    """The places of the first utterance of each of the first few speakers."""
    first: dict[str, int] = {}
    for place, recording in enumerate(recordings):
        first.setdefault(recording.speaker, place)
    return list(first.values())[:speakers]


def build_data(
    *,
    root: str,
    cache_dir: str,
    name: str = "an4",
    batch_size: int = 8,
    seq_len: int = 1000,
    eval_batch_size: int = 26,
    delay: int = 5,
    url: str = AN4.url,
) -> SpeechData:
    """Speech in AN4's layout; the keys are explained in conf/data/an4.yaml."""
    require_file_name("data.name", name)
    return SpeechData(
        in_home(root) / name,
        in_home(cache_dir),
        gmm.train,
        delay,
        (batch_size, seq_len, eval_batch_size),
        AN4._replace(url=url) if name == "an4" else None,
    )
