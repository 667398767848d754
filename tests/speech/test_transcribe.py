"""transcribe.py: words with times, n-best lists that rescore.py reads, refusals."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hornn
from commands.outcomes import refusal
from hornn.speech.features import read_wave
from hornn.speech.recogniser import Recogniser
from hornn.use.nbest import read_nbest, read_references
from hornn.use.speech_model import frames_of
from outcome import Command
from speech.conftest import Run
from speech.tiny import SAID, sound, write_wave


@pytest.mark.parametrize("grammar", ["shipped", "bigram"])
def test_the_words_of_a_file_have_times(command: Command, run: Run, tmp_path: Path, grammar: str) -> None:
    path = write_wave(tmp_path / "new.wav", sound("NO SO YES", 7))
    done = command("transcribe", run.checkpoint, f"wav={path}", f"grammar={grammar}")
    assert (done.code, done.err) == (0, "")
    first, *lines = done.out.splitlines()
    assert first == f"{path}: NO SO YES"
    times = np.array([line.split()[:2] for line in lines], dtype=float)
    assert [line.split()[2] for line in lines] == ["NO", "SO", "YES"]
    assert (np.diff(times.ravel()) >= 0).all()
    assert abs(times[0, 0] - 0.12) < 0.08
    assert times[-1, 1] <= 1.1


@pytest.mark.parametrize("source", ["file", "utterance"])
def test_a_program_reads_each_recording_as_json(
    command: Command, run: Run, tmp_path: Path, source: str
) -> None:
    path = write_wave(tmp_path / "new.wav", sound("NO SO YES", 7))
    words = [f"wav={path}"] if source == "file" else ["split=test", *run.places]
    plain = command("transcribe", run.checkpoint, *words)
    found = command("transcribe", run.checkpoint, *words, "json=true")
    assert (found.code, found.err) == (0, "")
    records = [json.loads(line) for line in found.out.splitlines()]
    assert len(records) == (1 if source == "file" else 5)
    lines = []
    for record in records:
        assert list(record) == [source, "text", "words"]
        lines.append(f"{record[source]}: {record['text']}")
        lines += [f"{word['begin']:8.2f} {word['end']:8.2f}  {word['word']}" for word in record["words"]]
    assert plain.out.splitlines() == lines


def test_python_hears_what_the_command_hears(
    command: Command, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write_wave(tmp_path / f"{seed}.wav", sound(SAID[seed], seed)) for seed in range(2)]
    model = hornn.load_speech(run.folder / "best.ckpt")
    for grammar in ("shipped", "bigram"):
        words = [f"wav=[{paths[0]},{paths[1]}]", f"grammar={grammar}", "json=true"]
        told = map(json.loads, command("transcribe", run.checkpoint, *words).out.splitlines())
        for record, heard in zip(told, model.transcribe(paths, grammar, batch_size=1), strict=True):
            assert record["text"] == heard.text
            found = [{"word": word.text, "begin": word.begin, "end": word.end} for word in heard.words]
            assert record["words"] == found
    monkeypatch.chdir(run.folder)
    model = hornn.load_speech("best.ckpt")
    monkeypatch.chdir(tmp_path)  # the scale that validation chose is beside the checkpoint still
    assert model.transcribe(paths[:1])[0].words
    (texts, _) = model.nbest(list(map(str, paths)), 3)
    assert 1 <= len(texts) <= 3
    assert list(texts[0].words) == model.transcribe(paths)[0].text.split()
    (tmp_path / "alone").mkdir()
    alone = tmp_path / "alone" / "best.ckpt"
    alone.write_bytes((run.folder / "best.ckpt").read_bytes())
    assert hornn.load_speech(alone, acoustic_scale=0.1).transcribe(paths[:1])[0].words
    for do, said in (
        (
            lambda: hornn.load_speech(alone).transcribe(paths),
            r"no result\.json beside .* says which acoustic scale",
        ),
        (
            lambda: hornn.load_speech(alone, acoustic_scale=0),
            "acoustic_scale must be > 0 and finite, got 0",
        ),
        (
            lambda: hornn.load_speech(alone, acoustic_scale="a"),  # type: ignore[arg-type]
            "acoustic_scale must be > 0 and finite, got 'a'",
        ),
        (lambda: model.transcribe(None), "recordings must be a list of WAV files, got None"),  # type: ignore[arg-type]
        (lambda: model.transcribe([None]), "a list of WAV files takes a path, got None"),  # type: ignore[list-item]
        (lambda: model.transcribe(paths[0]), "recordings must be a list of WAV files"),  # type: ignore[arg-type]
        (lambda: model.transcribe([]), "is an empty list"),
        (lambda: model.transcribe([paths[0]] * 2), "names a file twice"),
        (lambda: model.transcribe(paths, "trigram"), "grammar must be one of shipped, bigram"),
        (lambda: model.nbest(paths, 0), "nbest must be a whole number from 1"),
        (lambda: hornn.load_music(alone), r"is no model of music: hornn\.load_speech and transcribe take it"),
        (lambda: hornn.load_speech(3), "load_speech takes a path"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match=said):
            do()


def test_nbest_lists_are_what_rescoring_reads(command: Command, run: Run, tmp_path: Path) -> None:
    said = tmp_path / "test.txt"
    words = [run.checkpoint, "split=test", "acoustic_scale=0.05", "nbest=4"]
    done = command("transcribe", *words, f"references={said}", *run.places)
    assert (done.code, done.err) == (0, "")
    lists = tmp_path / "test.tsv"
    lists.write_text(done.out)
    found = read_nbest(lists)
    assert list(read_references(said, found).values()) == [text.split() for text in SAID]
    for hypotheses in found.values():
        totals = [each.acoustic + each.old for each in hypotheses]
        assert totals == sorted(totals, reverse=True)
        assert 1 <= len({each.text for each in hypotheses}) == len(hypotheses) <= 4
    assert sum(map(len, found.values())) > len(found)


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give wav=FILE, or split="),
        (["wav=x.wav", "split=test"], "give wav=FILE, or split="),
        (["wav=x.wav", "references=x.txt"], "references= writes what is said in a split"),
        (["wav=x.wav", "json=7"], "json must be true or false, got 7"),
        (["wav=x.wav", "json=true", "nbest=2"], "json=true and nbest= are two forms of what is printed"),
        (["wav=x.wav", "grammar=trigram"], "grammar must be one of shipped, bigram, got 'trigram'"),
        (["wav=x.wav", "acoustic_scale=0"], "acoustic_scale must be > 0 and finite"),
        (["wav=x.wav", "nbest=0"], "nbest must be a whole number from 1 to 2147483647, got 0"),
        (
            ["wav=x.wav", "nbest=1000000000000"],
            "nbest must be a whole number from 1 to 2147483647, got 1000000000000",
        ),
        (
            ["wav='a b.wav'", "nbest=2"],
            "'a b.wav' holds white space, where `rescore` ends an utterance's name",
        ),
        (["wav=[]"], "wav= is an empty list: give a WAV file"),
        (["wav=[x.wav,x.wav]"], "wav= names a file twice"),
        (["wav=[x.wav,./x.wav]"], "wav= names a file twice"),
        (["wav=nowhere.wav"], "nowhere.wav"),
        (["split=dev"], "split must be one of train, valid, test, got 'dev'"),
    ],
)
def test_what_cannot_be_transcribed_is_refused(
    command: Command, run: Run, words: list[str], message: str
) -> None:
    assert message in refusal(command("transcribe", run.checkpoint, *words))


def test_a_recording_that_was_cut_off_is_refused(command: Command, run: Run, tmp_path: Path) -> None:
    path = write_wave(tmp_path / "half.wav", sound("YES", 1))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    line = refusal(command("transcribe", run.checkpoint, f"wav={path}"))
    assert f"{path} was cut off, its header promises {len(whole):,} bytes: copy it again" in line


@pytest.mark.parametrize("promised", [2**32 - 1, 2**31 - 2**12 + 36])
def test_a_recording_written_into_a_pipe_is_whole(tmp_path: Path, promised: int) -> None:
    """Its writer did not know how long it would be: ffmpeg's header, and the one of sox and arecord."""
    path = write_wave(tmp_path / "whole.wav", sound("YES", 1))
    wave, whole = read_wave(path), path.read_bytes()
    path.write_bytes(whole[:4] + promised.to_bytes(4, "little") + whole[8:])
    assert (read_wave(path) == wave).all()


