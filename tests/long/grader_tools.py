"""The three graders of security_peers.py: how a course of each is made, handed in to, run and
read.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from grader_attacks import HIDDEN, PUBLIC, RIGHT, WORTH, GraderAttack
from peers import checked, peer_environment

REPOSITORY = Path(__file__).resolve().parents[2]
ATTACKER, NEIGHBOUR = "a-attacker", "b-neighbour"
_IMPORTS = "import math\n\nimport torch\n"


class Tool(Protocol):
    """One grader: how a course of it is made, handed in to, run and read."""

    @property
    def name(self) -> str: ...
    @property
    def own(self) -> tuple[str, ...]:
        """What it writes itself, relative to the course."""

    @property
    def words(self) -> dict[str, str]:
        """@WORD@ → path relative to the course."""

    def prepare(self, course: Path) -> None: ...
    def hand_in(
        self, course: Path, student: str, cells: dict[str, str], attack: GraderAttack
    ) -> None: ...
    def commands(self, course: Path, students: Sequence[str]) -> list[str]: ...
    def environment(self) -> dict[str, str]: ...
    def score(self, course: Path, student: str) -> float | None: ...
    def read_by_student(self, course: Path) -> dict[str, str]: ...


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def code_cell(name: str, source: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": metadata,
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def plain_notebook(cells: Sequence[dict[str, Any]]) -> str:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {
            "cells": list(cells),
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def place(path: Path, text: str, attack: GraderAttack, key: Path) -> None:
    """The notebook of a submission and what lies beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if attack.link:
        path.symlink_to(key)
    else:
        path.write_text(text, encoding="utf-8")
    for name, content in attack.beside.items():
        put(path.parent / name, content)


@dataclass(frozen=True, slots=True)
class Nbgrader:
    python: str
    name: str = "nbgrader"
    own: tuple[str, ...] = ("gradebook.db", "autograded", "feedback", ".nbgrader.log")

    @property
    def words(self) -> dict[str, str]:
        source = "source/questions/questions.ipynb"
        return {
            "TESTS": source,
            "KEY": source,
            "GRADEBOOK": "gradebook.db",
            "OTHER": f"submitted/{NEIGHBOUR}/questions/questions.ipynb",
            "RESULT": f"feedback/{ATTACKER}/questions/questions.html",
        }

    def environment(self) -> dict[str, str]:
        return _peer(self.python)

    def prepare(self, course: Path) -> None:
        key = {name: f"{text}# CANARY-KEY\n" for name, text in RIGHT.items()}
        hidden = {
            name: "\n".join([PUBLIC[name], *_marked(tests)])
            for name, tests in HIDDEN.items()
        }
        put(course / "source/questions/questions.ipynb", self._notebook(key, hidden))
        for words in (
            "generate_assignment questions --create",
            "db student add c-earlier --first-name CANARY-GRADEBOOK",
        ):
            checked(
                [self.python, "-m", "nbgrader", *words.split()],
                cwd=course,
                env=self.environment(),
            )

    def _notebook(
        self, cells: dict[str, str], checks: dict[str, str], factor: int = 1
    ) -> str:
        def mark(name: str, **more: Any) -> dict[str, Any]:
            return {
                "nbgrader": {
                    "grade_id": name,
                    "schema_version": 3,
                    "task": False,
                    **more,
                }
            }

        made = [code_cell("imports", _IMPORTS, {})]
        for name, text in cells.items():
            made.append(
                code_cell(
                    name, text, mark(name, grade=False, solution=True, locked=False)
                )
            )
            graded = mark(
                f"check-{name}",
                grade=True,
                solution=False,
                locked=True,
                points=worth(name) * factor,
            )
            made.append(code_cell(f"check-{name}", checks[name], graded))
        return plain_notebook(made)

    def hand_in(
        self, course: Path, student: str, cells: dict[str, str], attack: GraderAttack
    ) -> None:
        checks, factor = (
            (dict.fromkeys(PUBLIC, "pass"), 100) if attack.edits_checks else (PUBLIC, 1)
        )
        path = course / f"submitted/{student}/questions/questions.ipynb"
        place(
            path,
            self._notebook(cells, checks, factor),
            attack,
            course / self.words["KEY"],
        )

    def commands(self, course: Path, students: Sequence[str]) -> list[str]:
        start = f"{self.python} -m nbgrader"
        return [
            f"{start} autograde questions --create",
            f"{start} generate_feedback questions",
        ]

    def score(self, course: Path, student: str) -> float | None:
        with contextlib.closing(sqlite3.connect(course / "gradebook.db")) as book:
            rows = book.execute(
                "select auto_score, manual_score from grade join submitted_notebook on "
                "submitted_notebook.id = "
                "grade.notebook_id join submitted_assignment on submitted_assignment.id = "
                "submitted_notebook.assignment_id where submitted_assignment.student_id = ?",
                (student,),
            ).fetchall()
        given = [auto if manual is None else manual for auto, manual in rows]
        return (
            sum(points or 0.0 for points in given)
            if any(points is not None for points in given)
            else None
        )

    def read_by_student(self, course: Path) -> dict[str, str]:
        return texts_under(course / "feedback" / ATTACKER)


