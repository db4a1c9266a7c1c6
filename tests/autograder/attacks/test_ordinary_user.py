"""The same walls for other users: an ordinary one without privilege, and root where Python lies
open to all.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ANYBODY = 65534
SCRIPT = Path(__file__).with_name("as_anybody.py")
REPOSITORY = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid")
    or os.geteuid() != 0
    or not all(map(shutil.which, ("unshare", "setpriv", "mount"))),
    reason="only root can become an ordinary user; run by one, test_attacks.py is this test",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="anybody-") as made:
        yield Path(made)


def _open_up(prefix: str, aside: Path) -> str:
    """What shows Python's folder to everybody where root's home hides it, in a mount namespace."""
    top = Path("/", *Path(prefix).resolve().parts[1:2])
    if top.stat().st_mode & 0o001:
        return ""
    here, home, to = (
        shlex.quote(str(Path(prefix).resolve())),
        shlex.quote(str(top)),
        shlex.quote(str(aside)),
    )
    return (
        f"mount --bind {here} {to} && mount -t tmpfs -o mode=755 tmpfs {home} && mkdir "
        f"-p {here} && "
        f"mount --bind {to} {here} && "
    )


@pytest.mark.parametrize(
    ("user", "tiers"), [(ANYBODY, ["namespaces", "landlock"]), (0, ["uid"])]
)
def test_the_walls_stand_for_other_users_too(
    folder: Path, user: int, tiers: list[str]
) -> None:
    os.chown(folder, user, user)
    aside = folder / "python"
    aside.mkdir()
    clean = [
        "env",
        "-i",
        f"PYTHONPATH={REPOSITORY}",
        f"HOME={folder}",
        "OMP_NUM_THREADS=1",
        "PATH=/usr/bin:/bin",
    ]
    run = [*clean, sys.executable, str(SCRIPT), str(folder), *tiers]
    if user:
        run = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={user}",
            "--clear-groups",
            "--inh-caps=-all",
            "--",
            *run,
        ]
    inside = f"{_open_up(sys.base_prefix, aside)}cd / && exec {shlex.join(run)}"
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside],
        capture_output=True,
        text=True,
        timeout=600,
    )
    if "unshare failed" in done.stderr or "permission denied" in done.stderr.lower():
        pytest.skip(
            f"this machine does not let us become another user: {done.stderr.strip()[-200:]}"
        )
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert list(said) == tiers, done.stdout + done.stderr
    stand = [tier for tier in tiers if not said[tier].startswith("unavailable: ")]
    for tier in stand:
        assert said[tier].startswith(f"user {user}: "), said[tier]
        assert said[tier].endswith("bad: []"), said[tier] + done.stderr
    if stand != tiers:
        pytest.skip(
            f"not every tier stands for user {user} here: {done.stdout.strip()[:300]}"
        )
