"""The way to a scheduler: one that stands somewhere, or a cluster on this machine for as long as a
run takes.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Callable, Iterator

import dask.config
from distributed import Client, LocalCluster
from distributed.comm.core import FatalCommClosedError
from distributed.security import Security

from autograder.basics.errors import ClusterUnavailable
from autograder.sandbox.leftovers import ScratchFolder

_LOCAL = re.compile(r"local:([1-9]\d{0,3})")

_SETTINGS = {
    # what Dask's processes do beside their work, many times a second: here they share the cores
    # with graders
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "30s",
    # else each end keeps its last thousand messages, notebooks and all
    "distributed.admin.low-level-log-length": 0,
    "distributed.diagnostics.nvml": False,
    # without a dashboard too there is a port that says to anybody on this machine what is being
    # done
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.admin.large-graph-warning-threshold": "1GB",  # a notebook may be large
}
"""Dask's settings, for this process and those that it starts; a scheduler elsewhere has its own."""

Connect = Callable[[float], Client]
"""Makes a client, within so many seconds.

Raises:
    ClusterUnavailable: there is no scheduler, or the certificates do not fit.
"""


@contextlib.contextmanager
def open_cluster(address: str) -> Iterator[Connect]:
    """What makes clients of the cluster at `address`: a scheduler's, or `local:N` for N Dask
    workers on this machine, of one grader each.

    A scheduler runs whatever it is sent. So one that is started here talks by TLS alone, with a key
    that nobody else has; the certificates for another are those of Dask's own settings.
    """
    for name in [
        name
        for name in logging.root.manager.loggerDict
        if name.partition(".")[0] == "distributed"
    ]:
        # what is worth knowing of a lost machine the driver says
        logging.getLogger(name).setLevel(logging.CRITICAL)
    local = _LOCAL.fullmatch(address)
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(_SETTINGS))
        if local is None:
            yield functools.partial(_connected, address)
            return
        scratch = ScratchFolder()
        stack.callback(scratch.remove)
        # Dask puts a folder below it into Python's path: not one that other users may have made
        # before
        stack.enter_context(dask.config.set({"temporary-directory": str(scratch.path)}))
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=int(local[1]),
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                protocol="tls://",
                security=Security.temporary(),
                silence_logs=logging.CRITICAL,
            )
        )
        yield functools.partial(_connected, cluster)


def _connected(scheduler: str | LocalCluster, seconds: float) -> Client:
    if str(scheduler).startswith("tls://"):
        _require_certificate(str(scheduler))
    try:
        return Client(scheduler, timeout=seconds, set_as_default=False)
    except (OSError, ValueError) as error:  # ValueError: no address
        # a scheduler that refuses our certificate is seen to end the connection in one of several
        # ways
        if isinstance(error, FatalCommClosedError) or re.search(
            r"SSL\w*Error", f"{error} {error.__cause__!r}"
        ):
            raise ClusterUnavailable(
                f"{scheduler}: the certificate there and the one here are not of one "
                f"authority: {error}"
            ) from error
        raise ClusterUnavailable(
            f"no scheduler answers: {error}; what was graded is safe"
        ) from error


def _require_certificate(address: str) -> None:
    """Load the certificate that Dask's settings name.

    Raises:
        ClusterUnavailable: they name none, or its files cannot be used.
    """
    try:
        loaded = Security().get_connection_args("client").get("ssl_context")
    except OSError as error:  # of which ssl's own errors are some
        raise ClusterUnavailable(
            f"the certificate files of Dask's settings cannot be used: {error}"
        ) from error
    if loaded is None:
        raise ClusterUnavailable(
            f"{address} takes no connection without a certificate: docs/cluster.md says "
            "how to name one"
        )
