"""What one student does in `server_load.py`: Locust runs this file, a user for each student."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from pathlib import Path

import gevent
from locust import HttpUser, task
from locust.exception import StopUser

PLAN = json.loads(Path("plan.json").read_text(encoding="utf-8"))
_NUMBERS = itertools.count()
_WRITING = threading.Lock()
_BEGUN = time.monotonic()
_PATIENCE = 1800.0  # seconds
_TOKEN = re.compile(r'name="token" value="([^"]+)"')
_REFRESH = re.compile(r'http-equiv="refresh" content="(\d+)"')


def note(line: str) -> None:
    """Add a line for this student."""
    with _WRITING, Path("seconds.txt").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


class Student(HttpUser):  # type: ignore[misc]
    """Signs in, waits for the moment of the plan, hands in, and watches."""

    def on_start(self) -> None:
        """Sign in with the link."""
        number = next(_NUMBERS)
        if number >= len(PLAN):
            # Locust replaces a student who has left while others still arrive.
            raise StopUser
        self.plan = PLAN[number]
        page = self.client.get(self.plan["link"], name="link")
        key = self.plan["link"].partition("key=")[2]
        form = {"token": _token(page.text), "key": key}
        self.client.post("/sign-in", data=form, name="sign in")

    @task  # type: ignore[untyped-decorator]
    def hand_in(self) -> None:
        """Hand in once, and wait for the page."""
        gevent.sleep(max(0.0, self.plan["at"] - (time.monotonic() - _BEGUN)))
        listed = self.client.get("/", name="home").text
        match = re.search(r'href="(/assignments/[^"]+)"', listed)
        assert match is not None
        begun = time.monotonic()
        data = Path(self.plan["notebook"]).read_bytes()
        with self.client.post(
            f"{match[1]}/hand-in",
            data={"token": _token(listed)},
            files={"notebook": ("homework.ipynb", data)},
            name="hand in",
            catch_response=True,
        ) as answer:
            if answer.status_code == 400:
                answer.success()  # one of the demo class hands in what is no notebook
                note("refused")
                self.leave()
        address, text = answer.url, answer.text
        while (wait := _REFRESH.search(text)) and time.monotonic() < begun + _PATIENCE:
            gevent.sleep(float(wait[1]))
            looked = self.client.get(address, name="waiting")
            # 0: the server closed the idle connection just then; a browser asks again
            text = looked.text if looked.status_code else text
        self.client.get(f"{address}/page", name="page")
        is_graded = 'class="total"' in text or "could not be graded" in text
        note(f"{time.monotonic() - begun:.2f}" if is_graded else "lost")
        self.leave()

    def leave(self) -> None:
        """Stop; the last student ends the run."""
        if len(Path("seconds.txt").read_text(encoding="utf-8").splitlines()) == len(
            PLAN
        ):
            self.environment.runner.quit()
        raise StopUser


def _token(text: str) -> str:
    match = _TOKEN.search(text)
    return match[1] if match else ""
