"""A machine of the cluster with a station that the test plays, and the driver's small steps."""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.config
import pytest
from distributed import KilledWorker

from autograder.basics.errors import (
    ClusterUnavailable,
    KitError,
    OutOfReach,
    UnreadableSubmission,
)
from autograder.cluster import driver, machine
from autograder.cluster.driver import _Run
from autograder.cluster.machine import (
    CourseGone,
    CourseOnMachine,
    MachineRefuses,
    grade_on_machine,
)
from autograder.cluster.messages import unpack_course
from autograder.cluster.scheduler import _LOCAL
from autograder.course import Limits
from autograder.grading.batch import read_finished_job
from autograder.grading.graded_bytes import pack_graded
from autograder.grading.packed_submission import PackedSubmission
from autograder.grading.pool import FinishedJob
from autograder.grading.station import MachineFault
from autograder.records.model import Graded
from autograder.records.submission import FoundSubmission

SOFTWARE = {"torch": "2.13.0", "Python": "3.11"}


def packed_of_ada() -> PackedSubmission:
    """Made for each call: `test_cluster.py` looks for submissions that nobody let go of."""
    return PackedSubmission("ada", ("ada.ipynb",), b"{}")


class PlayedStation:
    """Answers with the student's name; `refusal` is why it does not start."""

    started: list[PlayedStation]
    refusal: Exception | None

    def __init__(self, *order: Any) -> None:
        self.order = order
        self.ended = False
        self.closed = 0
        self.fault: Exception | None = None
        self.started.append(self)
        if self.refusal is not None:
            raise self.refusal

    def grade(self, packed: PackedSubmission) -> bytes:
        if self.fault is not None:
            raise self.fault
        return packed.student.encode()

    def close(self) -> None:
        self.closed += 1


class PlayedFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.removed = 0

    def remove(self) -> None:
        self.removed += 1


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CourseOnMachine:
    """A course on a Dask worker of two threads, on the machine "lab"."""
    PlayedStation.started, PlayedStation.refusal = [], None
    monkeypatch.setattr(machine, "deciding_software", lambda: dict(SOFTWARE))
    monkeypatch.setattr(machine, "Station", PlayedStation)
    monkeypatch.setattr(machine, "ScratchFolder", lambda: PlayedFolder(tmp_path))
    monkeypatch.setattr(
        machine, "unpack_course", lambda packed, to: to.write_bytes(packed)
    )
    monkeypatch.setattr(socket, "gethostname", lambda: "lab")
    made = CourseOnMachine(b"course", "m1", "uid", ("torch",))
    made.setup(worker())
    return made


def worker(**fields: Any) -> Any:
    state = SimpleNamespace(nthreads=2)
    whole = {
        "state": state,
        "name": "w7",
        "address": "tcp://1",
        "nanny": None,
        **fields,
    }
    return SimpleNamespace(**whole)


def test_a_station_is_started_for_the_first_submission(
    plugin: CourseOnMachine, tmp_path: Path
) -> None:
    assert PlayedStation.started == []
    assert plugin.grade(packed_of_ada()) == ("lab/w7", b"ada")
    (station,) = PlayedStation.started
    assert station.order == (tmp_path / "course", "m1", "uid", 2, ("torch",))
    assert (tmp_path / "course").read_bytes() == b"course"
    assert plugin.grade(packed_of_ada()) == ("lab/w7", b"ada")
    assert len(PlayedStation.started) == 1
    plugin.teardown(worker())
    assert station.closed == 1
    folder: Any = plugin._folder
    assert folder.removed == 1


def test_a_machine_is_called_by_its_host_and_its_own_name(
    plugin: CourseOnMachine,
) -> None:
    plugin.setup(worker(name="tcp://1"))
    assert plugin.grade(packed_of_ada())[0] == "lab"


def test_a_station_that_has_ended_is_started_anew_in_the_same_folder(
    plugin: CourseOnMachine, tmp_path: Path
) -> None:
    plugin.grade(packed_of_ada())
    PlayedStation.started[0].ended = True
    (tmp_path / "course").write_bytes(b"the same")
    plugin.grade(packed_of_ada())
    assert len(PlayedStation.started) == 2
    assert (tmp_path / "course").read_bytes() == b"the same"


