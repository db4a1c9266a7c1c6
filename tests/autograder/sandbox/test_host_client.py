"""The connection to a host whose other end is played by the test."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.basics.errors import HostFailed, IsolationUnavailable, WorkerKilled
from autograder.course import Limits
from autograder.sandbox import host_process
from autograder.sandbox.host_process import HostClient

LIMITS = Limits(cpu_seconds=61, memory_mb=2001, processes=3, file_mb=17, scratch_mb=65)


@pytest.fixture
def ends() -> Iterator[tuple[HostClient, socket.socket]]:
    """A client, and the host's end of its connection."""
    client_end, host_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield HostClient(client_end, "landlock"), host_end
    client_end.close()
    host_end.close()


Answer = dict[str, Any]


def answer_with(
    host_end: socket.socket, *answers: Answer, descriptors: tuple[int, ...] = ()
) -> tuple[threading.Thread, list[Any]]:
    """Answer one request with these answers, in a thread; and what was requested."""
    requests: list[Any] = []

    def play() -> None:
        data, received, _, _ = socket.recv_fds(host_end, 1 << 16, 1)
        for descriptor in received:
            os.close(descriptor)
        request = json.loads(data)
        requests.append((request, len(received)))
        for answer in answers:
            message = json.dumps({"number": request["number"], **answer}).encode()
            socket.send_fds(host_end, [message], descriptors)

    thread = threading.Thread(target=play)
    thread.start()
    return thread, requests


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# ready


def test_a_host_that_is_ready_names_what_workers_can_read(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, host_end = ends
    host_end.send(json.dumps({"readable": ["/etc/hosts", "/etc/passwd"]}).encode())
    client.wait_until_ready()
    assert client.readable == ("/etc/hosts", "/etc/passwd")


def test_a_tier_that_cannot_stand_says_why(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, host_end = ends
    host_end.send(json.dumps({"error": "no namespaces here"}).encode())
    with pytest.raises(IsolationUnavailable, match=r"^no namespaces here$"):
        client.wait_until_ready()


def test_a_host_that_ends_or_says_nothing_has_failed(
    ends: tuple[HostClient, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, host_end = ends
    monkeypatch.setattr(host_process, "_START_SECONDS", 0.05)
    with pytest.raises(
        HostFailed, match=r"^the sandbox host did not start: timed out$"
    ):
        client.wait_until_ready()
    host_end.close()
    with pytest.raises(
        HostFailed, match=r"^the sandbox host ended before it was ready; `autograder"
    ):
        client.wait_until_ready()


# requests


def test_a_fork_has_the_limits_of_the_course(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, host_end = ends
    reader, writer = os.pipe()
    before = open_descriptors()
    thread, requests = answer_with(host_end, {"pid": 7}, descriptors=(reader,))
    grant = client.fork_worker(LIMITS)
    thread.join()
    ((request, sent),) = requests
    del request["number"]
    assert request == {
        "op": "fork",
        "limits": {
            "cpu_seconds": 61,
            "memory_mb": 2001,
            "processes": 3,
            "file_mb": 17,
            "scratch_mb": 65,
        },
    }
    assert (grant.pid, sent) == (7, 1)
    assert os.fstat(grant.pidfd).st_ino == os.fstat(reader).st_ino
    assert not grant.sock.getblocking()
    assert open_descriptors() == before + 2
    grant.sock.close()
    for descriptor in (grant.pidfd, reader, writer):
        os.close(descriptor)


def test_an_answer_to_a_dead_grader_is_left_aside_with_its_descriptor(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, host_end = ends
    reader, writer = os.pipe()
    before = open_descriptors()
    thread, _ = answer_with(
        host_end,
        {"number": -1, "end": [1, 1.0]},
        {"end": [9, 2.5]},
        descriptors=(reader,),
    )
    assert client.worker_end(7) == (9, 2.5)
    thread.join()
    assert open_descriptors() == before + 1  # the descriptor of the right answer
    for descriptor in (reader, writer):
        os.close(descriptor)


def test_an_error_is_kept_and_raised_again(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, host_end = ends
    before = open_descriptors()
    thread, _ = answer_with(host_end, {"error": "it cannot fork"})
    with pytest.raises(HostFailed, match=r"^it cannot fork$") as raised:
        client.fork_worker(LIMITS)
    thread.join()
    assert open_descriptors() == before
    assert client.fault is raised.value
    with pytest.raises(HostFailed) as again:
        client.end_workers()
    assert again.value is raised.value


def test_a_worker_that_the_host_does_not_know_is_a_fault(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, host_end = ends
    thread, requests = answer_with(host_end, {"end": None})
    with pytest.raises(
        HostFailed, match=r"^the sandbox host does not know how a worker ended$"
    ):
        client.worker_end(7)
    thread.join()
    ((request, _),) = requests
    assert (request["op"], request["pid"]) == ("end_of", 7)


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.end_workers(),
        lambda client: client.worker_end(7),
        lambda client: client.fork_worker(LIMITS),
    ],
)
def test_a_host_that_is_gone_does_not_answer(
    ends: tuple[HostClient, socket.socket], use: Callable[[HostClient], Any]
) -> None:
    client, host_end = ends
    host_end.close()
    with pytest.raises(HostFailed, match=r"^the sandbox host does not answer: "):
        use(client)


def test_a_host_that_ends_before_its_answer_has_ended(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, host_end = ends

    def play() -> None:
        host_end.recv(1 << 16)
        host_end.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=play)
    thread.start()
    with pytest.raises(
        HostFailed, match=r"^the sandbox host does not answer: it has ended$"
    ):
        client.end_workers()
    thread.join()


def test_a_fault_has_the_kind_that_is_asked_for(
    ends: tuple[HostClient, socket.socket],
) -> None:
    client, _ = ends
    assert type(client.failed("gone")) is HostFailed
    fault = client.failed("killed", WorkerKilled)
    assert type(fault) is WorkerKilled
    assert client.fault is fault
    assert client.tier == "landlock"


def test_without_a_socket_there_is_no_worker(
    ends: tuple[HostClient, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = ends

    def refused() -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(socket, "socketpair", refused)
    with pytest.raises(
        HostFailed, match=r"^no socket for a worker: too many open files$"
    ):
        client.fork_worker(LIMITS)


def test_a_host_has_two_minutes_to_load_its_libraries() -> None:
    """Afterwards a request may wait for as long as a worker takes to fork."""
    patience: list[float | None] = []

    class Control:
        def settimeout(self, seconds: float | None) -> None:
            patience.append(seconds)

        def recv(self, most: int) -> bytes:
            raise TimeoutError("timed out")

    control: Any = Control()
    with pytest.raises(
        HostFailed, match=r"^the sandbox host did not start: timed out$"
    ):
        HostClient(control, "landlock").wait_until_ready()
    assert patience[0] == 120.0
