"""Frames as classes: what the network reads at each step, what is kept on disk, and that every frame counts once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hornn.data.base import IGNORE, SPLITS
from hornn.speech import packages
from hornn.speech.data import SpeechData, build_data
from hornn.speech.prepared import SpeechCache
from speech.equal import train_equal
from speech.tiny import write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpora") / "tiny")


def data_of(folder: Path, train: Any = train_equal, **given: int) -> SpeechData:
    sizes = {"batch_size": 2, "seq_len": 20, "eval_batch_size": 3, "delay": 5, **given}
    delay = sizes.pop("delay")
    data = SpeechData(folder, folder.parent / "cache", train, delay, tuple(sizes.values()))  # type: ignore[arg-type]
    data.prepare_data()
    data.setup()
    return data


@pytest.mark.parametrize("split", SPLITS)
def test_every_frame_is_a_target_once(folder: Path, split: str) -> None:
    data = data_of(folder)
    chunks = list(data.stream(split))
    found = np.concatenate([chunk.targets[chunk.targets != IGNORE].numpy() for chunk in chunks])
    assert sum(chunk.count for chunk in chunks) == len(found) == data.size(split)
    expected = np.concatenate(data.prepared.states[split])
    assert np.bincount(found).tolist() == np.bincount(expected).tolist()
    if split == "train":
        assert data.counts == np.bincount(expected, minlength=15).tolist()


def test_a_state_is_named_after_the_frames_of_the_delay(folder: Path) -> None:
    data = data_of(folder, delay=3, seq_len=500, eval_batch_size=1)
    stream = data.stream("valid")
    chunk = next(iter(stream))
    number = stream.batches[0][0]
    states, features = data.prepared.states["valid"][number], data.prepared.features["valid"][number]
    assert chunk.targets[:3, 0].tolist() == [IGNORE] * 3
    assert chunk.targets[3:, 0].tolist() == states.tolist()
    assert chunk.inputs[:-3, 0].tolist() == features.tolist()
    assert (chunk.inputs[-3:] == 0).all()


def test_what_is_prepared_is_read_again(folder: Path) -> None:
    def refuse(*given: Any) -> Any:
        raise AssertionError("prepared twice")

    first, again = data_of(folder), data_of(folder, train=refuse)
    assert again.describe() == first.describe()
    assert again.prepared.model["stay"].tolist() == [0.75] * 15
    for split in SPLITS:
        for one, other in zip(first.prepared.features[split], again.prepared.features[split], strict=True):
            assert (one == other).all()


def test_each_speaker_is_normalised(folder: Path) -> None:
    features = np.concatenate(data_of(folder).prepared.features["valid"])  # of one speaker
    assert features.mean(0) == pytest.approx(np.zeros(80), abs=1e-4)
    assert features.std(0) == pytest.approx(np.ones(80), abs=1e-3)


def test_the_mixtures_are_scored_on_the_cepstra_that_trained_them(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "tiny")
    fileids = folder / "etc" / "tiny_test.fileids"  # bob, who is trained on, says the test utterances, too
    fileids.write_text(fileids.read_text().replace("eve/", "bob/"))
    (folder / "wav" / "test" / "eve").rename(folder / "wav" / "test" / "bob")
    trained_on: dict[str, np.ndarray] = {}

    def train(cepstra: Any, *given: Any) -> Any:
        trained_on.update(cepstra)
        return train_equal(cepstra, *given)

    data = data_of(folder, train=train)
    for recording, cepstra in zip(data.corpus.splits["train"], data.whole("train").cepstra, strict=True):
        assert (cepstra == trained_on[recording.id]).all()


def test_a_bigram_without_discounts_of_its_own_is_told(folder: Path) -> None:
    (said,) = data_of(folder).remarks()
    assert said.startswith("warning: the bigram grammar: the training text gives no Kneser-Ney discounts for")


def test_words_that_the_shipped_grammar_lacks_are_told(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "tiny")
    grammar = folder / "etc" / "tiny.lm"
    grammar.write_text(grammar.read_text().replace("-0.6021 SO\n", "").replace("ngram 1=5", "ngram 1=4"))
    data = data_of(folder)
    (_, said) = data.remarks()
    number = sum(words.count("SO") for words in data.said("test"))
    assert number > 1
    assert said == (
        f"warning: the shipped grammar lacks {number} of the {data.words('test')} words of test, such as 'SO': "
        f"each is an error; add them to {grammar}"
    )


@pytest.mark.parametrize("damage", ["cut", "other", "absent"])
def test_a_damaged_file_is_not_used(tmp_path: Path, damage: str) -> None:
    data = data_of(write_corpus(tmp_path / "tiny"))
    cache = SpeechCache(data.cache_dir, data.corpus, data.name)
    if damage == "cut":
        cache.kept.path.write_bytes(cache.kept.path.read_bytes()[:-2000])
    elif damage == "other":
        np.savez(cache.kept.path, about=np.array("{}"))
    else:
        cache.kept.path.unlink()
    assert cache.read() is None
    data_of(data.folder)
    assert cache.read() is not None


def test_a_corpus_that_changes_while_it_is_prepared_is_refused(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "tiny")
    wave = folder / "wav" / "train" / "bob" / "bob-0.wav"

    def train(*given: Any) -> Any:
        wave.write_bytes(wave.read_bytes() + b"\0\0")
        return train_equal(*given)

    with pytest.raises(ValueError, match="tiny changed while it was read: give the command again"):
        data_of(folder, train)
    assert not list((tmp_path / "cache").glob("*.npz"))


def test_a_corpus_that_changes_after_its_preparation_is_refused(tmp_path: Path) -> None:
    data = SpeechData(write_corpus(tmp_path / "tiny"), tmp_path / "cache", train_equal, 5, (2, 20, 3))
    data.prepare_data()
    (data.folder / "etc" / "tiny.dic").write_text("YES  EE SS\nNO  OO AA\nSO  SS AA\n")
    with pytest.raises(ValueError, match="tiny changed while it was read"):
        data.setup()


def test_other_words_are_prepared_anew(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "tiny")
    before = data_of(folder).describe()["text_checksum"]
    transcription = folder / "etc" / "tiny_train.transcription"
    transcription.write_text(transcription.read_text().replace("YES NO </s> (bob-0)", "SO SO </s> (bob-0)"))
    assert data_of(folder).describe()["text_checksum"] != before


def test_another_grammar_is_another_corpus(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "tiny")
    before = data_of(folder).describe()["text_checksum"]
    grammar = folder / "etc" / "tiny.lm"
    grammar.write_text(grammar.read_text().replace("-", "-1", 1))
    assert data_of(folder).describe()["text_checksum"] != before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delay": -1}, r"data\.delay must be from 0 to 1,000 frames, got -1"),
        ({"delay": 1001, "seq_len": 2000}, r"data\.delay must be from 0 to 1,000 frames, got 1001"),
        ({"seq_len": 5}, r"data\.seq_len must be above data\.delay=5, got 5"),
    ],
)
def test_values_that_cannot_be_are_refused(folder: Path, given: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        data_of(folder, **given).stream("train")


@pytest.mark.parametrize("name", ["/home/you/other", "../other", "..", "~", "a/b", ""])
def test_the_name_of_a_corpus_leads_to_no_other_folder(name: str) -> None:
    """A stranger's checkpoint gives the name."""
    with pytest.raises(ValueError, match=r"data\.name must be letters, digits, '\.', '_' and '-', got"):
        build_data(root="corpora", cache_dir="cache", name=name)


@pytest.mark.parametrize("name", ["an4", "tiny", "my-speech_2.1", "Åsa"])
def test_what_a_folder_can_be_called_is_a_name(name: str) -> None:
    assert build_data(root="corpora", cache_dir="cache", name=name).folder == Path("corpora") / name


def test_a_recording_that_cannot_be_read_stops_the_preparation(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "tiny")
    (folder / "wav" / "test" / "eve" / "eve-3.wav").write_bytes(b"no sound")
    with pytest.raises(ValueError, match=r"eve-3\.wav is no WAV file"):
        data_of(folder)
    assert not list((tmp_path / "cache").glob("*"))


def test_a_missing_package_is_named_before_anything_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(packages.PACKAGES, "jiwer", "jiwer-that-is-not-there")
    with pytest.raises(
        ValueError, match=r"speech needs the package jiwer-that-is-not-there, which is missing"
    ):
        data_of(folder)