@pytest.mark.parametrize("kind", [KitError, MachineFault, OSError])
def test_a_machine_that_cannot_grade_refuses_from_then_on(
    plugin: CourseOnMachine, kind: type[Exception]
) -> None:
    PlayedStation.refusal = kind("no walls stand")
    for _ in range(2):
        with pytest.raises(MachineRefuses) as refusal:
            plugin.grade(packed_of_ada())
        assert refusal.value.args == ("lab/w7", "tcp://1", "no walls stand")
    assert len(PlayedStation.started) == 1


def test_a_station_that_cannot_be_started_anew_is_a_refusal(
    plugin: CourseOnMachine,
) -> None:
    """The one that has ended is still there, and gets nothing."""
    plugin.grade(packed_of_ada())
    PlayedStation.started[0].ended = True
    PlayedStation.refusal = KitError("no walls stand")
    with pytest.raises(MachineRefuses) as refusal:
        plugin.grade(packed_of_ada())
    assert refusal.value.args == ("lab/w7", "tcp://1", "no walls stand")


def test_other_software_is_a_refusal(
    plugin: CourseOnMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"torch": "2.14.1", "Python": "3.12"}
    monkeypatch.setattr(machine, "deciding_software", lambda: other)
    with pytest.raises(MachineRefuses) as refusal:
        plugin.grade(packed_of_ada())
    assert refusal.value.args[2] == (
        "it has another software than where the class is graded from: torch 2.14.1, not "
        "2.13.0, Python 3.12, not 3.11"
    )


def test_a_fault_names_its_machine(plugin: CourseOnMachine) -> None:
    plugin.grade(packed_of_ada())
    PlayedStation.started[0].fault = MachineFault("the graders ended")
    with pytest.raises(MachineFault, match=r"^lab/w7: the graders ended$"):
        plugin.grade(packed_of_ada())


def test_a_course_that_is_taken_away_while_it_opens_is_cleared(
    plugin: CourseOnMachine,
) -> None:
    plugin._over = True
    plugin._open()
    assert PlayedStation.started[0].closed == 1
    plugin = CourseOnMachine(b"course", "m1", "uid", ())
    plugin.setup(worker())
    plugin.teardown(worker())  # nothing was opened
    assert plugin._over


def test_equal_courses_have_one_name(plugin: CourseOnMachine) -> None:
    def name(*order: Any) -> str:
        made: str = CourseOnMachine(*order).name
        return made

    same = name(b"course", "m1", "uid", ("torch",))
    assert same == plugin.name
    assert same.startswith("attention-kit-")
    others = {
        name(b"other", "m1", "uid", ("torch",)),
        name(b"course", "m2", "uid", ("torch",)),
        name(b"course", "m1", "auto", ("torch",)),
        name(b"course", "m1", "uid", ()),
    }
    assert len(others | {same}) == 5


def test_on_ctrl_c_a_nanny_ends_its_worker(
    plugin: CourseOnMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(signal, "signal", lambda *call: calls.append(call))
    plugin.setup(worker(nanny="tcp://2"))
    assert calls == [(signal.SIGINT, signal.SIG_IGN)]
    plugin.setup(worker())
    thread = threading.Thread(target=plugin.setup, args=(worker(nanny="tcp://2"),))
    thread.start()
    thread.join()
    assert len(calls) == 1


def test_a_task_asks_the_course_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    course = SimpleNamespace(grade=lambda packed: ("lab", packed.data))
    here = SimpleNamespace(plugins={"course-1": course})
    monkeypatch.setattr(machine, "secede", lambda: steps.append("secede"))
    monkeypatch.setattr(machine, "get_worker", lambda: here)
    assert grade_on_machine("course-1", packed_of_ada()) == ("lab", b"{}")
    assert steps == ["secede"]
    with pytest.raises(CourseGone):
        grade_on_machine("course-2", packed_of_ada())


def test_a_course_that_is_no_archive_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="zip"):
        unpack_course(b"course", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("address", "workers"),
    [("local:1", 1), ("local:9999", 9999), ("local:0", 0), ("local:10000", 0)],
)
def test_an_address_of_this_machine_names_its_workers(
    address: str, workers: int
) -> None:
    match = _LOCAL.fullmatch(address)
    assert (int(match[1]) if match else 0) == workers


