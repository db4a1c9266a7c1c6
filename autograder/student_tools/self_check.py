"""Is your notebook ready to be handed in? `python check.py a2_attention.ipynb` says so.

It reads the notebook as grading does, with the same code, and says of each question and each
written answer whether it is there and where. It runs the cells as grading does: in an empty folder,
without the demos, within the course's limits, and the visible checks apart from them. It sees what
is saved: save first. It changes nothing. It needs Python 3.11 or later, and what the notebook
needs.

With `--submit` it then hands the notebook in at the course's server, and prints the result:

    python check.py a2_attention.ipynb --submit https://grading.example.org

The address need be given once. Where something is to be done first, it asks.

Ends with 0 where all is well, 1 where something is to be done, 2 where it was called wrongly.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.basics.definitions import top_level_names, used_globals
from autograder.basics.errors import UnreadableSubmission
from autograder.intake.cell_text import CellText
from autograder.intake.reading import Notebook, parse_notebook
from autograder.student_tools.course_progress import (
    course_notes,
    progress_rows,
    progress_text,
)
from autograder.student_tools.notebook_run import (
    NothingRan,
    describe_problem,
    run_steps,
)
from autograder.student_tools.release_table import (
    TABLE_SUFFIX,
    MatchedNotebook,
    load_tables,
    match_to_tables,
)
from autograder.student_tools.submit import submit

SUBMIT = "--submit"
_CONFLICT = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
_ANY_CODE = re.compile(r"^\s*[^#\s]", re.MULTILINE)


@dataclass
class Findings:
    """Remarks on a notebook: what is to be done before it is handed in, and notes that cost
    nothing.
    """

    to_do: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def main(arguments: Sequence[str], program: Path) -> int:
    """Check the one notebook that is named; returns the exit status.

    Args:
        program: the file that runs a notebook's cells when it is started with `--run-cells`:
            `check.py` itself.
    """
    named, flag, address = [*arguments, "", "", ""][:3]
    is_wrong = not named or named.startswith("-") or len(arguments) > 3
    if is_wrong or flag not in ("", SUBMIT):
        return _refuse(
            "python check.py NOTEBOOK [--submit [ADDRESS]], for instance: "
            "python check.py a2_attention.ipynb"
        )
    path = Path(named)
    if not path.is_file():
        notebooks = sorted(file.name for file in Path.cwd().glob("*.ipynb"))
        return _refuse(
            f"{path}: there is no such file. Notebooks here: {', '.join(notebooks) or 'none'}"
        )
    path = path.resolve()
    tables = load_tables([path.parent, program.parent])
    if not tables:
        return _refuse(
            f"no file *{TABLE_SUFFIX} lies beside check.py: unpack it from what you were given, "
            "next to check.py"
        )
    saved = path.stat().st_mtime
    day = datetime.datetime.fromtimestamp(saved)
    print(
        f"{path.name}, saved {day:%Y-%m-%d %H:%M} ({_ago(int(time.time() - saved))})\n"
    )
    try:
        notebook = parse_notebook(path.read_bytes(), path.name)
        matched = match_to_tables(tables, notebook, path)
    except UnreadableSubmission as problem:
        print(f"Not ready: {problem}")
        return 1
    findings = Findings()
    _check_file(path, matched, notebook, findings)
    _check_cells(matched, findings)
    findings.to_do += _names_of_checks_needed(matched)
    unwritten = _check_questions(matched, findings)
    findings.to_do += _missing_answers(matched)
    passed = _run(program, path.parent, matched, unwritten, findings)
    if matched.submission.companions:
        _print_progress(path.parent, matched, unwritten, passed)
    status = _print_findings(findings)
    if flag == SUBMIT and (status == 0 or _wants_to_go_on()):
        release, limits = matched.table.release, matched.table.limits
        return submit(path, release.assignment, address, limits)
    return status


def _wants_to_go_on() -> bool:
    """Whether the student hands in a notebook that is not ready."""
    try:
        return input("Hand it in all the same? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _refuse(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 2


def _ago(seconds: int) -> str:
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{seconds // length} {unit}{'s' * (seconds // length > 1)} ago"
    return "just now"


# reading the notebook


def _check_file(
    path: Path, matched: MatchedNotebook, notebook: Notebook, findings: Findings
) -> None:
    """Check the file's name and size, and newer copies, in which the student may have worked."""
    name = matched.table.release.assignment
    most = matched.table.limits["notebook_mb"]
    if path.name != f"{name}.ipynb":
        findings.to_do.append(
            f"the file is called {path.name}: hand it in as {name}.ipynb"
        )
    for companion, text in matched.table.release.companions.items():
        file = path.parent / companion
        if (
            file.is_file()
            and file.read_text(encoding="utf-8", errors="replace") != text
        ):
            findings.notes.append(
                f"{companion} beside the notebook is not as it was given out: grading and this "
                "check use the released one"
            )
    if path.stat().st_size > most << 20:
        findings.to_do.append(
            f"the file is larger than {most} MB: clear the outputs and save it"
        )
    copies = [path.parent / ".ipynb_checkpoints" / f"{path.stem}-checkpoint.ipynb"]
    copies += sorted(path.parent.glob(f"{name}*.ipynb"))
    for copy in copies:
        if copy.is_file() and copy.stat().st_mtime > path.stat().st_mtime:
            with contextlib.suppress(UnreadableSubmission):
                copied = parse_notebook(copy.read_bytes(), copy.name)
                if _sources(copied) != _sources(notebook):
                    findings.to_do.append(
                        f"{copy.relative_to(path.parent)} is newer than the file, and differs: "
                        f"save your work as {name}.ipynb, and remove what is not it"
                    )


