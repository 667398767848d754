"""A corpus of synthetic tones in AN4's layout: three words of two phones, each phone a tone of its own."""

import math
import wave
from pathlib import Path

import numpy as np

RATE = 16_000
TONES = {"AA": 400.0, "EE": 1100.0, "OO": 2300.0, "SS": 4700.0}  # Hz
WORDS = {"YES": "EE SS", "NO": "OO AA", "SO": "SS OO"}
SPEAKERS = ("ann", "bob", "cat", "dan")  # ann is for validation
TESTED = ("eve",)
SAID = ("YES NO", "NO SO YES", "SO", "YES", "NO YES SO NO")
SECONDS = 0.12  # of a phone


def sound(words: str, seed: int) -> np.ndarray:
    """Int16 samples of the words, between silences, in noise; the seed moves the tones a little."""
    rng = np.random.default_rng(seed)
    pitch = 1 + 0.02 * rng.standard_normal()
    phones = [phone for word in words.split() for phone in WORDS[word].split()]
    silence = np.zeros(int(RATE * SECONDS))
    parts = [silence]
    for phone in phones:
        t = np.arange(int(RATE * SECONDS * rng.uniform(0.8, 1.2))) / RATE
        parts.append(6000 * np.sin(2 * math.pi * TONES[phone] * pitch * t))
    samples = np.concatenate([*parts, silence])
    return (samples + 30 * rng.standard_normal(len(samples))).astype(np.int16)


def write_wave(path: Path, samples: np.ndarray, rate: int = RATE, channels: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def write_corpus(folder: Path) -> Path:
    """Write the corpus and return its folder: 15 utterances to train on, 5 for validation, 5 to test."""
    etc = folder / "etc"
    etc.mkdir(parents=True)
    for split, speakers in (("train", SPEAKERS), ("test", TESTED)):
        fileids, transcription = [], []
        for speaker in speakers:
            for number, words in enumerate(SAID):
                name = f"{speaker}-{number}"
                write_wave(
                    folder / "wav" / split / speaker / f"{name}.wav",
                    sound(words, len(fileids) + 99 * (split == "test")),
                )
                fileids.append(f"{split}/{speaker}/{name}")
                marked = f"<s> {words} </s>" if split == "train" else words
                transcription.append(f"{marked} ({name})")
        (etc / f"tiny_{split}.fileids").write_text("\n".join(fileids) + "\n")
        (etc / f"tiny_{split}.transcription").write_text("\n".join(transcription) + "\n")
    (etc / "tiny.dic").write_text("".join(f"{word}  {phones}\n" for word, phones in WORDS.items()))
    (etc / "tiny.phone").write_text("\n".join(sorted([*TONES, "SIL"])) + "\n")
    (etc / "tiny.lm").write_text(ARPA)
    return folder


# Its comment holds a header of its own, as AN4's does.
ARPA = """A model of 3 words, which begins
\\data\\
ngram 1=nr

\\data\\
ngram 1=5
ngram 2=1

\\1-grams:
-0.6021 </s>
-99 <s> 0.0000
-0.6021 YES
-0.6021 NO
-0.6021 SO

\\2-grams:
-1.0000 <s> </s>

\\end\\
"""
