"""Which utterances a result keeps, and what of them is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hornn.result import RESULT, UTTERANCES, check_result
from hornn.speech.corpus import Recording
from hornn.speech.data import first_of_speakers
from speech.conftest import Run

KEPT: dict[str, Any] = {"id": "a-1", "said": "YES NO", "heard": {"shipped": "YES", "bigram": ""}}


def test_the_first_of_each_speaker_is_kept() -> None:
    speakers = ["ann", "ann", "bob", "cat", "bob", "dan"]
    recordings = [Recording(str(n), speaker, ("YES",), Path()) for n, speaker in enumerate(speakers)]
    assert first_of_speakers(recordings, 3) == [0, 2, 3]
    assert first_of_speakers(recordings[:2], 3) == [0]


@pytest.mark.parametrize(
    "utterances",
    [
        {},
        ["YES"],
        [{"id": "a-1", "said": "YES"}],
        [{**KEPT, "id": 1}],
        [{**KEPT, "said": ["YES"]}],
        [{**KEPT, "heard": "YES"}],
        [KEPT, {**KEPT, "heard": {"shipped": None}}],
    ],
)
def test_other_things_are_no_utterances(utterances: Any) -> None:
    check_result({"status": "diverged", "utterances": [KEPT]}, ())
    with pytest.raises(ValueError, match=r"must|without"):
        check_result({"status": "diverged", "utterances": utterances}, ())


def test_an_older_result_gets_its_utterances(command: Callable[..., Any], run: Run, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run.folder, tmp_path / "run"))
    whole = json.loads((copy / RESULT).read_text())
    older = {key: value for key, value in whole.items() if key != UTTERANCES}
    (copy / RESULT).write_text(json.dumps(older))
    words = [f"checkpoint={copy / 'best.ckpt'}", *run.places, "record=true"]
    done = command("evaluate", *words)
    assert done.code == 0, done.err
    assert json.loads((copy / RESULT).read_text()) == whole
    (copy / RESULT).unlink()
    assert "record=true adds to" in command("evaluate", *words).err
