"""A class on the machines of a cluster: the same bytes as from this machine, and no submission lost
or graded twice.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.config
import pytest
from click.testing import CliRunner
from courses import handed_in
from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin
from distributed.client import ClosedClientError
from distributed.security import Security
from small_course import ANSWERS

from autograder.basics.errors import ClusterUnavailable
from autograder.cli.commands import main
from autograder.cluster import driver
from autograder.cluster import machine as machines
from autograder.cluster.machine import (
    CourseGone,
    CourseOnMachine,
    MachineRefuses,
    grade_on_machine,
)
from autograder.cluster.messages import (
    pack_course,
    unpack_course,
)
from autograder.cluster.scheduler import _SETTINGS, open_cluster
from autograder.course import Course, fingerprint, load_course
from autograder.grading.bench import Bench
from autograder.grading.graded_bytes import pack_graded
from autograder.grading.packed_submission import PackedSubmission
from autograder.grading.station import MachineFault
from autograder.records.model import Graded
from autograder.records.results import course_sha256, read_timing, result_bytes
from autograder.records.submission import FoundSubmission

WRONG = "def softmax(z, dim=-1):\n    return z.exp() / z.exp().sum(dim=0)\n"


def write_class(
    folder: Path, answers: dict[str, dict[str, str]], *extra: str
) -> list[FoundSubmission]:
    """In nbgrader's layout, with extra cells."""
    found = []
    for student, cells in answers.items():
        path = folder / student / "small" / "small.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(handed_in(cells, extra), encoding="utf-8")
        found.append(FoundSubmission(student, path))
    return found


# what travels


