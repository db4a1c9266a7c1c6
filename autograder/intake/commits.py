"""Find the last commit of a notebook in a clone: the hand-in time of work pushed to GitHub.

The time is the committer's, which is set by the student's own machine: a clock that is wrong, or
set wrong, gives a wrong time, and GitHub keeps it. git reads the history from the clone's objects
alone: the settings of a clone may name programs to run, and are not read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import read_handed_in

_HASH = re.compile(r"[0-9a-f]{40}")
_BRANCH = re.compile(r"ref: (refs/heads/[\w.+/@-]{1,200})")
_SECONDS = 20
_MAX_FILE = 1 << 20  # bytes of a file that lists branches


class CommitTimes:
    """Looks up commits of clones.

    Attributes:
        problem: why no time can be read at all; "" where git is installed.
    """

    def __init__(self, scratch: Path) -> None:
        """Make an empty repository in `scratch`, which borrows the objects of one clone after the
        other.
        """
        self._repository = scratch / "commits.git"
        git = shutil.which("git")
        self._git = git or ""
        self.problem = "" if git else "git is not installed, so commits cannot be read"
        if git:
            self._run(
                "init",
                "--quiet",
                "--bare",
                str(self._repository),
            )

    def last_commit(self, clone: Path, notebook: str) -> tuple[datetime | None, str]:
        """The time of the notebook's last commit in the branch that is checked out, or why nobody
        can tell.

        Args:
            notebook: the path in the clone, with slashes.
        """
        git_folder = clone / ".git"
        if self.problem or not self._borrow_objects(git_folder):
            return None, ""
        head = _read_head(git_folder)
        if not head:
            return None, ""
        oldest = self._borrow_shallow(git_folder)
        commit = self._run(
            "log",
            "-1",
            "--format=%H %ct",
            head,
            "--",
            f":(literal){notebook}",
        )
        fields = re.fullmatch(r"([0-9a-f]{40}) (\d{1,11})", commit)
        if fields is None:
            return None, ""
        # Earlier commits are missing, so the notebook may be older than this commit.
        if fields[1] in oldest:
            return (
                None,
                "the clone has no history, so it cannot be told when the notebook was committed: "
                "clone it whole",
            )
        return datetime.fromtimestamp(int(fields[2]), UTC), ""

    def _borrow_objects(self, git_folder: Path) -> bool:
        """Let the repository read a clone's objects; False where the clone has none, or links."""
        objects = git_folder / "objects"
        if git_folder.is_symlink() or objects.is_symlink() or not objects.is_dir():
            return False
        resolved = str(objects.resolve())
        if "\n" in resolved:
            return False
        alternates = self._repository / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_text(
            f"{resolved}\n",
            encoding="utf-8",
            errors="surrogateescape",
        )
        return True

    def _borrow_shallow(self, git_folder: Path) -> list[str]:
        """The commits at which the history of the clone ends, if it was cloned with a depth."""
        lines = _read_text(git_folder / "shallow").splitlines()
        lines = [line for line in lines if _HASH.fullmatch(line)]
        boundary = self._repository / "shallow"
        if lines:
            boundary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            boundary.unlink(missing_ok=True)
        return lines

    def _run(self, *arguments: str) -> str:
        """The output of git, "" where git fails. git reads no settings but those of our own empty
        repository.
        """
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_")
        }
        environment |= {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_DIR": str(self._repository),
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }
        try:
            done = subprocess.run(
                [self._git, *arguments],
                env=environment,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""


def _read_head(git_folder: Path) -> str:
    """The commit that is checked out; "" where git's files do not tell."""
    head = _read_text(git_folder / "HEAD").strip()
    branch = _BRANCH.fullmatch(head)
    if branch is None:
        return head if _HASH.fullmatch(head) else ""
    if ".." in branch[1]:
        return ""
    loose = _read_text(git_folder / branch[1]).strip()
    if _HASH.fullmatch(loose):
        return loose
    line = rf"^([0-9a-f]{{40}}) {re.escape(branch[1])}$"
    packed = re.search(
        line,
        _read_text(git_folder / "packed-refs"),
        re.MULTILINE,
    )
    return packed[1] if packed else ""


def _read_text(path: Path) -> str:
    try:
        return read_handed_in(path, _MAX_FILE).decode("utf-8", "replace")
    except UnreadableSubmission:
        return ""
