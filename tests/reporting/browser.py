"""One Chromium for all tests of the page, driven over a pipe by its own protocol, so that no driver is needed."""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
IN_BROWSER = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="needs chromium or google-chrome on the PATH"),
]


class Browser:
    """A browser with one page, as a context. `errors`: what scripts threw and what the console calls an error."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        given = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (theirs_in, theirs_out)]

        def connect() -> None:
            """It reads commands from file 3 and writes answers and events to file 4, each ended by a zero byte."""
            for number, pipe in enumerate(given, start=3):
                os.dup2(pipe, number)

        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        self.process = subprocess.Popen(
            [PROGRAM, *words, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            close_fds=False,  # the files of this process are marked to close at the start of another program
            preexec_fn=connect,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )
        for number in (theirs_in, theirs_out, *given):
            os.close(number)
        self.input, self.output = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.waiting, self.sent = b"", 0
        self.session: str | None = None
        self.errors: list[str] = []
        self.events: list[str] = []
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(page["targetId"] for page in pages if page["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.ask(f"{part}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.input.close()
        self.process.terminate()
        self.process.wait(20)
        self.output.close()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command; what happens meanwhile is noted."""
        self.sent += 1
        session = {"sessionId": self.session} if self.session else {}
        message = {"id": self.sent, "method": method, "params": parameters, **session}
        self.input.write(json.dumps(message).encode() + b"\0")
        self.input.flush()
        while (answer := self.receive()).get("id") != self.sent:
            pass
        assert "error" not in answer, answer["error"]
        found: dict[str, Any] = answer["result"]
        return found

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.waiting:
            chunk = os.read(self.output.fileno(), 1 << 16)
            assert chunk, "the browser is gone"
            self.waiting += chunk
        text, _, self.waiting = self.waiting.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.note(message["method"], message["params"])
        return message

    def note(self, event: str, said: dict[str, Any]) -> None:
        self.events.append(event)
        if event == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif event == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(said["entry"]["text"])

    def open(self, address: str, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Load a page anew."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.ask("Page.navigate", url="about:blank")
        self.wait("Page.loadEventFired")
        self.ask("Page.navigate", url=address)
        self.wait("Page.loadEventFired")

    def wait(self, event: str) -> None:
        while event not in self.events:
            self.receive()
        self.events.clear()

    def run(self, script: str) -> Any:
        """What an expression is in the page, or the promise that it is comes to."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self) -> str:
        """The screen as a PNG in base64."""
        data: str = self.ask("Page.captureScreenshot")["data"]
        return data


class Tab:
    """A report that is open in a browser."""

    def __init__(self, browser: Browser, page: Path) -> None:
        self.browser, self.page = browser, page

    def open(self, address: str = "", width: int = 1400, dark: bool = False) -> "Tab":
        self.browser.open(f"file://{self.page}{address}", width, dark=dark)
        self.run("ready")
        return self

    def run(self, script: str) -> Any:
        return self.browser.run(script)

    def texts(self, query: str) -> list[str]:
        """What is written in the elements that can be seen."""
        found: list[str] = self.run(
            f"[...document.querySelectorAll({json.dumps(query)})].filter(each => each.checkVisibility())"
            ".map(each => each.innerText.trim().replace(/\\s+/g, ' '))"
        )
        return found
