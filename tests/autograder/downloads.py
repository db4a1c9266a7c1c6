"""Downloads of the platforms, as a test writes them, taken into a course."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from autograder.course import Course
from autograder.platforms.collect import collect


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """A zip of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


class Download:
    """Collects downloads into a course, and tells what lies there afterwards."""

    def __init__(self, course: Course) -> None:
        self.course, self.submitted = course, course.submitted
        self.assignment = course.assignment("m1")

    def __call__(
        self, origin: str, files: Mapping[str, str | bytes], roster: str = ""
    ) -> list[str]:
        archive, own_file = (
            self.course.root / "download.zip",
            self.course.root / "roster.csv",
        )
        archive.write_bytes(packed(files))
        own_file.write_text(roster, encoding="utf-8")
        return collect(
            self.course, self.assignment, archive, origin, own_file if roster else None
        )

    def class_list(self, text: str) -> None:
        (self.course.root / "students.csv").write_text(text, encoding="utf-8")

    def there(self) -> dict[str, str]:
        """Student → what the notebook holds."""
        return {
            path.parent.parent.name: path.read_text()
            for path in sorted(self.submitted.glob("[!.]*/m1/m1.ipynb"))
        }

    def time(self, student: str) -> str:
        return (self.submitted / student / "m1" / "timestamp.txt").read_text()