# the driver


class PlayedFuture:
    def __init__(self, key: str, outcome: Any, status: str = "finished") -> None:
        self.key, self.outcome, self.status = key, outcome, status

    def add_done_callback(self, tell: Callable[[PlayedFuture], None]) -> None:
        tell(self)

    def exception(self, timeout: float) -> Any:
        assert timeout == driver.TICK
        return self.outcome


class PlayedClient:
    """A scheduler's client with these machines; tasks end as `outcome` says."""

    def __init__(self, **machines: int) -> None:
        self.status = "running"
        self.machines = machines
        self.calls: list[Any] = []
        self.outcome: Any = ("lab", b"answer")
        self.state = "finished"
        self.gathered: list[Any] | None = None

    def scheduler_info(self) -> dict[str, Any]:
        self.calls.append("info")
        workers = {name: {"nthreads": n} for name, n in self.machines.items()}
        return {"workers": workers}

    def submit(self, task: Any, *arguments: Any, **options: Any) -> PlayedFuture:
        key = options.pop("key")
        self.calls.append((arguments, options))
        return PlayedFuture(key, self.outcome, self.state)

    def gather(self, futures: list[PlayedFuture], errors: str) -> list[Any]:
        assert errors == "skip"
        if self.gathered is not None:
            return self.gathered
        return [future.outcome for future in futures]

    def register_plugin(self, plugin: Any) -> None:
        self.calls.append(("register", plugin.name))
        if isinstance(self.outcome, Exception):
            raise self.outcome

    def unregister_worker_plugin(self, name: str) -> None:
        self.calls.append(("unregister", name))

    def close(self, timeout: float) -> None:
        self.calls.append(("close", timeout))


@pytest.fixture
def new_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A run of a class, whose submissions are packed as their names."""
    monkeypatch.setattr(driver, "TICK", 0.01)

    def pack(submission: FoundSubmission, assignment: str, limit: int) -> Any:
        assert (assignment, limit) == ("m1", 3 << 20)
        if isinstance(reads.get(submission.student), Exception):
            raise reads[submission.student]
        return submission.student

    reads: dict[str, Any] = {}
    monkeypatch.setattr(driver, "pack_submission", pack)

    def make(*students: str, until: float = 1e12, **faults: Any) -> _Run:
        reads.update(faults)
        course: Any = SimpleNamespace(limits=Limits(notebook_mb=3))
        assignment: Any = SimpleNamespace(name="m1")
        plugin: Any = SimpleNamespace(name="course-1")
        waiting = deque(
            FoundSubmission(name, Path(f"{name}.ipynb")) for name in students
        )
        warned: list[str] = []
        run = _Run(plugin, course, assignment, waiting, until, {}, warned.append)
        run.warned = warned  # type: ignore[attr-defined]
        return run

    return make


NewRun = Callable[..., Any]


def test_a_class_is_graded_until_the_courses_minutes_are_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Seven minutes from now. Each answer comes with the name of its machine."""
    runs: list[Any] = []
    ada, bob = (FoundSubmission(name, Path(name)) for name in ("ada", "bob"))
    packed = pack_graded(Graded("ada", problem="no notebook"))

    def answers(connect: str) -> Any:
        assert connect == "the way to s:1"
        yield FinishedJob(ada, packed), "lab"
        yield FinishedJob(bob), ""

    def make(*given: Any) -> Any:
        runs.append(given)
        return SimpleNamespace(answers=answers)

    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(driver, "_Run", make)
    monkeypatch.setattr(driver, "find_extras", lambda *_: ("torch",))
    monkeypatch.setattr(driver, "pack_course", lambda *_: b"course")
    monkeypatch.setattr(
        driver,
        "open_cluster",
        lambda address: contextlib.nullcontext(f"the way to {address}"),
    )
    course: Any = SimpleNamespace(limits=Limits(run_minutes=7.0))
    assignment: Any = SimpleNamespace(name="m1")
    cluster = driver.Cluster("s:1")
    graded = list(cluster.grade(course, assignment, [ada, bob], "uid", print))
    assert [(each.student, each.machine) for each, _ in graded] == [
        ("ada", "lab"),
        ("bob", ""),
    ]
    assert graded[1][0].untried
    ((plugin, *rest),) = runs
    assert (plugin._packed_course, plugin._assignment) == (b"course", "m1")
    assert (plugin._isolation, plugin._extras) == ("uid", ("torch",))
    until = 1000.0 + 420.0
    expected = [course, assignment, deque([ada, bob]), until, cluster.refused, print]
    assert rest == expected