def _sources(notebook: Notebook) -> list[tuple[str, str]]:
    return [(cell.kind, cell.source) for cell in notebook.cells]


def _check_cells(matched: MatchedNotebook, findings: Findings) -> None:
    """Report what the reader noticed about the cells, and lines of a merge conflict."""
    questions = {question.id for question in matched.table.release.questions}
    for notice in matched.submission.notices:
        is_missing = notice.outcome == "missing" and notice.id in questions
        remarks = findings.to_do if is_missing else findings.notes
        remarks.append(f"{notice.id}: {notice.message}")
    for cell in matched.submission.cells:
        if cell.note:
            is_in_file = cell.place == int(cell.place)
            place = matched.describe_place(cell.place) if is_in_file else cell.id
            findings.notes.append(f"{place}: {cell.note}")
    for number, handed_in in enumerate(matched.submission.handed_in):
        if _CONFLICT.search(handed_in.source):
            findings.to_do.append(
                f"{matched.describe_place(number)}: lines of a merge conflict (<<<<<<<, >>>>>>>): "
                "choose one version"
            )


def _names_of_checks_needed(matched: MatchedNotebook) -> Iterator[str]:
    """Remarks on graded cells that need names which only a check or a demo defines."""
    cells = matched.submission.cells
    if any("import *" in cell.source for cell in cells):
        return
    defined: set[str] = set()
    places: dict[str, float] = {}  # of the first cell that uses a name
    for cell in cells:
        # a cell that is no Python is reported when it runs
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            defined |= top_level_names(cell.source)
            for name in used_globals(cell.source):
                places.setdefault(name, cell.place)
    only_in_checks = matched.table.only_in_checks
    for name in sorted((places.keys() & only_in_checks.keys()) - defined):
        yield (
            f"{matched.describe_place(places[name])} needs {name}, which only "
            f"{only_in_checks[name]} defines: "
            "checks and demos do not run in grading; define it in a cell of your own"
        )


def _check_questions(matched: MatchedNotebook, findings: Findings) -> set[str]:
    """Report questions that are not answered yet; returns their names."""
    unwritten = set()
    for question in matched.table.release.questions:
        cell = matched.answer_cell(question.id)
        if cell is not None and CellText(cell.source).is_unfinished(question.text):
            unwritten.add(question.name)
            place = matched.describe_place(cell.place)
            findings.to_do.append(f"{question.name}: not written yet, in {place}")
    return unwritten


