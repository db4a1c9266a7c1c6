"""The same attacks against this kit, nbgrader's autograde and `otter run`, with verdicts from what
happened.

    python tests/long/security_peers.py [--peers PYTHON] [--only NAME ...] [--json FILE]

Each attack of grader_attacks.py is graded by each tool in a course of its own in a temporary
folder. Nothing is taken on trust: scores are compared with those of the same submission without the
attack, canaries are looked for in what the student gets to read, every file of the course is hashed
before and after, a listener waits, a bystander process lives or does not, and an honest submission
is graded after the attacker.

The peers run as their documentation says for one machine without a container: nbgrader with its
hidden-test markers, locked cells and its time limit of 30 s a cell; `otter run` with hidden test
cases, hidden output and tests in the autograder archive. The documentation of both points to a
container for secure grading (nbgrader: a kernel in Docker; otter: `otter grade` or Gradescope). A
container protects the machine around it, and what is not mounted; it does not come between the
tests and the student's code, which share a process in both. Here the container is left out, so rows
that end outside that process say what it is needed for. The peers get a limit of address space from
this benchmark. The kit runs with `--isolation strict`.

A peer that is not there is left out. To have them:

    python -m venv PEERS --system-site-packages && PEERS/bin/pip install nbgrader otter-grader torch
    python tests/long/security_peers.py --peers PEERS/bin/python
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader_attacks import ATTACKS, FULL, NO_ATTACK, RIGHT, GraderAttack
from grader_tools import ATTACKER, NEIGHBOUR, Kit, Nbgrader, Otter, Tool
from peers import has
from process_tree import family, watching_memory

LIMIT = 80.0
"""Seconds for one batch of one tool."""
CANARIES = {
    "TESTS": "the hidden tests",
    "KEY": "the answer key",
    "GRADEBOOK": "the gradebook",
    "OTHER": "another's submission",
    "TOKEN": "the environment",
}
_MEMORY_MB, _OUTPUT_MB = 1500.0, 5.0
"""More than that above the run without an attack is told."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one batch, as somebody outside finds it.

    Attributes:
        score: the attacker's points; None where it was not graded.
        neighbour: the same of the honest submission, where there was one.
        ended: the batch came to its end within the limit.
        pages: files that the student gets to read.
        leaked: canaries in what the student gets to read.
        changed: files of the course that are not the tool's to write and are new, different or
            gone.
        heard: the listener was called.
        killed: the bystander is dead.
        in_grader: the attacker's code ran in a process of the grader that is no kernel.
        live: a page holds the attacker's script as a script.
        log: the end of what the tool printed, where the attacker was not graded.
    """

    score: float | None
    neighbour: float | None
    ended: bool
    seconds: float
    peak_mb: float
    output_mb: float
    pages: int
    leaked: tuple[str, ...]
    changed: tuple[str, ...]
    heard: bool
    killed: bool
    in_grader: bool
    live: bool
    log: str


# one attack, one tool


def hashes(course: Path, own: Sequence[str]) -> dict[str, str]:
    """Every file of the course but those that the tool writes itself."""
    found = {}
    for path in sorted(course.rglob("*")):
        name = path.relative_to(course).as_posix()
        ours = name.split("/")[0] in own or "__pycache__" in name
        if path.is_file() and not ours:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def size_mb(folder: Path) -> float:
    return (
        sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    )


def end_marked(mark: str) -> None:
    """Kill what this run has left: processes that carry its mark in their environment."""
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if (
                mark.encode() in entry.read_bytes()
                and int(entry.parent.name) != os.getpid()
            ):
                os.kill(int(entry.parent.name), signal.SIGKILL)


def run_batch(
    commands: Sequence[str], course: Path, environment: dict[str, str], bounds: str
) -> tuple[bool, float]:
    """Run the commands one after the other, as a person's shell would; whether they came to their
    end, and when.
    """
    started = time.monotonic()
    with (course.parent / "log").open("wb") as log:
        shell = ["/bin/sh", "-c", f"{bounds}\n" + "\n".join(commands)]
        process = subprocess.Popen(
            shell,
            cwd=course,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process.wait(LIMIT)
            return True, time.monotonic() - started
        except subprocess.TimeoutExpired:
            for pid in reversed(family(process.pid)):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            return False, time.monotonic() - started


@contextlib.contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def attacked(tool: Tool, template: Path, attack: GraderAttack) -> Seen:
    """Grade the attack, and its neighbour where it has one, in a copy of the course; look at what
    came of it.
    """
    with tempfile.TemporaryDirectory(prefix="peers-") as made, bystander() as victim:
        top = Path(made)
        course, home, scratch = top / "course", top / "home", top / "tmp"
        shutil.copytree(template, course)
        home.mkdir()
        scratch.mkdir()
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        paths = {
            word: str(course / path) if path else "tests/softmax.py"
            for word, path in tool.words.items()
        }
        words = {
            **paths,
            "COURSE": str(course),
            "HOME": str(home),
            "OWNED": str(top / "owned"),
            "TCP": str(listener.getsockname()[1]),
            "VICTIM": str(victim.pid),
        }
        cells = {
            "softmax": filled(attack.softmax, words),
            "total": filled(attack.total, words),
        }
        tool.hand_in(course, ATTACKER, cells, attack)
        if attack.neighbour or attack.name == "open_anothers_submission":
            honest = {name: f"# CANARY-OTHER\n{text}" for name, text in RIGHT.items()}
            tool.hand_in(course, NEIGHBOUR, honest, NO_ATTACK)
        students = [ATTACKER, NEIGHBOUR] if attack.neighbour else [ATTACKER]
        before = hashes(course, tool.own)
        mark = f"SECURITY_PEERS={top.name}"
        environment = {
            **tool.environment(),
            "HOME": str(home),
            "TMPDIR": str(scratch),
            "GRADER_TOKEN": "CANARY-TOKEN",
            "SECURITY_PEERS": top.name,
        }
        bounds = (
            ":"
            if isinstance(tool, Kit)
            else "ulimit -v 16000000; ulimit -f 1000000; ulimit -t 300"
        )
        with watching_memory(every=0.3) as peak:
            ended, seconds = run_batch(
                tool.commands(course, students), course, environment, bounds
            )
        time.sleep(attack.lingers)
        end_marked(mark)
        heard = False
        with listener, contextlib.suppress(BlockingIOError):
            listener.accept()[0].close()
            heard = True
        after = hashes(course, tool.own)
        texts = tool.read_by_student(course)
        score = tool.score(course, ATTACKER)
        log = (
            (top / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
            if score is None
            else ""
        )
        owned = top / "owned"
        by = owned.read_text() if owned.is_file() else ""
        return Seen(
            score=score,
            neighbour=tool.score(course, NEIGHBOUR) if attack.neighbour else None,
            ended=ended,
            seconds=round(seconds, 1),
            peak_mb=round(peak.mb),
            output_mb=round(size_mb(top), 1),
            pages=len(texts),
            leaked=tuple(
                word
                for word in CANARIES
                if any(f"CANARY-{word}" in text for text in texts.values())
            ),
            changed=tuple(
                n
                for n in sorted(before.keys() | after.keys())
                if before.get(n) != after.get(n)
            ),
            heard=heard,
            killed=victim.poll() is not None,
            in_grader=bool(by) and "ipykernel" not in by,
            live=any(
                re.search(r"<script>document\.title=", t)
                for n, t in texts.items()
                if n.endswith(".html")
            ),
            log=log,
        )


def filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


# verdicts


def verdict(attack: GraderAttack, seen: Seen, calm: Seen) -> str:
    """What the attack got beyond what the same submission without it gets; `calm` is that one."""
    got = []
    if (seen.score or 0.0) > (calm.score or 0.0):
        got.append(
            "full marks" if seen.score == FULL else f"{seen.score:g} of {FULL:g} points"
        )
    got += [
        f"leaked: {CANARIES[word]}" for word in seen.leaked if word not in calm.leaked
    ]
    if seen.in_grader:
        got.append("its code ran in the grader")
    if seen.changed:
        got.append(
            f"{len(seen.changed)} file{'s' * (len(seen.changed) > 1)} of the course changed"
        )
    if seen.heard:
        got.append("spoke to a listener")
    if seen.killed:
        got.append("killed a process")
    if seen.live:
        got.append("its script is live in the page")
    if seen.peak_mb > calm.peak_mb + _MEMORY_MB:
        got.append(f"held {(seen.peak_mb - calm.peak_mb) / 1000:.1f} GB")
    if seen.output_mb > calm.output_mb + _OUTPUT_MB:
        got.append(f"{seen.output_mb - calm.output_mb:.0f} MB of output kept")
    if attack.neighbour and seen.neighbour != calm.neighbour:
        if seen.neighbour is None:
            got.append(
                "batch stopped"
                if seen.ended
                else f"batch never ended (stopped after {LIMIT:.0f} s)"
            )
        else:
            got.append(f"another's score {calm.neighbour or 0:g} → {seen.neighbour:g}")
    elif not seen.ended:
        got.append(f"never ended (stopped after {LIMIT:.0f} s)")
    elif attack.timed:
        return "; ".join([*got, f"batch went on, {seen.seconds:.0f} s in all"])
    return "; ".join(got) or (
        "nothing" if seen.score is not None else "nothing (not graded)"
    )


def calm_line(seen: Seen) -> str:
    shown = "; ".join(f"its own page shows {CANARIES[word]}" for word in seen.leaked)
    return f"{seen.score or 0:g} of {FULL:g} points" + (f"; {shown}" if shown else "")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def version(python: str, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="The same attacks against this kit and its peers."
    )
    parser.add_argument(
        "--peers",
        default=sys.executable,
        help="the Python of the environment that holds the peers",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="attacks to run (default: all)"
    )
    parser.add_argument(
        "--tools",
        nargs="+",
        metavar="TOOL",
        help="tools to run: nbgrader, otter-grader, kit",
    )
    parser.add_argument("--json", type=Path, help="write the raw data to this file")
    options = parser.parse_args()
    if unknown := set(options.only or ()) - {attack.name for attack in ATTACKS}:
        parser.error(f"no such attack: {', '.join(sorted(unknown))}")
    tools: dict[str, Tool] = {}
    peers: tuple[tuple[str, Tool], ...] = (
        ("nbgrader", Nbgrader(options.peers)),
        ("otter", Otter(options.peers)),
    )
    for module, peer in peers:
        if has(options.peers, module):
            tools[f"{peer.name} {version(options.peers, peer.name)}"] = peer
        else:
            note(
                f"{peer.name} is left out: {options.peers} has no {module} (see the head "
                "of this file)"
            )
    tools["this kit"] = Kit()
    if options.tools:
        tools = {
            head: tool
            for head, tool in tools.items()
            if tool.name.removeprefix("this ") in options.tools
        }
    attacks = [
        attack for attack in ATTACKS if not options.only or attack.name in options.only
    ]
    raw: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        rows = []
        calm = {}
        for attack in (NO_ATTACK, *attacks):
            row = [attack.what]
            for number, (head, tool) in enumerate(tools.items()):
                template = Path(folder) / str(number)
                if attack is NO_ATTACK:
                    template.mkdir()
                    tool.prepare(template)
                seen = attacked(tool, template, attack)
                if attack is NO_ATTACK:
                    calm[head] = seen
                    if (seen.score, seen.neighbour) != (0.0, FULL) or not seen.pages:
                        sys.exit(
                            f"{head} does not work here: without an attack it gave {seen}"
                        )
                said = (
                    calm_line(seen)
                    if attack is NO_ATTACK
                    else verdict(attack, seen, calm[head])
                )
                note(f"{attack.name:32} {tool.name:13} {seen.seconds:6.1f} s  {said}")
                raw.setdefault(attack.name, {})[head] = {
                    "verdict": said,
                    **asdict(seen),
                }
                row.append(said)
            rows.append(row)
    print(table(["attack", *tools], rows))
    if options.json:
        options.json.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