def test_a_recording_in_which_nothing_is_found_is_named(command: Command, run: Run, tmp_path: Path) -> None:
    path = write_wave(tmp_path / "yes.wav", sound("YES", 1))
    done = command("transcribe", run.checkpoint, f"wav={path}", "nbest=2", "acoustic_scale=1e30")
    assert (done.code, done.out) == (2, "")
    assert f"{path}: no text was found at acoustic_scale=1e+30: give a smaller one" in done.err


def test_a_telephone_recording_is_refused(command: Command, run: Run, tmp_path: Path) -> None:
    path = write_wave(tmp_path / "narrow.wav", sound("YES", 1), rate=8000)
    line = refusal(command("transcribe", run.checkpoint, f"wav={path}"))
    assert f"{path} has 8,000 samples a second" in line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delay": -1}, "the parts of"),
        ({"delay": "5"}, "the parts of"),
        ({"recogniser": None}, "no recogniser can be made"),
        (
            {"recogniser": {"pronunciations": [["YES", "EE"]], "stay": [0.5] * 6, "grammars": {}}},
            "the parts of",
        ),
        ("no bigram", "the parts of"),
    ],
)
def test_a_damaged_checkpoint_is_refused(
    command: Command, run: Run, tmp_path: Path, change: Any, message: str
) -> None:
    checkpoint = torch.load(run.folder / "best.ckpt", weights_only=True)
    if change == "no bigram":
        del checkpoint["hornn"]["recogniser"]["grammars"]["bigram"]
    else:
        checkpoint["hornn"] |= change
    torch.save(checkpoint, tmp_path / "damaged.ckpt")
    given = ["acoustic_scale=0.1", f"wav={write_wave(tmp_path / 'a.wav', sound('YES', 1))}"]
    assert message in refusal(command("transcribe", f"checkpoint={tmp_path / 'damaged.ckpt'}", *given))


