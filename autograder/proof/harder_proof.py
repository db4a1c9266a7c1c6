"""Proves the harder inputs of a notebook: the answer key and other right answers pass, with several
seeds; and counts the known mistakes that they catch beyond the visible checks.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from autograder.authoring.harder_source import HARDER_FILE, read_harder
from autograder.authoring.source_notebook import read_source
from autograder.basics.errors import KitError
from autograder.basics.python_files import run_python_file
from autograder.course import Assignment, Course
from autograder.diagnosis.answer_key import AnswerKey
from autograder.intake.built_json import read_built_json
from autograder.intake.released_notebook import load_release
from autograder.sandbox.bounds import OutOfTime, time_bound
from autograder.sitting.reference import load_reference, run_cell
from autograder.suite.known_answers import KnownAnswer

MOST_CALLS = 20
_FEW_CALLS = 2
_SECONDS_OF_RIGHT = 20.0
_SECONDS_OF_MISTAKE = 12.0


class _SearchTooLong(BaseException):  # the search, and answers, catch every Exception
    """A search takes longer than it may."""


@dataclass(slots=True)
class HarderFigures:
    """What harder inputs are worth for one assignment.

    Attributes:
        questions: those that have them, of how many.
        right: how often a right answer passed.
        caught, mistakes: known mistakes caught, and all.
        hidden_caught, hidden: of these, the ones that the visible check lets through.
        missed: names of mistakes that neither catches.
        problems: right answers that are refused.
    """

    assignment: str
    questions: int = 0
    all_questions: int = 0
    right: int = 0
    caught: int = 0
    mistakes: int = 0
    hidden_caught: int = 0
    hidden: int = 0
    missed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        share = self.hidden_caught / self.hidden if self.hidden else 1.0
        return (
            f"{self.assignment}: harder inputs for {self.questions} of {self.all_questions} "
            f"questions; right answers passed {self.right} times; {self.caught} of "
            f"{self.mistakes} mistakes caught, and {self.hidden_caught} of {self.hidden} "
            f"({share:.0%}) that the visible check lets through"
        )


class HarderProof:
    """Puts known answers in front of the harder inputs of one assignment, in this process.

    Args:
        most_calls: how many calls are drawn for an answer.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        most_calls: int,
    ) -> None:
        self._most_calls = most_calls
        questions = read_source(assignment).questions
        harder = read_harder(assignment, questions)
        if harder is None:
            raise KitError(
                f"{assignment.name}: there is no {HARDER_FILE} beside the source"
            )
        self._questions = harder.questions
        self._key = AnswerKey(
            assignment,
            load_release(assignment),
            course.limits,
        )
        self._names = load_reference(assignment)
        self._checks = dict(_visible_checks(assignment))
        self._part = _load_part(assignment)
        self.figures = HarderFigures(
            assignment.name,
            questions=len(harder.questions),
            all_questions=len(questions),
        )

    def prove_right_answers(
        self,
        seeds: Sequence[int],
        question: str = "",
    ) -> None:
        """The answer key and every alternate pass with each seed."""
        answers = self._asked_for(self._key.known_answers("alternates.py"), question)
        for seed in seeds:
            for name in self._questions:
                if question in ("", name):
                    self._prove(
                        name,
                        "answer key",
                        self._names,
                        seed,
                    )
            for answer in answers:
                names = self._with_answer(answer)
                self._prove(
                    answer.question,
                    answer.name,
                    names,
                    seed,
                )

    def _prove(
        self,
        question: str,
        title: str,
        names: Mapping[str, Any],
        seed: int,
    ) -> None:
        failure = self._failure(
            question,
            names,
            seed,
            _SECONDS_OF_RIGHT,
            makes_smaller=True,
        )
        if failure is None:
            self.figures.right += 1
            return
        self.figures.problems.append(
            f"{question}: {title}, seed {seed}: {failure.sentence} {failure.problem} "
            f"{failure.title}"
        )

    def try_mistakes(
        self,
        seed: int,
        question: str = "",
    ) -> None:
        """Count the known mistakes that are caught."""
        self._checks_run: dict[str, dict[str, Any]] = {}
        for answer in self._asked_for(self._key.known_answers("mistakes.py"), question):
            names = self._with_answer(answer)
            passes_visible = self._passes_checks(answer.question, names)
            seconds = _SECONDS_OF_MISTAKE
            failure = self._failure(
                answer.question,
                names,
                seed,
                seconds,
                makes_smaller=False,
            )
            is_caught = failure is not None
            self.figures.mistakes += 1
            self.figures.caught += is_caught
            self.figures.hidden += passes_visible
            self.figures.hidden_caught += passes_visible and is_caught
            if passes_visible and not is_caught:
                self.figures.missed.append(f"{answer.question}: {answer.name}")

    def _asked_for(
        self,
        answers: Sequence[KnownAnswer],
        question: str,
    ) -> list[KnownAnswer]:
        return [
            answer
            for answer in answers
            if answer.question in self._questions
            and question in ("", answer.question)
            and not answer.is_students
        ]

    def _with_answer(self, answer: KnownAnswer) -> dict[str, Any]:
        """The answer key's names, with a known answer in the place of its own."""
        names = dict(self._names)
        run_cell(answer.cell, f"<{answer.name}>", names)
        return names

    def _failure(
        self,
        question: str,
        names: Mapping[str, Any],
        seed: int,
        seconds: float,
        *,
        makes_smaller: bool,
    ) -> Any:
        try:
            with (
                time_bound(seconds + 1, _SearchTooLong),
                contextlib.redirect_stdout(io.StringIO()),
            ):
                search = self._part.HarderSearch(
                    question,
                    names,
                    seed,
                    seconds,
                    self._most_calls,
                )
                return search.run(makes_smaller=makes_smaller).failure
        except _SearchTooLong:
            return self._part.HarderFailure(
                "It answers in time.", "It does not.", "", []
            )

    def _passes_checks(
        self,
        question: str,
        names: dict[str, Any],
    ) -> bool:
        """Whether an answer passes the visible checks of its question."""
        mine = dict(self._checks_names(question))
        mine.update(
            {name: value for name, value in names.items() if name not in self._names}
        )
        mine[question] = names.get(question, mine.get(question))
        try:
            with time_bound(20), contextlib.redirect_stdout(io.StringIO()):
                for text in self._checks.get(question, ()):
                    run_cell(text, f"<check of {question}>", mine)
        except OutOfTime:
            return False
        except Exception:  # whatever a wrong answer raises
            return False
        return True

    def _checks_names(self, question: str) -> dict[str, Any]:
        """The names that a question's checks may use: those of the checks before it too."""
        if not self._checks_run:
            names = dict(self._names)
            for name, texts in self._checks.items():
                self._checks_run[name] = dict(names)
                for text in texts:
                    with contextlib.redirect_stdout(io.StringIO()):
                        run_cell(text, f"<check of {name}>", names)
        return self._checks_run.get(question, self._names)


