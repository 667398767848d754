"""The report on a local server that writes it anew when results change, and tells the open pages so.

It listens to this machine alone, answers no other site's pages, and gives out the report and the result files that it
names, nothing else.
"""

import mimetypes
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

HOST = "127.0.0.1"
LOOK = 2.0  # seconds between looks at the files
ALIVE = 15.0  # seconds after which a connection without news says that it is still there


class Written(NamedTuple):
    """A report on the disk: what to tell the user, address -> each file that the page leads to.

    `moving`: whether a run is at work, so that its time left goes down.
    """

    said: str
    files: Mapping[str, Path]
    moving: bool


class Report:
    """A report that is kept up to date."""

    def __init__(self, write: Callable[[], Written], page: Path) -> None:
        """Raises what `write` raises: ValueError for a wrong sweep file, OSError where it cannot write."""
        self.write, self.page = write, page
        self.written = write()
        self.version, self.changed, self.over = 0, Condition(), Event()

    def renew(self) -> str:
        """Write it again, and tell who waits.

        Any error is a line, for its cause may be a file that is half written, and whoever follows must go on.
        """
        try:
            self.written = self.write()
        except Exception as error:
            expected = isinstance(error, OSError | ValueError)
            said = " ".join(f"{'' if expected else f'{type(error).__name__}: '}{error}".split())
            return f"warning: {said}; the page stays as it was"
        with self.changed:
            self.version += 1
            self.changed.notify_all()
        return self.written.said

    def follow(self, look: Callable[[], object], say: Callable[[str], None]) -> None:
        """Renew it whenever `look` finds something else, and once a minute while a run is at work."""
        known, minute = seen(look), now_in_minutes()
        while not self.over.wait(LOOK):
            found = seen(look)
            if found != known or (self.written.moving and minute != now_in_minutes()):
                known, minute = found, now_in_minutes()
                say(f"{time.strftime('%H:%M:%S')} {self.renew()}")

    def versions(self, seen: int) -> Iterator[bool]:
        """True whenever there is another version than the one that was `seen`, False after a while without one."""
        while not self.over.is_set():
            with self.changed:
                if self.version == seen:
                    self.changed.wait(ALIVE)
                is_new, seen = self.version != seen, self.version
            yield is_new


class Handler(BaseHTTPRequestHandler):
    """Answers for one report."""

    server: "Server"

    @property
    def report(self) -> Report:
        return self.server.report

    def do_GET(self) -> None:
        try:
            asked = urlsplit(self.path)
        except ValueError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error))
            return
        address, version = unquote(asked.path).lstrip("/"), self.report.version
        if not self.is_asked_here():
            self.send_error(HTTPStatus.FORBIDDEN, f"ask for http://{HOST}:{self.port}/")
        elif address in ("", "index.html"):
            try:
                page = self.report.page.read_text(encoding="utf-8")
            except OSError as error:  # moved away while it is shown
                self.send_error(HTTPStatus.NOT_FOUND, f"the page cannot be read: {error.strerror}")
                return
            live = page.replace("<html ", f'<html data-live="{version}" ', 1)
            self.give(live.encode(), "text/html; charset=utf-8")
        elif address == "changes":
            since = parse_qs(asked.query).get("since", [""])[0]
            self.tell_changes(int(since) if since.isdecimal() and len(since) < 10 else version)
        else:
            path = self.report.written.files.get(address)
            try:
                content = path.read_bytes() if path else None
            except OSError:
                content = None
            if path is None or content is None:
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                self.give(content, mimetypes.guess_type(path.name)[0] or "text/plain; charset=utf-8")

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def is_asked_here(self) -> bool:
        """Whether the browser means this server: a stranger's page may have a name that leads here."""
        try:
            return urlsplit(f"//{self.headers.get('Host')}").hostname in (HOST, "localhost")
        except ValueError:
            return False

    def give(self, content: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        # so that a page of another site can neither show it in a frame nor embed it
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def tell_changes(self, seen: int) -> None:
        """Server-sent events: one for each version of the page after the one that was `seen`."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        try:
            self.wfile.write(b": here\n\n")
            for is_new in self.report.versions(seen):
                self.wfile.write(b"data: new\n\n" if is_new else b": here\n\n")
        except OSError:
            return  # the page was closed

    def log_message(self, *_: object) -> None:
        """The terminal is for what changes."""


class Server(ThreadingHTTPServer):
    """Listens to this machine alone. `report` is what it serves."""

    daemon_threads = True
    report: Report

    def __init__(self, port: int) -> None:
        if not 0 <= port <= 65535:
            raise ValueError(f"--port must be from 0 to 65535, got {port}")
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise OSError(
                f"port {port} of {HOST} cannot be used ({error.strerror}): give --port NUMBER, 0 takes a free one"
            ) from error

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that broke off."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/"


def serve(
    write: Callable[[], Written],
    look: Callable[[], object],
    page: Path,
    port: int,
    say: Callable[[str], None],
) -> None:
    """Serve the report that `write` makes until Ctrl-C, and make it again when `look` finds something else.

    Raises ValueError for a port that is none, OSError for one that is taken, and what `write` raises.
    """
    with Server(port) as server:
        say(f"writing {page} ...")
        server.report = report = Report(write, page)
        say(report.written.said)
        say(f"{server.address} shows it and follows the results; Ctrl-C ends it")
        Thread(target=report.follow, args=(look, say), daemon=True).start()
        try:
            server.serve_forever()
        finally:
            report.over.set()
            with report.changed:
                report.changed.notify_all()


def seen(look: Callable[[], object]) -> object:
    """What `look` finds; what the system says where a folder has gone meanwhile."""
    try:
        return look()
    except OSError as error:
        return str(error)


def now_in_minutes() -> int:
    return int(time.time() // 60)
