"""The local server: what it gives out, to whom, and how it tells of a new page."""

import http.client
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from hornn.reporting.commands import remembering, write_report
from hornn.reporting.figures import draw_figures
from hornn.reporting.server import Handler, Report, Server, Written
from reporting.place import Place, table_of


class Pages:
    """Writes a page that counts how often it was written."""

    def __init__(self, folder: Path) -> None:
        self.page, self.file, self.count, self.wrong = folder / "index.html", folder / "toy.csv", 0, ""
        self.file.write_text("sweep,row")
        self.fault: Exception | None = None

    def __call__(self) -> Written:
        if self.wrong:
            raise ValueError(self.wrong)
        if self.fault:
            raise self.fault
        self.count += 1
        self.page.write_text(f'<html lang="en">{self.count}</html>')
        return Written(f"written {self.count}", {"tables/toy.csv": self.file}, False)


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    return Pages(tmp_path)


@pytest.fixture
def server(pages: Pages) -> Iterator[Server]:
    with Server(0) as server:
        server.report = Report(pages, pages.page)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.report.over.set()
        server.shutdown()
        thread.join()


def get(server: Server, address: str, host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    connection.request("GET", address, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_it_gives_out_the_page_and_what_the_page_leads_to(server: Server, pages: Pages) -> None:
    assert get(server, "/") == (200, '<html data-live="0" lang="en">1</html>')
    assert "data-live" not in pages.page.read_text(), "a page that is published is still"
    assert get(server, "/tables/toy.csv") == (200, "sweep,row")


@pytest.mark.parametrize("address", ["/no.csv", "/../toy.csv", "//etc/passwd", "/%2e%2e/toy.csv"])
def test_it_gives_out_nothing_else(server: Server, address: str) -> None:
    assert get(server, address)[0] == 404


def test_it_answers_its_own_pages_alone(server: Server) -> None:
    """A name of a stranger's site may lead to this machine."""
    assert get(server, "/", "evil.example")[0] == 403
    assert get(server, "/", "localhost.evil.example:80")[0] == 403
    assert get(server, "/", "[")[0] == 403
    for host in (f"localhost:{server.server_address[1]}", "localhost", "127.0.0.1:9000"):
        assert get(server, "/", host)[0] == 200, "on port 80 it has none, and a tunnel has another"


def test_no_other_site_can_show_or_embed_it(server: Server) -> None:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    for address in ("/", "/tables/toy.csv"):
        connection.request("GET", address)
        answer = connection.getresponse()
        answer.read()
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_an_address_that_is_none_is_refused(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        connection.sendall(b"GET http://[/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.0 400 ")
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        connection.sendall(b"GET /changes?since=" + b"9" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.0 200 ")
    assert capfd.readouterr().err == ""


def test_a_file_that_cannot_be_read_is_not_found(
    server: Server, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert get(server, "/tables/toy.csv")[0] == 404
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("error", "is_told"), [(BrokenPipeError, False), (KeyError, True)])
def test_a_browser_that_breaks_off_says_nothing_in_the_terminal(
    server: Server,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    is_told: bool,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Handler, "give", fail)
    with pytest.raises(http.client.RemoteDisconnected):
        get(server, "/")
    assert (error.__name__ in capfd.readouterr().err) == is_told


def test_open_pages_hear_of_a_new_one(server: Server) -> None:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    connection.request("GET", "/changes")
    answer = connection.getresponse()
    assert answer.readline() == b": here\n"
    assert server.report.renew() == "written 2"
    assert [answer.readline() for _ in range(2)] == [b"\n", b"data: new\n"]
    assert get(server, "/")[1] == '<html data-live="1" lang="en">2</html>'
    connection.close()


def test_a_page_that_was_given_out_before_the_last_version_hears_of_it(server: Server) -> None:
    server.report.renew()
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    connection.request("GET", "/changes?since=0")
    answer = connection.getresponse()
    assert [answer.readline() for _ in range(3)] == [b": here\n", b"\n", b"data: new\n"]
    connection.close()


def test_what_is_wrong_leaves_the_page_as_it_was(server: Server, pages: Pages) -> None:
    pages.wrong = "toy.yaml: sweep: seeds is missing"
    assert server.report.renew() == "warning: toy.yaml: sweep: seeds is missing; the page stays as it was"
    assert get(server, "/")[1] == '<html data-live="0" lang="en">1</html>'


@pytest.fixture
def follow(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What is said, without the time, while looks find these states; `act` does what a state stands for."""
    monkeypatch.setattr("hornn.reporting.server.LOOK", 0.001)

    def follow(states: str, act: Callable[[str], None] = lambda state: None) -> list[str]:
        report, said, left = Report(pages, pages.page), [], iter(states)

        def look() -> str:
            state = next(left, "")
            if not state:
                report.over.set()
            act(state)
            return state or states[-1]

        report.follow(look, said.append)
        return [line.partition(" ")[2] for line in said]

    return follow


def test_it_is_written_anew_when_files_change(follow: Callable[..., list[str]]) -> None:
    assert follow("aabbbc") == ["written 2", "written 3"]


def test_nothing_that_goes_wrong_ends_the_following(pages: Pages, follow: Callable[..., list[str]]) -> None:
    """A folder may go while it is looked at, and a file may hold what nobody thought of."""

    def act(state: str) -> None:
        if state == "?":
            raise FileNotFoundError("outputs/tables has gone")
        pages.fault = ZeroDivisionError("division\nby zero") if state == "b" else None

    assert follow("a?bc", act) == [
        "written 2",
        "warning: ZeroDivisionError: division by zero; the page stays as it was",
        "written 3",
    ]


def test_a_port_that_is_taken_is_one_line(server: Server) -> None:
    taken = server.server_address[1]
    said = rf"port {taken} of 127\.0\.0\.1 cannot be used .*: give --port NUMBER, 0 takes a free one"
    with pytest.raises(OSError, match=said):
        Server(taken)
    with pytest.raises(ValueError, match="--port must be from 0 to 65535, got 65536"):
        Server(65536)


def test_a_figure_is_drawn_again_only_where_its_table_changed(filled: Place) -> None:
    drawn: list[Any] = []
    draw = remembering(lambda table: drawn.append(table) or draw_figures(table))
    assert draw(table_of(filled)) is draw(table_of(filled))
    filled.commit("rnn", 1, 99.0)
    draw(table_of(filled))
    assert len(drawn) == 2


def test_all_that_a_report_leads_to_has_an_address(filled: Place) -> None:
    written = write_report(filled.results, filled.sweeps, filled.results / "report")
    assert written.files["toy.json"].is_file()
    assert written.files["tables/toy/sum-2-seed1.json"].is_file()
    assert all(path.is_file() for path in written.files.values())
    assert not written.moving
