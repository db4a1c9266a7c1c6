"""Gradescope: exported submissions, results for its pages, and the autograder that it runs.

    submission_123/name.ipynb, people and times in submission_metadata.yml

`python -I -m autograder.platforms.gradescope ASSIGNMENT COURSE` grades /autograder/submission and
writes /autograder/results/results.json. A submission that cannot be graded gets a page that says
why. Where the container is to blame it writes nothing and fails: Gradescope then tells the staff,
and nobody gets a 0 for it.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.basics.errors import IsolationUnavailable, KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.handed_in import printable_name
from autograder.basics.points import format_points, is_full
from autograder.basics.safe_text import clean, one_line, shorten
from autograder.basics.whole_files import write_whole
from autograder.course import (
    COURSE_FILE,
    Assignment,
    Course,
    load_course,
    settings_without_people,
)
from autograder.intake.archives import UploadedFile
from autograder.intake.owners import (
    FindOwner,
    Owner,
    file_stem,
    time_or_reason,
    timestamp,
)
from autograder.intake.released_notebook import written_points
from autograder.ledger.identity_matching import Identity
from autograder.outputs.bundle import archive_entry, course_files, render_script
from autograder.outputs.kit_wheel import kit_wheel
from autograder.outputs.outcome_words import (
    CELL_WORDS,
    COULD_NOT_BE_GRADED,
    LONGEST_MESSAGE,
    WITHOUT_WALLS,
    example_text,
    question_text,
)
from autograder.platforms.platform import Bundle, Download, DownloadFormat, Platform
from autograder.records.model import QuestionResult, Result
from autograder.records.results import Tell, read_results, read_timing

BASE = Path("/autograder")
_TEMPLATES = Path(__file__).parent / "templates" / "gradescope"
_LEFTOVERS = {
    ".ipynb_checkpoints",
    "__MACOSX",
}  # folders that editors and archivers leave
_FOLDER = re.compile(r"submission_(\d+)")
_LIST = "submission_metadata.yml"


@dataclass(frozen=True, slots=True)
class _Listed:
    """One submission in Gradescope's list.

    Attributes:
        people: the submitters, one person or a group. A student id may be missing in one export
            and be there in the next.
        created: the hand-in time.
        unread: why the hand-in time cannot be read, or "".
    """

    people: tuple[Identity, ...]
    created: datetime | None
    unread: str = ""


def find_owners(download: Download) -> FindOwner:
    """A function that tells the owner of each file, by Gradescope's list of submissions.

    Raises:
        KitError: two submissions may be one person's or two people's.
    """
    listed = _submissions(_read_list(download), download.zone)
    people = [person for entry in listed.values() for person in entry.people]
    nameless = Counter(person.name for person in people if not person.accounts)
    if twice := [name for name, count in nameless.items() if count > 1]:
        raise KitError(
            f"{printable_name(twice[0])} stands in several of Gradescope's submissions without "
            "student id or email, and "
            "may be several people: add these to the roster there, and export again"
        )

    def find_owner(file: UploadedFile) -> Owner | None:
        for depth, part in enumerate(file.parts[:-1]):
            number = _FOLDER.fullmatch(part)
            if number is None:
                continue
            entry = listed.get(part, _Listed((), None))
            submitters = entry.people or (Identity(name=part),)
            first = submitters[0]
            depth_within = len(file.parts) - depth
            return Owner(
                next(iter(first.accounts), first.name),
                first,
                file_stem(file.name),
                members=submitters if len(submitters) > 1 else (),
                rank=(-float(depth_within), timestamp(file.modified)),
                attempt=(timestamp(entry.created), float(number[1])),
                handed_in=entry.created,
                unread=entry.unread,
            )
        return None

    return find_owner


def _read_list(download: Download) -> str:
    """The text of Gradescope's list; "" where the download has none. Students may hand in files of
    the same name, so lists inside submissions do not count.
    """
    lists = []
    for file in download.files:
        folders = file.parts[:-1]
        if file.parts[-1] == _LIST and not any(map(_FOLDER.fullmatch, folders)):
            lists.append(file)
    if not lists:
        return ""
    outermost = min(lists, key=lambda file: len(file.parts))
    return outermost.file.read_text(encoding="utf-8", errors="replace")


def _submissions(text: str, zone: str) -> dict[str, _Listed]:
    """People and times of each submission, by its folder.

    A reader for the few lines that matter, at the indentation where Gradescope writes them: the
    file has Ruby tags that a YAML library refuses, and test output of students further in.
    """
    entries: dict[str, _Listed] = {}
    folder, section, people, created = "", "", [dict[str, str]()], ""

    def close() -> None:
        named = (_submitter(person) for person in people if any(person.values()))
        if folder:
            entries[folder] = _Listed(
                tuple(dict.fromkeys(named)),
                *time_or_reason(created.strip() or None, zone),
            )

    for line in text.splitlines():
        if top := re.fullmatch(r"['\"]?(submission_\d+)['\"]?:\s*", line):
            close()
            folder, section, people, created = top[1], "", [], ""
        elif key := re.match(r"  :(\w+):(.*)", line):
            section = key[1]
            created = _scalar(key[2]) if section == "created_at" else created
        elif section == "submitters" and (
            item := re.match(r"  ([- ]) :?(\w+): (.*)", line)
        ):
            if item[1] == "-":
                people.append({})
            if people:
                people[-1][item[2]] = _scalar(item[3])
        elif section == "created_at" and (
            utc := re.match(r"    (utc|time): (.*)", line)
        ):
            created = (
                utc[2]
                if utc[1] == "utc" or not created or created.startswith("!")
                else created
            )
    close()
    return entries


def _submitter(fields: Mapping[str, str]) -> Identity:
    id_ = fields.get("sid", "")
    accounts = tuple(filter(None, (id_, fields.get("email", ""))))
    ids = (("gradescope", id_),) if id_ else ()
    return Identity(ids, accounts, fields.get("name", ""))


def _scalar(text: str) -> str:
    """A YAML scalar on one line, as plain text."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return "" if text in ("null", "~") else text


