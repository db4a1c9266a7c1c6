"""The same walls where the grader is no root: an ordinary user, in the tiers that need no privilege."""

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
    not hasattr(os, "geteuid") or os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "mount"))),
    reason="only root can become an ordinary user; run by one, test_attacks.py is this test",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="anybody-") as made:
        os.chown(made, ANYBODY, ANYBODY)
        yield Path(made)


def _open_up(prefix: str, aside: Path) -> str:
    """Shell lines that show Python's folder to everybody, in a mount namespace of their own, where root's home hides it."""
    top = Path("/", *Path(prefix).resolve().parts[1:2])
    if top.stat().st_mode & 0o001:
        return ""
    here, home, to = shlex.quote(str(Path(prefix).resolve())), shlex.quote(str(top)), shlex.quote(str(aside))
    return (
        f"mount --bind {here} {to} && mount -t tmpfs -o mode=755 tmpfs {home} && mkdir -p {here} && "
        f"mount --bind {to} {here} && "
    )


@pytest.mark.parametrize("tier", ["namespaces", "landlock"])
def test_an_ordinary_users_walls_stand_too(folder: Path, tier: str) -> None:
    aside = folder / "python"
    aside.mkdir()
    run = [sys.executable, str(SCRIPT), tier, str(folder)]
    inside = (
        _open_up(sys.base_prefix, aside)
        + "cd / && exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all -- "
        + shlex.join(
            ["env", "-i", f"PYTHONPATH={REPOSITORY}", f"HOME={folder}", "OMP_NUM_THREADS=1", "PATH=/usr/bin:/bin", *run]
        )
    )
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside],
        capture_output=True,
        text=True,
        timeout=400,
    )
    if "unshare failed" in done.stderr or "permission denied" in done.stderr.lower():
        pytest.skip(f"this machine does not let us become an ordinary user: {done.stderr.strip()[-200:]}")
    if done.stdout.startswith("unavailable"):
        pytest.skip(f"{tier} does not stand for an ordinary user here: {done.stdout.strip()[:300]}")
    assert done.stdout.strip().endswith("bad: []"), done.stdout + done.stderr
    assert done.stdout.startswith("user 65534: ")
