"""Hands a notebook in at the course's server: `python check.py NOTEBOOK --submit [ADDRESS]`.

What lies beside the notebook for the leaderboard, weights and a nickname, goes with it, where the
course takes any.

The address and the student's key are asked for once and kept in `~/.attention_kit.json`, which
nobody else may read. It needs the standard library alone.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEPT = Path.home() / ".attention_kit.json"
_TIMEOUT = 60.0  # seconds
_PATIENCE = 900.0
_LONGEST_PAUSE = 5.0
_BYTES = "application/octet-stream"


class SubmitRefused(Exception):
    """The notebook was not handed in; the message says why, for the student."""


def submit(
    path: Path,
    assignment: str,
    address: str,
    limits: Mapping[str, Any],
) -> int:
    """Hand a notebook in, wait for its result, and print both; returns the exit status.

    Args:
        address: the server's; "" for the one of the last time.
        limits: `weights_mb` of the file of weights beside the notebook and `nickname_bytes` of that
            with the nickname; without one of them no such file is taken.
    """
    try:
        address, key = _address_and_key(address)
        url = f"{address}/api/assignments/{assignment}/attempts"
        body, kind = path.read_bytes(), _BYTES
        files = {"notebook": path}
        weights = path.with_name(f"{assignment}.safetensors")
        weights_mb = limits.get("weights_mb", 0)
        if _may_go_along(weights, weights_mb << 20, f"{weights_mb} MB"):
            files["weights"] = weights
        nickname = path.with_name("nickname.txt")
        most_bytes = limits.get("nickname_bytes", 0)
        if _may_go_along(nickname, most_bytes, f"{most_bytes} bytes"):
            body, kind = _make_form(files, nickname.read_bytes())
        elif "weights" in files:
            body, kind = _make_form(files)
        attempt = _ask(url, key, body, kind)
        print(f"Handed in: attempt {attempt['number']} at {assignment}.")
        for field in ("weights", "nickname"):
            if note := attempt.get(field):
                print(note)
        attempt = _wait(f"{address}/api/attempts/{attempt['attempt']}", key, attempt)
    except SubmitRefused as problem:
        print(f"Not handed in: {problem}")
        return 1
    if attempt.get("score") is not None:
        print(f"{attempt['score']:g} of {attempt['max_score']:g} points of the tests.")
    elif attempt.get("problem"):
        print(f"It could not be graded: {attempt['problem']}")
    print(f"Your page: {attempt['page']}")
    return 0


def _may_go_along(file: Path, most_bytes: int, in_words: str) -> bool:
    """Whether a file lies beside the notebook that the course takes; says so of one too large."""
    if not most_bytes or not file.is_file():
        return False
    if file.stat().st_size > most_bytes:
        print(f"{file.name} stays here: it is larger than {in_words}.")
        return False
    return True


def _make_form(files: dict[str, Path], nickname: bytes = b"") -> tuple[bytes, str]:
    """The body of a form with these files, by their fields' names, and its type. The nickname is a
    field of text, as in a browser.
    """
    boundary = secrets.token_hex(16)
    parts = []
    if nickname:
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="nickname"\r\n\r\n'
        )
        parts += [head.encode(), nickname, b"\r\n"]
    for field, path in files.items():
        head = (
            f"--{boundary}\r\nContent-Disposition: form-data; "
            f'name="{field}"; filename="{path.name}"\r\n\r\n'
        )
        parts += [head.encode(), path.read_bytes(), b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"


def _wait(url: str, key: str, attempt: dict[str, Any]) -> dict[str, Any]:
    """The attempt once it is graded, or as it is after a quarter of an hour."""
    end = time.monotonic() + _PATIENCE
    while attempt["state"] in ("waiting", "started") and time.monotonic() < end:
        if attempt["state"] == "waiting" and attempt.get("before"):
            print(
                f"{attempt['before']} before yours, about {attempt['seconds']:.0f} seconds."
            )
        time.sleep(min(_LONGEST_PAUSE, max(0.5, attempt.get("seconds", 0.0) / 4)))
        attempt = _ask(url, key)
    return attempt


def _ask(
    url: str, key: str, data: bytes | None = None, kind: str = _BYTES
) -> dict[str, Any]:
    """The server's answer.

    Raises:
        SubmitRefused: it refuses, or does not answer.
    """
    headers = {"Authorization": f"Bearer {key}", "Content-Type": kind}
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            described: dict[str, Any] = json.load(answer)
            return described
    except urllib.error.HTTPError as error:
        raise SubmitRefused(_problem_of(error)) from None
    except (OSError, ValueError) as error:
        raise SubmitRefused(
            f"{url.partition('/api/')[0]} does not answer ({error})"
        ) from None


def _problem_of(error: urllib.error.HTTPError) -> str:
    """What the server says is wrong; a key that it does not know is forgotten."""
    try:
        problem = str(json.load(error)["problem"])
    except (ValueError, KeyError, TypeError):
        problem = f"the server says {error.code}"
    if error.code == 401:
        KEPT.unlink(missing_ok=True)
    return problem


def _address_and_key(address: str) -> tuple[str, str]:
    """The server and the student's key there, asked for where they are not known.

    Raises:
        SubmitRefused: they are not known, and nobody is there to ask.
    """
    kept = _read_kept()
    address = (address or kept.get("last", "")).rstrip("/")
    key = kept.get("keys", {}).get(address, "")
    try:
        if not address:
            address = input("The server's address: ").strip().rstrip("/")
        if not key:
            key = getpass.getpass("Your key, from the server's first page: ").strip()
    except EOFError:
        raise SubmitRefused(
            "run it in a terminal once, so that it can ask for your key"
        ) from None
    if not address.startswith(("https://", "http://")):
        raise SubmitRefused(f"{address!r} is no address: it begins with https://")
    _keep(address, key, kept)
    return address, key


def _read_kept() -> dict[str, Any]:
    try:
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _keep(address: str, key: str, kept: dict[str, Any]) -> None:
    keys = {**kept.get("keys", {}), address: key}
    text = json.dumps({"last": address, "keys": keys}, indent=1)
    descriptor = os.open(KEPT, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
