"""Whatever a result file holds, it is read as it was written, or refused in one line that names it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornn.result import SCHEMA_VERSION, finite, read_result, write_result

# a command that ran before in this process flushes denormals (hornn.run.process), of which hypothesis takes note
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_subnormal=False), st.text(max_size=5)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner)),
    max_leaves=8,
)
RESULT: dict[str, Any] = {
    "schema_version": SCHEMA_VERSION,
    "status": "completed",
    "name": "0123456789",
    "seed": 1,
    "test_ppl": 101.5,
    "metrics": [{"epoch": 1, "valid_ppl": 99.25}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@given(st.dictionaries(st.text(max_size=5).filter(lambda key: key != "schema_version"), JSON, max_size=4))
def test_what_is_written_is_read(folder: Path, result: dict[str, Any]) -> None:
    written = {**result, "status": "diverged"}
    write_result(folder, written)
    assert read_result(folder) == {"schema_version": SCHEMA_VERSION, **finite(written)}


@given(st.sampled_from(sorted(RESULT)), JSON)
def test_any_value_in_any_place(folder: Path, key: str, value: Any) -> None:
    text = json.dumps({**RESULT, key: value})
    assert read_or_refused(folder, text.encode())


@given(JSON)
def test_any_json(folder: Path, value: Any) -> None:
    assert read_or_refused(folder, json.dumps(value).encode())


@given(st.binary(max_size=40))
def test_any_bytes(folder: Path, content: bytes) -> None:
    assert read_or_refused(folder, content)


@given(st.integers(0, len(json.dumps(RESULT)) - 1))
def test_cut_anywhere(folder: Path, length: int) -> None:
    (folder / "result.json").write_text(json.dumps(RESULT)[:length])
    with pytest.raises(ValueError, match="is damaged"):
        read_result(folder)


def test_nested_without_end(folder: Path) -> None:
    assert read_or_refused(folder, b"[" * 100_000)


def read_or_refused(folder: Path, content: bytes) -> bool:
    path = folder / "result.json"
    path.write_bytes(content)
    try:
        return json.dumps(read_result(folder)) == json.dumps(json.loads(content))
    except ValueError as error:
        return str(path) in str(error) and "\n" not in str(error)
