"""N-gram models in back-off form, and their estimation by interpolated modified Kneser-Ney."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hornn.baselines.counts import CountModel, State
from hornn.checks import require_positive

FALLBACK = (0.5, 1.0, 1.5)  # discounts where a text gives none
# By so much the probabilities after a context may miss the sum 1: ARPA files of 4 digits and more pass.
TOLERANCE = 1e-3
SAMPLED_CONTEXTS = 50


class Level(NamedTuple):
    """The n-grams of one order: `key` = row of the first n - 1 words among the n-grams of order n - 1, times V + 1,
    plus the last word's id. Keys ascend, so that the continuations of a context stand side by side."""

    keys: np.ndarray  # (n-grams,) int64
    p: np.ndarray  # (n-grams,) float64: P(last word | the words before it)
    gamma: np.ndarray  # (n-grams,) float64: its back-off weight as a context; (0,) in the highest order


class BackoffModel(CountModel):
    """N-grams of orders 1 to N = `order` with back-off weights.

        P(w | h) = p(h w)              if the n-gram h w is listed
                 = gamma(h) P(w | h')  otherwise, h' = h without its first word

    gamma(h) = 1 for an h that is not listed; order 1 lists every word. h are the N - 1 words before w, fewer at the
    start of a sentence. There a begin mark `<s>`, which is never predicted, stands before the first word. A sentence
    ends with `eos_id`; n-grams do not cross its end. Without eos_id the whole text is one sentence. `<s>` has the id V.
    An n-gram is listed with all its beginnings.

    Raises ValueError for an order below 1, and for a use before there are n-grams.
    """

    def __init__(self, vocab_size: int, eos_id: int | None, order: int = 5) -> None:
        super().__init__(vocab_size, eos_id)
        require_positive(order=order)
        self.order = order
        self._levels: list[Level] = []

    @property
    def levels(self) -> list[Level]:
        if not self._levels:
            raise ValueError(
                "the n-gram model has no n-grams yet: call fit or load_state first, or read an ARPA file"
            )
        return self._levels

    @levels.setter
    def levels(self, levels: list[Level]) -> None:
        self._levels = levels

    @property
    def begin_id(self) -> int:
        return self.vocab_size

    @property
    def width(self) -> int:
        """What a key counts in: the words and `<s>`."""
        return self.vocab_size + 1

    @property
    def num_parameters(self) -> int:
        """The probabilities and the back-off weights; `<s>` has only the latter, the highest order only the former."""
        return sum(len(level.p) + len(level.gamma) for level in self.levels) - 1

    def score(self, ids: np.ndarray) -> np.ndarray:
        x = self.mark(self.require_ids(ids))
        p = np.ones(len(x))
        gamma = np.ones(1)
        for level, (context, found) in zip(self.levels, self._walk(x), strict=True):
            known, listed = context >= 0, found >= 0
            p[known] *= gamma[context[known]]
            p[listed] = level.p[found[listed]]
            gamma = level.gamma
        with np.errstate(divide="ignore"):
            return -np.log(p[x != self.begin_id])

    def distribution(self, history: np.ndarray) -> np.ndarray:
        next_id = 0  # any: only its place counts
        marked = self.mark(np.append(self.require_ids(np.asarray(history)[-self.order :]), next_id))
        return self.continuation(marked[-self.order : -1])

    def continuation(self, context: np.ndarray) -> np.ndarray:
        """(V,) float64: the probabilities after the last N - 1 places of a marked text."""
        p = self.levels[0].p[: self.vocab_size].copy()
        for level, longer, (_, found) in zip(self.levels, self.levels[1:], self._walk(context), strict=False):
            if len(found) and (h := found[-1]) >= 0:
                first, last = np.searchsorted(longer.keys, [h * self.width, (h + 1) * self.width])
                p *= level.gamma[h]
                p[longer.keys[first:last] % self.width] = longer.p[first:last]
        return p

    def spelled(self, n: int, rows: np.ndarray) -> np.ndarray:
        """(rows, n) int64: the ids of the words of the n-grams of order n in these rows."""
        words = []
        for level in reversed(self.levels[:n]):
            rows, word = np.divmod(level.keys[rows], self.width)
            words.append(word)
        return np.stack(words[::-1], axis=1)

    def state(self) -> State:
        """`keys_n`, `p_n` and `gamma_n` of each order n; the keys of order 1 are the ids."""
        return {
            f"{name}_{n}": array
            for n, level in enumerate(self.levels, start=1)
            for name, array in level._asdict().items()
            if (name, n) != ("keys", 1)
        }

    def load_state(self, state: Mapping[str, np.ndarray | int | float]) -> None:
        if len(state) != (entries := len(Level._fields) * self.order - 1):
            raise ValueError(
                f"the state of an n-gram model of order {self.order:,} has {entries:,} entries, got {len(state)}: load "
                "it into a model of its own order and kind"
            )
        expected = {f"{name}_{n}" for n in range(1, self.order + 1) for name in Level._fields} - {"keys_1"}
        if missing := sorted(expected - state.keys()):
            raise ValueError(
                f"the state of an n-gram model of order {self.order} has the entries {', '.join(sorted(expected))}; "
                f"{missing[0]} does not fit: load it into a model of its own order and kind"
            )
        if (size := np.size(state["p_1"])) != self.width:
            raise ValueError(
                f"the state is of a vocabulary of {size - 1:,} words, the model of {self.vocab_size:,}: use its own"
            )
        arrays = {"keys_1": np.arange(self.width)} | {
            name: np.asarray(array) for name, array in state.items()
        }
        levels = [Level(*(arrays[f"{name}_{n}"] for name in Level._fields)) for n in range(1, self.order + 1)]
        for n, level in enumerate(levels, start=1):
            contexts = 1 if n == 1 else len(levels[n - 2].p)
            whole = is_whole(level, 0 if n == self.order else len(level.p), contexts * self.width)
            if not whole or (n > 1 and (level.keys % self.width == self.begin_id).any()):
                raise ValueError(f"the n-grams of order {n} are damaged: fit the model anew")
        self.levels = levels
        if wrong := self.wrong_sum():
            self.levels = []
            raise ValueError(
                f"the probabilities after {len(wrong[0])} words sum to {wrong[1]:.6g}, not to 1: fit the model anew"
            )

    def wrong_sum(self) -> tuple[np.ndarray, float] | None:
        """The ids of a context after which the probabilities do not sum to 1, and their sum; None if there is none.

        It tries the empty context and SAMPLED_CONTEXTS that entries continue, the same ones at each call.
        """
        draw = np.random.default_rng(0)
        contexts = [np.zeros(0, dtype=np.int64)]
        for n, level in enumerate(self.levels[1:], start=1):
            if len(level.keys):
                some = min(len(level.keys), SAMPLED_CONTEXTS // (self.order - 1) + 1)
                contexts.extend(self.spelled(n, draw.choice(level.keys, some) // self.width))
        sums = ((context, float(self.continuation(context).sum())) for context in contexts)
        return next((each for each in sums if not abs(each[1] - 1) <= TOLERANCE), None)

    def mark(self, ids: np.ndarray) -> np.ndarray:
        """The ids, `<s>` before the first one of each sentence and of the text."""
        ends = np.flatnonzero(ids[:-1] == self.eos_id)  # none equals None
        return np.insert(ids, np.append(0, ends + 1), self.begin_id)

    def _walk(self, x: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For n = 1 .. N: the rows of the (n-1)-gram that ends before each place, and of the n-gram that ends there.

        -1 where it is not listed. Only order 1 lists `<s>` as a last word, so no n-gram crosses a start.
        """
        context = np.zeros(len(x), dtype=np.int64)
        for level in self.levels:
            found = np.where(context >= 0, rows_of(level.keys, context * self.width + x), -1)
            yield context, found
            context = shifted(found)


def is_whole(level: Level, weights: int, end: int) -> bool:
    """Whether keys below `end` rise and have a probability each, and there are as many back-off weights as keys."""
    keys, p, gamma = level
    return (
        (keys.ndim, p.ndim, gamma.ndim) == (1, 1, 1)
        and (keys.dtype.kind, p.dtype.kind, gamma.dtype.kind) == ("i", "f", "f")
        and (len(keys), len(gamma)) == (len(p), weights)
        and (not len(keys) or (keys[0] >= 0 and keys[-1] < end and bool((np.diff(keys) > 0).all())))
    )


class KneserNey(BackoffModel):
    """Interpolated modified Kneser-Ney smoothing.

        p(h w) = (a(h w) - D(a(h w))) / sum_v a(h v) + gamma(h) p(h' w)
        gamma(h) = (D1 N1(h) + D2 N2(h) + D3 N3+(h)) / sum_v a(h v)
        p(w) of order 0 = 1 / V

    a is the adjusted count: how often an n-gram of the highest order, or one that begins with `<s>`, occurs; for the
    others the number of different words before it. N1(h), N2(h), N3+(h) count the words v with a(h v) = 1, 2, >= 3.
    The discounts of an order, D(0) = 0 and D3 for all counts >= 3, come from n_i, its n-grams with adjusted count i:

        Y = n_1 / (n_1 + 2 n_2),   D_i = i - (i + 1) Y n_{i+1} / n_i

    A word of the vocabulary that the training text lacks gets gamma / V in order 1. Nothing is pruned.

    fallback_discounts: [D1, D2, D3+] for an order whose n_i give none: where rare words became `<unk>`, in tiny texts,
    for letters. None, the default, is [0.5, 1, 1.5], to which lmplz falls back, too. `discounts` (N, 3) says what was
    used, `notes` which orders fell back.

    Source: Chen & Goodman 1999, section 3 and equation (26) for the discounts; adjusted counts, `<s>` and the
    uniform order 0 as in Heafield et al. 2013 (lmplz), section 3. Departure: there is no word beside the V of the
    vocabulary, so the text's own `<unk>` is the only one.
    Raises ValueError for an empty text, and for discounts outside 0 < D_i <= i.
    """

    def __init__(
        self,
        vocab_size: int,
        eos_id: int | None,
        order: int = 5,
        fallback_discounts: Sequence[float] | None = None,
    ) -> None:
        super().__init__(vocab_size, eos_id, order)
        self.fallback = _require_discounts(FALLBACK if fallback_discounts is None else fallback_discounts)
        self.discounts = np.zeros((0, 3))
        self.fell_back: list[int] = []  # orders

    def fit(self, train: np.ndarray, valid: np.ndarray) -> None:
        """One pass per order over `train`; there is nothing to choose on `valid`."""
        if not len(train):
            raise ValueError("the training text holds no tokens: give one that does")
        x = self.mark(self.require_ids(train)).astype(np.int32)
        row, keys, occurs = x, np.arange(self.width), np.bincount(x, minlength=self.width)
        suffix, shorter_p = np.zeros(self.width, dtype=np.int32), np.full(1, 1 / self.vocab_size)
        occurs[self.begin_id] = 0  # never predicted
        self.fell_back = []
        self.discounts = np.zeros((self.order, 3))
        levels: list[Level] = []
        for n in range(1, self.order + 1):
            count = occurs
            if n < self.order:
                row, longer_keys, occurs, longer_suffix = self._extend(row, x)
                words_before = np.bincount(longer_suffix, minlength=len(keys))
                count = np.where(words_before > 0, words_before, count)  # nothing stands before `<s>`
            self.discounts[n - 1] = self._discounts(n, count)
            p, gamma = _interpolate(count, self.discounts[n - 1], keys // self.width, shorter_p, suffix)
            if n == 1:
                p[self.begin_id] = 0
            else:
                levels[-1] = levels[-1]._replace(gamma=gamma)
            levels.append(Level(keys, p, np.zeros(0)))
            if n < self.order:
                keys, suffix, shorter_p = longer_keys, longer_suffix, p
        self.levels = levels

    def state(self) -> State:
        return {**super().state(), "discounts": self.discounts}

    def load_state(self, state: Mapping[str, np.ndarray | int | float]) -> None:
        super().load_state({name: array for name, array in state.items() if name != "discounts"})
        self.discounts = np.asarray(state["discounts"])

    def _extend(
        self, row: np.ndarray, x: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """From the rows of the n-grams that end at each place: the same of order n + 1, their keys, how often each
        occurs, and the row of the n-gram that is left without its first word."""
        context = shifted(row)

        def keys_of(places: np.ndarray) -> np.ndarray:  # beyond 32 bits, to which NumPy 1 would cut a product
            return context[places].astype(np.int64) * self.width + x[places]

        place = np.flatnonzero((context >= 0) & (x != self.begin_id))
        place = place[np.argsort(keys_of(place))].astype(np.int32)
        key = keys_of(place)
        first = np.flatnonzero(np.diff(key, prepend=-1))
        occurs = np.diff(first, append=len(key))
        longer = np.full(len(x), -1, dtype=np.int32)
        longer[place] = np.repeat(np.arange(len(first), dtype=np.int32), occurs)
        return longer, key[first], occurs, row[place[first]]

    def _discounts(self, n: int, count: np.ndarray) -> np.ndarray:
        n_i = np.bincount(np.minimum(count, 5), minlength=6)[1:5].astype(np.float64)
        if n_i[:3].all():
            i = np.arange(1, 4)
            y = n_i[0] / (n_i[0] + 2 * n_i[1])
            if _usable(discounts := i - (i + 1) * y * n_i[1:] / n_i[:3]):
                return discounts
        self.fell_back.append(n)
        return self.fallback

    @property
    def notes(self) -> list[str]:
        if not self.fell_back:
            return []
        orders = ", ".join(map(str, self.fell_back))
        used = ", ".join(f"{discount:g}" for discount in self.fallback)
        return [
            f"the training text gives no Kneser-Ney discounts for n-grams of order {orders}: the fallback discounts "
            f"{used} served"
        ]


def rows_of(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each wanted key stands among the ascending keys, -1 for one that is not there."""
    if not len(keys):
        return np.full(len(wanted), -1)
    row = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[row] == wanted, row, -1)


def shifted(row: np.ndarray) -> np.ndarray:
    """What stood one place before; nothing, -1, before the first."""
    before = np.empty_like(row)
    before[:1] = -1
    before[1:] = row[:-1]
    return before


def _interpolate(
    count: np.ndarray, discounts: np.ndarray, context: np.ndarray, shorter_p: np.ndarray, suffix: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """p of the n-grams, and gamma of all their contexts: 1 for one that nothing follows."""
    discount = np.append(0, discounts)[np.minimum(count, 3)]
    total = np.bincount(context, weights=count, minlength=len(shorter_p))
    mass = np.bincount(context, weights=discount, minlength=len(shorter_p))
    gamma = np.divide(mass, total, out=np.ones(len(total)), where=total > 0)
    p = (count - discount) / total[context]
    p += gamma[context] * shorter_p[suffix]
    return p, gamma


def _require_discounts(given: Sequence[float]) -> np.ndarray:
    try:
        discounts = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        discounts = np.zeros(0)
    if discounts.shape != (3,) or not _usable(discounts):
        raise ValueError(
            "model.fallback_discounts must be null or three numbers [D1, D2, D3+] with 0 < D_i <= i, such as "
            f"[0.5,1,1.5], got {given!r}"
        )
    return discounts


def _usable(discounts: np.ndarray) -> bool:
    return bool(np.all((discounts > 0) & (discounts <= np.arange(1, 4))))
