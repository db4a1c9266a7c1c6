"""A class on the machines of a cluster: the same bytes as from this machine, and no submission lost or graded twice."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.config
import pytest
from click.testing import CliRunner
from courses import handed_in
from distributed import Client, WorkerPlugin
from distributed.client import ClosedClientError
from small_course import ANSWERS

from autograder.cli import main
from autograder.cluster import driver
from autograder.cluster.course_copy import pack_course, unpack_course
from autograder.cluster.machine import CourseThere, grade_there
from autograder.cluster.messages import Answer, HandedIn, Reply, taken_in
from autograder.cluster.scheduler import _SETTINGS
from autograder.course import Course, load_course
from autograder.errors import ClusterUnavailable, UnreadableSubmission
from autograder.fingerprint import software
from autograder.grading.batch import pack
from autograder.grading.bench import Bench
from autograder.model import FoundSubmission, Graded
from autograder.results import course_sha256, read_timing, result_bytes

WRONG = "def softmax(z, dim=-1):\n    return z.exp() / z.exp().sum(dim=0)\n"


def write_class(folder: Path, answers: dict[str, dict[str, str]], *extra: str) -> list[FoundSubmission]:
    """In nbgrader's layout, with extra cells."""
    found = []
    for student, cells in answers.items():
        path = folder / student / "small" / "small.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(handed_in(cells, extra), encoding="utf-8")
        found.append(FoundSubmission(student, path))
    return found


# what travels


def test_a_course_travels_whole_and_without_its_people(course: Course, tmp_path: Path) -> None:
    """The machine's copy gives every result the same hash; what students handed in, and who they are, stays here."""
    (known := course.kept / "known" / "small" / "f").mkdir(parents=True)
    (known / "one.safetensors").write_bytes(b"answers")
    packed_course = pack_course(course, course.assignment("small"))
    unpack_course(packed_course, tmp_path / "copy")
    copy = load_course(tmp_path / "copy")
    assert course_sha256(copy, copy.assignment("small")) == course_sha256(course, course.assignment("small"))
    assert (copy.kept / "known" / "small" / "f" / "one.safetensors").read_bytes() == b"answers"
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    assert not copy.submitted.exists()
    assert "extensions" not in (copy.root / "course.toml").read_text(encoding="utf-8")
    assert pack_course(course, course.assignment("small")) == packed_course