@dataclass(frozen=True, slots=True)
class Otter:
    python: str
    name: str = "otter-grader"
    own: tuple[str, ...] = ("out",)

    @property
    def words(self) -> dict[str, str]:
        # the submission runs in a folder in which otter has laid the tests
        return {
            "TESTS": "",
            "KEY": "key.ipynb",
            "GRADEBOOK": "grades.csv",
            "OTHER": f"submitted/{NEIGHBOUR}.ipynb",
            "RESULT": f"out/{ATTACKER}/results.json",
        }

    def environment(self) -> dict[str, str]:
        return _peer(self.python)

    def prepare(self, course: Path) -> None:
        key = [
            code_cell(name, f"{text}# CANARY-KEY\n", {}) for name, text in RIGHT.items()
        ]
        put(
            course / "key.ipynb",
            plain_notebook([code_cell("imports", _IMPORTS, {}), *key]),
        )
        put(course / "grades.csv", "student,score\nc-earlier,CANARY-GRADEBOOK\n")
        with zipfile.ZipFile(course / "autograder.zip", "w") as bundle:
            bundle.writestr(
                "otter_config.json", '{"show_stdout": false, "show_hidden": false}'
            )
            for name in RIGHT:
                bundle.writestr(f"tests/{name}.py", self._test_file(name))

    def _test_file(self, question: str) -> str:
        cases = [
            f"@test_case(points=0)\ndef test_public(env):\n{self._body(question, PUBLIC[question])}"
        ]
        cases += [
            f"@test_case(points={WORTH}, hidden=True)\ndef "
            f"test_{n}(env):\n{self._body(question, test)}"
            for n, test in enumerate(HIDDEN[question])
        ]
        head = (
            "# CANARY-TESTS\nimport torch\nfrom otter.test_files import "
            "test_case\n\nOK_FORMAT = False\n"
        )
        return f'{head}name = "{question}"\npoints = None\n\n' + "\n\n".join(cases)

    def _body(self, question: str, test: str) -> str:
        return f"    {question} = env['{question}']\n{indented(test)}"

    def hand_in(
        self, course: Path, student: str, cells: dict[str, str], attack: GraderAttack
    ) -> None:
        text = plain_notebook(
            [
                code_cell("imports", _IMPORTS, {}),
                *(code_cell(n, t, {}) for n, t in cells.items()),
            ]
        )
        place(course / f"submitted/{student}.ipynb", text, attack, course / "key.ipynb")
        (course / "out" / student).mkdir(parents=True)

    def commands(self, course: Path, students: Sequence[str]) -> list[str]:
        start = f"{self.python} -m otter run --no-logo -a autograder.zip"
        return [
            f"{start} -o out/{student} submitted/{student}.ipynb"
            for student in students
        ]

    def score(self, course: Path, student: str) -> float | None:
        path = course / "out" / student / "results.json"
        if not path.is_file():
            return None
        tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
        return (
            sum(test["score"] for test in tests if "score" in test)
            if any("score" in t for t in tests)
            else None
        )

    def read_by_student(self, course: Path) -> dict[str, str]:
        path = course / "out" / ATTACKER / "results.json"
        result = (
            json.loads(path.read_text(encoding="utf-8"))
            if path.is_file()
            else {"tests": []}
        )
        shown = [test for test in result["tests"] if test.get("visibility") != "hidden"]
        return {"results.json": json.dumps([result.get("output", ""), shown])}