def test_a_course_travels_whole_and_without_its_people(
    course: Course, tmp_path: Path
) -> None:
    """The machine's copy gives every result the same hash; what students handed in, and who they
    are, stays here.
    """
    (known := course.kept / "known" / "small" / "f").mkdir(parents=True)
    (known / "one.safetensors").write_bytes(b"answers")
    packed_course = pack_course(course, course.assignment("small"))
    with zipfile.ZipFile(io.BytesIO(packed_course)) as archive:
        modes = {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert modes == {0o600}
    unpack_course(packed_course, tmp_path / "copy")
    copy = load_course(tmp_path / "copy")
    assert course_sha256(copy, copy.assignment("small")) == course_sha256(
        course, course.assignment("small")
    )
    assert (
        copy.kept / "known" / "small" / "f" / "one.safetensors"
    ).read_bytes() == b"answers"
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    assert not copy.submitted.exists()
    assert "extensions" not in (copy.root / "course.toml").read_text(encoding="utf-8")
    assert pack_course(course, course.assignment("small")) == packed_course


def test_half_a_course_is_none(course: Course, tmp_path: Path) -> None:
    broken = pack_course(course, course.assignment("small"))[:-100]
    with pytest.raises(Exception, match="zip"):
        unpack_course(broken, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


# a machine


def a_machine(course: Course) -> CourseOnMachine:
    """The plugin on a Dask worker of one thread."""
    plugin = CourseOnMachine(
        pack_course(course, course.assignment("small")), "small", "auto", ()
    )
    plugin.setup(
        SimpleNamespace(
            state=SimpleNamespace(nthreads=1),
            name="m",
            address="tcp://127.0.0.1:1",
            nanny=None,
        )
    )
    return plugin


HERE = {
    "torch": "2.13.0+cpu",
    "numpy": "2.4.6",
    "safetensors": "0.8.1",
    "triton": "3.7.1",
    "Python": "3.11.2 (main)",
}
"""The versions of a machine, as `software` names them."""


@pytest.mark.parametrize(
    ("library", "version"),
    [
        ("torch", "2.13.0+cu126"),
        ("numpy", "2.4.0"),
        ("safetensors", "0.8.0"),
        ("Python", "3.11.14 (GCC)"),
    ],
)
def test_a_build_or_the_last_number_of_a_version_is_no_other_software(
    library: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "software", lambda: HERE)
    drivers = fingerprint.deciding_software()
    monkeypatch.setattr(fingerprint, "software", lambda: {**HERE, library: version})
    machines.refuse_other_software(drivers)


@pytest.mark.parametrize(
    ("library", "version", "named"),
    [
        ("torch", "2.13.1+cpu", "torch 2.13.1, not 2.13.0"),
        ("numpy", "2.5.6", "numpy 2.5, not 2.4"),
        ("triton", "3.7.2", "triton 3.7.2, not 3.7.1"),
        ("Python", "3.12.2 (main)", "Python 3.12, not 3.11"),
    ],
)
def test_a_machine_with_other_software_refuses(
    library: str,
    version: str,
    named: str,
    course: Course,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fingerprint, "software", lambda: HERE)
    plugin = a_machine(course)
    monkeypatch.setattr(fingerprint, "software", lambda: {**HERE, library: version})
    with pytest.raises(MachineRefuses) as refusal:
        plugin.grade(PackedSubmission("s1", ("s1.ipynb",), b"{}"))
    reason = refusal.value.args[2]
    assert (
        reason
        == f"it has another software than where the class is graded from: {named}"
    )


@pytest.fixture
def dask_client() -> Iterator[Client]:
    """Of a cluster in this process with one Dask worker of one thread, with the settings of
    `local:N`.
    """
    with (
        dask.config.set(_SETTINGS),
        LocalCluster(
            processes=False,
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


class BothAtOnce(WorkerPlugin):  # type: ignore[misc]
    """A course whose graders answer nothing before a second submission is there."""

    name = "both"

    def setup(self, worker: object) -> None:
        self._both = threading.Barrier(2)

    def grade(self, handed_in: object) -> tuple[str, bytes]:
        self._both.wait(10.0)
        return "m", b""


def test_a_machine_of_one_grader_has_two_submissions_at_once(
    dask_client: Client,
) -> None:
    """Where the station had to end one before it had the next, its grader would wait for the driver
    in between.
    """
    dask_client.register_plugin(BothAtOnce())
    tasks = [
        dask_client.submit(grade_on_machine, BothAtOnce.name, (), pure=False)
        for _ in range(2)
    ]
    assert dask_client.gather(tasks) == [("m", b"")] * 2


class Glances(WorkerPlugin):  # type: ignore[misc]
    """A course whose graders answer at once."""

    name = "glances"

    def setup(self, worker: object) -> None: ...

    def grade(self, handed_in: object) -> tuple[str, bytes]:
        return "m", b""


def test_nobody_keeps_what_was_handed_in_once_it_is_graded(dask_client: Client) -> None:
    """Client, scheduler and Dask worker are one process here, and Dask would keep a thousand
    messages at each end.
    """
    dask_client.register_plugin(Glances())
    for number in range(3):
        handed_in = PackedSubmission(f"s{number}", ("small.ipynb",), b"{}")
        assert dask_client.submit(
            grade_on_machine, Glances.name, handed_in, pure=False
        ).result() == (
            "m",
            b"",
        )
    del handed_in
    until = time.monotonic() + 10.0
    while kept := [one for one in gc.get_objects() if type(one) is PackedSubmission]:
        assert time.monotonic() < until, kept
        del kept
        gc.collect()
        time.sleep(0.1)


def test_a_machine_without_the_course_says_so(dask_client: Client) -> None:
    task = dask_client.submit(
        grade_on_machine,
        "nobody's",
        PackedSubmission("s1", ("s1.ipynb",), b"{}"),
        pure=False,
    )
    with pytest.raises(CourseGone):
        task.result()


# the way to a scheduler


@pytest.mark.parametrize("who_refuses", ["driver", "scheduler"])
def test_a_certificate_of_another_authority_is_called_one(who_refuses: str) -> None:
    ours, theirs = Security.temporary(), Security.temporary()
    settings = {
        "distributed.comm.tls.ca-file": (
            ours if who_refuses == "driver" else theirs
        ).tls_ca_file,
        "distributed.comm.tls.client.cert": ours.tls_client_cert,
        "distributed.comm.tls.client.key": ours.tls_client_key,
    }
    scheduler = LocalCluster(
        n_workers=0,
        processes=False,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        protocol="tls://",
        security=theirs,
    )
    said = "certificate there and the one here are not of one authority"
    with (
        scheduler,
        dask.config.set(settings),
        open_cluster(scheduler.scheduler_address) as connect,
        pytest.raises(ClusterUnavailable, match=said),
    ):
        connect(5.0)


def test_certificate_files_that_cannot_be_used_are_called_so() -> None:
    one, other = Security.temporary(), Security.temporary()
    settings = {
        "distributed.comm.tls.ca-file": one.tls_ca_file,
        "distributed.comm.tls.client.cert": one.tls_client_cert,
        "distributed.comm.tls.client.key": other.tls_client_key,
    }
    with dask.config.set(settings), open_cluster("tls://127.0.0.1:9") as connect:
        with pytest.raises(
            ClusterUnavailable,
            match="certificate files of Dask's settings cannot be used",
        ):
            connect(5.0)
        with (
            dask.config.set({"distributed.comm.tls.client.key": "/no/such/file"}),
            pytest.raises(ClusterUnavailable, match=r"cannot be used: .*No such file"),
        ):
            connect(5.0)


def test_a_scheduler_that_wants_a_certificate_is_not_asked_without_one() -> None:
    with (
        open_cluster("tls://127.0.0.1:9") as connect,
        pytest.raises(ClusterUnavailable, match="without a certificate"),
    ):
        connect(5.0)


# the driver, with a scheduler that does as it is told


class Future:
    def __init__(self, key: str) -> None:
        self.key, self.status = key, "pending"
        self.answer: object = None
        self._tell: Callable[[Future], None] = lambda _: None

    def add_done_callback(self, tell: Callable[[Future], None]) -> None:
        self._tell = tell
        if self.status != "pending":
            tell(self)

    def land(self, answer: object = None, status: str = "") -> None:
        """End with an answer, or with an error."""
        if (
            self.status == "pending"
        ):  # Dask looks at no second answer to one task either
            self.answer = answer
            self.status = status or (
                "error" if isinstance(answer, Exception) else "finished"
            )
        self._tell(self)

    def exception(self, timeout: float) -> object:
        return self.answer


class Scheduler:
    """Hands each submission to `machine`, by its student's name; that may answer now, later, twice,
    or never.
    """

    status = "running"

    def __init__(self, machines: dict[str, int], machine: Callable[..., None]) -> None:
        self.machines, self._machine = machines, machine
        self.given: list[tuple[str, str]] = []
        self.registered = 0
        self.glimpses = 0

    def register_plugin(self, plugin: object) -> None:
        self.registered += 1

    def unregister_worker_plugin(self, name: str) -> None: ...

    def close(self, timeout: float = 0.0) -> None: ...

    def scheduler_info(self) -> dict[str, Any]:
        self.glimpses += 1
        return {
            "workers": {
                name: {"nthreads": n, "status": "running"}
                for name, n in self.machines.items()
            }
        }

    def submit(
        self,
        task: object,
        course: str,
        handed_in: PackedSubmission,
        *,
        key: str,
        workers: list[str],
        **how: object,
    ) -> Future:
        assert how == {"allow_other_workers": True, "retries": 3, "pure": False}
        future = Future(key)
        self.given.append((workers[0], handed_in.student))
        self._machine(self, workers[0], future, handed_in.student)
        return future

    def gather(self, futures: list[Future], errors: str) -> list[object]:
        return [future.answer for future in futures]


def graded(student: str) -> tuple[str, bytes]:
    """What a machine `m` says of a submission: its result is its student's name."""
    return "m", pack_graded(Graded(student, problem=f"graded: {student}"))


@pytest.fixture
def run(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[list[str], driver.Cluster]]:
    """Grade a class of four on schedulers, one after the other: what was yielded of each, and the
    cluster.
    """
    monkeypatch.setattr(driver, "TICK", 0.01)

    def grade(*schedulers: Scheduler) -> tuple[list[str], driver.Cluster]:
        found = write_class(tmp_path, {f"s{number}": ANSWERS for number in range(4)})
        clients = iter(schedulers)
        monkeypatch.setattr(
            driver,
            "open_cluster",
            lambda _: contextlib.nullcontext(lambda seconds: next(clients)),
        )
        cluster = driver.Cluster("tls://somewhere:1")
        yielded = cluster.grade(
            course, course.assignment("small"), found, "auto", warn=lambda _: None
        )
        return sorted(
            f"{scored.machine} {scored.problem}".strip() for scored, _ in yielded
        ), cluster

    return grade


EACH_ONCE = [f"m graded: s{number}" for number in range(4)]


def honest(_: Scheduler, machine: str, future: Future, student: str) -> None:
    future.land(graded(student))


def test_each_submission_is_answered_once(run: Callable[..., Any]) -> None:
    assert run(Scheduler({"a": 2, "b": 1}, honest))[0] == EACH_ONCE


def test_the_machine_with_the_fewest_submissions_for_a_grader_gets_the_next(
    run: Callable[..., Any],
) -> None:
    def later(scheduler: Scheduler, machine: str, future: Future, student: str) -> None:
        waiting.append((future, student))
        if len(waiting) == 4:
            for each, whose in waiting:
                each.land(graded(whose))

    waiting: list[tuple[Future, str]] = []
    scheduler = Scheduler({"a": 2, "b": 1}, later)
    assert run(scheduler)[0] == EACH_ONCE
    assert [address for address, _ in scheduler.given] == ["a", "b", "a", "a"]


def test_a_machine_never_has_more_than_one_submission_too_many(
    run: Callable[..., Any],
) -> None:
    held: list[tuple[Future, str]] = []
    most = 0

    def slow(_: Scheduler, machine: str, future: Future, student: str) -> None:
        nonlocal most
        held.append((future, student))
        most = max(most, len(held))
        if len(held) == 2 or len(scheduler.given) == 4:
            first, whose = held.pop(0)
            first.land(graded(whose))
            while len(scheduler.given) == 4 and held:
                first, whose = held.pop(0)
                first.land(graded(whose))

    scheduler = Scheduler({"a": 1}, slow)
    assert run(scheduler)[0] == EACH_ONCE
    assert most == 2


def test_a_scheduler_that_names_no_machine_for_once_has_lost_none(
    run: Callable[..., Any],
) -> None:
    """What the machines have is not handed out again: of one that is lost, Dask moves the tasks
    itself.
    """

    class Forgetful(Scheduler):
        def scheduler_info(self) -> dict[str, Any]:
            there = super().scheduler_info()
            for future, whose in held if self.glimpses == 3 else ():
                future.land(graded(whose))
            return {"workers": {}} if self.glimpses == 2 else there

    def slow(_: Scheduler, machine: str, future: Future, student: str) -> None:
        held.append((future, student))

    held: list[tuple[Future, str]] = []
    scheduler = Forgetful({"a": 3}, slow)
    assert run(scheduler)[0] == EACH_ONCE
    assert sorted(student for _, student in scheduler.given) == ["s0", "s1", "s2", "s3"]


def test_what_four_machines_were_lost_with_is_named_and_the_others_are_graded(
    run: Callable[..., Any],
) -> None:
    def brought_down(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(
            KilledWorker("task", None, 3) if student == "s1" else graded(student)
        )

    assert run(Scheduler({"a": 1}, brought_down))[0] == [
        EACH_ONCE[0],
        *EACH_ONCE[2:],
        "small.ipynb: the machine that had it was lost, and it was begun 4 times",
    ]


def test_what_fails_again_and_again_is_named_and_not_lost(
    run: Callable[..., Any],
) -> None:
    def breaks(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(
            MachineFault("m: the disk is full") if student == "s1" else graded(student)
        )

    assert run(Scheduler({"a": 1}, breaks))[0] == [
        EACH_ONCE[0],
        *EACH_ONCE[2:],
        "small.ipynb: m: the disk is full, and it was begun 4 times",
    ]


def test_a_submission_waits_where_the_scheduler_is_lost_while_it_is_sent(
    run: Callable[..., Any],
) -> None:
    def closed(
        scheduler: Scheduler, machine: str, future: Future, student: str
    ) -> None:
        raise ClosedClientError("Client is closed")

    assert run(Scheduler({"a": 1}, closed), Scheduler({"a": 1}, honest))[0] == EACH_ONCE


def test_an_answer_that_comes_twice_counts_once(run: Callable[..., Any]) -> None:
    def twice(scheduler: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(graded(student))
        future.land(graded("somebody else"))

    assert run(Scheduler({"a": 1}, twice))[0] == EACH_ONCE


def test_a_machine_that_refuses_is_named_and_the_others_have_its_submissions(
    run: Callable[..., Any],
) -> None:
    def picky(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(
            MachineRefuses("old", machine, "no walls")
            if machine == "a"
            else graded(student)
        )

    yielded, cluster = run(Scheduler({"a": 1, "b": 1}, picky))
    assert yielded == EACH_ONCE
    assert cluster.refused == {"old": "no walls"}


def test_a_machine_without_the_kit_is_named_by_its_address(
    run: Callable[..., Any],
) -> None:
    def bare(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(
            ModuleNotFoundError("autograder") if machine == "a" else graded(student)
        )

    yielded, cluster = run(Scheduler({"a": 1, "b": 1}, bare))
    assert yielded == EACH_ONCE
    assert cluster.refused == {
        "a": "the kit does not run there: ModuleNotFoundError('autograder')"
    }


def test_where_every_machine_refuses_the_run_ends_and_says_why(
    run: Callable[..., Any],
) -> None:
    def all_refuse(_: Scheduler, machine: str, future: Future, student: str) -> None:
        future.land(MachineRefuses(machine, machine, f"no walls on {machine}"))

    with pytest.raises(ClusterUnavailable, match=r"a: no walls on a; b: no walls on b"):
        run(Scheduler({"a": 1, "b": 1}, all_refuse))


def test_a_course_that_another_run_took_along_is_brought_again(
    run: Callable[..., Any],
) -> None:
    def forgets(
        scheduler: Scheduler, machine: str, future: Future, student: str
    ) -> None:
        future.land(CourseGone() if scheduler.registered == 1 else graded(student))

    scheduler = Scheduler({"a": 1}, forgets)
    assert run(scheduler)[0] == EACH_ONCE
    assert scheduler.registered >= 2


def test_a_scheduler_that_is_started_again_is_told_everything_anew(
    run: Callable[..., Any],
) -> None:
    """What was under way is handed out again, and no submission pays for it."""

    def dies(scheduler: Scheduler, machine: str, future: Future, student: str) -> None:
        scheduler.status = "closed"
        future.land(status="cancelled")

    first, second = Scheduler({"a": 3}, dies), Scheduler({"a": 3}, honest)
    assert run(first, second)[0] == EACH_ONCE
    assert len(first.given) == len(second.given) == 4


def test_without_a_scheduler_it_says_so(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "CONNECT_SECONDS", 0.1)
    cluster = driver.Cluster("tcp://127.0.0.1:9")
    found = write_class(tmp_path, {"s1": ANSWERS})
    with pytest.raises(ClusterUnavailable, match=r"no scheduler answers"):
        next(
            cluster.grade(
                course, course.assignment("small"), found, "auto", warn=lambda _: None
            )
        )


def test_workers_and_devices_are_the_machines_own_business(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(course.root)
    done = CliRunner().invoke(
        main, ["grade", "small", "--cluster", "local:2", "--workers", "3"]
    )
    assert done.exit_code == 2
    assert "--cluster goes with neither --workers nor --device" in done.output


# all of it


def children(process: int) -> list[int]:
    """Of any of its threads."""
    listed = Path(f"/proc/{process}/task").glob("*/children")
    with contextlib.suppress(OSError):
        return [
            int(child)
            for path in listed
            for child in path.read_text(encoding="ascii").split()
        ]
    return []


def is_of_a_station(process: int) -> bool:
    """Or of its graders, which are forks of it."""
    with contextlib.suppress(OSError):
        return (
            b"autograder.grading.station_program"
            in Path(f"/proc/{process}/cmdline").read_bytes()
        )
    return False


def dask_workers_at_work(driver: int) -> list[int]:
    """Those whose station has a grader."""
    return [
        worker
        for worker in children(driver)
        if any(
            is_of_a_station(grader)
            for station in children(worker)
            for grader in children(station)
        )
    ]


def test_a_cluster_gives_the_bytes_of_one_machine_while_a_dask_worker_is_killed(
    course: Course, bench: Bench, tmp_path: Path
) -> None:
    """The short form of tests/long/cluster_faults.py: real workers, one of which dies when it has
    begun to grade.
    """
    answers = {
        "s1": ANSWERS,
        "s2": {**ANSWERS, "softmax": WRONG},
        "s3": {"counter": ANSWERS["counter"]},
    }
    found = write_class(tmp_path / "class", answers, "import time\n\ntime.sleep(0.5)")
    (tmp_path / "class" / "s4.ipynb").write_text("no notebook")
    out, temporary = tmp_path / "out", tmp_path / "tmp"
    temporary.mkdir()
    command = [
        "grade",
        "small",
        "--cluster",
        "local:2",
        "--out",
        str(out),
        str(tmp_path / "class"),
    ]
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
        assert (out / "small" / f"{one.student}.json").read_bytes() == result_bytes(
            here
        )
    machines = {
        entry.student: entry.machine.rpartition("/")[2]
        for entry in read_timing(out, "small")
    }
    assert machines.keys() == {"s1", "s2", "s3", "s4"}
    assert {machines[one.student] for one in found} <= {"0", "1"}
    assert machines["s4"] in ("", "0", "1")
    assert [
        path for kind in ("attention-kit-*", "dask*") for path in temporary.glob(kind)
    ] == []
