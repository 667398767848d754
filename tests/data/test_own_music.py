"""Music of one's own in three folders: what is read of it, what is said of it, what is refused."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hornn.data.content import folder_checksum
from hornn.data.midi import read_midi, write_midi
from hornn.data.own_music import build_data
from small_music import piece

pytest.importorskip("mido")


def fill(folder: Path) -> Path:
    """Folders with a few pieces; training has one in a folder of its own, and a file of another kind."""
    for number, (split, length) in enumerate({"train": 9, "valid": 5, "test": 1}.items()):
        (folder / split).mkdir(parents=True)
        write_midi(folder / split / "a.mid", piece(length, number), 0.25)
    (folder / "train" / "more").mkdir()
    write_midi(folder / "train" / "more" / "b.MIDI", piece(4, 9), 0.25)
    (folder / "train" / "notes.txt").write_text("no music")
    return folder


def data_of(folder: Path, **given: Any) -> Any:
    data = build_data(
        root=str(folder.parent), cache_dir=str(folder.parent / "cache"), name=folder.name, **given
    )
    data.prepare_data()
    data.setup()
    return data


def test_each_file_is_a_piece(tmp_path: Path) -> None:
    data = data_of(fill(tmp_path / "songs"))
    assert [len(each) for each in data.whole("train")] == [9, 4]
    assert (data.whole("valid")[0] == piece(5, 1)).all()
    described = data.describe()
    assert (described["name"], described["frame_length"], described["notes_left_out"]) == (
        "midi-songs",
        0.25,
        0,
    )
    assert described["steps"] == {"train": 13, "valid": 5, "test": 1}
    assert described["text_checksum"].startswith("sha256:")
    assert data.summary()[1:] == ["1 files left out: their names do not end in .mid or .midi"]


def test_a_longer_frame_makes_fewer_of_them(tmp_path: Path) -> None:
    # 4 to 5 of the old ones are the third.
    assert data_of(fill(tmp_path / "songs"), frame_length=0.5).size("valid") == 3


def test_a_changed_file_is_another_checksum(tmp_path: Path) -> None:
    folder = fill(tmp_path / "songs")
    before = data_of(folder).describe()["text_checksum"]
    write_midi(folder / "test" / "a.mid", piece(2, 5), 0.25)
    assert data_of(folder).describe()["text_checksum"] != before


def test_a_file_may_have_a_name_in_another_encoding(tmp_path: Path) -> None:
    folder = fill(tmp_path / "songs")
    before = data_of(folder).describe()["text_checksum"]
    (folder / "train" / os.fsdecode(b"caf\xe9.txt")).write_text("no music")
    assert data_of(folder).describe()["text_checksum"] != before


def test_linked_folders_are_read_and_count(tmp_path: Path) -> None:
    store, folder = fill(tmp_path / "store"), tmp_path / "songs"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "inside").symlink_to(store / "train")
    for split in ("valid", "test"):
        (folder / split).symlink_to(store / split)
    (store / "train" / "around").symlink_to(folder)  # it would never end
    before = data_of(folder)
    assert before.size("train") == 13
    write_midi(store / "test" / "a.mid", piece(2, 5), 0.25)
    after = data_of(folder)
    assert after.size("test") == 2
    assert after.describe()["text_checksum"] != before.describe()["text_checksum"]


def test_folders_that_link_to_each_other_come_to_an_end(tmp_path: Path) -> None:
    folder = fill(tmp_path / "songs")
    for one in range(8):
        (folder / "train" / str(one)).mkdir()
        for other in range(8):
            (folder / "train" / str(one) / f"to{other}").symlink_to(folder / "train" / str(other))
    with pytest.raises(ValueError, match="songs has links that lead to folders in more than 1,000 ways"):
        data_of(folder)


def test_a_file_that_comes_after_the_checksum_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(tmp_path / "songs")

    def checksum(*given: Any) -> str:
        found = folder_checksum(*given)
        write_midi(folder / "test" / "late.mid", piece(2, 5), 0.25)
        return found

    monkeypatch.setattr("hornn.data.own_music.folder_checksum", checksum)
    with pytest.raises(ValueError, match="songs changed while it was read"):
        data_of(folder)
    monkeypatch.undo()
    assert data_of(folder).summary()


def test_a_piece_in_two_splits_is_told(tmp_path: Path) -> None:
    folder = fill(tmp_path / "songs")
    write_midi(folder / "test" / "again.mid", piece(9, 0), 0.25)
    _, line = data_of(folder).summary()[1:]
    twins = "test/again.mid and train/a.mid"
    assert line == f"warning: 1 of the pieces in test stand in another split, too, such as {twins}"


def test_all_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Of all splits: five with their faults, the others by their names."""
    folder = fill(tmp_path / "songs")
    for number in range(7):
        split = "train" if number < 4 else "test"
        write_midi(folder / split / f"none{number}.mid", np.zeros((4, 88), dtype=np.uint8), 0.25)
    with pytest.raises(ValueError, match="has no notes") as caught:
        data_of(folder)
    assert str(caught.value).count("has no notes") == 5
    names = ", ".join(str(folder / "test" / f"none{number}.mid") for number in (5, 6))
    assert str(caught.value).endswith(f"; and 2 more: {names}")


