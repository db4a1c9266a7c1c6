"""GitHub: clones of students' repositories, results for GitHub Actions, and bundles that grade
there.

GitHub Classroom calls a repository `<slug>-<username>`, or `<slug>-<team>`, and where there is one
of that name already, since somebody accepts an assignment again, adds `-1`, `-2` and so on
(classroom, `app/models/concerns/nameable.rb`). The slug is the assignment's title in small
letters, in which underscores stay. `gh classroom clone` puts all clones into `<slug>-submissions`.
Forks have equal names, and differ in their owners.

A workflow runs `python -I -m autograder.platforms.github ASSIGNMENT RESULTS COURSE` after grading.
It writes the job summary, the points as outputs of a step, and as notices for GitHub Classroom.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.handed_in import printable_name
from autograder.basics.points import format_points, total
from autograder.basics.safe_text import clean, describe_test, one_line, shorten
from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course
from autograder.intake.archives import UploadedFile, notebook_stem
from autograder.intake.commits import CommitTimes
from autograder.intake.companion_files import load_companions
from autograder.intake.owners import (
    FindOwner,
    FindTime,
    Owner,
    add_times,
    file_stem,
    timestamp,
)
from autograder.intake.released_notebook import tested_points
from autograder.ledger.identity_matching import Identity
from autograder.outputs.bundle import files_below, render_script
from autograder.outputs.outcome_words import (
    WHAT_HAPPENED,
    WITHOUT_WALLS,
    cap_note,
    carried_note,
    kept_note,
    slip_hints,
)
from autograder.platforms.platform import Bundle, Download, DownloadFormat, Platform
from autograder.records.model import Graded, QuestionResult, Result
from autograder.records.results import read_results, read_timing

_ACCEPTED_AGAIN = re.compile(r"(.+)-(\d{1,3})")

_TEMPLATES = Path(__file__).parent / "templates" / "github"
LARGEST_SUMMARY = 900_000
"""Bytes; GitHub drops a step's summary of more than 1 MiB."""

LONGEST_MESSAGE = 1000

_PUNCTUATION = re.compile(r"[!-,.-/:-@\[-`{-~]|(?<![0-9A-Za-z])-")


def repository_prefix(assignment: str) -> str:
    """The text that GitHub Classroom puts before the username, where the assignment has the same
    title there.
    """
    return re.sub(r"[^a-z0-9_]+", "-", assignment.lower()).strip("-") + "-"


def find_owners(download: Download) -> FindOwner:
    """A function that tells the owner of each file in these clones, and the time of its commit."""
    notebooks = [file for file in download.files if notebook_stem(file.name)]
    prefix = repository_prefix(download.assignment)
    if not any(_repository(file, prefix) for file in notebooks):
        prefix = _shared_prefix(notebooks)
    repositories = {place for file in notebooks if (place := _repository(file, prefix))}
    _assert_several(repositories, notebooks, prefix)
    forks = _forks(repositories or _equal_folders(notebooks))
    names = {place[-1][len(prefix) :].lower() for place in repositories - forks}

    def find_owner(file: UploadedFile) -> Owner | None:
        fork = next(
            (place for place in forks if file.parts[: len(place)] == place), None
        )
        place = fork or _repository(file, prefix)
        if place is None:
            return None
        number = 0
        if fork:
            user = fork[-2]
        else:
            user, number = split_number(place[-1][len(prefix) :])
        depth = len(file.parts) - len(place)
        return Owner(
            user,
            Identity((("github", user),), (user,), user),
            file_stem(file.name),
            rank=(-float(depth), timestamp(file.modified)),
            attempt=(float(number),),
            place=place,
        )

    def split_number(name: str) -> tuple[str, int]:
        """The user of a repository, and the number that GitHub Classroom appends where the user
        accepts the assignment again.
        """
        match = _ACCEPTED_AGAIN.fullmatch(name)
        if match is None or download.is_listed_id("github", name):
            return name, 0
        user = match[1]
        if user.lower() in names or download.is_listed_id("github", user):
            return user, int(match[2])
        return name, 0

    return add_times(find_owner, _times_of_commits(download.source, download.scratch))


def _times_of_commits(source: Path, scratch: Path) -> FindTime:
    """A function that finds the time of a notebook's last commit in a folder of clones. An archive
    has no clones, since hidden folders are not unpacked.

    A student's clone is the folder that gave the student's name. A repository around all clones is
    the instructor's: its commits say when the submissions were stored.
    """
    commits = CommitTimes(scratch)

    def find_time(file: UploadedFile, owner: Owner) -> tuple[datetime | None, str]:
        clone = source.joinpath(*owner.place)
        if not owner.place or not (clone / ".git").is_dir():
            return None, ""
        return commits.last_commit(clone, "/".join(file.parts[len(owner.place) :]))

    return find_time


