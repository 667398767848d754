"""The lock of a run's folder."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import pytest

from hornn.run.lock import LOCK, Busy, is_locked, lock_folder, require_held


def test_who_is_patient_gets_the_lock_that_another_leaves(tmp_path: Path) -> None:
    held = lock_folder(tmp_path)
    with pytest.raises(Busy, match="another process is working on"):
        lock_folder(tmp_path)
    begin = time.monotonic()
    with pytest.raises(Busy):
        lock_folder(tmp_path, patience=0.2)
    assert time.monotonic() - begin >= 0.2
    Timer(0.3, held.close).start()
    lock_folder(tmp_path, patience=60).close()
    assert held.closed


def test_who_looks_is_in_nobody_s_way(tmp_path: Path) -> None:
    """Neither of a run that begins in that moment, nor seen as a run by others who look."""
    lock_folder(tmp_path).close()
    over = Event()

    def look() -> int:
        seen = 0
        while not over.is_set():
            seen += is_locked(tmp_path / LOCK)
        return seen

    with ThreadPoolExecutor(4) as pool:
        looks = [pool.submit(look) for _ in range(4)]
        time.sleep(0.5)
        over.set()
        assert [each.result() for each in looks] == [0] * 4
        over.clear()
        for _ in range(4):
            pool.submit(look)
        try:
            for _ in range(300):
                lock_folder(tmp_path).close()
        finally:
            over.set()


def test_a_lock_is_seen_and_leaves_with_its_process(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "nothing" / LOCK)
    held = lock_folder(tmp_path)
    assert is_locked(tmp_path / LOCK)
    held.close()
    assert not is_locked(tmp_path / LOCK)


def test_a_folder_that_is_moved_is_no_more_held(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with lock_folder(folder) as held:
        require_held(held, folder)
        folder.rename(tmp_path / "moved")
        require_held(held, tmp_path / "moved")
        with pytest.raises(OSError, match="run was moved or removed while the run was at work"):
            require_held(held, folder)
        with lock_folder(folder), pytest.raises(OSError, match="continues in the folder that was moved"):
            require_held(held, folder)
