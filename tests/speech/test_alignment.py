"""The hidden Markov models: they align tones to the states of their words, and the same way each time."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hornn.speech import gmm
from hornn.speech.corpus import Recording, read_corpus
from hornn.speech.features import cepstra, normalise, read_wave
from hornn.speech.lexicon import Lexicon, make_lexicon, read_lexicon
from hornn.speech.packages import load
from speech.mixtures import from_arrays, log_densities
from speech.tiny import SECONDS, TONES, WORDS, write_corpus

LEXICON = make_lexicon([[word, *phones.split()] for word, phones in WORDS.items()])


def read(recordings: list[Recording]) -> dict[str, np.ndarray]:
    waves = normalise([cepstra(read_wave(each.path)) for each in recordings], variance=False)
    return {each.id: frames for each, frames in zip(recordings, waves, strict=True)}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    return read_corpus(write_corpus(tmp_path_factory.mktemp("corpus") / "tiny")).splits["train"]


@pytest.fixture(scope="module")
def frames(recordings: list[Recording]) -> Mapping[str, np.ndarray]:
    return read(recordings)


def train(
    recordings: list[Recording], frames: Mapping[str, np.ndarray], lexicon: Lexicon = LEXICON
) -> gmm.Gmm:
    words = {each.id: each.words for each in recordings}
    return gmm.train(frames, words, lexicon, seed=1, iterations=10, gaussians=20)


@pytest.fixture(scope="module")
def trained(recordings: list[Recording], frames: Mapping[str, np.ndarray]) -> gmm.Gmm:
    return train(recordings, frames)


def test_a_dictionary_is_read_with_second_pronunciations(tmp_path: Path) -> None:
    path = tmp_path / "tiny.dic"
    path.write_text("NO  N OW\nA(2)  EY\nA  AH\nA(3)  AH\n")
    lexicon = read_lexicon(path)
    assert lexicon.words == ("A", "NO")
    assert lexicon.phones == ("SIL", "AH", "EY", "N", "OW")
    assert lexicon.spelled() == [["NO", "N", "OW"], ["A", "EY"], ["A", "AH"]]
    assert lexicon.number == 15
    assert lexicon.states([3, 1]) == [9, 10, 11, 3, 4, 5]
    assert make_lexicon(lexicon.spelled()) == lexicon


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("YES\n", "the word 'YES' needs phones"),
        ("YES SIL\n", "the word 'YES' needs phones, which are not SIL"),
        ("\n", "has no words"),
    ],
)
def test_a_dictionary_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.dic"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as raised:
        read_lexicon(path)
    assert str(path) in str(raised.value)


def test_a_path_goes_through_the_states_of_the_words(recordings: list[Recording], trained: gmm.Gmm) -> None:
    for each in recordings:
        states = trained.align(read([each])[each.id], each.words)
        visited = states[np.flatnonzero(np.append(True, np.diff(states) != 0))]
        phones = [LEXICON.phones.index(p) for word in each.words for p in WORDS[word].split()]
        spoken = [state for state in visited.tolist() if state > 2]
        assert spoken == LEXICON.states(phones)


def test_each_phone_is_found_where_its_tone_is(
    recordings: list[Recording], frames: Mapping[str, np.ndarray], trained: gmm.Gmm
) -> None:
    """A frame's loudest tone says which phone it is of; a frame in 6 lies on a border and may go either way."""
    hits = []
    for each in recordings:
        states = trained.align(frames[each.id], each.words)
        wave = read_wave(each.path)
        for frame, state in enumerate(states.tolist()):
            part = wave[frame * 160 : frame * 160 + 400]
            spectrum = np.abs(np.fft.rfft(part * np.hanning(400)))
            loudest = spectrum.argmax() * 40.0  # Hz
            near = {phone: abs(np.log(max(loudest, 1) / tone)) for phone, tone in TONES.items()}
            phone = min(near, key=near.__getitem__) if spectrum.max() > 50_000 else "SIL"
            hits.append(LEXICON.phones[state // 3] == phone)
    assert len(hits) > 100 * SECONDS * 2 * len(recordings)
    assert np.mean(hits) > 5 / 6


def test_training_again_gives_the_same_bits(
    recordings: list[Recording], frames: Mapping[str, np.ndarray], trained: gmm.Gmm
) -> None:
    again, first = train(recordings, frames).arrays(), trained.arrays()
    assert first["sizes"].sum() > LEXICON.number, "no Gaussian was split"
    for name, numbers in first.items():
        np.testing.assert_array_equal(numbers, again[name], err_msg=name)


def test_a_model_is_put_together_from_its_arrays(
    recordings: list[Recording], frames: Mapping[str, np.ndarray], trained: gmm.Gmm
) -> None:
    again = from_arrays(LEXICON, trained.arrays())
    for each in recordings[:3]:
        np.testing.assert_allclose(
            log_densities(again, frames[each.id]), log_densities(trained, frames[each.id]), rtol=1e-5
        )
        np.testing.assert_array_equal(
            again.align(frames[each.id], each.words), trained.align(frames[each.id], each.words)
        )


def test_scores_are_the_logarithms_of_the_mixtures(
    trained: gmm.Gmm, frames: Mapping[str, np.ndarray]
) -> None:
    """Against the densities in float64."""
    x = next(iter(frames.values()))[:5].astype(np.float64)
    arrays = trained.arrays()
    begin = 0
    for state, size in enumerate(arrays["sizes"].tolist()):
        part = slice(begin, begin + size)
        begin += size
        v = 1 / arrays["inverse_variances"][part].astype(np.float64)
        away = (x[:, None] - arrays["means"][part]) ** 2 / v
        density = -0.5 * (away + np.log(2 * np.pi * v)).sum(-1) + np.log(arrays["weights"][part])
        expected = np.logaddexp.reduce(density, axis=1)
        np.testing.assert_allclose(
            log_densities(trained, x.astype(np.float32))[:, state], expected, rtol=1e-3
        )


def test_too_few_frames_are_refused(trained: gmm.Gmm) -> None:
    with pytest.raises(ValueError, match="5 frames are too few for the words 'YES NO'"):
        trained.align(np.zeros((5, 39), dtype=np.float32), ("YES", "NO"))


def test_enough_frames_that_say_something_else_are_not_called_too_few(
    trained: gmm.Gmm, frames: Mapping[str, np.ndarray]
) -> None:
    pause = np.repeat(next(iter(frames.values()))[:1], 97, axis=0)
    with pytest.raises(
        ValueError, match="no way through the words 'YES NO' was found in 97 frames: the recor"
    ):
        trained.align(pause, ("YES", "NO"))


def test_recordings_that_cannot_be_learned_from_are_named(frames: Mapping[str, np.ndarray]) -> None:
    name, some = next(iter(frames.items()))
    with pytest.raises(ValueError, match=f"{name}: 5 frames are too few for the words 'YES NO'"):
        gmm.train({name: some[:5]}, {name: ("YES", "NO")}, LEXICON)
    with pytest.raises(ValueError, match="the recordings are silent, or hold one frame each"):
        gmm.train({name: np.zeros_like(some)}, {name: ("YES",)}, LEXICON)


def test_training_reaches_its_number_of_gaussians_and_estimates_all_of_them(trained: gmm.Gmm) -> None:
    arrays = trained.arrays()
    assert arrays["sizes"].sum() == 20
    assert (arrays["stay"][:6] != gmm.STAY).all()
    state = int(arrays["sizes"].argmax())
    begin = int(arrays["sizes"][:state].sum())
    part = slice(begin, begin + int(arrays["sizes"][state]))
    assert np.ptp(arrays["means"][part], axis=0).max() > 0.1, "the halves of a split differ"
    assert np.ptp(arrays["weights"][part]) > 0.05


def test_a_second_try_searches_more_widely(
    recordings: list[Recording],
    frames: Mapping[str, np.ndarray],
    trained: gmm.Gmm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decoder(graph: Any, options: Any) -> Any:
        found = khg.FasterDecoder(graph, options)
        beams.append(options.beam)
        return SimpleNamespace(
            decode=found.decode,
            reached_final=lambda: options.beam > gmm.BEAMS[0] and found.reached_final(),
            get_best_path=found.get_best_path,
        )

    khg, beams = load("kaldi_hmm_gmm"), list[float]()
    each = recordings[0]
    expected = trained.align(frames[each.id], each.words)
    names = ("FasterDecoderOptions", "DecodableAmDiagGmmUnmapped")
    others = {name: getattr(khg, name) for name in names}
    monkeypatch.setattr(gmm, "load", lambda _: SimpleNamespace(FasterDecoder=decoder, **others))
    np.testing.assert_array_equal(trained.align(frames[each.id], each.words), expected)
    assert beams == list(gmm.BEAMS)


def test_a_split_moves_means_by_a_share_of_a_standard_deviation() -> None:
    model = load("kaldi_hmm_gmm").AmDiagGmm()
    flat = np.full((1, 39), 0.01, np.float32)  # a standard deviation of 10
    model.init(gmm.mixture(np.ones(1, np.float32), 0 * flat, flat), 2)
    gmm.split(model, np.array([50, 50]), 4, np.random.default_rng(1))
    means = np.concatenate([model.get_pdf(state).means for state in range(2)])
    assert means.shape == (4, 39)
    assert means.std() == pytest.approx(10 * gmm.JITTER, rel=0.2)
