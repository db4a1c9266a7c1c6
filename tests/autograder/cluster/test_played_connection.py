"""What is said of a scheduler that does not answer; the connection is played."""

from __future__ import annotations

from typing import Any

import pytest
from distributed.comm.core import FatalCommClosedError

from autograder.basics.errors import ClusterUnavailable
from autograder.cluster import scheduler
from autograder.cluster.scheduler import _connected


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


OTHER = "s:1: the certificate there and the one here are not of one authority: "
NOBODY = "no scheduler answers: "


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FatalCommClosedError("ended"), f"{OTHER}ended"),
        (OSError("SSLV3Error: alert"), f"{OTHER}SSLV3Error: alert"),
        (
            caused(OSError("ended"), ValueError("SSLCertVerificationError")),
            f"{OTHER}ended",
        ),
        (OSError("ended"), f"{NOBODY}ended; what was graded is safe"),
        (ValueError("no address"), f"{NOBODY}no address; what was graded is safe"),
    ],
)
def test_a_connection_that_fails_says_why(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def connect(address: str, **options: Any) -> None:
        assert (address, options) == ("s:1", {"timeout": 2.5, "set_as_default": False})
        raise error

    monkeypatch.setattr(scheduler, "Client", connect)
    with pytest.raises(ClusterUnavailable) as caught:
        _connected("s:1", 2.5)
    assert str(caught.value) == message
    assert caught.value.__cause__ is error
