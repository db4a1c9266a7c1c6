"""A class at its deadline: students hand in at `autograder serve` and wait for their pages.

    pip install locust
    python benchmarks/server_load.py [--students 500] [--minutes 10] [--assignment a2_attention]

Locust's users on this machine's own loopback: each hands in one notebook of the demo class at a
random moment, looks at the attempt's page as often as the page loads itself again, and opens the
feedback page. The class begins when the server's graders are ready. Prints how many were graded,
how many lost (none may be), the time from the upload to the page, and the processor time of pages
and of graders.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

import psutil

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "long"))

from process_tree import cpu_of

from autograder.authoring.demo_class import write_demo_class
from autograder.cluster.messages import pack_course, unpack_course
from autograder.course import find_course, load_course

LOCUST_FILE = Path(__file__).with_name("server_load_users.py")
PORT = 8799


def make_course(root: Path, name: str, students: int) -> Path:
    """A course of one assignment with a class list; gives the folder of the demo class."""
    here = find_course()
    unpack_course(pack_course(here, here.assignment(name)), root)
    ids = [f"student-{number:04d}" for number in range(students)]
    (root / "students.csv").write_text("id\n" + "\n".join(ids) + "\n", encoding="utf-8")
    course = load_course(root)
    folder = root.parent / "class"
    write_demo_class(course, course.assignment(name), folder)
    return folder


def start_server(
    root: Path, students: int
) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    """The server, and each student's link."""
    command = [sys.executable, "-m", "autograder", "serve", "--port", str(PORT)]
    command += [
        word
        for number in range(students)
        for word in ("--link", f"student-{number:04d}")
    ]
    log = root / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(command, cwd=root, stdout=stream, stderr=stream)
    while "graders are ready" not in (text := log.read_text(encoding="utf-8")):
        if server.poll() is not None:
            raise RuntimeError(text)
        time.sleep(0.2)
    return server, dict(
        re.findall(r"^([\w-]+) \(student\): (\S+)$", text, re.MULTILINE)
    )


def run_users(
    links: dict[str, str], notebooks: list[str], minutes: float, folder: Path
) -> None:
    """Let Locust's users hand in; `folder` then has a line for each."""
    seeded = random.Random(0)
    plan = [
        {
            "link": link,
            "notebook": seeded.choice(notebooks),
            "at": seeded.uniform(0, 60 * minutes),
        }
        for link in links.values()
    ]
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "locust",
        "--headless",
        "--locustfile",
        str(LOCUST_FILE),
        "--host",
        f"http://127.0.0.1:{PORT}",
        "--users",
        str(len(plan)),
        "--spawn-rate",
        "100",
        "--run-time",
        f"{int(60 * minutes) + 1800}s",
        "--only-summary",
    ]
    subprocess.run(command, cwd=folder, check=False)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--assignment", default="a2_attention")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        demo = make_course(folder / "course", options.assignment, options.students)
        notebooks = [
            str(path) for path in sorted(demo.glob("*/*/*.ipynb")) if path.is_file()
        ]
        server, links = start_server(folder / "course", options.students)
        begin = _cpu_of_pages(server.pid), cpu_of(server.pid)
        try:
            run_users(links, notebooks, options.minutes, folder)
            pages = _cpu_of_pages(server.pid) - begin[0]
            graders = cpu_of(server.pid) - begin[1] - pages
        finally:
            server.terminate()
            server.wait()
        lines = (folder / "seconds.txt").read_text(encoding="utf-8").splitlines()
    seconds = sorted(float(line) for line in lines if line not in ("lost", "refused"))
    refused, lost = (
        lines.count("refused"),
        options.students - len(seconds) - lines.count("refused"),
    )
    print(
        f"{len(seconds)} with a page, {refused} told that it is no notebook, {lost} lost"
    )
    cuts = quantiles(seconds, n=20)
    print(
        f"upload to page: median {cuts[9]:.1f} s, p95 {cuts[18]:.1f} s, most {seconds[-1]:.1f} s"
    )
    print(f"processor time: pages {pages:.0f} s, graders {graders:.0f} s")
    print(f"processes that want a processor, at the end: {os.getloadavg()[2]:.0f}")


def _cpu_of_pages(pid: int) -> float:
    """Seconds of CPU time of the process with the pages alone."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