def test_machines_are_counted_once_a_tick(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    run = new_run("ada")
    run.unfit = {"c", "gone"}
    client = PlayedClient(a=1, b=4, c=2)
    run._count_graders(client)
    assert run.graders == {"a": 1, "b": 4}
    assert run.unfit == {"c"}
    assert run.warned == []
    client.machines = {}
    run._count_graders(client)
    assert client.calls == ["info"]
    now[0] += 0.01
    run._count_graders(client)
    assert (client.calls, run.graders) == (["info", "info"], {})
    assert run.warned == ["no machine is there yet; waiting for one"]
    now[0] += 1.0
    run._count_graders(client)
    assert len(run.warned) == 1
    client.status = "closed"
    with pytest.raises(OSError, match=r"^the connection to the scheduler is lost$"):
        run._count_graders(client)


def test_where_no_machine_can_grade_the_run_ends(new_run: NewRun) -> None:
    run = new_run("ada")
    run.unfit = {"a"}
    run.refused.update({"lab-2": "no kit", "lab-1": "no walls"})
    with pytest.raises(
        ClusterUnavailable,
        match=r"can grade: lab-1: no walls; lab-2: no kit; what was graded is safe$",
    ):
        run._count_graders(PlayedClient(a=1))
    run.counted = 0.0
    run.tasks["key"] = None
    run._count_graders(PlayedClient(a=1))  # what is under way may still be answered


def test_each_machine_gets_one_more_than_it_has_graders(new_run: NewRun) -> None:
    run = new_run(*"abcdefgh")
    run.graders = {"one": 1, "three": 3}
    client = PlayedClient()
    assert list(run._hand_out(client)) == []
    targets = [options["workers"] for _, options in client.calls]
    assert targets.count(["one"]) == 2
    assert targets.count(["three"]) == 4
    assert [submission.student for submission in run.waiting] == ["g", "h"]
    arguments, options = client.calls[0]
    assert arguments == ("course-1", "a")
    assert options["retries"] == 3
    assert options["allow_other_workers"] is True
    keys = list(run.tasks)
    assert all(key.startswith("course-1-") for key in keys)
    answers = [(job.job.student, answer) for job, answer in run._take_in(client)]
    assert answers == [(name, "lab") for name in "abcdef"]
    assert run.tasks == {}


def test_what_cannot_be_read_has_its_answer_at_once(new_run: NewRun) -> None:
    run = new_run(
        "ada",
        "bob",
        "cyd",
        ada=UnreadableSubmission("no notebook"),
        bob=OutOfReach("the disk is away"),
        cyd=OSError("no such file"),
    )
    run.graders = {"one": 1}
    ada, bob, cyd = [job for job, _ in run._hand_out(PlayedClient())]
    assert cyd == FinishedJob(cyd.job, fault="it cannot be read: no such file")
    records = [read_finished_job(job, Limits())[0] for job in (ada, bob)]
    assert [(record.problem, record.untried) for record in records] == [
        ("no notebook", False),
        ("the disk is away", True),
    ]
    assert not run.waiting


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            MachineFault("lab: the graders ended"),
            "lab: the graders ended, and it was begun 4 times",
        ),
        (
            KilledWorker("task", "lab", 3),
            "the machine that had it was lost, and it was begun 4 times",
        ),
    ],
)
def test_a_submission_that_is_given_up_says_why(
    new_run: NewRun, error: Exception, words: str
) -> None:
    run = new_run("ada")
    run.graders = {"one": 1}
    client = PlayedClient()
    client.outcome, client.state = error, "error"
    list(run._hand_out(client))
    ((job, answered_by),) = run._take_in(client)
    assert (job.fault, answered_by) == (words, "")
    assert (run.tasks, list(run.waiting)) == ({}, [])


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (MachineRefuses("lab", "one", "no walls"), {"lab": "no walls"}),
        (
            ImportError("no kit"),
            {"one": "the kit does not run there: ImportError('no kit')"},
        ),
    ],
)
def test_a_machine_that_refuses_gets_nothing_more(
    new_run: NewRun, error: Exception, refused: dict[str, str]
) -> None:
    run = new_run("ada")
    run.graders = {"one": 1}
    client = PlayedClient()
    client.outcome, client.state = error, "error"
    list(run._hand_out(client))
    assert list(run._take_in(client)) == []
    assert [submission.student for submission in run.waiting] == ["ada"]
    assert (run.refused, run.unfit, run.graders) == (refused, {"one"}, {})


