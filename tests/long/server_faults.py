"""Kills the server, its graders and its stations at random moments while a class hands in, and
counts: each notebook that a student was told is stored gets exactly one result, the right one.

    python tests/long/server_faults.py [--kills N] [--seed N]

One run takes about a minute and kills something every few seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
from local_machines import free_port
from process_tree import family

AUTOGRADER_TESTS = Path(__file__).resolve().parents[1] / "autograder"
sys.path[:0] = [str(AUTOGRADER_TESTS), str(AUTOGRADER_TESTS / "server")]

RIGHT = {
    "double": "def double(x):\n    return 2 * x\n",
    "half": "def half(x):\n    return x / 2\n",
}
WRONG = {**RIGHT, "half": "def half(x):\n    return x\n"}
POINTS = {"right": 5.5, "wrong": 2.5}
STUDENTS = [f"s{number:02d}" for number in range(12)]
PATIENCE = 300.0


class Server:
    """`autograder serve`, started again after each kill, on the same port."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._port = free_port()
        self.address = f"http://127.0.0.1:{self._port}"
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; it takes up what was left."""
        command = [
            sys.executable,
            "-m",
            "autograder",
            "serve",
            "--port",
            str(self._port),
        ]
        with (self._root / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--graders", "2"], cwd=self._root, stdout=log, stderr=log
            )
        return self.process

    def kill(self) -> None:
        """Kill the process with the pages."""
        self.process.kill()
        self.process.wait()

    def _children(self) -> list[int]:
        return [pid for pid in family(self.process.pid) if pid != self.process.pid]

    def kill_a_child(self, seeded: random.Random) -> str:
        """Kill one process that it started, or that those started."""
        end = time.monotonic() + 20
        while not (children := self._children()) and time.monotonic() < end:
            time.sleep(0.1)
        if not children:
            return "nothing"
        victim = seeded.choice(children)
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        return "a child"


def hand_in(server: Server, key: str, kind: str, told: list[tuple[int, str]]) -> None:
    """Hand in as `check.py --submit` does, again until the server says that it is stored."""
    from courses import handed_in

    notebook = handed_in(RIGHT if kind == "right" else WRONG, (f"# {random.random()}",))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.post(
                f"{server.address}/api/assignments/tiny/attempts",
                content=notebook.encode(),
                headers={"authorization": f"Bearer {key}"},
                timeout=10,
            )
            if answer.status_code == 201:
                told.append((answer.json()["attempt"], kind))
                return
        time.sleep(0.3)
    raise TimeoutError("the server never took the notebook")


def make_keys(root: Path) -> dict[str, str]:
    """A key for each student, made in the server's database before it starts."""
    from autograder.server.database import open_database
    from autograder.server.people import PeopleStore

    (root / ".autograder").mkdir(exist_ok=True)
    engine = open_database(f"sqlite:///{root / '.autograder' / 'server.db'}")
    people = PeopleStore(engine)
    keys = {student: people.make_api_key(student) for student in STUDENTS}
    engine.dispose()
    return keys


def run(kills: int, seed: int) -> list[str]:
    """One run; gives a line for each thing that is wrong."""
    from courses import built_course
    from served_course import write_class
    from tiny_course import SUITE, TINY, write_assignment

    seeded = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "built"
        built.mkdir()
        built_course(built, lambda path: write_assignment(path, "tiny", TINY, SUITE))
        root = write_class(built, Path(folder) / "course", "")
        (root / "students.csv").write_text("id\n" + "\n".join(STUDENTS) + "\n")
        keys = make_keys(root)
        server = Server(root)
        told: list[tuple[int, str]] = []
        threads = []
        for student in STUDENTS:
            for _ in range(3):
                arguments = (server, keys[student], seeded.choice(list(POINTS)), told)
                threads.append(threading.Thread(target=hand_in, args=arguments))
        for thread in threads:
            thread.start()
        for _ in range(kills):
            time.sleep(seeded.uniform(1.0, 4.0))
            if seeded.random() < 0.5:
                server.kill()
                print("killed the server")
                server.start()
            else:
                print(f"killed {server.kill_a_child(seeded)}")
        for thread in threads:
            thread.join()
        problems = check(root, told)
        server.process.send_signal(signal.SIGINT)
        server.process.wait(60)
        problems += check_folders(root)
    return problems


def check(root: Path, told: list[tuple[int, str]]) -> list[str]:
    """Wait until all is graded, and compare."""
    from autograder.server.attempts import AttemptStore
    from autograder.server.database import open_database

    engine = open_database(f"sqlite:///{root / '.autograder' / 'server.db'}")
    store = AttemptStore(engine)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        queue = store.queue_state()
        if not queue.waiting and not queue.started:
            break
        time.sleep(0.5)
    problems = []
    for number, kind in told:
        attempt = store.get(number)
        if attempt is None:
            problems.append(f"attempt {number} is lost")
        elif attempt.score != POINTS[kind]:
            problems.append(
                f"attempt {number}: {attempt.state}, {attempt.score} {attempt.problem}"
            )
    print(f"{len(told)} told, {store.count_by_state()}")
    engine.dispose()
    return problems


def check_folders(root: Path) -> list[str]:
    """Each student has one result in the class's folders, with the points of the best attempt."""
    results = {path.stem for path in (root / "results" / "tiny").glob("*.json")}
    return [f"no result of {student}" for student in STUDENTS if student not in results]


def main() -> None:
    """Run, print what is wrong, and say so with the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    problems = run(options.kills, options.seed)
    print("\n".join(problems) or "nothing lost, nothing graded wrongly")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
