"""The host: a warm process that forks a walled worker at every request. Of the course it holds the
given cells and the companions alone.

Started by exec with a clean environment, as `python -I host.py CONTROL_FDS`. It imports the heavy
libraries once, warms what they do late (`warm_up.py`), builds the new root where the tier has one,
and then serves (`fork_server.py`). It runs no student code.

The first control message is the configuration: tier, extras, a device, where the released code
lies, and the folders that workers must not see. The host forgets their names before it forks the
first worker.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import signal
import site
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

KIT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Load the libraries, build what can be built once, and answer requests until nobody is
    connected.
    """
    gc.disable()  # nothing that is imported is ever freed
    descriptors = json.loads(sys.argv[1])
    controls = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    config = json.loads(controls[0].recv(1 << 16))
    with contextlib.suppress(OSError):
        # where the machine runs out of memory, workers go before whoever grades
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    # only a real folder can be importable: the kit's own stays on the path until its modules are
    # loaded
    sys.path.insert(0, str(KIT))
    from autograder.worker import system_calls
    from autograder.worker.walls import WallRefused

    with contextlib.suppress(OSError):
        system_calls.die_with_parent(signal.SIGKILL)
    try:
        _load_libraries(config)
    except OSError as error:
        _refuse(controls, error)
    # imports numpy, so only now, when the environment says one thread
    from autograder.worker.fork_server import ForkServer

    _remove_kit_from_path()
    gc.collect()
    gc.freeze()
    gc.enable()
    try:
        server = ForkServer(controls, config, KIT)
        if len(list(Path("/proc/self/task").iterdir())) != 1:
            raise OSError(
                errno.EBUSY,
                "the host has more than one thread, and a fork of it would hang",
            )
        server.raise_walls()
    except (OSError, ValueError, WallRefused) as error:
        _refuse(controls, error)
    ready = {"ready": config["tier"], "readable": server.readable}
    for control in controls:
        control.send(json.dumps(ready).encode())
    server.serve()


def _load_libraries(config: dict[str, Any]) -> None:
    """Import and warm what workers need; adds to the configuration the folders of `libraries` that
    a device needs.

    Raises:
        OSError: the device cannot be used, or the released code cannot be read.
    """
    from autograder.worker import warm_up

    warm_up.prepare_environment(config["warm_up"], config["device"])
    warm_up.warm_libraries(config["extras"])
    warm_up.warm_loop()
    warm_up.compile_released_code(Path(config["released"]))
    config["libraries"] = []
    if config["device"] not in ("", "cpu"):
        from autograder.worker import gpu_setup

        config["libraries"] = gpu_setup.prepare(config["cuda"], config["driver_folder"])


def _remove_kit_from_path() -> None:
    sys.path.remove(str(KIT))
    if str(KIT) in site.getsitepackages():
        return  # an installed kit lies among the packages that workers import
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != KIT]


def _refuse(controls: list[socket.socket], error: Exception) -> NoReturn:
    """Tell every client why there is no host, and end."""
    for control in controls:
        control.send(json.dumps({"error": str(error)}).encode())
    raise SystemExit(3) from None


if __name__ == "__main__":
    main()
