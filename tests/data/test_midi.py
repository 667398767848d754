"""MIDI files as frames and back: what sounds where, what is left out, what is refused."""

import random
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.mutation import damage_bytes
from hornn.data.midi import BEAT, KEYS, LARGEST, LOWEST, read_midi, require_frames, write_midi
from small_music import piece

mido = pytest.importorskip("mido")

Event = tuple[str, int, int, int]  # kind, ticks since the event before, note, velocity


def midi(path: Path, *tracks: Sequence[Event], channel: int = 0, kind: int = 1, beat: int = 100) -> Path:
    file = mido.MidiFile(type=kind, ticks_per_beat=beat)
    for events in tracks:
        file.tracks.append(
            mido.MidiTrack(
                mido.Message(word, time=time, note=note, velocity=velocity, channel=channel)
                for word, time, note, velocity in events
            )
        )
    file.save(path)
    return path


def sounding(frames: np.ndarray) -> list[list[int]]:
    """The notes of each frame."""
    return [(np.flatnonzero(frame) + LOWEST).tolist() for frame in frames]


def test_notes_begin_and_end_at_the_nearest_frames(tmp_path: Path) -> None:
    """The file has 100 ticks a quarter note, so a frame of length 0.25 has 25 ticks."""
    path = midi(
        tmp_path / "a.mid",
        [("note_on", 0, 60, 9), ("note_off", 62, 60, 0), ("note_on", 3, 62, 9), ("note_off", 1, 62, 0)],
        [("note_on", 30, 64, 9), ("note_on", 59, 64, 0)],  # velocity 0 is an end, too
    )
    frames, left_out = read_midi(path, 0.25)
    assert sounding(frames) == [[60], [60, 64], [64], [62, 64]]
    assert (frames.dtype, left_out) == (np.uint8, 0)


@pytest.mark.parametrize("ticks", [24, 96, 100, 480, 960])
def test_of_two_frames_that_are_alike_near_the_later_one_counts(tmp_path: Path, ticks: int) -> None:
    """A note is 2.5 frames long, so that every other note ends in the middle of a frame. The ticks change nothing."""
    file = mido.MidiFile(ticks_per_beat=ticks)
    track = mido.MidiTrack()
    for key in range(60, 68):
        track += [
            mido.Message("note_on", note=key, time=0),
            mido.Message("note_off", note=key, time=ticks // 4),
        ]
    file.tracks.append(track)
    file.save(tmp_path / "a.mid")
    lengths = [len(list(same)) for _, same in groupby(sounding(read_midi(tmp_path / "a.mid", 0.1)[0]))]
    assert lengths == [3, 2] * 4


def test_a_piece_begins_with_its_first_note_and_ends_with_its_last(tmp_path: Path) -> None:
    path = midi(
        tmp_path / "a.mid", [("note_on", 300, 60, 9), ("note_off", 50, 60, 0), ("note_off", 900, 61, 0)]
    )
    assert sounding(read_midi(path, 0.25)[0]) == [[60], [60]]


def test_a_note_that_never_ends_lasts_as_long_as_its_track(tmp_path: Path) -> None:
    path = midi(tmp_path / "a.mid", [("note_on", 0, 60, 9), ("note_on", 25, 62, 9), ("note_off", 50, 62, 0)])
    assert sounding(read_midi(path, 0.25)[0]) == [[60], [60, 62], [60, 62]]


def test_a_key_that_is_struck_again_sounds_on(tmp_path: Path) -> None:
    path = midi(tmp_path / "a.mid", [("note_on", 0, 60, 9), ("note_on", 50, 60, 9), ("note_off", 50, 60, 0)])
    assert sounding(read_midi(path, 0.5)[0]) == [[60], [60]]


def test_a_key_that_is_struck_again_before_its_end_is_written_sounds_on(tmp_path: Path) -> None:
    struck = [
        ("note_on", 0, 60, 9),
        ("note_on", 100, 60, 9),
        ("note_off", 0, 60, 0),
        ("note_off", 100, 60, 0),
    ]
    path = midi(tmp_path / "a.mid", [*struck, ("note_on", 0, 62, 9), ("note_off", 0, 62, 0)])
    assert sounding(read_midi(path, 0.5)[0]) == [[60], [60], [60], [60], [62]]


def test_drums_and_notes_beyond_the_keys_are_left_out(tmp_path: Path) -> None:
    drums = midi(tmp_path / "drums.mid", [("note_on", 0, 60, 9), ("note_off", 50, 60, 0)], channel=9)
    with pytest.raises(ValueError, match="has no notes on the 88 keys of a piano: leave it out"):
        read_midi(drums, 0.5)
    beyond = [("note_on", 0, note, 9) for note in (20, 21, 108, 109)]
    frames, left_out = read_midi(midi(tmp_path / "a.mid", [*beyond, ("note_off", 50, 20, 0)]), 0.5)
    assert (sounding(frames), left_out) == ([[21, 108]], 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no MIDI file that can be read"),
        (b"a text\n", "is no MIDI file that can be read"),
        (b"MThd\0\0\0\6\0\1\0\1\0\x60MTrk\0\1\0\0" + b"\xff" * 5000, "(a number without an end)"),
        (
            b"MThd\0\0\0\6\0\1\0\1\0\x60MTrk\0\0\0\xd0\0\x90@@" + b"\xff" * 200 + b"\x7f\x80@\0",
            "more than four bytes",
        ),
        (b"MThd\0\0\0\6\0\1\0\1\0\x60MTrk\0\0\0\xff", "is no MIDI file that can be read"),
        (b"MThd\0\0\0\6\0\0\0\0\0\x60", "has no notes on the 88 keys"),
        (b"MThd\0\0\0\6\0\1\0\0\xe8\x04", "counts seconds and no quarter notes"),
        (b"MThd\0\0\0\6\0\1\0\0\0\0", "counts seconds and no quarter notes"),
    ],
)
def test_what_holds_no_piece_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.mid").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        read_midi(tmp_path / "x.mid", 0.5)