def _visible_checks(assignment: Assignment) -> Iterator[tuple[str, list[str]]]:
    """The texts of the visible checks of each question, in the order of the notebook."""
    checks: dict[str, list[str]] = {}
    for cell in read_built_json(assignment.solution)["cells"]:
        kit = cell["metadata"].get("attention_kit", {})
        if kit.get("role") == "check":
            checks.setdefault(kit["name"], []).append("".join(cell["source"]))
    yield from checks.items()


def _load_part(assignment: Assignment) -> ModuleType:
    """The companion with the harder inputs, as a module."""
    (path,) = assignment.solution.parent.glob("*_harder.py")
    return run_python_file(path, path.stem, is_registered=True)


def prove_harder(
    course: Course,
    names: Sequence[str],
    seeds: int,
    question: str = "",
) -> list[HarderFigures]:
    """Prove the harder inputs of the named assignments, or of all that have some."""
    named = [course.assignment(name) for name in dict.fromkeys(names)]
    assignments = named or [
        one for one in course.assignments() if has_harder_inputs(one)
    ]
    proven = []
    for assignment in assignments:
        proof = HarderProof(
            course,
            assignment,
            MOST_CALLS,
        )
        proof.prove_right_answers(range(1, seeds + 1), question)
        proof.try_mistakes(1, question)
        proven.append(proof.figures)
    return proven


def has_harder_inputs(assignment: Assignment) -> bool:
    """Whether an author wrote harder inputs for an assignment."""
    return (assignment.source.parent / HARDER_FILE).is_file()


def refused_right_answers(
    course: Course,
    assignment: Assignment,
    question: str,
) -> list[str]:
    """The answer keys and alternates that a few harder inputs refuse, a sentence each."""
    if not has_harder_inputs(assignment):
        return []
    proof = HarderProof(
        course,
        assignment,
        _FEW_CALLS,
    )
    proof.prove_right_answers([1], question)
    return [f"harder inputs: {problem}" for problem in proof.figures.problems]
