"""How fast a class is graded: this kit, nbgrader's autograde and `otter run`, on the same
notebooks.

    python benchmarks/throughput.py [--sizes 10 100 1000] [--right] [--json FILE]

With `--right` nobody is wrong: the answer key and another right answer, again and again.
Each tool at its best setting: the kit with one and two processes, from cold and warm; nbgrader as
two processes, each in a course of its own; `otter run` two at a time. CPU time is that of the whole
tree of processes, which other work on the machine disturbs less than wall time. Peers that are not
there are left out; to have them:

    python -m venv PEERS --system-site-packages && PEERS/bin/pip install nbgrader otter-grader torch
    python benchmarks/throughput.py --peers PEERS/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "long"))

from peers import checked, has, peer_environment
from process_tree import cpu_of, watching_memory
from six_questions import (
    ANSWERS,
    checks_of,
    kit_submissions,
    otter_test,
    plain_notebook,
    submissions,
    write_kit_course,
)

PEER_SIZES = (4, 10)
"""A peer takes seconds a submission: two small classes tell what starting costs and what one more
submission costs.
"""
Answers = dict[str, str]
"""A submission: its answer to each question."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one tool. `peak_mb` is memory counted once where processes share it (0: not
    measured).
    """

    tool: str
    size: int
    wall: float
    cpu: float
    peak_mb: float = 0.0


def timed(
    tool: str, size: int, commands: Sequence[Sequence[str]], **options: Any
) -> Measured:
    """Run the commands at the same time and wait for all."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    with tempfile.TemporaryFile() as log, watching_memory() as peak:
        running = [
            subprocess.Popen(command, stdout=log, stderr=log, **options)
            for command in commands
        ]
        codes = [process.wait() for process in running]
        wall = time.monotonic() - started
        if any(codes):
            log.seek(0)
            raise RuntimeError(
                f"{tool} failed:\n{log.read().decode(errors='replace')[-2000:]}"
            )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(tool, size, wall, cpu, peak.mb)


# the kit


def kit_environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "OMP_NUM_THREADS": "1",
    }


def make_kit_course(root: Path, size: int, answers: Sequence[Answers]) -> list[str]:
    """A course with `size` submissions; the notebooks' texts."""
    write_kit_course(root)
    command = [sys.executable, "-m", "autograder", "build", "questions"]
    subprocess.run(
        command, cwd=root, env=kit_environment(), check=True, stdout=subprocess.DEVNULL
    )
    texts = kit_submissions(
        root / "solutions" / "questions" / "questions.ipynb", answers
    )
    add_submissions(root, texts, size)
    return texts


def add_submissions(
    root: Path, texts: Sequence[str], size: int, prefix: str = "student"
) -> None:
    for number in range(size):
        folder = root / "submitted" / f"{prefix}-{number:04d}" / "questions"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "questions.ipynb").write_text(
            texts[number % len(texts)], encoding="utf-8"
        )


def kit_cold(root: Path, size: int, workers: int) -> Measured:
    folder = str(root / f"results-{size}-{workers}")
    command = [
        sys.executable,
        "-m",
        "autograder",
        "grade",
        "questions",
        "--workers",
        str(workers),
        "--out",
        folder,
    ]
    return timed(
        f"kit, cold, {workers}", size, [command], cwd=root, env=kit_environment()
    )


def kit_warm(root: Path, size: int, workers: int) -> Measured:
    command = [sys.executable, __file__, "--warm", str(root), str(size), str(workers)]
    said = subprocess.run(
        command, env=kit_environment(), check=True, capture_output=True, text=True
    ).stdout
    return Measured(f"kit, warm, {workers}", size, *json.loads(said.splitlines()[-1]))


def bare_tests(root: Path) -> float:
    command = [sys.executable, __file__, "--bare", str(root)]
    said = subprocess.run(
        command, env=kit_environment(), check=True, capture_output=True, text=True
    ).stdout
    return float(said.splitlines()[-1])