def test_a_course_that_is_gone_is_told_again(new_run: NewRun) -> None:
    run = new_run("ada")
    run.graders = {"one": 1}
    client = PlayedClient()
    client.outcome, client.state = CourseGone(), "error"
    list(run._hand_out(client))
    assert list(run._take_in(client)) == []
    assert client.calls[-1] == ("register", "course-1")
    assert (run.refused, run.graders) == ({}, {"one": 1})
    assert [submission.student for submission in run.waiting] == ["ada"]


@pytest.mark.parametrize("state", ["cancelled", "lost", "pending"])
def test_a_lost_connection_is_no_answer(new_run: NewRun, state: str) -> None:
    """Dask's states of a task that has neither ended nor failed."""
    run = new_run("ada", "bob")
    run.graders = {"one": 1}
    client = PlayedClient()
    client.state = state
    list(run._hand_out(client))
    with pytest.raises(OSError, match=r"^the connection to the scheduler is lost$"):
        list(run._take_in(client))
    run._take_back()
    assert {submission.student for submission in run.waiting} == {"ada", "bob"}
    assert run.tasks == {}
    client.state, client.gathered = "finished", []
    list(run._hand_out(client))
    with pytest.raises(OSError, match=r"^an answer was lost on its way$"):
        list(run._take_in(client))
    run.done = queue.SimpleQueue()
    assert list(run._take_in(client)) == []


def test_a_course_is_told_and_taken_away(new_run: NewRun) -> None:
    run = new_run()
    client = PlayedClient()
    run._tell_course(client)
    run._leave(client)
    assert client.calls == [
        ("register", "course-1"),
        ("unregister", "course-1"),
        ("close", 0.01),
    ]
    client.outcome = RuntimeError("a machine without the kit")
    run._tell_course(client)
    client.outcome = OSError("lost")
    with pytest.raises(OSError, match=r"^lost$"):
        run._tell_course(client)
    client.calls.clear()
    client.status = "closed"
    run._leave(client)
    assert client.calls == [("close", 0.01)]