def test_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fill(tmp_path / "songs")
    first = data_of(folder)
    again = data_of(folder, frame_length=0.5)
    kept = list((tmp_path / "cache").glob("midi-songs-*.npz"))
    assert len(kept) == 2
    monkeypatch.setattr("hornn.data.own_music.read_midi", None)
    for data, given in ((first, {}), (again, {"frame_length": 0.5})):
        same = data_of(folder, **given)
        assert same.describe() == data.describe()
        for split in ("train", "valid", "test"):
            for one, other in zip(data.whole(split), same.whole(split), strict=True):
                assert (one == other).all()


def encrypted(content: bytes) -> bytes:
    """One bit in the ZIP's list of entries: the first one seems to be encrypted."""
    place = content.index(b"PK\1\2") + 8
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def packed_otherwise(content: bytes) -> bytes:
    """One bit there: the first entry seems to be compressed, in a way that nobody knows."""
    place = content.index(b"PK\1\2") + 10
    return content[:place] + bytes([content[place] ^ 64]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[:-40], lambda content: b"", bytes.swapcase, encrypted, packed_otherwise],
)
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: Any) -> None:
    folder = fill(tmp_path / "songs")
    data = data_of(folder)
    (kept,) = (tmp_path / "cache").glob("midi-songs-*.npz")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert data_of(folder).describe() == data.describe()
    assert len(kept.read_bytes()) == len(whole)


def test_a_folder_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill(tmp_path / "songs")

    def read(path: Path, frame_length: float) -> tuple[np.ndarray, int]:
        (folder / "train" / "notes.txt").write_text("other words")
        return read_midi(path, frame_length)

    monkeypatch.setattr("hornn.data.own_music.read_midi", read)
    with pytest.raises(ValueError, match="songs changed while it was read: give the command again"):
        data_of(folder)
    assert not list((tmp_path / "cache").glob("*.npz"))


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    folder = fill(tmp_path / "songs")
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(OSError, match=r"set data\.cache_dir to a folder that can be written"):
        data_of(folder)


def test_notes_that_are_left_out_are_counted(tmp_path: Path) -> None:
    import mido

    folder = fill(tmp_path / "songs")
    file = mido.MidiFile(folder / "valid" / "a.mid")
    file.tracks[0].insert(0, mido.Message("note_on", note=120, velocity=9))
    file.save(folder / "valid" / "a.mid")
    assert data_of(folder).summary()[1:] == [
        "1 notes left out: drums, and notes beyond the keys of a piano",
        "1 files left out: their names do not end in .mid or .midi",
    ]


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    folder = fill(tmp_path / "songs")
    (folder / "train" / "lost.mid").symlink_to(tmp_path / "unplugged" / "lost.mid")
    with pytest.raises(
        FileNotFoundError, match=r"train/lost\.mid is a link that leads nowhere: mend it, or remove it"
    ):
        data_of(folder)


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user's: what `os.scandir` says, which `os.walk` would keep to itself."""
    folder, scandir = fill(tmp_path / "songs"), os.scandir

    def refuse(path: Any = ".") -> Any:
        if Path(path).name == "more":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(PermissionError, match="songs/train/more"):
        data_of(folder)


def test_a_folder_is_no_midi_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder: give a MIDI file"):
        read_midi(tmp_path, 0.25)
    with pytest.raises(ValueError, match="is a folder: give the name of a file"):
        write_midi(tmp_path, piece(3, 1), 0.25)


def test_a_folder_without_music_is_refused(tmp_path: Path) -> None:
    folder = fill(tmp_path / "songs")
    (folder / "valid" / "a.mid").rename(folder / "valid" / "a.txt")
    with pytest.raises(
        ValueError, match=r"songs/valid has no files that end in \.mid or \.midi: put some there"
    ):
        data_of(folder)
    (folder / "valid").rename(folder / "validation")
    with pytest.raises(
        FileNotFoundError, match=r"there is no folder .*songs/valid: data\.root and data\.name must"
    ):
        data_of(folder)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"frame_length": 0}, "data.frame_length must be a number of quarter notes from 1/480 on"),
        ({"max_len": 0}, "data.max_len must be a whole number >= 1"),
        ({"batch_size": 0}, "data.batch_size must be a whole number >= 1"),
    ],
)
def test_bad_keys(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        data_of(fill(tmp_path / "songs"), **given)
