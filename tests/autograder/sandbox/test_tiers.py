"""Which tier is used, with hosts whose walls stand or fall as the test says."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import (
    HostFailed,
    IsolationUnavailable,
    StudentCrashed,
)
from autograder.course import About, Course
from autograder.sandbox import doctor, tiers
from autograder.sandbox.tiers import Wall, isolation_name

STANDS = Wall("read the suite", True, "no such file")
FALLS = Wall("open a socket", False, "it opened")
Fate = list[Wall] | BaseException
"""The walls of a tier's host, or why the host does not start."""


class PlayedHost:
    """A host that starts as its tier's next fate says. `started` and `closed` name the tiers."""

    fates: dict[str, list[Fate]]
    started: list[str]
    closed: list[str]

    def __init__(
        self, course: Course, tier: str, clients: int = 1, *rest: Any, **more: Any
    ) -> None:
        self.tier = tier
        self.clients = [SimpleNamespace(readable=("/etc/hosts",))] * clients
        self.extras = ("torch",)
        self.released_code = None
        self.started.append(tier)
        fates = self.fates[tier]
        self.fate = fates.pop(0) if len(fates) > 1 else fates[0]

    def wait_until_ready(self) -> None:
        if isinstance(self.fate, BaseException):
            raise self.fate

    def close(self) -> None:
        self.closed.append(self.tier)


@pytest.fixture
def play(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[Course, Any]]:
    """Gives a course, and the first host of `isolation`, whose tiers have these fates."""

    def played(isolation: str, **fates: list[Fate]) -> tuple[Course, Any]:
        standing: dict[str, list[Fate]] = {tier: [[STANDS]] for tier in tiers.TIERS}
        PlayedHost.fates = {**standing, "none": [[FALLS]]}
        PlayedHost.fates |= {
            name.replace("_", "-"): fate for name, fate in fates.items()
        }
        PlayedHost.started, PlayedHost.closed = [], []
        course = Course(tmp_path, About("Course"))
        return course, tiers.launch_host(course, isolation, 2)

    monkeypatch.setattr(tiers, "HostProcess", PlayedHost)
    monkeypatch.setattr(tiers, "probe", lambda course, host: host.fate)
    monkeypatch.setattr(tiers, "machine_problems", lambda limits, clients: [])
    return played


@pytest.mark.parametrize(
    ("isolation", "tier"),
    [
        ("auto", "namespaces"),
        ("strict", "namespaces"),
        ("uid", "uid"),
        ("none", "none"),
    ],
)
def test_the_strongest_tier_that_is_allowed_begins(
    play: Callable[..., Any], isolation: str, tier: str
) -> None:
    course, host = play(isolation)
    assert tiers.prove_host(course, isolation, host) is host
    assert (host.tier, PlayedHost.started, PlayedHost.closed) == (tier, [tier], [])


def test_where_a_wall_falls_the_next_tier_is_tried(play: Callable[..., Any]) -> None:
    course, host = play(
        "auto", namespaces=[[STANDS, FALLS]], landlock=[IsolationUnavailable("old")]
    )
    proven = tiers.prove_host(course, "auto", host)
    assert (proven.tier, len(proven.clients)) == ("uid", 2)
    assert PlayedHost.started == ["namespaces", "landlock", "uid"]
    assert PlayedHost.closed == ["namespaces", "landlock"]


def test_where_no_tier_stands_each_is_named_with_its_reason(
    play: Callable[..., Any],
) -> None:
    course, host = play(
        "strict", namespaces=[[FALLS]], landlock=[IsolationUnavailable("old")]
    )
    with pytest.raises(IsolationUnavailable) as caught:
        tiers.prove_host(course, "strict", host)
    assert str(caught.value).splitlines() == [
        "no walls of isolation 'strict' stand on this machine, so no student code is run.",
        "  namespaces: open a socket (it opened)",
        "  landlock: old",
        "`autograder doctor` says what to do; `--isolation none` grades without walls, on code "
        "that you trust.",
    ]
    assert PlayedHost.closed == ["namespaces", "landlock"]


@pytest.mark.parametrize(("deaths", "tier"), [(3, "namespaces"), (4, "landlock")])
def test_a_host_that_died_is_started_three_times_more(
    play: Callable[..., Any], deaths: int, tier: str
) -> None:
    died = [HostFailed("killed")] * deaths
    course, host = play("auto", namespaces=[*died, [STANDS]])
    assert tiers.prove_host(course, "auto", host).tier == tier
    assert PlayedHost.started[:4] == ["namespaces"] * 4


