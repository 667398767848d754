"""MIDI files as frames of the keys of a piano, and frames as MIDI files."""

import math
import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hornn.checks import is_number, require_package, require_path, require_range
from hornn.writing import replacing

KEYS = 88  # of a piano
LOWEST = 21  # the note of MIDI that key 0 is, A0
DRUMS = 9  # the channel, counted from 0, whose notes are no pitches
BEAT = 480  # ticks of a quarter note in written files; MIDI's default tempo, theirs, is 120 quarter notes a minute
VELOCITY = 80
LARGEST = 2 * 2**20  # bytes of a file: the reader keeps some hundred bytes for each event
# Bytes that go on with a number: the reader has no bound for it. Texts may have some of them.
ENDLESS = re.compile(rb"[\x80-\xff]{1024}")
MOST = 2**28  # ticks from an event to the next: MIDI's numbers have four bytes of seven bits
LONGEST = 100_000  # frames of a piece: a tick of a damaged file may lie centuries after the one before


class Note(NamedTuple):
    """A sounding key, from `start` to `end` in ticks."""

    key: int
    start: int
    end: int


def require_frame_length(key: str, value: Any) -> None:
    """Raise ValueError for what is no length of a frame in quarter notes, and for one that no written file can tell."""
    holds = is_number(value) and 1 / BEAT <= value < math.inf
    allowed = f"a number of quarter notes from 1/{BEAT} on, such as 0.25 for a sixteenth note"
    require_range(key, value, allowed, holds)


def require_frames(frames: Any) -> None:
    """Raise ValueError for what is no piece, an array (N, 88) of 0 and 1."""
    fits = isinstance(frames, np.ndarray) and frames.ndim == 2 and frames.shape[1] == KEYS and len(frames)
    if not fits or not np.isin(frames, (0, 1)).all():
        got = frames.shape if isinstance(frames, np.ndarray) else type(frames).__name__
        raise ValueError(f"a piece must be an array of frames (N, {KEYS}) of 0 and 1, got {got}")


def read_midi(path: str | Path, frame_length: float) -> tuple[np.ndarray, int]:
    """The piece of a MIDI file as frames (N, 88) of 0 and 1, and how many notes are left out.

    frame_length: of a frame, in quarter notes. A note begins and ends at the borders of frames that are nearest, and
    sounds in one frame at least; the tempo does not matter. All tracks and channels are one piano, and drums are left
    out, as are notes beyond its keys. The piece begins with its first note and ends with its last.
    Raises ValueError for a file that is no MIDI file, whose tracks do not belong together, that counts in seconds, that
    has no notes, or that is longer than 100,000 frames, and for what is no length; OSError where it cannot be opened.
    """
    require_package("mido", "a MIDI file")
    require_path("read_midi", path)
    require_frame_length("frame_length", frame_length)
    import mido  # the extra `music`; text does without it

    # Read before mido reads it: an OSError here is the file system's, and mido raises some for damage, too.
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no MIDI file {path}: check the path") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder: give a MIDI file") from None
    if len(content) > LARGEST:
        raise ValueError(
            f"{path} is larger than the {LARGEST:,} bytes that a MIDI file may have: leave it out"
        )
    try:
        if ENDLESS.search(content):
            raise ValueError("a number without an end")
        song = mido.MidiFile(file=BytesIO(content))
        if any(message.time >= MOST for track in song.tracks for message in track):
            raise ValueError("a time of more than four bytes")
    except Exception as error:  # what a damaged file raises cannot be foreseen
        said = str(error) or type(error).__name__
        raise ValueError(f"{path} is no MIDI file that can be read ({said}): leave it out") from error
    if song.type == 2:
        raise ValueError(
            f"{path} holds several songs, a track each (type 2): write each into a file of its own"
        )
    if song.ticks_per_beat <= 0:
        raise ValueError(
            f"{path} counts seconds and no quarter notes (SMPTE): write it with ticks per quarter note"
        )
    notes, left_out = [], 0
    for track in song.tracks:
        of_keys, others = notes_of(track)
        notes += of_keys
        left_out += others
    if not notes:
        raise ValueError(f"{path} has no notes on the {KEYS} keys of a piano: leave it out")
    ticks = song.ticks_per_beat * frame_length
    spans = [
        (note.key, start := nearest(note.start / ticks), max(start + 1, nearest(note.end / ticks)))
        for note in notes
    ]
    first, last = min(start for _, start, _ in spans), max(end for _, _, end in spans)
    if last - first > LONGEST:
        raise ValueError(
            f"{path} has {last - first:,} frames of {frame_length} quarter notes, and a piece may have {LONGEST:,}: "
            "give a greater frame length, or leave it out"
        )
    changes = np.zeros((last - first + 1, KEYS), dtype=np.int32)  # how many notes begin, less how many end
    for key, start, end in spans:
        changes[start - first, key] += 1
        changes[end - first, key] -= 1
    return (changes[:-1].cumsum(0) > 0).astype(np.uint8), left_out