def _missing_answers(matched: MatchedNotebook) -> Iterator[str]:
    """Remarks on written answers that are not there, or not in their place."""
    answers = {answer.id: answer for answer in matched.submission.written}
    places: dict[str, int] = {}
    for number, cell in enumerate(matched.submission.handed_in):
        places.setdefault(cell.id, number)
    for prompt in matched.table.release.cells:
        if prompt.role != "written":
            continue
        answer = answers.get(prompt.id)
        elsewhere = answer.elsewhere if answer is not None else ()
        if answer is not None and not answer.blank and not elsewhere:
            continue
        if prompt.id not in places:
            problem = "its cell was not found; see that it stands below its question"
        else:
            problem = (
                f"nothing is written yet in {matched.describe_place(places[prompt.id])}"
            )
        if elsewhere:
            nearest = matched.describe_place(elsewhere[0])
            problem += f"; if your answer is {nearest}, move it there, or a person has to find it"
        yield f"written answer {prompt.name}: {problem}"


# running the notebook


def _run(
    program: Path,
    folder: Path,
    matched: MatchedNotebook,
    unwritten: set[str],
    findings: Findings,
) -> dict[str, bool]:
    """Run the graded cells and the checks; print the outcome of each check, and return which
    checks passed.
    """
    passed = ran = 0
    outcomes: dict[str, bool] = {}
    try:
        for step, reply in run_steps(program, folder, matched):
            problem = describe_problem(reply)
            printed = reply.get("printed", "")
            if step is None:
                findings.to_do += _lost_functions(matched, reply["defined"], unwritten)
                continue
            if not step.check_of:
                if problem:
                    findings.to_do.append(f"{step.title}, does not run: {problem}")
                continue
            if not _ANY_CODE.search(step.source):
                outcome = "has no visible check"
            elif printed.startswith("Skipped: ") and not problem:
                outcome = printed.strip()
            else:
                ran += 1
                passed += not problem
                outcomes[step.id] = not problem
                outcome = problem or "passes"
                if problem and step.check_of in unwritten:
                    outcome = "not written yet"
                elif problem:
                    findings.to_do.append(
                        f"{step.check_of}: its check in {step.title} does not pass"
                    )
            print(f"  {step.check_of:<28} {outcome}", flush=True)
    except NothingRan as problem:
        findings.to_do.append(f"nothing ran: {problem}")
    print(
        f"\n{passed} of {ran} visible checks pass. They are a first test: hidden tests run when "
        "it is graded.\n"
    )
    return outcomes


def _print_progress(
    folder: Path, matched: MatchedNotebook, unwritten: set[str], passed: dict[str, bool]
) -> None:
    """Print the course as a table: this notebook as it was found, others as they noted."""
    release = matched.table.release
    notes = course_notes(folder)
    entry = notes.setdefault(release.assignment, {"of": {}})
    predictions = [
        cell for cell in release.cells if cell.id.startswith("demo_predict_")
    ]
    entry["questions"] = {
        cell.name: cell.name not in unwritten for cell in release.questions
    }
    entry["checks"] = passed
    entry["of"] |= {
        "questions": len(release.questions),
        "checks": len(passed),
        "predictions": len(predictions),
    }
    print(f"{progress_text(progress_rows(notes))}\n")


def _lost_functions(
    matched: MatchedNotebook, defined: Sequence[str], unwritten: set[str]
) -> Iterator[str]:
    """Remarks on questions whose function is not defined any more after all cells have run."""
    notices = matched.submission.notices
    missing = {notice.id for notice in notices if notice.outcome == "missing"}
    for question in matched.table.release.questions:
        cell = matched.answer_cell(question.id)
        if question.id in missing or question.name in unwritten or cell is None:
            continue
        names = matched.answer_names(question)
        if names.isdisjoint(defined):
            place = matched.describe_place(cell.place)
            yield f"{question.name}: {place} does not define {' or '.join(sorted(names))} any more"


def _print_findings(findings: Findings) -> int:
    for title, remarks in (
        ("To do:", findings.to_do),
        ("Notes, which cost nothing:", findings.notes),
    ):
        if remarks:
            print("\n  - ".join([title, *remarks]) + "\n")
    print("Not ready to be handed in." if findings.to_do else "Ready to be handed in.")
    return 1 if findings.to_do else 0
