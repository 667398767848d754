import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hornn.data.download import checksum, fetch
from hornn.writing import replacing

CONTENT = b"some published text\n" * 100
EXPECTED = "md5:" + hashlib.md5(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT at /whole, half of it at /half under the full length, something else at /other."""

    def do_GET(self) -> None:
        bodies = {
            "/whole": CONTENT,
            "/half": CONTENT[: len(CONTENT) // 2],
            "/other": CONTENT.upper(),
            "/empty": b"",
        }
        if self.path not in bodies:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(bodies[self.path])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_downloads_what_is_absent(site: str, tmp_path: Path) -> None:
    target = tmp_path / "new" / "text.txt"
    fetch(target, f"{site}/whole", EXPECTED)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


def test_file_address(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(CONTENT)
    fetch(tmp_path / "text.txt", (tmp_path / "source").as_uri(), EXPECTED)
    assert checksum(tmp_path / "text.txt", "md5") == EXPECTED


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("half", "only 1,000 of 2,000 bytes came"),
        ("empty", "only 0 of 2,000 bytes came"),
        ("other", "have the checksum md5:.* expected md5:"),
        ("absent", "404"),
    ],
)
def test_failed_download_names_address_and_folder(site: str, tmp_path: Path, page: str, reason: str) -> None:
    folder = tmp_path / "corpus"
    with pytest.raises(OSError, match=reason) as caught:
        fetch(folder / "text.txt", f"{site}/{page}", EXPECTED)
    assert f"{site}/{page}" in str(caught.value)
    assert f"put text.txt into {folder}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


def test_folder_that_cannot_be_made(site: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot download .* set data\.root"):
        fetch(tmp_path / "file" / "text.txt", f"{site}/whole", EXPECTED)


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT.upper()])
def test_existing_file_is_checked(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"has the checksum md5:.*, expected md5:.*: delete it to download"
    ) as caught:
        fetch(path, "http://127.0.0.1:1/never-asked", EXPECTED)
    assert str(path) in str(caught.value)
    assert EXPECTED in str(caught.value)
    assert path.read_bytes() == content


def test_failed_replacement_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"old")

    def write() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