def test_a_scale_that_nothing_says_is_asked_for(command: Command, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "alone.ckpt"
    path.write_bytes((run.folder / "best.ckpt").read_bytes())
    other = json.loads((run.folder / "result.json").read_text()) | {"name": "another run"}
    for beside in (None, other):
        if beside:
            (tmp_path / "result.json").write_text(json.dumps(beside))
        line = refusal(command("transcribe", f"checkpoint={path}", "wav=x.wav"))
        assert line.rstrip().endswith("put the one of its run there, or give acoustic_scale=")


def test_a_recording_from_a_pipe_is_refused() -> None:
    reading, writing = os.pipe()
    with (
        os.fdopen(reading),
        os.fdopen(writing),
        pytest.raises(ValueError, match="is a pipe, and a recording is"),
    ):
        read_wave(Path(f"/dev/fd/{reading}"))


def test_the_references_of_a_corpus_are_not_written_over(command: Command, run: Run) -> None:
    target = run.root / "tiny" / "etc" / "tiny_test.transcription"
    before = target.read_bytes()
    line = refusal(command("transcribe", run.checkpoint, "split=test", *run.places, f"references={target}"))
    assert f"{target} is a file of the" in line
    assert target.read_bytes() == before


def test_other_commands_send_a_model_of_speech_here(command: Command, run: Run, tmp_path: Path) -> None:
    for words in (["generate", f"to={tmp_path / 'x.mid'}"], ["score", "text=x.txt"]):
        assert "transcribe" in refusal(command(words[0], run.checkpoint, *words[1:]))


def test_evaluation_prints_word_errors_with_alignments(command: Command, run: Run, tmp_path: Path) -> None:
    figures, result = (tmp_path / "figures.json", run.folder / "result.json")
    done = command("evaluate", run.checkpoint, *run.places, "split=test", f"result={figures}")
    assert done.code == 0, done.err
    found, then = (json.loads(path.read_text()) for path in (figures, result))
    for end, name in (("", "shipped"), ("_bigram", "bigram")):
        assert found[f"wer{end}"] == pytest.approx(then[f"test_wer{end}"])
        assert found[f"acoustic_scale{end}"] == then[f"acoustic_scale{end}"]
        assert f"word errors by the {name} grammar: {found[f'wer{end}']:.2f} % of 11 words" in done.out
    assert "eve-1\nREF: NO SO YES\nHYP: " in done.out
    assert found["accuracy"] == pytest.approx(then["test_accuracy"], abs=1e-3)
    assert found["nats_per_frame"] == pytest.approx(then["test_nll"], rel=1e-5)
    assert not [key for key in found if " " in key]


def test_the_training_split_is_heard_as_others_are(command: Command, run: Run, tmp_path: Path) -> None:
    """In batches of one order, and in chunks from which a training could not learn."""
    figures = tmp_path / "figures.json"
    words = ["split=train", "batch_size=4", "seq_len=4", f"result={figures}"]
    done = command("evaluate", run.checkpoint, *run.places, *words)
    assert done.code == 0, done.err
    found = json.loads(figures.read_text())
    assert found["accuracy"] > 0.8
    assert max(found["wer"], found["wer_bigram"]) < 20


def test_an_n_best_list_has_the_acoustic_score_before_the_old_one(
    command: Command, run: Run, tmp_path: Path
) -> None:
    path = write_wave(tmp_path / "new.wav", sound("NO SO YES", 7))
    done = command("transcribe", run.checkpoint, f"wav={path}", "nbest=2", "acoustic_scale=0.05")
    hypotheses = hornn.load_speech(run.folder / "best.ckpt", 0.05).nbest([path], 2)[0]
    numbers = [tuple(map(float, line.split("\t")[2:])) for line in done.out.splitlines()]
    assert numbers == [pytest.approx((each.acoustic, each.language), abs=1e-4) for each in hypotheses]


def test_each_grammar_has_the_scale_that_validation_chose_for_it(run: Run, tmp_path: Path) -> None:
    result = json.loads((run.folder / "result.json").read_text())
    result |= {"acoustic_scale": 0.2, "acoustic_scale_bigram": 0.08}
    (tmp_path / "result.json").write_text(json.dumps(result))
    (tmp_path / "best.ckpt").write_bytes((run.folder / "best.ckpt").read_bytes())
    model = hornn.load_speech(tmp_path / "best.ckpt")
    assert [model.scale(grammar) for grammar in ("shipped", "bigram")] == [0.2, 0.08]


def test_recordings_count_as_one_speakers(tmp_path: Path) -> None:
    paths = [write_wave(tmp_path / f"{seed}.wav", sound(SAID[seed], seed)) for seed in range(2)]
    frames = frames_of(paths)
    assert abs(np.concatenate(frames).mean(0)).max() < 1e-3 < abs(frames[0].mean(0)).max()


def test_words_are_searched_in_scaled_scores(
    command: Command, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_wave(tmp_path / "new.wav", sound("NO SO YES", 7))
    (expected,) = hornn.load_speech(run.folder / "best.ckpt", 0.25).scaled_scores([path], "bigram", 1)
    given: list[Any] = []
    monkeypatch.setattr(Recogniser, "decode", lambda _, *words: given.append(words) or [])
    command("transcribe", run.checkpoint, f"wav={path}", "acoustic_scale=0.25", "grammar=bigram")
    ((scores, grammar),) = given
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    assert grammar == "bigram"


def test_what_a_network_says_late_is_of_the_frame_before(run: Run) -> None:
    model = hornn.load_speech(run.folder / "best.ckpt", 0.1)
    frames = np.random.default_rng(1).standard_normal((20, 80)).astype(np.float32)
    model.delay = 0
    (late,) = model.scores([np.pad(frames, ((0, 3), (0, 0)))], 1)
    model.delay = 3
    (scores,) = model.scores([frames], 1)
    np.testing.assert_allclose(scores, late[3:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("split", "folder"), [("valid", "train/ann"), ("test", "test/eve")])
def test_a_split_is_heard_as_the_files_of_its_speaker_are(
    command: Command, run: Run, split: str, folder: str
) -> None:
    done = command("transcribe", run.checkpoint, f"split={split}", "json=true", *run.places)
    found = {record["utterance"]: record["words"] for record in map(json.loads, done.out.splitlines())}
    paths = sorted(Path(run.root, "tiny", "wav", folder).iterdir())
    heard = hornn.load_speech(run.folder / "best.ckpt").transcribe(paths)
    assert [[word["end"] for word in words] for words in found.values()] == [
        [word.end for word in each.words] for each in heard
    ]
    assert [name.rpartition("/")[2] for name in found] == [path.stem for path in paths]


def test_the_prior_of_a_state_is_taken_out_of_its_score(run: Run) -> None:
    model = hornn.load_speech(run.folder / "best.ckpt", 0.1)
    (scores,) = model.scores([np.zeros((7, 80), np.float32)], 1)
    model.counts = [1] * len(model.counts)
    (even,) = model.scores([np.zeros((7, 80), np.float32)], 1)
    assert np.exp(even - np.log(len(model.counts))).sum(1) == pytest.approx(1, rel=1e-3)
    assert abs(scores - even).max() > 0.1