def notes_of(track: Iterable[Any]) -> tuple[list[Note], int]:
    """The notes of a track on the keys of a piano, and the number of its other notes.

    A note ends where the same key of the same channel is let go or struck again, or with the track. A key that is let
    go at the tick at which it was struck again goes on: what ends is the note before, which some programs write second.
    """
    begun: dict[tuple[int, int], int] = {}
    again: dict[tuple[int, int], int] = {}  # where a key was last struck while it sounded
    notes, others, now = [], 0, 0
    for message in track:
        now += message.time
        if message.type not in ("note_on", "note_off"):
            continue
        strikes = message.type == "note_on" and message.velocity > 0
        key = message.note - LOWEST
        if message.channel == DRUMS or not 0 <= key < KEYS:
            others += strikes
            continue
        place = (message.channel, key)
        if not strikes and again.pop(place, None) == now:
            continue
        if place in begun:
            notes.append(Note(key, start := begun.pop(place), now))
            if strikes and start < now:
                again[place] = now
        if strikes:
            begun[place] = now
    return [*notes, *(Note(key, start, now) for (_, key), start in begun.items())], others


def describe_left_out(notes: int) -> str:
    return f"{notes:,} notes left out: drums, and notes beyond the keys of a piano"


def nearest(position: float) -> int:
    """The nearest whole number; of two, the greater, also where rounding left the position just below the middle."""
    return math.floor(round(position, 9) + 0.5)


def write_midi(path: str | Path, frames: np.ndarray, frame_length: float) -> None:
    """Write frames (N, 88) of 0 and 1, of `frame_length` quarter notes each, as one track.

    A key that goes on from frame to frame is one long note. A file of that name is replaced.
    Raises ValueError for other frames, for what is no length and for more time than a file can tell, OSError where the
    file cannot be written.
    """
    require_package("mido", "a MIDI file")
    require_path("write_midi", path)
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file")
    require_frames(frames)
    require_frame_length("frame_length", frame_length)
    longest = MOST / BEAT / len(frames)
    fits = f"below {longest:g} quarter notes for {len(frames):,} frames"
    require_range("frame_length", frame_length, fits, frame_length < longest)
    import mido

    track = mido.MidiTrack()
    before, last = np.zeros(KEYS, dtype=bool), 0
    for step, frame in enumerate([*(frames > 0), np.zeros(KEYS, dtype=bool)]):
        now = nearest(step * frame_length * BEAT)
        for key in np.flatnonzero(frame != before):
            kind, velocity = ("note_on", VELOCITY) if frame[key] else ("note_off", 0)
            track.append(mido.Message(kind, note=LOWEST + int(key), velocity=velocity, time=now - last))
            last = now
        before = frame
    end = nearest(len(frames) * frame_length * BEAT)
    track.append(mido.MetaMessage("end_of_track", time=end - last))  # silence lasts, too
    file = mido.MidiFile(ticks_per_beat=BEAT)
    file.tracks.append(track)
    with replacing(Path(path)) as written:
        file.save(file=written)
