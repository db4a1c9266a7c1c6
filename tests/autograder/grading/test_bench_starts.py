"""What a bench loads and proves when it starts, and again when its hosts are renewed; hosts and
grader are played.
"""

from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from played_host import PlayedHost

from autograder.basics.errors import HostFailed
from autograder.course import Assignment, Course
from autograder.grading import bench as bench_module
from autograder.grading import grader as grader_module
from autograder.grading.bench import Bench, start_bench
from autograder.sandbox.host_process import ReleasedCode


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What happened in its order, in `all`; `with_torch` says whether the suite needs torch, and
    `fault` is raised by the grader.
    """
    events = SimpleNamespace(all=[], with_torch=True, fault=None, hosts=[])

    def launch(
        course: Course, isolation: str, clients: int, extras: Any, code: Any
    ) -> PlayedHost:
        events.all.append(("launch", isolation, clients, extras))
        events.code = code
        events.hosts.append(PlayedHost("landlock", clients, extras))
        return events.hosts[-1]  # type: ignore[no-any-return]

    def prove(course: Course, isolation: str, host: PlayedHost) -> PlayedHost:
        events.all.append(("prove", isolation))
        return host

    class PlayedGrader:
        def __init__(self, *_: object) -> None:
            events.all.append(("load", gc.isenabled()))
            if events.fault is not None:
                raise events.fault

    cells = [
        SimpleNamespace(id=f"the {role}", source=f"# {role}", role=role)
        for role in ("given", "question", "check", "text")
    ]
    release = SimpleNamespace(cells=cells, companions={"p.py": "x = 1"})
    for name, play in {
        "launch_host": launch,
        "prove_host": prove,
        "needs_torch": lambda assignment: events.with_torch,
        "load_release": lambda assignment: release,
    }.items():
        monkeypatch.setattr(bench_module, name, play)
    monkeypatch.setattr(grader_module, "AssignmentGrader", PlayedGrader)
    monkeypatch.setattr(
        torch, "set_num_threads", lambda count: events.all.append(("threads", count))
    )
    monkeypatch.setattr(gc, "freeze", lambda: events.all.append("freeze"))
    return events


def start(tmp_path: Path, *options: Any) -> Bench:
    return Bench(Course(tmp_path), Assignment("m1", tmp_path), *options)


def test_hosts_are_proven_while_the_grader_is_there_already(
    events: Any, tmp_path: Path
) -> None:
    start(tmp_path, "auto", 3, ("dynamo",))
    assert events.all == [
        ("launch", "auto", 3, ("dynamo", "torch")),
        ("load", False),  # nothing that is imported is ever freed
        ("threads", 1),
        "freeze",
        ("prove", "auto"),
    ]
    assert gc.isenabled()
    # of the course a host is told nothing else
    assert events.code == ReleasedCode({"the given": "# given"}, {"p.py": "x = 1"})


def test_a_suite_that_needs_no_torch_loads_none(events: Any, tmp_path: Path) -> None:
    events.with_torch = False
    start(tmp_path)
    assert events.all == [
        ("launch", "auto", 1, ()),
        ("load", False),
        "freeze",
        ("prove", "auto"),
    ]


def test_a_bench_that_cannot_start_closes_its_hosts(
    events: Any, tmp_path: Path
) -> None:
    events.fault = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, "auto", 9)
    assert gc.isenabled()
    assert [host.is_closed for host in events.hosts] == [True, True]


def test_renewed_hosts_are_proven_to_have_the_same_walls(
    events: Any, tmp_path: Path
) -> None:
    bench = start(tmp_path, "auto", 2, ("dynamo",))
    events.all.clear()
    bench.renew_hosts()
    assert events.all == [
        ("launch", "landlock", 2, ("dynamo", "torch")),
        ("prove", "landlock"),
    ]
    assert [host.is_closed for host in events.hosts] == [True, False]


def test_a_bench_for_anybody_is_ready_for_plots(
    events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_module, "extras_for_any", lambda *_: ("matplotlib",))
    start_bench(Course(tmp_path), Assignment("m1", tmp_path))
    assert events.all[0] == ("launch", "auto", 1, ("matplotlib", "torch"))


@pytest.mark.parametrize(("faults", "graders"), [(0, 1), (1, 2)])
def test_a_submission_is_graded_once_more_where_the_machine_fails(
    events: Any, tmp_path: Path, faults: int, graders: int
) -> None:
    bench: Any = start(tmp_path)
    clients: list[Any] = []

    def grade(client: object, submission: str) -> str:
        clients.append(client)
        if len(clients) <= faults:
            raise HostFailed("the host is gone")
        return f"{submission}, graded"

    bench.grader.grade = grade
    assert bench.grade("ada's") == "ada's, graded"
    assert clients == [host.clients[0] for host in events.hosts]
    assert len(clients) == graders
    clients.clear()
    faults = 2
    with pytest.raises(HostFailed, match=r"^the host is gone$"):
        bench.grade("bob's")
