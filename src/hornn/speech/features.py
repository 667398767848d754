"""From a WAV file to what a network and a Gaussian mixture read at each frame of 10 ms."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hornn.speech.packages import load

RATE = 16_000  # samples a second
BANDS = 80  # features of a frame that the network reads
CEPSTRA = 39  # features of a frame that the Gaussian mixtures read
# Samples of a recording, an hour; a few bytes that are compressed, as FLAC, may stand for any number.
LONGEST = 3600 * RATE
PIECE = RATE  # samples that are made a list at once, which takes eight times the memory of their array
STREAMED = 2**31 - 2**12  # bytes: who writes a header that promises so many did not know the number
SHORTEST = RATE * 25 // 1000  # samples of the window of one frame
FULL = 2**15  # the scale of 16-bit integers
# Of recordings, in which soundfile notices the end that is missing, or whose header says how long they are.
FORMATS = ("WAV", "WAVEX", "FLAC", "OGG")
FLOATING = ("FLOAT", "DOUBLE")  # samples within 1, which soundfile would cut to integers unscaled


def read_wave(path: Path) -> np.ndarray:
    """The samples (S,) of a WAV file in fp32, on the scale of 16-bit integers.

    Raises ValueError for a file that cannot be read, is of another format or was cut off, for another rate than 16 kHz,
    for more than one channel, for more than an hour, for less than one frame, and for a sample that no recording has;
    OSError where it cannot be opened.
    """
    soundfile = load("soundfile")

    with path.open("rb") as file:
        if not file.seekable():
            raise ValueError(f"{path} is a pipe, and a recording is read twice: write it into a file first")
        head = file.read(12)  # the reader takes what is left of a file as the whole
        order: Literal["little", "big"] = "big" if head[:4] == b"RIFX" else "little"
        promised = int.from_bytes(head[4:8], order) + 8
        if head[:4] in (b"RIFF", b"RIFX") and path.stat().st_size < promised < STREAMED:
            raise ValueError(f"{path} was cut off, its header promises {promised:,} bytes: copy it again")
        file.seek(0)
        try:
            with soundfile.SoundFile(file) as recording:
                if recording.format not in FORMATS:
                    raise ValueError(
                        f"{path} is a recording in {recording.format}: convert it to WAV or FLAC"
                    )
                if not recording.seekable():
                    raise ValueError(
                        f"{path} is compressed as {recording.subtype}: convert it to WAV of 16 bits"
                    )
                require_usable(path, recording.samplerate, recording.channels, recording.frames)
                floating = recording.subtype in FLOATING
                samples = recording.read(dtype="float32" if floating else "int16")
        except (soundfile.SoundFileError, TypeError) as error:  # TypeError: the name ends in .raw
            raise ValueError(f"{path} is no WAV file that can be read ({error}): give another one") from error
    if len(samples) < SHORTEST:
        raise ValueError(f"{path} has {len(samples)} samples, less than one frame of 25 ms: leave it out")
    wave: np.ndarray = samples.astype(np.float32)
    if not floating:
        return wave
    if (wrong := ~(np.abs(wave) <= FULL)).any():
        raise ValueError(
            f"{path} has a sample of {wave[wrong][0]}, and a number from -{FULL:,} to {FULL:,} is needed: write it anew"
        )
    return wave * FULL


def require_usable(path: Path, rate: int, channels: int, frames: int) -> None:
    """Raise ValueError for a recording that cannot be used, by its header alone."""
    if rate != RATE:
        raise ValueError(f"{path} has {rate:,} samples a second, and {RATE:,} are needed: convert it")
    if channels != 1:
        raise ValueError(f"{path} has {channels} channels, and one is needed: convert it")
    if frames > LONGEST:
        raise ValueError(f"{path} has {frames:,} samples, more than an hour: cut it into several files")


def filterbank(wave: np.ndarray) -> np.ndarray:
    """40 logarithmic mel energies and their differences in time, (N, 80) fp32: what the network reads."""
    knf = load("kaldi_native_fbank")

    options = knf.FbankOptions()
    options.mel_opts.num_bins = 40
    return with_deltas(frames(knf.OnlineFbank, options, wave), 1)


def cepstra(wave: np.ndarray) -> np.ndarray:
    """13 mel cepstra with first and second differences, (N, 39) fp32: what the Gaussian mixtures read."""
    knf = load("kaldi_native_fbank")

    options = knf.MfccOptions()
    options.num_ceps = 13
    options.use_energy = False
    return with_deltas(frames(knf.OnlineMfcc, options, wave), 2)


def frames(computer: Any, options: Any, wave: np.ndarray) -> np.ndarray:
    """The frames (N, D) of a wave by one of kaldi-native-fbank's computers, without its noise: always the same."""
    options.frame_opts.dither = 0
    online = computer(options)
    for begin in range(0, len(wave), PIECE):
        online.accept_waveform(RATE, wave[begin : begin + PIECE].tolist())
    online.input_finished()
    return np.stack([online.get_frame(frame) for frame in range(online.num_frames_ready)])


def with_deltas(values: np.ndarray, order: int) -> np.ndarray:
    """Frames (N, D) beside their differences up to `order`, (N, D (order + 1))."""
    knf = load("kaldi_native_fbank")

    found: np.ndarray = knf.compute_deltas(knf.DeltaOptions(order=order), values)
    return found


def normalise(utterances: Sequence[np.ndarray], variance: bool = True) -> list[np.ndarray]:
    """All that one speaker says, each (N, D), with mean 0 over its frames, and `variance` 1 where that is wanted.

    A feature that never changes stays 0.
    """
    every = np.concatenate(utterances).astype(np.float64)
    mean, std = every.mean(0), every.std(0)
    scale = np.where(std > 0, std, 1.0) if variance else np.ones_like(std)
    return [((each - mean) / scale).astype(np.float32) for each in utterances]


def normalise_speakers(
    features: Mapping[str, np.ndarray], speakers: Mapping[str, str], variance: bool = True
) -> dict[str, np.ndarray]:
    """`normalise` for the utterances of each speaker, features and speakers by the utterances' names."""
    said: dict[str, list[str]] = {}
    for name in features:
        said.setdefault(speakers[name], []).append(name)
    return {
        name: each
        for names in said.values()
        for name, each in zip(names, normalise([features[name] for name in names], variance), strict=True)
    }