def test_a_run_is_at_work_while_there_is_time_and_somebody_has_no_answer(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    assert new_run("ada", until=5.1)._is_at_work()
    assert not new_run("ada", until=5.0)._is_at_work()
    run = new_run(until=5.1)
    assert not run._is_at_work()
    run.tasks["key"] = None
    assert run._is_at_work()


def test_what_was_not_reached_in_time_is_yielded_without_an_answer(
    new_run: NewRun,
) -> None:
    run = new_run("ada", "bob", until=0.0)

    def refuse(seconds: float) -> Any:
        raise AssertionError(seconds)

    answers = list(run.answers(refuse))
    jobs = [FinishedJob(FoundSubmission(n, Path(f"{n}.ipynb"))) for n in ("ada", "bob")]
    assert answers == [(job, "") for job in jobs]


def test_a_scheduler_that_is_lost_may_come_back(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("ada")
    waits: list[float] = []
    lost, found = PlayedClient(one=1), PlayedClient(one=1)
    lost.state = "cancelled"
    clients = iter([lost, found])

    def connect(seconds: float) -> Any:
        waits.append(seconds)
        return next(clients)

    ((job, name),) = run.answers(connect)
    assert (job.job.student, job.answer, name) == ("ada", b"answer", "lab")
    assert waits == [10.0, 120.0]
    for client in (lost, found):
        assert client.calls[-2:] == [("unregister", "course-1"), ("close", 0.01)]


@pytest.mark.parametrize(
    ("until", "seconds"), [(1e12, 10.0), (1003.0, 3.0), (1000.001, 0.01)]
)
def test_a_scheduler_is_waited_for_no_longer_than_the_run_lasts(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch, until: float, seconds: float
) -> None:
    """Ten seconds at first, and a moment at least."""
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    waits: list[float] = []

    def connect(seconds: float) -> Any:
        waits.append(seconds)
        raise ClusterUnavailable("nobody")

    with pytest.raises(ClusterUnavailable):
        list(new_run("ada", until=until).answers(connect))
    assert waits == [seconds]


def test_a_course_is_not_told_anew_at_once_after_a_loss(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    lost, found = PlayedClient(one=1), PlayedClient(one=1)
    lost.outcome = OSError("gone")  # where the course is told
    clients = iter([lost, found])
    run = new_run("ada")
    assert len(list(run.answers(lambda seconds: next(clients)))) == 1
    assert naps == [0.01]
    assert lost.calls == [
        ("register", "course-1"),
        ("unregister", "course-1"),
        ("close", 0.01),
    ]


def test_dask_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    from autograder.cluster import scheduler

    log = logging.getLogger("distributed.test")
    other = logging.getLogger("distributing")
    other.setLevel(logging.INFO)
    monkeypatch.setattr(
        scheduler, "Client", lambda address, **options: (address, options)
    )
    with scheduler.open_cluster("tcp://host.example:1") as connect:
        client: Any = connect(7.0)
    assert client == (
        "tcp://host.example:1",
        {"timeout": 7.0, "set_as_default": False},
    )
    assert (log.level, other.level) == (logging.CRITICAL, logging.INFO)


def test_machines_of_this_one_talk_by_tls_and_keep_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No dashboard, no route of http and no log of messages; graders have the cores and memory."""
    from autograder.cluster import scheduler

    started: list[dict[str, Any]] = []
    folders: list[Path] = []
    quiet = {
        "admin.low-level-log-length": 0,
        "admin.system-monitor.interval": "30s",
        "admin.tick.interval": "1s",
        "diagnostics.nvml": False,
        "scheduler.active-memory-manager.start": False,
        "scheduler.http.routes": [],
        "scheduler.work-stealing": False,
        "worker.http.routes": [],
        "worker.profile.enabled": False,
    }

    @contextlib.contextmanager
    def play_cluster(**options: Any) -> Iterator[str]:
        settings = {
            name: dask.config.get(f"distributed.{name}", None) for name in quiet
        }
        assert settings == quiet
        folders.append(Path(dask.config.get("temporary-directory")))
        assert folders[0].stat().st_mode & 0o777 == 0o700
        started.append(options)
        yield "tls://127.0.0.1:1"

    monkeypatch.setattr(scheduler, "LocalCluster", play_cluster)
    monkeypatch.setattr(scheduler, "_connected", lambda *given: given)
    with scheduler.open_cluster("local:12") as connect:
        assert connect(7.0) == ("tls://127.0.0.1:1", 7.0)
    security = started[0].pop("security")
    assert security.require_encryption
    assert started == [
        {
            "n_workers": 12,
            "threads_per_worker": 1,
            "memory_limit": 0,
            "dashboard_address": None,
            "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
            "protocol": "tls://",
            "silence_logs": logging.CRITICAL,
        }
    ]
    assert not folders[0].exists()
    assert dask.config.get("distributed.admin.low-level-log-length") != 0


def test_what_no_machine_has_answered_in_time_is_given_back(new_run: NewRun) -> None:
    run = new_run("ada", until=0.0)
    bob = FoundSubmission("bob", Path("bob.ipynb"))
    run.tasks["key"] = (bob, "lab", None)
    answers = [(job.job.student, machine) for job, machine in run.answers(None)]
    assert answers == [("bob", ""), ("ada", "")]
    assert run.tasks == {}
