"""Monophone hidden Markov models whose states emit by Gaussian mixtures: trained from a flat start, they align.

    p(x | s) = sum_k w_sk N(x; mu_sk, diag(v_sk))          x: 39 cepstra of a frame, s: its state

Viterbi training: frames are aligned to the states of their words; then the mixtures and the probabilities of staying
are estimated anew, while the Gaussians grow from one a state to a total number. Its schedule is that of Kaldi's
`train_mono`, shorter: 30 iterations instead of 40, and after the tenth every third one aligns anew. This is the only
module that knows kaldi-hmm-gmm.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hornn.speech import graphs
from hornn.speech.corpus import naming
from hornn.speech.lexicon import STATES, Lexicon
from hornn.speech.packages import load

STAY = 0.75  # of each state at the start
FLOOR = 0.01  # of the probabilities of staying and of going on
SETTLING = 8  # last iterations: the first adds what rounding left out, the others no Gaussians
JITTER = 0.01  # standard deviations by which the means of Gaussians move when some are split
BEAMS = (200.0, 2000.0)  # of the search for an alignment, and of its second try


class Gmm:
    """The mixtures of each state and the probabilities of staying, for the states of a lexicon.

    model: kaldi-hmm-gmm's AmDiagGmm. stay: (S,) the probability that a state is also the next frame's.
    """

    def __init__(self, lexicon: Lexicon, model: Any, stay: np.ndarray) -> None:
        self.lexicon = lexicon
        self.model = model
        self.stay = stay

    @property
    def number(self) -> int:
        """How many states there are."""
        return self.lexicon.number

    def align(self, cepstra: np.ndarray, words: Sequence[str]) -> np.ndarray:
        """(N,) int64: the state of each of N frames on the likeliest path through these words.

        Raises ValueError where there are too few frames for the words, or where no path through the words is found.
        """
        khg = load("kaldi_hmm_gmm")
        graph = graphs.of_sentence(self.lexicon, self.stay, words)
        for beam in BEAMS:
            decoder = khg.FasterDecoder(graph, khg.FasterDecoderOptions(beam=beam))
            decoder.decode(khg.DecodableAmDiagGmmUnmapped(self.model, cepstra))
            if decoder.reached_final():
                return graphs.states_of(decoder.get_best_path()[1])
        if len(cepstra) < fewest_frames(self.lexicon, words):
            raise ValueError(too_few(len(cepstra), words))
        raise ValueError(
            f"no way through the words {' '.join(words)!r} was found in {len(cepstra)} frames: the recording is "
            "silent, noisy, or says something else; correct the words, or leave it out"
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers: `sizes` (S,) Gaussians of each state, `weights` (G,), `means` and `inverse_variances` (G, 39),
        `stay` (S,)."""
        mixtures = list(map(self.model.get_pdf, range(self.number)))
        return {
            "sizes": np.array([mixture.num_gauss for mixture in mixtures]),
            "weights": np.concatenate([mixture.weights for mixture in mixtures]),
            "means": np.concatenate([mixture.means for mixture in mixtures]),
            "inverse_variances": np.concatenate([mixture.inv_vars for mixture in mixtures]),
            "stay": self.stay,
        }


def mixture(weights: np.ndarray, means: np.ndarray, inverse_variances: np.ndarray) -> Any:
    """A mixture of K Gaussians: (K,), (K, D), (K, D)."""
    found = load("kaldi_hmm_gmm").DiagGmm(nmix=len(weights), dim=means.shape[1])
    found.set_weights(weights)
    found.set_invvars_and_means(inverse_variances, means)
    found.compute_gconsts()
    return found