def test_half_a_course_is_none(course: Course, tmp_path: Path) -> None:
    broken = pack_course(course, course.assignment("small"))[:-100]
    with pytest.raises(Exception, match="zip"):
        unpack_course(broken, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_submission_reads_there_as_it_reads_here(tmp_path: Path) -> None:
    """What a result says of the file's name, its folder and others in it depends on these alone."""
    (here := tmp_path / "s1" / "small").mkdir(parents=True)
    for name in ("mine.ipynb", "other.ipynb", "third.ipynb"):
        (here / name).write_bytes(name.encode())
    handed = taken_in(FoundSubmission("s1", here / "mine.ipynb"), "small", 1 << 20)
    there = handed.write_below(tmp_path / "machine" / "0")
    assert there == FoundSubmission("s1", tmp_path / "machine" / "0" / "s1" / "small" / "mine.ipynb")
    assert there.path.read_bytes() == b"mine.ipynb"
    assert sorted(path.name for path in there.path.parent.iterdir()) == ["mine.ipynb", "other.ipynb"]


def test_a_link_does_not_travel(tmp_path: Path) -> None:
    (tmp_path / "key.ipynb").write_text("the answer key")
    (tmp_path / "s1.ipynb").symlink_to(tmp_path / "key.ipynb")
    with pytest.raises(UnreadableSubmission, match=r"s1\.ipynb: is a link"):
        taken_in(FoundSubmission("s1", tmp_path / "s1.ipynb"), "small", 1 << 20)


# a machine


def a_machine(course: Course, wanted: dict[str, str], name: str = "one") -> CourseThere:
    there = CourseThere("name", pack_course(course, course.assignment("small")), "small", "auto", (), wanted)
    there.setup(SimpleNamespace(state=SimpleNamespace(nthreads=1), name=name, address="tcp://127.0.0.1:1", nanny=None))
    return there


def test_a_machine_with_other_software_refuses_its_share(course: Course) -> None:
    machine = a_machine(course, {**software(), "torch": "1.0"})
    reply = machine.grade([HandedIn("s1", ("s1.ipynb",), b"{}")])
    assert reply.answers == ()
    assert "torch" in reply.refusal
    assert "not 1.0" in reply.refusal


@pytest.fixture
def dask_client() -> Iterator[Client]:
    """Of a cluster in this process with one Dask worker of one thread, with the settings of `local:N`."""
    with (
        dask.config.set(_SETTINGS),
        Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client,
    ):
        yield client


class BothAtOnce(WorkerPlugin):  # type: ignore[misc]
    """A course whose graders answer nothing before a second share is there."""

    name = "both"

    def setup(self, worker: object) -> None:
        self._both = threading.Barrier(2)

    def grade(self, share: object) -> Reply:
        self._both.wait(10.0)
        return Reply("m")


def test_a_machine_of_one_grader_has_two_shares_at_once(dask_client: Client) -> None:
    """Where the station had to end one before it had the next, its grader would wait for the driver in between."""
    dask_client.register_plugin(BothAtOnce())
    shares = [dask_client.submit(grade_there, BothAtOnce.name, (), pure=False) for _ in range(2)]
    assert dask_client.gather(shares) == [Reply("m"), Reply("m")]


class Glances(WorkerPlugin):  # type: ignore[misc]
    """A course whose graders answer at once."""

    name = "glances"

    def setup(self, worker: object) -> None: ...

    def grade(self, share: object) -> Reply:
        return Reply("m")


def test_nobody_keeps_what_was_handed_in_once_it_is_graded(dask_client: Client) -> None:
    """Client, scheduler and Dask worker are one process here, and Dask would keep a thousand messages at each end."""
    dask_client.register_plugin(Glances())
    for number in range(3):
        share = (HandedIn(f"s{number}", ("small.ipynb",), b"{}"),)
        assert dask_client.submit(grade_there, Glances.name, share, pure=False).result() == Reply("m")
    del share
    until = time.monotonic() + 10.0
    while kept := [one for one in gc.get_objects() if type(one) is HandedIn]:
        assert time.monotonic() < until, kept
        del kept
        gc.collect()
        time.sleep(0.1)


# the driver, with a scheduler that does as it is told


class Future:
    def __init__(self, key: str) -> None:
        self.key, self.status, self.reply = key, "pending", Reply("")
        self._tell: Callable[[Future], None] = lambda _: None

    def add_done_callback(self, tell: Callable[[Future], None]) -> None:
        self._tell = tell
        if self.status != "pending":
            tell(self)

    def land(self, reply: Reply | None = None, status: str = "finished") -> None:
        if self.status == "pending":  # Dask looks at no second answer to one task either
            self.status, self.reply = status, reply or Reply("")
        self._tell(self)


class Scheduler:
    """Hands each share to `machine`, by the names of its students; that may answer now, later, twice, or never."""

    status = "running"

    def __init__(self, machines: dict[str, int], machine: Callable[..., None]) -> None:
        self.machines, self._machine = machines, machine
        self.given: list[tuple[str, ...]] = []

    def register_plugin(self, plugin: object) -> None: ...

    def unregister_worker_plugin(self, name: str) -> None: ...

    def close(self, timeout: float = 0.0) -> None: ...

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {name: {"nthreads": n, "status": "running"} for name, n in self.machines.items()}}

    def submit(
        self, task: object, course: str, share: tuple[HandedIn, ...], *, key: str, workers: list[str], pure: bool
    ) -> Future:
        future = Future(key)
        students = [handed.student for handed in share]
        self.given.append((workers[0], *students))
        self._machine(self, workers[0], future, *students)
        return future

    def gather(self, futures: list[Future], errors: str) -> list[Reply]:
        return [future.reply for future in futures]


def answers(*students: str, seconds: float = 0.0) -> Reply:
    """What a machine `m` says of a share: the result of each submission is its student's name, and took so long."""
    took = {"tests": seconds}
    graded = [Graded(student, problem=f"graded: {student}", seconds=took) for student in students]
    return Reply("m", tuple(Answer(pack(one)) for one in graded))


@pytest.fixture
def run(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Scheduler], tuple[list[str], driver.Cluster]]:
    """Grade a class of four on a scheduler: what was yielded of each, in order, and the cluster."""
    monkeypatch.setattr(driver, "TICK", 0.01)
    monkeypatch.setattr(driver, "PATIENCE", 0.1)

    def grade(*schedulers: Scheduler, size: int = 4) -> tuple[list[str], driver.Cluster]:
        found = write_class(tmp_path, {f"s{number}": ANSWERS for number in range(size)})
        clients = iter(schedulers)
        monkeypatch.setattr(driver, "reaching", lambda _: contextlib.nullcontext(lambda: next(clients)))
        cluster = driver.Cluster("tls://somewhere:1")
        yielded = cluster.grade(course, course.assignment("small"), found, "auto", warn=lambda _: None)
        return sorted(f"{scored.machine} {scored.problem}".strip() for scored, _ in yielded), cluster

    return grade


