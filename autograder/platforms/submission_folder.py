"""One student's folder of one assignment in submitted/, and the earlier submissions in it."""

from __future__ import annotations

import filecmp
import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.handed_in import printable_name
from autograder.intake.overlooked import PREVIOUS
from autograder.marks.late_policy import TIMESTAMP_FILE, read_timestamp


class SubmissionFolder:
    """A student's folder of one assignment. Every change is a step of a transaction."""

    def __init__(self, path: Path, files: FileTransaction) -> None:
        self._path = path
        self._files = files

    def install(
        self,
        notebook: Path,
        handed_in: datetime | None,
        beside: Mapping[str, Path] | None = None,
    ) -> tuple[str, str]:
        """Copy a notebook to its place, and move an earlier submission into `previous/`.

        Args:
            beside: files that came with the notebook, by the name that each gets.

        Returns:
            The change, "new", "replaced" or "unchanged", or "" where there can be none; and a line
            about it, or "".
        """
        if self._path.is_symlink() or self._path.parent.is_symlink():
            return (
                "",
                f"{printable_name(self._path)} is a link; nothing was written there",
            )
        place = self._path / f"{self._path.name}.ipynb"
        new_files = {self._path / name: file for name, file in (beside or {}).items()}
        new_files[place] = notebook
        earlier = self._contents()
        changed = [path for path in new_files if not _is_same(path, new_files[path])]
        if not changed:
            self._write_time(handed_in)
            return "unchanged", ""
        has_time = self._path / TIMESTAMP_FILE in earlier
        time = self._hand_in_time() if has_time else None
        if time and handed_in and handed_in < time:
            return "unchanged", "what is collected already is newer; kept it"
        line = ""
        replaced, written = earlier, list(new_files)
        if place not in changed:  # other weights for the notebook that lies here
            replaced = [path for path in changed if path in earlier]
            written = changed
        if replaced:
            line = f"the earlier submission is kept in {PREVIOUS}/{self._move_aside(replaced)}"
        for path in written:
            self._files.write(path, new_files[path].read_bytes())
        self._write_time(handed_in)
        return "replaced" if earlier else "new", line

    def put_aside(self) -> str | None:
        """Move the submission into `previous/`; returns the folder's name there, or None where
        nothing lies here, or the folder is a link.
        """
        contents = self._contents()
        if not contents or self._path.is_symlink():
            return None
        return self._move_aside(contents)

    def _contents(self) -> list[Path]:
        """The files that stay here, without those of earlier submissions."""
        paths = self._path.iterdir() if self._path.is_dir() else ()
        return [
            path
            for path in paths
            if path.name != PREVIOUS and not self._files.will_vanish(path)
        ]

    def _move_aside(self, paths: Sequence[Path]) -> str:
        folder = self._make_previous()
        for path in sorted(paths):
            self._files.move(path, folder / path.name)
        return folder.name

    def _make_previous(self) -> Path:
        """Make a folder for the earlier submission, named by its time where that is known, else by
        a number.
        """
        previous = self._path / PREVIOUS
        if previous.is_symlink():
            raise KitError(
                f"{printable_name(previous)} is a link: remove it, it must be a folder"
            )
        time = self._hand_in_time()
        numbers = map(str, itertools.count(1))
        names: itertools.chain[str] | map[str] = numbers
        if time:
            stamp = time.strftime("%Y-%m-%dT%H%M%SZ")
            names = itertools.chain(
                [stamp], (f"{stamp}-{number}" for number in numbers)
            )
        folder = next(
            previous / name for name in names if not (previous / name).exists()
        )
        self._files.make_folder(folder)
        return folder

    def _hand_in_time(self) -> datetime | None:
        """The time of the submission that lies here; None where no readable timestamp says it."""
        try:
            return read_timestamp(self._path)
        except ValueError:
            return None

    def _write_time(self, handed_in: datetime | None) -> None:
        """Write the hand-in time in nbgrader's form, always in UTC."""
        if handed_in is not None:
            text = handed_in.strftime("%Y-%m-%d %H:%M:%S.%f UTC")
            self._files.write(self._path / TIMESTAMP_FILE, text)


def _is_same(path: Path, file: Path) -> bool:
    """Whether a file lies at the path, and no link, with the bytes of another one."""
    is_file = path.is_file() and not path.is_symlink()
    return is_file and filecmp.cmp(path, file, shallow=False)