def test_a_file_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.mid").write_bytes(bytes(LARGEST + 1))
    with pytest.raises(ValueError, match="is larger than the 2,097,152 bytes that a MIDI file may have"):
        read_midi(tmp_path / "x.mid", 0.5)


def test_more_time_than_a_file_can_tell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"frame_length must be below 279620 quarter notes for 2 frames, got 1000000"
    ):
        write_midi(tmp_path / "x.mid", piece(2), 1e6)
    write_midi(tmp_path / "x.mid", piece(2), 279_000)


def test_songs_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    song = [("note_on", 0, 60, 9), ("note_off", 50, 60, 0)]
    with pytest.raises(ValueError, match="holds several songs, a track each"):
        read_midi(midi(tmp_path / "a.mid", song, song, kind=2), 0.5)


def test_a_piece_without_end_takes_no_memory(tmp_path: Path) -> None:
    path = midi(tmp_path / "a.mid", [("note_on", 0, 60, 9), ("note_off", 2**27, 60, 0)], beat=1)
    with pytest.raises(
        ValueError, match=r"has 268,435,456 frames of 0\.5 quarter notes, and a piece may have 100,000"
    ):
        read_midi(path, 0.5)


@pytest.mark.parametrize("length", [0, 0.002, -1.0, float("nan"), float("inf"), True, "a", None])
def test_what_is_no_length_of_a_frame(tmp_path: Path, length: object) -> None:
    for do in (
        lambda: read_midi(tmp_path / "x.mid", length),
        lambda: write_midi(tmp_path / "x", piece(1), length),
    ):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="frame_length must be a number of quarter notes from 1/480 on"):
            do()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("frames", "got"),
    [
        ([[0] * KEYS], "list"),
        (np.zeros((0, KEYS)), r"\(0, 88\)"),
        (np.zeros((2, 87)), r"\(2, 87\)"),
        (np.full((2, KEYS), 0.5), r"\(2, 88\)"),
    ],
)
def test_what_are_no_frames(frames: object, got: str) -> None:
    with pytest.raises(ValueError, match=rf"must be an array of frames \(N, 88\) of 0 and 1, got {got}"):
        require_frames(frames)