def _repository(file: UploadedFile, prefix: str) -> tuple[str, ...] | None:
    """The folder of the clone in which the file lies. Of several folders with the prefix the
    outermost is the clone: a student may call a folder in it as they like.
    """
    plain = prefix.replace("_", "-")
    for depth, part in enumerate(file.parts[:-1], 1):
        name = part.lower().replace("_", "-")
        if prefix and name.startswith(plain) and len(name) > len(plain):
            if name == f"{plain}submissions" and len(file.parts) - depth > 1:
                continue  # the folder that holds all clones
            return file.parts[:depth]
    return None


def _assert_several(
    repositories: set[tuple[str, ...]], notebooks: Sequence[UploadedFile], prefix: str
) -> None:
    """Make sure that the only repository is not the folder of the whole class's repositories.

    Raises:
        KitError: it has several folders that are called like repositories. A student may call
            folders so too, and nobody guesses.
    """
    if len(repositories) != 1:
        return
    (only,) = repositories
    depth = len(only)
    inner = {file.parts[depth] for file in notebooks if file.parts[:depth] == only}
    repositories_within = []
    for name in inner:
        if _repository(UploadedFile((name, "")), prefix) is not None:
            repositories_within.append(name)
    if len(repositories_within) > 1:
        raise KitError(
            f"all notebooks lie in {printable_name('/'.join(only))}, which is called like one "
            "student's repository, "
            "and holds several: name that folder itself where they are the class's clones"
        )