def inside_warm(root: Path, size: int, workers: int) -> None:
    """In a process of its own: grade ten to warm up, then measure `size` more with the same host
    and suite.
    """
    from autograder.course import load_course
    from autograder.grading.bench import Bench
    from autograder.grading.pool import Pool
    from autograder.intake.find import find_submissions

    course = load_course(root)
    assignment = course.assignment("questions")
    found = find_submissions(course, assignment, ())
    jobs = (found * (size // len(found) + 1))[:size]
    warm = found[:10] * workers
    with Bench(course, assignment, "auto", workers) as bench:
        done = Pool(bench, [*warm, *jobs], bench.grader.grade_to_bytes).run()
        for _ in warm:
            next(done)
        started, cpu = time.monotonic(), cpu_of()
        for _ in done:
            pass
        # workers that have ended count once the host has waited for them, which it does every
        # second
        time.sleep(1.2)
        print(json.dumps([time.monotonic() - started - 1.2, cpu_of() - cpu]))


def inside_bare(root: Path, rounds: int = 20) -> None:
    """CPU of the same suite on the answer key, in a warm process without walls."""
    from types import SimpleNamespace

    from autograder.course import load_course
    from autograder.grading.grader import AssignmentGrader

    course = load_course(root)
    grader = AssignmentGrader(course, course.assignment("questions"))
    names = SimpleNamespace(**grader.reference)
    grader.suite.fixtures.student = names

    def all_tests() -> None:
        for question in grader.suite.questions:
            for test in question.tests:
                if error := grader.suite.run(question.name, test.name):
                    raise error

    all_tests()
    started = time.process_time()
    for _ in range(rounds):
        all_tests()
    print((time.process_time() - started) / rounds)


# the peers


def nbgrader_class(
    python: str, root: Path, size: int, answers: Sequence[Answers]
) -> Measured:
    """Two processes of `nbgrader autograde`, each with half of the class and a gradebook of its
    own.
    """
    source = plain_notebook(ANSWERS, grades=True)
    courses = [root / f"nbgrader-{size}-{half}" for half in range(2)]
    for half, course in enumerate(courses):
        folder = course / "source" / "questions"
        folder.mkdir(parents=True)
        (folder / "questions.ipynb").write_text(json.dumps(source))
        environment = peer_environment(python)
        checked(
            [python, "-m", "nbgrader", "generate_assignment", "questions", "--create"],
            cwd=course,
            env=environment,
        )
        texts = [json.dumps(plain_notebook(own, grades=True)) for own in answers]
        for number in range(half, size, 2):
            add_submissions(
                course, [texts[number % len(texts)]], 1, f"student-{number}"
            )
    command = f"exec {python} -m nbgrader autograde questions --create"
    running = [["sh", "-c", f"cd {course} && {command}"] for course in courses]
    return timed("nbgrader autograde, 2", size, running, env=peer_environment(python))


def otter_class(
    python: str, root: Path, size: int, answers: Sequence[Answers]
) -> Measured:
    """`otter run` for each submission, two at a time."""
    folder = root / f"otter-{size}"
    folder.mkdir()
    with zipfile.ZipFile(folder / "autograder.zip", "w") as bundle:
        bundle.writestr("otter_config.json", "{}")
        for name in ANSWERS:
            bundle.writestr(f"tests/{name}.py", otter_test(name))
    lines = []
    for number in range(size):
        notebook = folder / f"student-{number}.ipynb"
        notebook.write_text(
            json.dumps(plain_notebook(answers[number % len(answers)], grades=False))
        )
        out = folder / f"out-{number}"
        out.mkdir()
        lines.append(
            f"{python} -m otter run -a {folder}/autograder.zip -o {out} --no-logo {notebook}"
        )
    halves = [["sh", "-ec", "\n".join(lines[half::2])] for half in range(2)]
    return timed("otter run, 2", size, halves, env=peer_environment(python))


# the report


def measure(
    sizes: Sequence[int], peers: str, answers: Sequence[Answers], say: Any
) -> dict[str, Any]:
    runs: list[Measured] = []

    def note(run: Measured) -> None:
        runs.append(run)
        say(
            f"{run.tool:24} {run.size:5}  {run.size / run.wall:8.2f}/s  "
            f"{1e3 * run.cpu / run.size:8.0f} ms CPU each"
        )

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, module, grade in (
            ("nbgrader", "nbgrader", nbgrader_class),
            ("otter-grader", "otter", otter_class),
        ):
            if not has(peers, module):
                say(
                    f"{name} is left out: {peers} has no {module} (see the head of this file)"
                )
                continue
            for size in PEER_SIZES:
                note(grade(peers, root, size, answers))
        course = root / "kit"
        course.mkdir()
        texts = make_kit_course(course, 10, answers)
        note(kit_cold_single(course))
        for size in sizes:
            add_submissions(course, texts, size)
            for workers in (1, 2):
                note(kit_cold(course, size, workers))
                note(kit_warm(course, size, workers))
        bare = bare_tests(course)
    torch = timed("import torch", 1, [[sys.executable, "-c", "import torch"]])
    say(
        f"bare tests {1e3 * bare:.0f} ms CPU; import torch {torch.cpu:.2f} s CPU, "
        f"{torch.wall:.2f} s wall"
    )
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}",
        "load": os.getloadavg()[0],
        "checks": sum(len(checks_of(name, "")) for name in ANSWERS),
        "bare_tests_cpu": bare,
        "import_torch": asdict(torch),
        "runs": [asdict(run) for run in runs],
    }


def kit_cold_single(root: Path) -> Measured:
    notebook = str(root / "solutions" / "questions" / "questions.ipynb")
    command = [
        sys.executable,
        "-m",
        "autograder",
        "grade",
        "questions",
        notebook,
        "--out",
        str(root / "one"),
    ]
    return timed("kit, one notebook", 1, [command], cwd=root, env=kit_environment())


def each_more(runs: Sequence[dict[str, Any]], tool: str, what: str) -> float | None:
    """Seconds of one more submission: the start is not in it."""
    own = sorted(
        (run for run in runs if run["tool"] == tool), key=lambda run: run["size"]
    )
    if len(own) < 2:
        return None
    small, large = own[0], own[-1]
    return float((large[what] - small[what]) / (large["size"] - small["size"]))


def table(report: dict[str, Any]) -> str:
    lines = [
        "| tool | class | submissions a second | CPU a submission, ms | memory, MB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for run in report["runs"]:
        memory = f"{run['peak_mb']:.0f}" if run["peak_mb"] else ""
        rate, cpu = run["size"] / run["wall"], 1e3 * run["cpu"] / run["size"]
        lines.append(
            f"| {run['tool']} | {run['size']} | {rate:.2f} | {cpu:.0f} | {memory} |"
        )
    for tool in dict.fromkeys(run["tool"] for run in report["runs"]):
        wall, cpu = (each_more(report["runs"], tool, what) for what in ("wall", "cpu"))
        if wall and cpu:
            lines.append(f"| {tool}: one more | | {1 / wall:.2f} | {1e3 * cpu:.0f} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100])
    parser.add_argument(
        "--peers",
        default=sys.executable,
        help="a Python that has nbgrader and otter-grader",
    )
    parser.add_argument("--right", action="store_true", help="right submissions only")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--warm", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.warm:
        inside_warm(Path(options.warm[0]), int(options.warm[1]), int(options.warm[2]))
        return
    if options.bare:
        inside_bare(options.bare)
        return
    answers = submissions(right=options.right)
    report = measure(
        options.sizes,
        options.peers,
        answers,
        lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
