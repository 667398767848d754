"""Linear interpolation of language models: P(w) = sum_k w_k P_k(w), its weights by EM on held-out text."""

import numpy as np

GAIN = 1e-9  # nats per token that better weights could still bring when EM ends
STEPS = 10_000


def em_weights(log_p: np.ndarray) -> np.ndarray:
    """The weights w of K models under which held-out text is likeliest, (K,) float64, from their ln P (N, K).

    EM (Dempster et al. 1977; Jelinek & Mercer 1980), from equal weights:

        c_k = 1/N sum_t P_k(t) / sum_j w_j P_j(t)        w_k <- w_k c_k

    No step lowers the likelihood, which has no other maximum. As no weights can gain more than ln max_k c_k nats
    per token over the present ones, EM ends where that is below 1e-9 (or after 10,000 steps: weights that only
    creep towards 0 by then change no digit of a perplexity). A ln P of -inf is a probability of 0.

    Raises ValueError where there is no token, a ln P is not a number, or a token has probability 0 in every model.
    """
    if log_p.ndim != 2 or not log_p.size:
        raise ValueError(f"EM needs the ln P of N >= 1 tokens under K >= 1 models, got shape {log_p.shape}")
    peak = log_p.max(axis=1, keepdims=True)
    if not np.isfinite(peak).all():
        token = int(np.flatnonzero(~np.isfinite(peak))[0])
        raise ValueError(
            f"token {token + 1:,} of the held-out text has ln P {log_p[token].tolist()}: a mixture needs a "
            "model that gives it a probability above 0"
        )
    p = np.exp(log_p - peak)  # the likeliest model of each token has 1, so no sum vanishes
    weights = np.full(log_p.shape[1], 1 / log_p.shape[1])
    for _ in range(STEPS):
        gain = (1 / (p @ weights)) @ p / len(p)
        if np.log(gain.max()) < GAIN:
            break
        weights *= gain
    return weights / weights.sum()


def interpolate(log_p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """ln sum_k w_k P_k of each token, (N,) float64, from ln P (N, K)."""
    with np.errstate(divide="ignore"):  # a weight of 0 leaves its model out
        mixed: np.ndarray = np.logaddexp.reduce(log_p + np.log(weights), axis=1)
    return mixed