@dataclass(frozen=True, slots=True)
class Kit:
    name: str = "this kit"
    own: tuple[str, ...] = ("results", "feedback", ".autograder")

    @property
    def words(self) -> dict[str, str]:
        return {
            "TESTS": "tests/hidden/questions/test_softmax.py",
            "KEY": "solutions/questions/questions.ipynb",
            "GRADEBOOK": "gradebook.db",
            "OTHER": f"submitted/{NEIGHBOUR}/questions/questions.ipynb",
            "RESULT": f"results/questions/{ATTACKER}.json",
        }

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}

    def prepare(self, course: Path) -> None:
        cells = [
            "# ---\n# jupyter:\n#   jupytext:\n#     text_representation:\n#       format_name: "
            "percent\n# ---\n"
        ]
        cells.append(f'# %% given="imports"\n{_IMPORTS}')
        for name, answer in RIGHT.items():
            head, _, body = answer.partition("\n")
            solution = f"    ### BEGIN SOLUTION\n    # CANARY-KEY\n{body}    ### END SOLUTION\n"
            cells.append(
                f'# %% question="{name}"\n{head}\n    """{name}."""\n{solution}'
            )
            cells.append(f'# %% check="{name}"\n{PUBLIC[name]}\n')
            tests = [
                f"@points({WORTH})\ndef test_{n}(student):\n    {name} = "
                f"student.{name}\n{indented(test)}"
                for n, test in enumerate(HIDDEN[name])
            ]
            suite = (
                "# CANARY-TESTS\nimport torch\n\nfrom autograder.suite import points\n\n\n"
                + "\n\n".join(tests)
            )
            put(course / f"tests/hidden/questions/test_{name}.py", suite)
        put(course / "source/questions/questions.py", "\n".join(cells))
        put(
            course / "course.toml",
            '[course]\nname = "Two questions"\n[totals]\nassignment_points = 0\n',
        )
        put(course / "gradebook.db", "CANARY-GRADEBOOK")
        shutil.copy(
            REPOSITORY / "tests/hidden/pytest.ini", course / "tests/hidden/pytest.ini"
        )
        command = [sys.executable, "-m", "autograder", "build", "questions"]
        checked(command, cwd=course, env=self.environment())

    def hand_in(
        self, course: Path, student: str, cells: dict[str, str], attack: GraderAttack
    ) -> None:
        notebook = json.loads(
            (course / "assignments/questions/questions.ipynb").read_text(
                encoding="utf-8"
            )
        )
        for cell in notebook["cells"]:
            tag = cell["metadata"].get("attention_kit", {})
            if tag.get("role") == "question":
                cell["source"] = cells[tag["name"]]
            if tag.get("role") == "check" and attack.edits_checks:
                cell["source"] = "pass"
                cell["metadata"]["nbgrader"]["points"] = 100.0 * worth(tag["name"])
        path = course / f"submitted/{student}/questions/questions.ipynb"
        place(path, json.dumps(notebook), attack, course / self.words["KEY"])

    def commands(self, course: Path, students: Sequence[str]) -> list[str]:
        start = f"{sys.executable} -m autograder"
        return [
            f"{start} grade questions --isolation strict --workers 1",
            f"{start} report questions",
        ]

    def score(self, course: Path, student: str) -> float | None:
        path = course / f"results/questions/{student}.json"
        return (
            float(json.loads(path.read_text(encoding="utf-8"))["score"])
            if path.is_file()
            else None
        )

    def read_by_student(self, course: Path) -> dict[str, str]:
        """The page, and the result that it is made from."""
        found = texts_under(course / "feedback" / ATTACKER)
        path = course / f"results/questions/{ATTACKER}.json"
        return {
            **found,
            **({path.name: path.read_text(encoding="utf-8")} if path.is_file() else {}),
        }


def worth(question: str) -> int:
    return WORTH * len(HIDDEN[question])


def texts_under(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path): path.read_text(encoding="utf-8", errors="replace") for path in files
    }


def _marked(tests: Sequence[str]) -> list[str]:
    return ["### BEGIN HIDDEN TESTS", "# CANARY-TESTS", *tests, "### END HIDDEN TESTS"]


def _peer(python: str) -> dict[str, str]:
    """A peer's environment. Templates and kernels lie where its packages do, which may be a venv
    under its own.
    """
    code = (
        "import nbconvert, pathlib; print(pathlib.Path(nbconvert.__file__).parents[4] / 'share' "
        "/ 'jupyter')"
    )
    share = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {**peer_environment(python), "JUPYTER_PATH": share}
