"""The lock of a run's folder."""

import time
from pathlib import Path
from threading import Timer

import pytest

from hornn.run.lock import Busy, lock_folder


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
