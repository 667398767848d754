"""A folder in AN4's layout: what is read, which speakers are for validation, and what is refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from hornn.speech import features
from hornn.speech.corpus import read_corpus, read_transcription
from hornn.speech.features import SHORTEST, cepstra, filterbank, normalise, read_wave
from hornn.speech.grammar import read_shipped
from hornn.speech.lexicon import read_lexicon
from speech.tiny import sound, write_corpus, write_wave


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "tiny")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_validation_takes_whole_speakers(folder: Path) -> None:
    corpus = read_corpus(folder)
    speakers = {split: {each.speaker for each in corpus.splits[split]} for split in corpus.splits}
    assert speakers == {"train": {"bob", "cat", "dan"}, "valid": {"ann"}, "test": {"eve"}}
    assert {split: len(corpus.splits[split]) for split in corpus.splits} == {
        "train": 15,
        "valid": 5,
        "test": 5,
    }
    first = corpus.splits["train"][0]
    assert (first.id, first.words, first.path.is_file()) == ("bob-0", ("YES", "NO"), True)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("tiny_train.transcription", "<s> YES NO </s> (bob-0)\n", "", r"has no words for bob-0: add a line"),
        ("tiny_test.transcription", "SO (eve-2)", "(eve-2)", r"eve-2 has no words: add them"),
        (
            "tiny_test.transcription",
            "SO (eve-2)",
            "SO (eve-2)\nSO NO (eve-2)",
            r"two lines have different words for eve-2: give each",
        ),
        ("tiny_test.transcription", "SO (eve-2)", "SO", r"the line 'SO' must be WORDS \(UTTERANCE\)"),
        (
            "tiny_train.transcription",
            "YES NO </s> (cat-0)",
            "YES MAYBE (cat-0)",
            "'MAYBE' of cat-0 is not in",
        ),
        ("tiny.dic", "YES  EE", ";; all words\nYES  EE", "the line ';; all words' is a remark, and no word"),
        ("tiny.dic", "YES  EE", "# all words\nYES  EE", "the line '# all words' is a remark, and no word"),
        ("tiny.dic", "YES  EE", "YES  EE # a word", "ends in a remark, which would be read as phones"),
        ("tiny.dic", "YES  EE", "YES  EE ;; a word", "ends in a remark, which would be read as phones"),
        (
            "tiny_train.transcription",
            "YES NO </s> (cat-0)",
            "YES(2) NO (cat-0)",
            r"'YES\(2\)' of cat-0 is a pronunciation: write the word, 'YES'",
        ),
        ("tiny_test.fileids", "test/eve/eve-0", "../eve/eve-0", "'../eve/eve-0' must be a path below wav/"),
        ("tiny_test.fileids", "test/eve/eve-0", "test/eve/eve-9", "eve-9.wav is missing: add it"),
        ("tiny_test.fileids", "test/eve/eve-1", "test/eve/eve-0", "the utterance eve-0 comes twice"),
    ],
)
def test_lists_that_do_not_fit_are_refused(folder: Path, file: str, old: str, new: str, said: str) -> None:
    change(folder / "etc" / file, old, new)
    with pytest.raises(ValueError, match=said):
        read_corpus(folder)


@pytest.mark.parametrize("file", ["tiny_train.fileids", "tiny_test.transcription", "tiny.dic"])
def test_a_byte_order_mark_is_no_part_of_a_list(folder: Path, file: str) -> None:
    path, before = folder / "etc" / file, read_corpus(folder)
    path.write_text("\ufeff" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert read_corpus(folder).splits == before.splits
    assert read_lexicon(folder / "etc" / "tiny.dic").words


def test_a_folder_without_a_corpus_says_which_keys_lead_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"and has none: give data.root and data.name of a corpus"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("file", ["tiny_train.fileids", "tiny_test.transcription", "tiny.dic", "tiny.lm"])
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / "etc" / file).unlink()
    with pytest.raises(ValueError, match=file.replace("tiny_train", "NAME_train")):
        read_corpus(folder)


def test_one_speaker_is_too_few(folder: Path) -> None:
    fileids = folder / "etc" / "tiny_train.fileids"
    fileids.write_text("\n".join(line for line in fileids.read_text().splitlines() if "ann" in line))
    with pytest.raises(ValueError, match="has one speaker, 'ann': validation takes whole speakers"):
        read_corpus(folder)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"rate": 8000}, "has 8,000 samples a second, and 16,000 are needed: convert it"),
        ({"channels": 2}, "has 2 channels, and one is needed"),
        ({"samples": np.zeros(SHORTEST - 1, dtype=np.int16)}, "has 399 samples, less than one frame"),
    ],
)
def test_other_recordings_are_refused(tmp_path: Path, how: dict[str, Any], said: str) -> None:
    path = write_wave(tmp_path / "a.wav", **{"samples": sound("YES", 1), **how})
    with pytest.raises(ValueError, match=said):
        read_wave(path)


def test_a_recording_of_more_than_an_hour_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its name says of its form: silence takes a few bytes an hour where it is compressed."""
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(2 * SHORTEST, dtype=np.int16), 16_000, format="FLAC")
    assert len(read_wave(path)) == 2 * SHORTEST
    monkeypatch.setattr(features, "LONGEST", SHORTEST)
    monkeypatch.setattr(soundfile.SoundFile, "read", None)
    with pytest.raises(
        ValueError, match=r"a.wav has 800 samples, more than an hour: cut it into several files"
    ):
        read_wave(path)


