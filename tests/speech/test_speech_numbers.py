"""The numbers of speech by hand: word errors, grammar, frequencies and prior of states, speakers, shares of staying."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hornn.speech import graphs
from hornn.speech.corpus import read_corpus
from hornn.speech.data import SpeechData
from hornn.speech.features import normalise, normalise_speakers
from hornn.speech.gmm import FLOOR, STAY, equal_alignment, fewest_frames, staying
from hornn.speech.gmm_counts import GmmCounts, Utterances
from hornn.speech.grammar import estimate_bigram
from hornn.speech.lexicon import make_lexicon
from hornn.speech.prepared import content_of
from speech.equal import train_equal
from speech.tiny import write_corpus


def data_of(folder: Path) -> SpeechData:
    data = SpeechData(folder, folder.parent / "cache", train_equal, 5, (2, 20, 3))
    data.prepare_data()
    data.setup()
    return data


def test_word_errors_are_of_the_test_set_by_the_scale_of_validation(tmp_path: Path) -> None:
    """Of utterances of two speakers by turns; validation and test would choose other scales, each grammar its own."""
    folder = write_corpus(tmp_path / "tiny")
    fileids = folder / "etc" / "tiny_test.fileids"
    (folder / "wav" / "test" / "fay").mkdir()
    for name in ("eve-1", "eve-4"):
        fileids.write_text(fileids.read_text().replace(f"eve/{name}", f"fay/{name}"))
        (folder / "wav" / "test" / "eve" / f"{name}.wav").rename(folder / f"wav/test/fay/{name}.wav")
    data = data_of(folder)
    right = {"shipped": 0.2, "bigram": 0.08}

    def log_probs(split: str) -> list[np.ndarray]:
        """The number of the utterance, in hundreds; nothing where no frame is named yet."""
        return [
            np.concatenate(
                [np.full((5, 15), np.nan), np.full((len(each), 15), 1e4 * (split == "test") + 100 * number)]
            )
            for number, each in enumerate(data.prepared.states[split])
        ]

    def hear(scale: float, scores: list[np.ndarray], grammar: str) -> list[list[str]]:
        found = []
        for place in (int(each.mean()) // 100 for each in scores):
            split = "test" if place >= 100 else "valid"
            well = scale == (right[grammar] if split == "valid" else 0.05) or (split, grammar) == (
                "test",
                "bigram",
            )
            found.append(list(data.said(split)[place % 100]) if well else [])
        return found

    data.__dict__["recogniser"] = SimpleNamespace(hear=hear)
    found = data.judge(log_probs).figures
    assert {end: found[f"acoustic_scale{end}"] for end in ("", "_bigram")} == {"": 0.2, "_bigram": 0.08}
    assert (found["valid_wer"], found["test_wer"], found["test_wer_bigram"]) == (0, 100, 0)
    assert (found["test_errors"], found["test_errors_bigram"]) == ("2 3 1 1 4", "0 0 0 0 0")
    assert (found["test_words"], found["test_speakers"]) == ("2 3 1 1 4", "0 1 0 0 1")
    assert [each["id"] for each in found["utterances"]] == ["eve-0", "eve-1"]


def test_the_bigram_is_of_what_is_said_in_training(tmp_path: Path) -> None:
    data = data_of(write_corpus(tmp_path / "tiny"))
    assert data.bigram == estimate_bigram(data.lexicon, data.said("train"))
    assert data.bigram != estimate_bigram(data.lexicon, [*data.said("train"), *data.said("test")])


def test_state_frequencies_by_hand(tmp_path: Path) -> None:
    data = data_of(write_corpus(tmp_path / "tiny"))
    states = {split: np.concatenate(data.prepared.states[split]) for split in ("train", "valid", "test")}
    p = (np.bincount(states["train"], minlength=15) + 1) / (len(states["train"]) + 15)
    (found,) = data.baselines().values()
    for split in ("valid", "test"):
        assert found[f"{split}_nll"] == pytest.approx(-np.log(p[states[split]]).mean())
        assert found[f"{split}_accuracy"] == pytest.approx((states[split] == p.argmax()).mean())


def test_who_says_it_and_for_which_split_decides_what_is_prepared(tmp_path: Path) -> None:
    """Features are normalised by speaker, and training alone trains what aligns."""
    corpus = read_corpus(write_corpus(tmp_path / "tiny"))
    train, valid = corpus.splits["train"], corpus.splits["valid"]
    others = [
        {**corpus.splits, "train": [train[0]._replace(speaker="eve"), *train[1:]]},
        {**corpus.splits, "train": train[:-1], "valid": [train[-1], *valid]},
    ]
    found = {content_of(corpus), *(content_of(corpus._replace(splits=splits)) for splits in others)}
    assert len(found) == 3


def test_speakers_are_normalised_over_all_that_they_say() -> None:
    rng = np.random.default_rng(0)
    features = {name: number + rng.standard_normal((6, 2)) for number, name in enumerate(("a0", "b0", "a1"))}
    found = normalise_speakers(features, {name: name[0] for name in features})
    for names in (["a0", "a1"], ["b0"]):
        for name, each in zip(names, normalise([features[name] for name in names]), strict=True):
            np.testing.assert_array_equal(found[name], each)
    assert found["a0"].mean() < -0.1


def test_the_prior_of_states_is_their_share_in_training() -> None:
    model = {
        "sizes": np.array([1, 1]),
        "weights": np.ones(2),
        "means": np.zeros((2, 39)),
        "inverse_variances": np.ones((2, 39)),
        "stay": np.full(2, 0.5),
    }
    train, valid = (
        Utterances([np.zeros((4, 39))], [np.array(states)], model) for states in ([0, 0, 0, 1], [1] * 4)
    )
    counts = GmmCounts(2)
    counts.fit(train, valid)
    np.testing.assert_allclose(np.exp(-counts.score(train)), [4 / 6, 4 / 6, 4 / 6, 2 / 6])
    assert counts.hits(train) == (3, 4)


def test_shares_of_staying_by_hand() -> None:
    """The last frame of an utterance leaves its state."""
    found = staying([np.array([0, 0, 0, 1]), np.array([1, 1])], 3)
    assert found.tolist() == pytest.approx([2 / 3, 1 / 3, STAY])
    assert staying([np.array([0])], 1).tolist() == [FLOOR]


def test_the_weights_of_staying_and_going_on_by_hand() -> None:
    lexicon = make_lexicon([["A", "AH"]])
    stay = np.linspace(0.1, 0.6, lexicon.number)
    graph = graphs.words_graph(lexicon, stay, 0.1, {"A"})
    arcs = [arc for arc in graphs.arcs_of(graph) if isinstance(arc, graphs.Arc)]
    loops = {arc.state - 1: arc.cost for arc in arcs if arc.source == arc.target}
    assert [loops[state] for state in range(6)] == pytest.approx((-0.1 * np.log(stay)).tolist(), rel=1e-4)
    inner = {
        arc.state - 1: arc.cost
        for arc in arcs
        if arc.source != arc.target and arc.state and (arc.state - 1) % 3
    }
    for state, cost in inner.items():
        assert cost == pytest.approx(-0.1 * np.log(1 - stay[state - 1]), rel=1e-4)


def test_words_need_a_frame_for_each_state() -> None:
    """Of their shortest pronunciations; the first ones are cut alike where there is room for them, without pauses."""
    lexicon = make_lexicon([["A", "AH", "EY"], ["A", "AH"], ["NO", "N", "OW"]])
    assert fewest_frames(lexicon, ["A", "NO", "A"]) == 3 * (1 + 2 + 1)
    assert len(equal_alignment(lexicon, 12, ["A", "NO"])) == 12
    phones = [lexicon.phones.index(name) for name in ("AH", "N", "OW")]
    short = np.array(lexicon.states([0, *phones, 0]))
    np.testing.assert_array_equal(
        equal_alignment(lexicon, 11, ["A", "NO"]), short[np.arange(11) * len(short) // 11]
    )
    with pytest.raises(ValueError, match="8 frames are too few for the words 'A NO'"):
        equal_alignment(lexicon, 8, ["A", "NO"])
    states = equal_alignment(lexicon, 18, ["A", "NO"])
    phones = [lexicon.phones.index(name) for name in ("AH", "EY", "N", "OW")]
    np.testing.assert_array_equal(states, lexicon.states([0, *phones, 0]))
