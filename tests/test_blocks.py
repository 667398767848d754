"""Generated blocks in pages that people write."""

from pathlib import Path

import pytest

from hornn.blocks import pages_with_blocks, renew_pages

WRITERS = {"rows": lambda words: f"\n{words}\n\n"}


def test_a_block_is_renewed_and_the_rest_stays_byte_for_byte(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    rest = "```\n<!-- rows: in code -->\n```\n<!-- a remark -->\n<!-- speed -->\r\nof another program\r\n<!-- end -->"
    page.write_bytes(f"caf\u00e9\t \r\n\n<!-- rows: a  b -->\nold\n\n<!-- end -->\n{rest}".encode())
    assert renew_pages(tmp_path, lambda _: WRITERS) == [page]
    assert (
        page.read_bytes().decode()
        == f"caf\u00e9\t \r\n\n<!-- rows: a  b -->\n['a', 'b']\n<!-- end -->\n{rest}"
    )
    assert renew_pages(tmp_path, lambda _: WRITERS) == []


def test_a_block_without_lines_is_filled(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- rows -->\n<!-- end -->\n<!-- rows: c -->\n<!-- end -->\n")
    assert renew_pages(tmp_path, lambda _: WRITERS) == [page]
    assert page.read_text() == "<!-- rows -->\n[]\n<!-- end -->\n<!-- rows: c -->\n['c']\n<!-- end -->\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n<!-- end -->", "line 2: <!-- end --> ends no block: blocks are called overview, rows"),
        ("<!-- rwos: a -->\n<!-- end -->", "line 2: <!-- end --> ends no block"),
        ("<!-- rows: a -->\n", "line 1: the block rows has no end: put <!-- end --> behind it"),
        (
            "<!-- rows: a -->\n\n<!-- claims: b -->\n<!-- end -->",
            "line 3: the block rows of line 1 has no end",
        ),
    ],
)
def test_a_block_that_is_not_well_formed_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    first = tmp_path / "a.md"
    first.write_text("<!-- rows: a -->\n<!-- end -->\n")
    with pytest.raises(ValueError, match=f"page.md, {message}"):
        renew_pages(tmp_path, lambda _: WRITERS)
    assert page.read_text() == text
    assert "['a']" not in first.read_text(), "no page is renewed where a block is wrong"


def test_pages_are_those_of_the_top_folder_and_of_docs(tmp_path: Path) -> None:
    for name in ("README.md", "docs/findings/scrn.md", "src/note.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert [path.name for path in pages_with_blocks(tmp_path)] == ["README.md", "scrn.md"]