def results_json(
    result: Result, note: str = "", *, written: float = 0.0, visibility: str = "visible"
) -> str:
    """The result as Gradescope reads it: one entry a question, all text plain.

    Args:
        note: heads the page.
        written: points of written answers, which a person gives and which are not in this score.
        visibility: of each question, as Gradescope names it.
    """
    lines = [note] if note else []
    if written:
        lines.append(
            f"Not in this score: {format_points(written)} points of written answers, which a "
            "person gives."
        )
    if result.walls == "none":
        lines.append(" ".join(WITHOUT_WALLS))
    for cell in result.cells:
        if cell.outcome != "ok" or cell.message:
            message = (
                f": {shorten(one_line(cell.message), LONGEST_MESSAGE)}"
                if cell.message
                else ""
            )
            lines.append(
                f"Cell {one_line(cell.id)} {CELL_WORDS[cell.outcome]}{message}"
            )
    entries = [
        _entry(question, result) | {"visibility": visibility}
        for question in result.questions
    ]
    return _json(result.score, "\n".join(lines), entries)


def problem_json(problem: str) -> str:
    """The page of a student whose submission could not be graded."""
    return _json(
        0.0, f"{COULD_NOT_BE_GRADED}: {shorten(clean(problem), LONGEST_MESSAGE)}", []
    )