def _forks(places: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Repositories of equal names, in folders that are called like their owners."""
    places = {place for place in places if len(place) > 1}
    equal = Counter(place[-1].lower() for place in places)
    return {place for place in places if equal[place[-1].lower()] > 1}


def _equal_folders(notebooks: Sequence[UploadedFile]) -> set[tuple[str, ...]]:
    """Folders `<owner>/<repository>` where all repositories have one name, which does not begin
    with the assignment's.
    """
    deepest = max((len(file.parts) for file in notebooks), default=0)
    for depth in range(2, deepest):
        places = {file.parts[:depth] for file in notebooks if len(file.parts) > depth}
        names = {place[-1].lower() for place in places}
        if len(places) > 1 and len(names) == 1:
            return places
    return set()


def _shared_prefix(notebooks: Sequence[UploadedFile]) -> str:
    """The beginning that all folders' names share, up to a hyphen; "" where they share none."""
    depth = max((len(file.parts) for file in notebooks), default=1)
    for level in range(depth - 1):
        names = sorted(
            {
                file.parts[level].lower()
                for file in notebooks
                if len(file.parts) > level + 1
            }
        )
        if len(names) > 1:
            first_and_last = [name.replace("_", "-") for name in (names[0], names[-1])]
            shared = os.path.commonprefix(first_and_last)  # noqa: RUF071 - these are no paths
            return shared[: shared.rfind("-") + 1]
    return ""


def escape(text: str) -> str:
    """Make text safe in Markdown, HTML and the runner's commands: all punctuation becomes character
    references.
    """
    references = _PUNCTUATION.sub(
        lambda match: f"&#{ord(match[0])};", clean(text).strip()
    )
    return references.replace("\n", "<br>")


def job_summary(results: Sequence[Result], problems: Sequence[Graded] = ()) -> str:
    """Markdown for $GITHUB_STEP_SUMMARY: first what could not be graded, and why. Whatever does not
    fit is counted.
    """
    parts = [_problem(entry) for entry in problems]
    parts += [_summary(result) for result in results]
    text = ""
    left_out = 0
    for part in parts:
        longer = text + part
        if left_out or len(longer.encode()) > LARGEST_SUMMARY:
            left_out += 1
        else:
            text = longer
    if left_out:
        text += f"\n{left_out} more results are not shown here.\n"
    return text


def points_output(results: Sequence[Result], not_graded: float = 0.0) -> str:
    """Lines for $GITHUB_OUTPUT: `points` and `max_points`, over all results. Numbers only.

    Args:
        not_graded: the points that those without a result could have had.
    """
    points, most = _sum_points(results, not_graded)
    return f"points={points}\nmax_points={most}\n"


def classroom_notices(results: Sequence[Result], not_graded: float = 0.0) -> str:
    """The two notices from which GitHub Classroom takes the points of a run, as its own reporter
    writes them.

    The reporter (classroom-resources/autograding-grading-reporter, src/notify-classroom.js) wants
    steps of its own kind before it. Its last two lines do not: "Points 8.5/10", and the same as
    JSON with the title "Autograding report".

    Args:
        not_graded: as for `points_output`.
    """
    points, most = _sum_points(results, not_graded)
    return (
        f"::notice title=Autograding complete::Points {points}/{most}\n"
        "::notice title=Autograding report::"
        f'{{"totalPoints":{points},"maxPoints":{most}}}\n'
    )


def _sum_points(results: Sequence[Result], not_graded: float) -> tuple[str, str]:
    """Points and full points of all results, as JavaScript writes numbers: 20, not 20.0."""
    scores = [result.score for result in results]
    full_scores = [result.max_score for result in results]
    points = total(scores)
    most = total([*full_scores, not_graded])
    return format_points(points, digits=6), format_points(most, digits=6)


def _problem(entry: Graded) -> str:
    student = escape(one_line(entry.student))
    reason = escape(shorten(entry.problem, LONGEST_MESSAGE))
    return f"## Not graded\n\nStudent: <code>{student}</code>\n\n{reason}\n"


def _summary(result: Result) -> str:
    assignment = escape(one_line(result.assignment))
    student = escape(one_line(result.student))
    score = format_points(result.score)
    full = format_points(result.max_score)
    lines = [
        f"## {assignment}: {score} of {full} points",
        "",
        f"Student: <code>{student}</code>",
        "",
    ]
    if result.walls == "none":
        heading, warning = WITHOUT_WALLS
        lines += [f"**{heading}** {warning}", ""]
    lines += ["| question | points | look here first |", "| --- | ---: | --- |"]
    for question in result.questions:
        name = escape(one_line(question.name))
        score = format_points(question.score)
        full = format_points(question.max_score)
        hint = ""
        if question.diagnosis:
            hint = escape(one_line(question.diagnosis.hint))
        lines.append(f"| <code>{name}</code> | {score} / {full} | {hint} |")
    lines.append("")
    for question in result.questions:
        lines += _failures(question, result)
    return "\n".join(lines) + "\n"


def _failures(question: QuestionResult, result: Result) -> list[str]:
    failed = [test for test in question.tests if test.outcome != "passed"]
    if not failed:
        return []
    lines = [f"### {escape(one_line(question.name))}", ""]
    if note := carried_note(question, result):
        lines += [escape(note), ""]
    if kept := kept_note(question):
        lines += [kept, ""]
    if capped := cap_note(question):
        lines += [capped, ""]
    for test in failed:
        claim = escape(describe_test(test.name))
        line = f"- **{claim}** ({WHAT_HAPPENED[test.outcome]})"
        message = escape(shorten(test.message, LONGEST_MESSAGE))
        if message:
            line += f"<br><code>{message}</code>"
        for hint in slip_hints(question, test):
            line += f"<br>{escape(one_line(hint))}"
        lines.append(line)
    return [*lines, ""]


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Append the summary and the points to the files that the runner names, and print the notices
    for Classroom.
    """
    assignment, folder, course = arguments
    results = read_results(Path(folder), assignment, _tell)
    timing = read_timing(Path(folder), assignment, _tell)
    problems = [entry for entry in timing if entry.problem]
    points_each = tested_points(Assignment(assignment, Path(course)))
    missing = len(problems) * points_each
    texts = {
        "GITHUB_STEP_SUMMARY": job_summary(results, problems),
        "GITHUB_OUTPUT": points_output(results, missing),
    }
    for variable, text in texts.items():
        path = Path(os.environ[variable])
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    if results or problems:
        print(classroom_notices(results, missing), end="")
    return 0 if results else 1


def write_template(
    course: Course, assignment: Assignment, to: Path, beside: Mapping[str, bytes]
) -> Path:
    """Write the template of a classroom repository, which holds nothing hidden."""
    release = assignment.release
    if not release.is_file():
        raise KitError(
            f"{release} is not there: run `autograder build {assignment.name}` first"
        )
    given_out = [release]
    for companion in load_companions(release):
        given_out.append(release.parent / companion)
    for part in ("figures", "data"):
        given_out += files_below(release.parent / part)
    with FileTransaction(
        course.kept, f"`autograder bundle {assignment.name}`"
    ) as files:
        workflow = render_script(
            _TEMPLATES / "classroom.yml", assignment=assignment.name
        )
        files.write(to / ".github" / "workflows" / "classroom.yml", workflow)
        guide = render_script(_TEMPLATES / "GRADING.md", assignment=assignment.name)
        files.write(to / "GRADING.md", guide)
        for path in given_out:
            files.write(to / path.relative_to(release.parent), path.read_bytes())
        for name, content in beside.items():
            files.write(to / name, content)
    return to


def write_course_workflow(
    course: Course, assignment: Assignment, to: Path, beside: Mapping[str, bytes]
) -> Path:
    """Write a workflow for the course's own repository, which grades those of the students."""
    prefix = repository_prefix(assignment.name).replace("_", "-")
    path = to / ".github" / "workflows" / f"grade-{assignment.name}.yml"
    workflow = render_script(
        _TEMPLATES / "course.yml", assignment=assignment.name, prefix=prefix
    )
    write_whole(path, workflow)
    return path


PLATFORM = Platform(
    download=DownloadFormat(
        example="assignment-username/name.ipynb", find_owners=find_owners
    ),
    bundles={
        "github": Bundle(write_template, is_for_students=True, installs_wheel=True),
        "github-course": Bundle(write_course_workflow, installs_wheel=True),
    },
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