def test_a_damaged_recording_is_refused(tmp_path: Path) -> None:
    path = write_wave(tmp_path / "a.wav", sound("YES", 1))
    path.write_bytes(b"RIFX" + path.read_bytes()[4:30])
    with pytest.raises(ValueError, match=r"a.wav is no WAV file that can be read"):
        read_wave(path)


@pytest.mark.parametrize("format", ["AIFF", "AU", "W64", "NIST", "RF64"])
def test_a_format_whose_end_may_be_missing_is_refused(tmp_path: Path, format: str) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(2 * SHORTEST, dtype=np.int16), 16_000, format=format)
    with pytest.raises(ValueError, match=rf"a.wav is a recording in {format}: convert it to WAV or FLAC"):
        read_wave(path)


def test_a_recording_may_have_any_name(tmp_path: Path) -> None:
    assert len(read_wave(write_wave(tmp_path / "a.bin", sound("YES", 1))))
    with pytest.raises(ValueError, match=r"a.raw is no WAV file that can be read"):
        read_wave(write_wave(tmp_path / "a.raw", sound("YES", 1)))


def test_a_grammar_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.lm"
    path.write_bytes(
        "caf\xe9\n\\data\\\nngram 1=2\n\n\\1-grams:\n-0.3 </s>\n-0.3 F\xdcNF\n\n\\end\\\n".encode("latin-1")
    )
    with pytest.raises(ValueError, match=r"a\.lm is no text in UTF-8 .*: save it as such"):
        read_shipped(path)


def test_a_line_of_brackets_takes_no_time(tmp_path: Path) -> None:
    path = tmp_path / "a.transcription"
    path.write_text("(" * 10**6)
    with pytest.raises(ValueError, match=r"must be WORDS \(UTTERANCE\)"):
        read_transcription(path)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT", "DOUBLE"])
def test_samples_are_on_the_scale_of_16_bits(tmp_path: Path, subtype: str) -> None:
    samples = sound("YES", 1)
    soundfile.write(tmp_path / "a.wav", samples / 2**15, 16_000, subtype=subtype)
    assert read_wave(tmp_path / "a.wav").tolist() == samples.tolist()


@pytest.mark.parametrize("sample", [np.nan, np.inf, 1e300, -32769])
def test_samples_that_no_recording_has_are_refused(tmp_path: Path, sample: float) -> None:
    wave = sound("YES", 1) / 2**15
    wave[7] = sample
    soundfile.write(tmp_path / "a.wav", wave, 16_000, subtype="DOUBLE")
    said = r"a.wav has a sample of -?(nan|inf|32769.0), and a number from -32,768 to 32,768 is needed: write it anew"
    with pytest.raises(ValueError, match=said):
        read_wave(tmp_path / "a.wav")


def test_features_are_the_same_at_every_call(tmp_path: Path) -> None:
    samples = sound("YES NO", 1)
    read = read_wave(write_wave(tmp_path / "a.wav", samples))
    assert read.tolist() == samples.tolist()
    assert filterbank(read).shape == (len(cepstra(read)), 80)
    assert cepstra(read).shape[1] == 39
    assert (filterbank(read) == filterbank(read)).all()


def test_features_do_not_depend_on_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    wave = np.concatenate([sound("NO YES SO", seed) for seed in range(4)]).astype(np.float32)
    in_pieces = filterbank(wave), cepstra(wave)
    assert len(wave) > 3 * features.PIECE
    monkeypatch.setattr(features, "PIECE", len(wave))
    for one, other in zip(in_pieces, (filterbank(wave), cepstra(wave)), strict=True):
        assert one.tolist() == other.tolist()


def test_a_speaker_has_mean_0_and_variance_1() -> None:
    rng = np.random.default_rng(0)
    utterances = [3 + 2 * rng.standard_normal((size, 4)) for size in (5, 9)]
    utterances = [np.concatenate([each, np.full((len(each), 1), 7.0)], 1) for each in utterances]
    every = np.concatenate(normalise(utterances))
    assert every.mean(0) == pytest.approx(np.zeros(5), abs=1e-6)
    assert every.std(0) == pytest.approx([1, 1, 1, 1, 0], abs=1e-6)
    assert np.concatenate(normalise(utterances, variance=False)).std(0)[0] == pytest.approx(
        np.concatenate(utterances).std(0)[0], abs=1e-5
    )


@pytest.mark.corpus
def test_an4_itself(corpus_root: Any) -> None:
    corpus = read_corpus(Path(corpus_root("an4/etc/an4.dic")) / "an4")
    assert [len(corpus.splits[split]) for split in ("train", "valid", "test")] == [835, 113, 130]
    assert len({each.speaker for each in corpus.splits["valid"]}) == 9
    assert sum(len(each.words) for each in corpus.splits["test"]) == 773


def test_a_recording_that_is_compressed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(2 * SHORTEST, dtype=np.int16), 16_000, subtype="GSM610")
    with pytest.raises(ValueError, match=r"a\.wav is compressed as GSM610: convert it to WAV of 16 bits"):
        read_wave(path)


def test_a_recording_of_the_other_byte_order_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(4 * SHORTEST, dtype=np.int16), 16_000, endian="BIG")
    assert len(read_wave(path)) == 4 * SHORTEST
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"a\.wav was cut off, its header promises"):
        read_wave(path)
