"""What a network and a Gaussian mixture read of speech: a tone whose energies are known."""

import numpy as np
import pytest

pytest.importorskip("kaldi_native_fbank")

from hornn.speech.features import RATE, cepstra, filterbank

BINS, HERTZ, FRAME = 40, 1000, 50


def tone() -> np.ndarray:
    """A second at 1 kHz with a little noise, without which most bands would have no energy."""
    time = np.arange(RATE) / RATE
    noise = np.random.default_rng(0).normal(0, 50, RATE)
    return (3000 * np.sin(2 * np.pi * HERTZ * time) + noise).astype(np.float32)


def mel(hertz: float) -> float:
    return 1127 * float(np.log(1 + hertz / 700))


def test_the_bands_are_logarithms_of_mel_energies() -> None:
    """Twice as loud is four times the energy; the loudest band is at 1 kHz between 20 Hz and 8 kHz."""
    once, twice = filterbank(tone())[:, :BINS], filterbank(2 * tone())[:, :BINS]
    np.testing.assert_allclose(twice - once, 2 * np.log(2), atol=1e-3)
    centres = np.linspace(mel(20), mel(RATE / 2), BINS + 2)[1:-1]
    assert int(once.mean(0).argmax()) in np.abs(centres - mel(HERTZ)).argsort()[:2]


def test_differences_are_slopes_over_five_frames() -> None:
    for features, width, orders in ((filterbank(tone()), BINS, 1), (cepstra(tone()), 13, 2)):
        assert features.shape[1] == width * (orders + 1)
        for order in range(orders):
            x, slopes = (features[:, (order + k) * width : (order + k + 1) * width] for k in (0, 1))
            by_hand = (2 * (x[FRAME + 2] - x[FRAME - 2]) + x[FRAME + 1] - x[FRAME - 1]) / 10
            np.testing.assert_allclose(slopes[FRAME], by_hand, atol=1e-3)


def test_loudness_is_in_the_first_cepstrum_alone() -> None:
    louder = cepstra(2 * tone()) - cepstra(tone())
    bands = 23  # of whose logarithms it is the sum, divided by the root of their number
    np.testing.assert_allclose(louder[:, 0], np.sqrt(bands) * 2 * np.log(2), atol=1e-2)
    np.testing.assert_allclose(louder[:, 1:], 0, atol=2e-3)
