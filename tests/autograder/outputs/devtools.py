"""A browser that stays open and is worked with as a person does: it goes somewhere, looks, clicks
and types.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import websocket
from browser import CHROMIUM, OPTIONS

_OPTIONS = (
    *OPTIONS,
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
PATIENCE = 240.0
"""Seconds until something must be there, on a crowded machine."""


class Tab:
    """One page, spoken to by the DevTools protocol."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=PATIENCE)
        self._numbers = itertools.count(1)
        self._tell("Page.enable")

    def close(self) -> None:
        self._socket.close()

    def go(self, url: str) -> None:
        self._tell("Page.navigate", url=url)

    def look(self, expression: str) -> Any:
        """What an expression of JavaScript is on this page."""
        seen = self._tell("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in seen, seen["exceptionDetails"]
        return seen["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """The value of the expression, as soon as it is anything: a page may still load, and load
        again.
        """
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(AssertionError):
                if value := self.look(expression):
                    return value
            time.sleep(0.05)
        raise AssertionError(
            f"never came: {expression}\n{self.look('document.body.innerText')}"
        )

    def click(self, selector: str) -> None:
        """Press the left button in the middle of an element, again where nothing came of it: a
        browser drops what is pressed before a page is painted, and a page that still loads may
        move under the press.
        """
        find = f"document.querySelector({selector!r})"
        self.wait_for(f"document.readyState === 'complete' && {find} !== null")
        heard = "() => { window.arrived = true }"
        self.look(
            f"window.arrived = false; {find}.addEventListener('click', {heard}, true)"
        )
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self._press(find)
            if not self._still("window.arrived === false"):
                return
            time.sleep(0.05)
        raise AssertionError(f"no press arrived at {selector}")

    def _still(self, expression: str) -> bool:
        """Whether this is true of the page; of one that is being left, nothing is."""
        try:
            return bool(self.look(expression))
        except AssertionError:
            return False

    def _press(self, find: str) -> None:
        self.look(f"{find}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.look(
            f"(() => {{ const b = {find}.getBoundingClientRect(); return {{...b.toJSON()}} }})()"
        )
        where = {
            "x": box["x"] + box["width"] / 2,
            "y": box["y"] + box["height"] / 2,
            "button": "left",
            "clickCount": 1,
        }
        for kind in ("mousePressed", "mouseReleased"):
            self._tell("Input.dispatchMouseEvent", type=kind, **where)

    def type_into(self, selector: str, text: str) -> None:
        """Type in place of what stands there."""
        self.click(selector)
        # the page may have moved under the click
        self.look(f"document.querySelector({selector!r}).select()")
        self._tell("Input.insertText", text=text)

    def choose_file(self, selector: str, path: Path) -> None:
        """Choose a file in a form."""
        found = self._tell(
            "Runtime.evaluate", expression=f"document.querySelector({selector!r})"
        )
        element = found["result"]["objectId"]
        self._tell("DOM.setFileInputFiles", files=[str(path)], objectId=element)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the window a size, and the person's system a light or a dark scheme."""
        size = {
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": width < 600,
        }
        self._tell("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._tell("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self) -> bytes:
        """What the window shows, as a PNG."""
        return base64.b64decode(self._tell("Page.captureScreenshot")["data"])

    def _tell(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(
            json.dumps({"id": number, "method": method, "params": parameters})
        )
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]


@contextlib.contextmanager
def open_tab() -> Iterator[Tab]:
    """A fresh browser with one tab."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with contextlib.closing(Tab(_address(Path(profile), browser))) as tab:
                yield tab
        finally:
            browser.terminate()
            browser.wait(PATIENCE)


def _address(profile: Path, browser: subprocess.Popen[bytes]) -> str:
    """Where the tab listens: the browser writes its port into its profile."""
    note = profile / "DevToolsActivePort"
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and browser.poll() is None:
        if note.is_file() and "\n" in (text := note.read_text(encoding="ascii")):
            with urllib.request.urlopen(
                f"http://127.0.0.1:{text.split()[0]}/json/list", timeout=PATIENCE
            ) as answer:
                pages = [page for page in json.load(answer) if page["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.05)
    raise AssertionError("the browser did not start")
