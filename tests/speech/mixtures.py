"""What kaldi-hmm-gmm makes of Gaussian mixtures, for tests: a model from its arrays, the scores of its states."""

from collections.abc import Mapping

import numpy as np

from hornn.speech.gmm import Gmm, mixture
from hornn.speech.lexicon import Lexicon
from hornn.speech.packages import load


def from_arrays(lexicon: Lexicon, arrays: Mapping[str, np.ndarray]) -> Gmm:
    """The mixtures that `Gmm.arrays` took apart."""
    model = load("kaldi_hmm_gmm").AmDiagGmm()
    ends = np.cumsum(arrays["sizes"])
    for begin, end in zip(ends - arrays["sizes"], ends, strict=True):
        part = slice(int(begin), int(end))
        model.add_pdf(mixture(*(arrays[name][part] for name in ("weights", "means", "inverse_variances"))))
    return Gmm(lexicon, model, arrays["stay"])


def log_densities(gmm: Gmm, cepstra: np.ndarray) -> np.ndarray:
    """(N, S) fp32: ln p(x | s) of each frame and state."""
    mixtures = map(gmm.model.get_pdf, range(gmm.number))
    each = [np.logaddexp.reduce(one.log_likelihoods_matrix(cepstra), axis=1) for one in mixtures]
    return np.stack(each, axis=1)
