import os
import subprocess
import sys
from pathlib import Path

import pytest

from hornn.data.pydoc import PythonDocs, build_data, documentation, is_prose, prose
from hornn.data.vocabulary import VocabularyRule

WRITE = """
import sys
from pathlib import Path
from hornn.data.cache import TokenCache
from hornn.data.pydoc import PythonDocs
from hornn.data.vocabulary import VocabularyRule
cache = TokenCache(Path(sys.argv[1]), PythonDocs(VocabularyRule(2), Path(sys.argv[1])))
cache.write()
print(cache.read().text_checksum)
"""


@pytest.mark.thorough
def test_two_processes_write_the_same_text_at_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path)],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2)
    ]
    checksums = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(checksums) == 1
    assert checksums.pop().startswith("sha256:")
    assert len(list(tmp_path.glob("pydoc-*"))) == 2

    data = build_data(root="unused", cache_dir=str(tmp_path))
    data.corpus.tokens = lambda split: pytest.fail("tokenised again")  # type: ignore[method-assign]
    data.prepare_data()
    data.setup()
    about = data.describe()
    assert about["python_version"] == ".".join(map(str, sys.version_info[:3]))
    assert 150_000 < sum(about["tokens"].values()) < 600_000
    assert 0.02 < about["tokens"]["valid"] / about["tokens"]["train"] < 0.1
    assert 0.02 < about["tokens"]["test"] / about["tokens"]["train"] < 0.1
    assert 4_000 < about["vocab_size"] < 9_000
    assert data.unigram_ppl("test") < 600


def test_no_paragraph_is_in_two_splits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = "This sentence stands in both of the files."
    for name in ("b.py", "a.py", "sub/c.py", "test/skipped.py", "broken.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'"""{first}\n\nThis sentence stands in {path.stem} and in no other file."""\n')
    (tmp_path / "broken.py").write_text("def broken(:")
    monkeypatch.setattr("hornn.data.content.LIBRARY", tmp_path)
    corpus = PythonDocs(VocabularyRule(), tmp_path / "cache")
    paragraphs = [tuple(tokens) for split in corpus.splits for tokens in corpus.tokens(split)]
    assert len(paragraphs) == len(set(paragraphs)) == 4
    assert not any("skipped" in tokens for tokens in paragraphs)


def test_documentation_is_read_without_importing(tmp_path: Path) -> None:
    path = tmp_path / "pydoc_data" / "topics.py"
    path.parent.mkdir()
    path.write_text('"""Module."""\nraise SystemExit\nclass A:\n    """Class."""\ntopics = {"x": "Topic."}\n')
    assert [text for text in documentation(path) if text] == ["Module.", "Class.", "Topic."]


def test_prose_without_code_and_markup() -> None:
    text = """Return the *first* item of ``sequence`` that is true.

    >>> first([0, 1])
    1

    class Spam(Base): pass

    * The first of all the bullets is here.
    * The second one of the bullets,
      on two lines, is here.

    ====  ====
    a     b

    See also :func:`last`, which returns the last such item.
    """
    assert list(prose(text)) == [
        "Return the first item of sequence that is true.",
        "The first of all the bullets is here.",
        "The second one of the bullets, on two lines, is here.",
        "See also last, which returns the last such item.",
    ]


@pytest.mark.parametrize(
    ("line", "english"),
    [
        ("Read the contents of the file", True),
        ("name is the name of the file.", True),
        ("name, value, other, more", False),
        ("Too short.", False),
        ("x 1 y 2 z 3 a_b c_d is here.", False),
    ],
)
def test_what_reads_as_prose(line: str, english: bool) -> None:
    assert is_prose(line) == english