@given(
    length=st.integers(1, 30),
    seed=st.integers(0, 99),
    frame_length=st.sampled_from([0.125, 0.25, 1 / 3, 1, 3.7]),
)
def test_frames_that_are_written_are_read(
    tmp_path_factory: pytest.TempPathFactory, length: int, seed: int, frame_length: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.mid"
    write_midi(path, piece(length, seed), frame_length)
    frames, left_out = read_midi(str(path), frame_length)
    assert (frames == piece(length, seed)).all()
    assert left_out == 0


def test_a_damaged_file_is_a_piece_or_refused(tmp_path: Path) -> None:
    write_midi(tmp_path / "good.mid", piece(20), 0.25)
    good, path = (tmp_path / "good.mid").read_bytes(), tmp_path / "damaged.mid"
    refused = 0
    for seed in range(300):
        path.write_bytes(damage_bytes(good, random.Random(seed)))
        try:
            frames, _ = read_midi(path, 0.25)
        except ValueError:
            refused += 1
        else:
            require_frames(frames)
    assert 0 < refused < 300


def test_a_key_that_goes_on_is_one_note(tmp_path: Path) -> None:
    frames = np.zeros((4, KEYS), dtype=np.uint8)
    frames[0:3, 39] = 1
    frames[2, 43] = 1
    write_midi(tmp_path / "x.mid", frames, 0.5)
    (track,) = mido.MidiFile(tmp_path / "x.mid").tracks
    notes = [(each.type, each.note - LOWEST, each.time // (BEAT // 2)) for each in track if not each.is_meta]
    assert notes == [("note_on", 39, 0), ("note_on", 43, 2), ("note_off", 39, 1), ("note_off", 43, 0)]


@pytest.mark.parametrize("sounding", [0, 2])
def test_silence_is_as_long_as_its_frames(sounding: int, tmp_path: Path) -> None:
    frames = np.zeros((5, KEYS), dtype=np.uint8)
    frames[:sounding, 39] = 1
    write_midi(tmp_path / "x.mid", frames, 0.5)
    (track,) = mido.MidiFile(tmp_path / "x.mid").tracks
    assert sum(each.time for each in track) == 5 * BEAT / 2


def test_a_key_of_two_channels_sounds_until_both_let_it_go(tmp_path: Path) -> None:
    file = mido.MidiFile(ticks_per_beat=100)
    file.tracks.append(
        mido.MidiTrack(
            mido.Message(word, time=time, note=60, velocity=9, channel=channel)
            for word, time, channel in (
                ("note_on", 0, 0),
                ("note_on", 50, 1),
                ("note_off", 0, 0),
                ("note_off", 50, 1),
            )
        )
    )
    file.save(tmp_path / "a.mid")
    assert sounding(read_midi(tmp_path / "a.mid", 0.5)[0]) == [[60], [60]]
    file.tracks[0][2].time, file.tracks[0][3].time = 50, 50
    file.save(tmp_path / "a.mid")
    assert sounding(read_midi(tmp_path / "a.mid", 0.5)[0]) == [[60], [60], [60]]


def test_a_note_that_ends_halfway_between_two_frames_ends_at_the_later(tmp_path: Path) -> None:
    path = midi(tmp_path / "a.mid", [("note_on", 0, 60, 9), ("note_off", 125, 60, 0)])
    assert sounding(read_midi(path, 0.5)[0]) == [[60]] * 3


def test_notes_that_are_left_out_are_counted_over_all_tracks(tmp_path: Path) -> None:
    low = [("note_on", 0, 10, 9), ("note_off", 25, 10, 0)]
    path = midi(tmp_path / "a.mid", low, low, [("note_on", 0, 60, 9), ("note_off", 25, 60, 0)])
    assert read_midi(path, 0.25)[1] == 2


def test_a_key_that_is_let_go_twice_at_the_tick_of_its_second_strike_ends(tmp_path: Path) -> None:
    events = [("note_on", 0, 60, 9), ("note_on", 25, 60, 9), ("note_off", 0, 60, 0), ("note_off", 0, 60, 0)]
    path = midi(tmp_path / "a.mid", [*events, ("note_off", 75, 60, 0)])
    assert sounding(read_midi(path, 0.25)[0]) == [[60]] * 2