EACH_ONCE = [f"m graded: s{number}" for number in range(4)]


def honest(_: Scheduler, machine: str, future: Future, student: str) -> None:
    future.land(answers(student))


def test_each_submission_is_answered_once(run: Callable[..., Any]) -> None:
    assert run(Scheduler({"a": 2, "b": 1}, honest))[0] == EACH_ONCE


def test_a_machine_never_has_more_than_one_submission_too_many(run: Callable[..., Any]) -> None:
    held: list[tuple[Future, str]] = []
    most = 0

    def slow(_: Scheduler, machine: str, future: Future, student: str) -> None:
        nonlocal most
        held.append((future, student))
        most = max(most, len(held))
        if len(held) == 2 or len(scheduler.given) == 4:
            first, whose = held.pop(0)
            first.land(answers(whose))
            while len(scheduler.given) == 4 and held:
                first, whose = held.pop(0)
                first.land(answers(whose))

    scheduler = Scheduler({"a": 1}, slow)
    assert run(scheduler)[0] == EACH_ONCE
    assert most == 2


def test_shares_grow_to_what_a_grader_does_in_two_seconds_and_are_small_at_the_end(run: Callable[..., Any]) -> None:
    def quick(_: Scheduler, machine: str, future: Future, *students: str) -> None:
        future.land(answers(*students, seconds=0.25))

    scheduler = Scheduler({"a": 1}, quick)
    assert run(scheduler, size=40)[0] == sorted(f"m graded: s{number}" for number in range(40))
    # two before anything is known; at the end half of what is left
    assert [len(given) - 1 for given in scheduler.given] == [1, 1, 8, 8, 8, 7, 3, 2, 1, 1]


def test_a_share_that_is_lost_is_handed_out_again_one_by_one(run: Callable[..., Any]) -> None:
    """One of it may be what brought the machine down; the others must not be taken for it."""

    def brought_down(scheduler: Scheduler, machine: str, future: Future, *students: str) -> None:
        if "s5" in students:
            scheduler.machines = {f"{machine}'": 1}
        else:
            future.land(answers(*students, seconds=0.1))

    scheduler = Scheduler({"a": 1}, brought_down)
    yielded, _ = run(scheduler, size=12)
    assert sum(one.startswith("m graded") for one in yielded) == 11
    assert [one for one in yielded if not one.startswith("m graded")] == [
        "small.ipynb: the machine that had it was lost, and it was begun 4 times"
    ]
    shares = [students for _, *students in scheduler.given if "s5" in students]
    assert len(shares[0]) > 1
    assert shares[1:] == [["s5"]] * 3


def test_a_share_is_given_back_where_the_scheduler_is_lost_while_it_is_sent(run: Callable[..., Any]) -> None:
    def closed(scheduler: Scheduler, machine: str, future: Future, student: str) -> None:
        raise ClosedClientError("Client is closed")

    assert run(Scheduler({"a": 1}, closed), Scheduler({"a": 1}, honest))[0] == EACH_ONCE


def test_an_answer_that_comes_twice_counts_once(run: Callable[..., Any]) -> None:
    """The machine was given up, and another has its share; then both answer, and not even alike."""
    late: list[Future] = []

    def twice(scheduler: Scheduler, machine: str, future: Future, student: str) -> None:
        if machine == "gone":
            late.append(future)
            scheduler.machines = {"b": 1}
            return
        future.land(answers(student))
        future.land(answers("somebody else"))
        for other in late:
            other.land(answers("somebody else"))

    assert run(Scheduler({"gone": 1}, twice))[0] == EACH_ONCE


def test_the_share_of_a_machine_that_vanishes_goes_to_others(run: Callable[..., Any]) -> None:
    def vanishes(scheduler: Scheduler, machine: str, future: Future, student: str) -> None:
        if machine == "gone":
            scheduler.machines = {"b": 1}
        else:
            future.land(answers(student))

    scheduler = Scheduler({"gone": 3}, vanishes)
    assert run(scheduler)[0] == EACH_ONCE
    assert [where for where, _ in scheduler.given] == ["gone"] * 4 + ["b"] * 4