def _json(score: float, output: str, tests: list[dict[str, Any]]) -> str:
    page = {
        "score": score,
        "output": output,
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return json.dumps(page, indent=1) + "\n"


def _entry(question: QuestionResult, result: Result) -> dict[str, Any]:
    output = question_text(question, result)
    if question.example is not None:
        output += f"\n\n{example_text(question.example)}"
    return {
        "name": one_line(question.name),
        "name_format": "text",
        "score": question.score,
        "max_score": question.max_score,
        **_status(question),
        "output": output,
        "output_format": "text",
    }


def _status(question: QuestionResult) -> dict[str, str]:
    """Gradescope shows a question as passed or failed; one with a part of its points is left
    without, and its points speak.
    """
    if is_full(question.score, question.max_score):
        return {"status": "passed"}
    return {} if question.score > 0 else {"status": "failed"}


def find_notebook(submission: Path, assignment: str) -> Path:
    """The notebook that was handed in.

    Raises:
        ValueError: none, or several and none of them is called like the assignment.
    """
    notebooks = (
        p
        for p in sorted(submission.glob("**/*.ipynb"))
        if p.is_file() and not p.is_symlink()
    )
    candidates = [path for path in notebooks if not _LEFTOVERS.intersection(path.parts)]
    named = [path for path in candidates if path.name == f"{assignment}.ipynb"]
    if len(candidates) == 1 or len(named) == 1:
        return (named or candidates)[0]
    names = ", ".join(one_line(path.name) for path in candidates[:10]) or "no notebook"
    raise ValueError(f"Hand in {assignment}.ipynb; there is {names}.")


def grade_submission(
    assignment: str, course: Path, base: Path, command: Sequence[str], tell: Tell
) -> str:
    """Grade the submission in `base/submission` and return the text of results.json.

    Strict walls are tried first. Where the container does not allow them, the best walls that it
    allows stand, and the page says so.

    Raises:
        IsolationUnavailable: no walls stand, and the instructor has not accepted that.
    """
    try:
        notebook = find_notebook(base / "submission", assignment)
    except ValueError as error:
        return problem_json(str(error))
    settings = (
        load_course(course) if (course / COURSE_FILE).is_file() else Course(course)
    )
    written = written_points(Assignment(assignment, course))
    modes = ["strict", "auto"]
    if os.environ.get("AUTOGRADER_ALLOW_NO_ISOLATION") == "1":
        modes.append("none")
    error_text = ""
    for isolation in modes:
        with tempfile.TemporaryDirectory() as out:
            arguments = [
                *command,
                "grade",
                assignment,
                str(notebook),
                "--isolation",
                isolation,
                "--force",
                "--out",
                out,
            ]
            grading = subprocess.run(
                arguments,
                cwd=course,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            results = read_results(Path(out), assignment, tell)
            timing = read_timing(Path(out), assignment, tell)
        if results:
            return results_json(
                _shown(settings, results[0]),
                _note(results[0]),
                written=written,
                visibility=settings.gradescope.visibility,
            )
        for entry in timing:
            if entry.problem:
                return problem_json(entry.problem)
        error_text = clean(grading.stderr).strip()[-LONGEST_MESSAGE:]
        tell(f"isolation {isolation}: {error_text}")
    raise IsolationUnavailable(f"this container cannot grade: {error_text}")


def _shown(settings: Course, result: Result) -> Result:
    """The result as Gradescope shows it. A bundle knows no due time."""
    is_always = settings.feedback_settings.examples == "always"
    return result if is_always else result.without_examples()


def _note(result: Result) -> str:
    if result.walls in ("strict", "none"):  # results_json has words for "none"
        return ""
    return (
        "The strict walls do not stand in this container; graded behind weaker ones "
        f"({one_line(result.isolation)})."
    )


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Called by the bundle's run_autograder."""
    assignment, course = arguments
    command = [str(Path(sys.executable).parent / "autograder")]
    try:
        text = grade_submission(
            assignment,
            Path(course),
            BASE,
            command,
            _tell,
        )
    except IsolationUnavailable as error:
        print(error)
        return error.exit_status
    write_whole(BASE / "results" / "results.json", text)
    return 0


def write_bundle(
    course: Course, assignment: Assignment, to: Path, beside: Mapping[str, bytes]
) -> Path:
    """Write the zip to upload as the autograder of one assignment: the kit, the assignment's files,
    and two scripts.

    The kit and the course stay apart: workers may read the kit only.

    Raises:
        KitError: a file is missing that the bundle needs.
    """
    wheel, kit = kit_wheel()
    contents = {
        path.relative_to(course.root).as_posix(): path.read_bytes()
        for path in course_files(course, assignment)
    }
    contents[COURSE_FILE] = settings_without_people(course).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("setup.sh", "run_autograder"):
            archive.writestr(
                archive_entry(name, 0o755),
                render_script(_TEMPLATES / name, assignment=assignment.name),
            )
        archive.writestr(archive_entry(f"kit/{wheel}", 0o644), kit)
        for name in sorted(contents):
            archive.writestr(archive_entry(f"course/{name}", 0o644), contents[name])
    with FileTransaction(
        course.kept, f"`autograder bundle {assignment.name}`"
    ) as files:
        files.write(to, packed.getvalue())
    return to


PLATFORM = Platform(
    download=DownloadFormat(
        example="submission_123/name.ipynb",
        find_owners=find_owners,
        describes=lambda name: name == _LIST,
        tells_groups=True,
    ),
    bundles={"gradescope": Bundle(write_bundle)},
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