def train(
    cepstra: Mapping[str, np.ndarray],
    words: Mapping[str, Sequence[str]],
    lexicon: Lexicon,
    progress: Callable[[int, int], None] = lambda done, of: None,
    seed: int = 0,
    iterations: int = 30,
    gaussians: int = 1000,
) -> Gmm:
    """Train on utterances, their cepstra (N, 39) and words by their names; the same numbers at each call.

    progress: is told how many of the iterations are done. gaussians: of all states together.
    Raises ValueError where an utterance has too few frames for its words.
    """
    khg = load("kaldi_hmm_gmm")
    everything = np.concatenate(list(cepstra.values()))
    variance = everything.var(0, keepdims=True)
    if not (variance > 0).all():
        raise ValueError("the recordings are silent, or hold one frame each: give recordings of speech")
    one = mixture(np.ones(1, np.float32), everything.mean(0, keepdims=True), 1 / variance)
    model = khg.AmDiagGmm()
    model.init(one, lexicon.number)
    gmm = Gmm(lexicon, model, np.full(lexicon.number, STAY))
    step = max(0, gaussians - lexicon.number) // max(1, iterations - SETTLING)
    flags, rng = khg.str_to_gmm_flags("mvw"), np.random.default_rng(seed)
    states = {}
    for name, frames in cepstra.items():
        with naming(name):
            states[name] = equal_alignment(lexicon, len(frames), words[name])
    for iteration in range(iterations):
        if iteration in range(1, 11) or iteration in range(12, iterations, 3):
            for name, frames in cepstra.items():
                with naming(name):
                    states[name] = gmm.align(frames, words[name])
        sums = khg.AccumAmDiagGmm()
        sums.init(model=model, flags=flags)
        for name, frames in cepstra.items():
            for frame, state in zip(frames, states[name].tolist(), strict=True):
                sums.accumulate_for_gmm(model, frame, state, 1.0)
        fewest = 3 if iteration == 0 else 10  # frames of a Gaussian that stays
        khg.mle_am_diag_gmm_update(khg.MleDiagGmmOptions(min_gaussian_occupancy=fewest), sums, flags, model)
        gmm.stay = staying(list(states.values()), lexicon.number)
        wanted = min(gaussians, lexicon.number + (iteration + 1) * step)
        if wanted > model.num_gauss:
            split(
                model,
                np.bincount(np.concatenate(list(states.values())), minlength=lexicon.number),
                wanted,
                rng,
            )
        progress(iteration + 1, iterations)
    return gmm


def equal_alignment(lexicon: Lexicon, frames: int, words: Sequence[str]) -> np.ndarray:
    """(N,) int64: each word's first pronunciation between a pause before all and one behind, all states equally long.

    The shortest ones where there are too few frames for the first. Raises ValueError where there are too few for these.
    """
    ways = {
        each: [phones for word, phones in lexicon.pronunciations if lexicon.words[word] == each]
        for each in set(words)
    }
    said = [ways[each][0] for each in words]
    if frames < STATES * sum(map(len, said)):
        said = [min(ways[each], key=len) for each in words]
    if frames < STATES * sum(map(len, said)):
        raise ValueError(too_few(frames, words))
    states = np.array(lexicon.states([0, *(phone for phones in said for phone in phones), 0]))
    return states[np.arange(frames) * len(states) // frames]


def fewest_frames(lexicon: Lexicon, words: Sequence[str]) -> int:
    """Of the shortest pronunciation of each word, a frame for each state."""
    phones: dict[str, int] = {}
    for word, said in lexicon.pronunciations:
        name = lexicon.words[word]
        phones[name] = min(len(said), phones.get(name, len(said)))
    return STATES * sum(phones[word] for word in words)


def too_few(frames: int, words: Sequence[str]) -> str:
    return f"{frames} frames are too few for the words {' '.join(words)!r}: correct them, or leave it out"


def staying(states: Sequence[np.ndarray], number: int) -> np.ndarray:
    """(S,): of the frames of each state, the share whose next frame has the same state; STAY where it has no frames."""
    last = np.concatenate([np.append(each[1:] != each[:-1], True) for each in states])
    every = np.concatenate(states)
    frames = np.bincount(every, minlength=number)
    left = np.bincount(every, weights=last, minlength=number)
    stay = np.divide(frames - left, frames, out=np.full(number, STAY), where=frames > 0)
    return np.clip(stay, FLOOR, 1 - FLOOR)


def split(model: Any, frames: np.ndarray, wanted: int, rng: np.random.Generator) -> None:
    """Split Gaussians until there are `wanted`, more for states of more frames (S,), and move all means a little.

    kaldi-hmm-gmm's own noise cannot be seeded, so it splits without any.
    """
    model.split_by_count(frames.astype(np.float32), wanted, 0.0, 0.2, 20.0)
    for state in range(model.num_pdfs):
        pdf = model.get_pdf(state)
        noise = rng.standard_normal(pdf.means.shape)
        pdf.set_means((pdf.means + JITTER * np.sqrt(pdf.vars) * noise).astype(np.float32))
    model.compute_gconsts()