def test_a_machine_that_refuses_its_share_is_named_and_the_others_have_it(run: Callable[..., Any]) -> None:
    def picky(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(Reply("old", refusal="no walls") if machine == "a" else answers(student))

    yielded, cluster = run(Scheduler({"a": 1, "b": 1}, picky))
    assert yielded == EACH_ONCE
    assert cluster.refused == {"old": "no walls"}


def test_where_every_machine_refuses_the_run_ends_and_says_why(run: Callable[..., Any]) -> None:
    def all_refuse(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(Reply(machine, refusal=f"no walls on {machine}"))

    with pytest.raises(ClusterUnavailable, match=r"a: no walls on a; b: no walls on b"):
        run(Scheduler({"a": 1, "b": 1}, all_refuse))


def test_what_fails_again_and_again_is_named_and_not_lost(run: Callable[..., Any]) -> None:
    def breaks(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(Reply("m", (Answer(None, "the disk is full"),)) if student == "s1" else answers(student))

    yielded, _ = run(Scheduler({"a": 1}, breaks))
    assert yielded[:-1] == [EACH_ONCE[0], *EACH_ONCE[2:]]
    assert yielded[-1].startswith("small.ipynb: m: the disk is full, and it was begun ")


def test_a_scheduler_that_is_started_again_is_told_everything_anew(run: Callable[..., Any]) -> None:
    """What was under way is handed out again, and no submission pays for it."""

    def dies(scheduler: Scheduler, machine: str, future: Future, student: str) -> None:
        scheduler.status = "closed"
        future.land(status="cancelled")

    first, second = Scheduler({"a": 3}, dies), Scheduler({"a": 3}, honest)
    assert run(first, second)[0] == EACH_ONCE
    assert len(first.given) == len(second.given) == 4


def test_without_a_scheduler_it_says_so(run: Callable[..., Any], course: Course) -> None:
    cluster = driver.Cluster("tcp://127.0.0.1:9")
    graded = cluster.grade(course, course.assignment("small"), [], "auto", warn=lambda _: None)
    with pytest.raises(ClusterUnavailable, match=r"no scheduler answers"):
        next(graded)


def test_workers_and_devices_are_the_machines_own_business(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(course.root)
    done = CliRunner().invoke(main, ["grade", "small", "--cluster", "local:2", "--workers", "3"])
    assert done.exit_code == 2
    assert "--cluster goes with neither --workers nor --device" in done.output


# all of it


def children(process: int) -> list[int]:
    """Of any of its threads."""
    listed = Path(f"/proc/{process}/task").glob("*/children")
    with contextlib.suppress(OSError):
        return [int(child) for path in listed for child in path.read_text(encoding="ascii").split()]
    return []


def is_of_a_station(process: int) -> bool:
    """Or of its graders, which are forks of it."""
    with contextlib.suppress(OSError):
        return b"autograder.cluster.station" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def dask_workers_at_work(driver: int) -> list[int]:
    """Those whose station has a grader."""
    return [
        worker
        for worker in children(driver)
        if any(is_of_a_station(grader) for station in children(worker) for grader in children(station))
    ]


def test_a_cluster_gives_the_bytes_of_one_machine_while_a_dask_worker_is_killed(
    course: Course, bench: Bench, tmp_path: Path
) -> None:
    """The short form of benchmarks/cluster_faults.py: real workers, one of which dies when it has begun to grade."""
    answers = {"s1": ANSWERS, "s2": {**ANSWERS, "softmax": WRONG}, "s3": {"counter": ANSWERS["counter"]}}
    found = write_class(tmp_path / "class", answers, "import time\n\ntime.sleep(0.5)")
    (tmp_path / "class" / "s4.ipynb").write_text("no notebook")
    out, temporary = tmp_path / "out", tmp_path / "tmp"
    temporary.mkdir()
    command = ["grade", "small", "--cluster", "local:2", "--out", str(out), str(tmp_path / "class")]
    grade = subprocess.Popen(
        [sys.executable, "-m", "autograder", *command],
        cwd=course.root,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while grade.poll() is None and not (at_work := dask_workers_at_work(grade.pid)):
        time.sleep(0.05)
    os.kill(at_work[0], signal.SIGKILL)
    said, errors = grade.communicate()
    assert grade.returncode == 1, errors
    assert "Warning" not in errors  # of Dask's
    assert "not graded: s4: s4.ipynb" in said
    for one in found:
        here = bench.grader.grade(bench.clients[0], one).result
        assert here is not None
        assert (out / "small" / f"{one.student}.json").read_bytes() == result_bytes(here)
    machines = {entry.student: entry.machine.rpartition("/")[2] for entry in read_timing(out, "small")}
    assert machines.keys() == {"s1", "s2", "s3", "s4"}
    assert {machines[one.student] for one in found} <= {"0", "1"}
    assert machines["s4"] in ("", "0", "1")
    assert [path for kind in ("attention-kit-*", "dask*") for path in temporary.glob(kind)] == []