def test_what_interrupts_the_proof_closes_the_host(play: Callable[..., Any]) -> None:
    course, host = play("auto", namespaces=[KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        tiers.prove_host(course, "auto", host)
    assert PlayedHost.closed == ["namespaces"]


def test_a_machine_that_cannot_grade_says_so_before_a_host_starts(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        tiers, "machine_problems", lambda limits, clients: ["no disk", "no files"]
    )
    with pytest.raises(
        IsolationUnavailable, match=r"graded here:\n  no disk\n  no files$"
    ):
        play("auto")
    assert PlayedHost.started == []


def test_both_strict_tiers_have_one_name_in_results() -> None:
    names = [isolation_name(tier) for tier in (*tiers.TIERS, "none")]
    assert names == ["strict", "strict", "uid", "no-open", "none"]


# `autograder doctor`


def doctors_lines(course: Course) -> tuple[list[str], bool]:
    lines = []
    report = doctor.doctor_command(course)
    while True:
        try:
            lines += next(report).splitlines()
        except StopIteration as end:
            return lines, end.value


@pytest.fixture
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "machine_problems", lambda limits, clients: [])
    monkeypatch.setattr(doctor, "describe_gpu", lambda: "GPU: none")


def test_the_doctor_tells_each_tier_and_the_best(
    play: Callable[..., Any], on_this_machine: None
) -> None:
    course, _ = play(
        "auto", namespaces=[IsolationUnavailable("no mounts")], uid=[[STANDS, FALLS]]
    )
    lines, is_strict = doctors_lines(course)
    assert is_strict
    text = "\n".join(lines)
    assert (
        "namespaces (strict): does not stand: no mounts\n\nlandlock (strict): stands"
        in text
    )
    assert (
        "  yes  cannot read the suite  [no such file]\n       can read /etc/hosts"
        in text
    )
    assert "uid (weaker): does not stand: open a socket falls" in text
    assert "  NO   cannot open a socket  [it opened]" in text
    assert lines[-1] == "grading here uses: landlock"
    assert PlayedHost.closed == list(tiers.TIERS)


def test_where_only_weaker_tiers_stand_the_doctor_says_what_helps(
    play: Callable[..., Any], on_this_machine: None
) -> None:
    course, _ = play("auto", namespaces=[[FALLS]], landlock=[HostFailed("killed")])
    lines, is_strict = doctors_lines(course)
    assert not is_strict
    assert "grading here uses: uid" in lines
    assert lines[lines.index("For stronger walls:") + 1 :] == [
        f"  {platform}: {advice}" for platform, advice in doctor.ADVICE
    ]


def test_where_nothing_stands_the_doctor_says_so(
    play: Callable[..., Any], on_this_machine: None
) -> None:
    course, _ = play(
        "auto",
        **{name: [[FALLS]] for name in ("namespaces", "landlock", "uid", "no_open")},
    )
    lines, is_strict = doctors_lines(course)
    assert not is_strict
    assert (
        "grading here uses: nothing: no walls stand, and only --isolation none grades"
        in lines
    )


def test_a_system_without_walls_is_told_and_nothing_more(
    play: Callable[..., Any], on_this_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (doctor, tiers):
        monkeypatch.setattr(module, "platform_problem", lambda: "no Linux here")
    with pytest.raises(IsolationUnavailable, match=r"^no Linux here$"):
        play("auto")
    monkeypatch.setattr(doctor, "survey", lambda course: 1 / 0)
    lines, is_strict = doctors_lines(Course(Path()))
    assert (lines[-1], is_strict) == ("no Linux here", False)


def test_limits_of_the_machine_are_told_and_the_walls_all_the_same(
    play: Callable[..., Any], on_this_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    course, _ = play("auto")
    monkeypatch.setattr(
        doctor, "machine_problems", lambda limits, clients: ["no disk", f"{clients}"]
    )
    lines, is_strict = doctors_lines(course)
    place = lines.index("nothing can be graded here: no disk")
    assert lines[place + 1] == "nothing can be graded here: 1"
    assert (lines[-1], is_strict) == ("grading here uses: namespaces", True)


# the probe


class PlayedProgram:
    """The program behind walls, which tries `tried`; an exception in its place is raised."""

    tried: Any

    def __init__(
        self, program: Path, client: str, limits: object, seconds: float
    ) -> None:
        assert (program.name, client, seconds) == ("probe.py", "client", 20.0)

    def __enter__(self) -> PlayedProgram:
        return self

    def __exit__(self, *_: object) -> None: ...

    def attempts(self, targets: str) -> Any:
        if isinstance(self.tried, Exception):
            raise self.tried
        return self.tried


@pytest.mark.parametrize(
    ("tried", "walls"),
    [
        (
            [("read the suite", False, "no such file"), ("open a socket", True, 7)],
            [STANDS, Wall("open a socket", False, "7")],
        ),
        (
            StudentCrashed("it ended"),
            [Wall("the probe answers", False, "StudentCrashed('it ended')")],
        ),
        (
            [("read the suite",)],
            [
                Wall(
                    "the probe answers",
                    False,
                    "ValueError('not enough values to unpack (expected 3, got 1)')",
                )
            ],
        ),
    ],
)
def test_a_probe_tells_each_wall_or_that_it_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: Any, walls: list[Wall]
) -> None:
    PlayedProgram.tried = tried
    monkeypatch.setattr("autograder.sandbox.kit_program.run_program", PlayedProgram)
    monkeypatch.setattr(tiers, "_targets", lambda course: {})
    host: Any = SimpleNamespace(clients=["client"])
    assert tiers.probe(Course(tmp_path), host) == walls


def test_the_lock_of_a_canary_may_have_the_number_of_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be written to has no canary."""
    locks = iter([-1, 0])
    closed: list[int] = []
    played_os = SimpleNamespace(access=os.access, W_OK=os.W_OK, close=closed.append)
    monkeypatch.setattr(tiers, "lock_path", lambda path: next(locks))
    monkeypatch.setattr(tiers, "os", played_os)
    with tiers._canary(tmp_path):
        # another run took the first away as abandoned
        _, canary = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        assert re.fullmatch(r"\.canary-[0-9a-f]{16}", canary.name)
        assert len(canary.read_text(encoding="utf-8")) == 32
    assert not canary.exists()
    assert closed == [0]
    played_os.access = lambda *_: False
    with tiers._canary(tmp_path / "none"), tiers._canary(tmp_path):
        assert len(list(tmp_path.iterdir())) == 1
    assert closed == [0]
