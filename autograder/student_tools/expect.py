"""`with checking("attend"):`, the frame of a visible check, and `expect`, which stands in it.

A check that does not pass shows a box in place of a traceback: the call, the difference as a
picture, and hints that open one by one. An exception of the student's own keeps the lines of its
traceback that lie in the notebook. The exception goes on, so that whatever runs notebooks sees that
the check failed.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from autograder.student_tools.answer_differences import (
    CheckDifference,
    compare_answers,
    show,
)
from autograder.student_tools.check_box import CheckBox, running_notebook, show_html
from autograder.student_tools.course_progress import note_progress, note_totals
from autograder.student_tools.notebook_facts import FACTS, STUB
from autograder.student_tools.refusing import NotAllowed, refusing

_open_checks: list[checking] = []
_waiting_hints: list[str] = []


class NotYet(AssertionError):
    """A visible check that does not pass: its text is one sentence.

    Attributes:
        difference: what the answer differs in.
        subject: the text of what was compared.
        hints: texts for the student.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.difference: CheckDifference | None = None
        self.subject = ""
        self.hints: Sequence[str] = ()


def expect(actual: Any, expected: Any, atol: float = 1e-6, hint: Any = "") -> None:
    """Compare your answer with the expected one; where they differ, the check does not pass.

    Args:
        actual: what your function returned.
        expected: a tensor or an array (shape and dtype count too), a number, or anything that ==
            compares.
        atol: how far apart two numbers may be.
        hint: the number of the hint to show, or its text.
    """
    difference = compare_answers(actual, expected, atol)
    check = _open_checks[-1] if _open_checks else None
    if difference is None:
        if check is None:
            print("as expected")
        else:
            check.passed += 1
        return
    problem = NotYet(f"Not yet: {difference.sentence}")
    problem.difference = difference
    problem.subject = _first_argument(sys._getframe(1))
    problem.hints = _find_hints(check.question if check else "", hint)
    raise problem


def next_hint() -> None:
    """Print the next hint of the check that failed last."""
    if _waiting_hints:
        print(_waiting_hints.pop(0))
        if _waiting_hints:
            print(f"({len(_waiting_hints)} more: next_hint() again)")
    else:
        print("There is no further hint.")


class checking:  # noqa: N801  # students read it as a word: with checking("attend")
    """The frame of a visible check of one question.

    Args:
        question: the function or class that is checked.
        part: which of the question's checks this is, from 1.

    Attributes:
        passed: how many comparisons were as expected.
        call: the last call of the function, with shapes.
    """

    def __init__(self, question: str, part: int = 1) -> None:
        self.question = question
        self.passed = 0
        self.call = ""
        self._inputs: list[str] = []
        self._part = part
        self._depth = 0
        self._names: dict[str, Any] = {}
        self._answer: Any = None

    def __enter__(self) -> checking:
        self._names = sys._getframe(1).f_globals
        self._answer = self._names.get(self.question)
        if isinstance(self._answer, types.FunctionType):
            self._names[self.question] = self._watch(self._answer)
        _open_checks.append(self)
        return self

    def __exit__(
        self,
        kind: object,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        _open_checks.remove(self)
        if isinstance(self._answer, types.FunctionType):
            self._names[self.question] = self._answer
        _waiting_hints.clear()
        if error is None:
            self._show_passed()
        elif isinstance(error, Exception):
            box = self._describe(error, trace)
            _waiting_hints.extend(box.hints)
            show_html(box.html(), box.text())
        self._note(error is None)

    def _watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which notes its calls and may not call what the question rules out."""
        refused = FACTS.get("refused", {}).get(self.question, ())

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._depth == 0:
                self.call, self._inputs = _describe_call(function, args, kwargs)
            self._depth += 1
            try:
                with refusing(refused):
                    return function(*args, **kwargs)
            finally:
                self._depth -= 1

        return watched

    def _show_passed(self) -> None:
        if not self.passed:  # a check that was skipped says so itself
            return
        times = f" ({self.passed} comparisons)" if self.passed > 1 else ""
        lines = []
        if self.question in FACTS.get("harder", ()):
            lines.append(
                f"Harder inputs, as often as you like: `harder({self.question})`."
            )
        box = CheckBox("passed", f"`{self.question}`: as expected{times}", lines)
        show_html(box.html(), box.text())

    def _describe(
        self, error: Exception, trace: types.TracebackType | None
    ) -> CheckBox:
        """The box about an exception; shortens what the notebook prints of it."""
        name = f"`{self.question}`"
        if isinstance(error, NotYet):
            _shorten(error, [f"{self.question}: not yet, see the box above"])
            assert error.difference is not None
            subject = f"`{error.subject}`: " if error.subject else ""
            return CheckBox(
                "failed",
                f"{name}: not yet",
                [subject + error.difference.sentence],
                self.call,
                self._inputs,
                error.difference,
                error.hints,
            )
        if STUB in str(error):
            _shorten(error, [f"{error} (see the box above)"])
            missing = str(error).partition(STUB)[0]
            sentence = (
                "Write your answer in its cell, run the cell, and run this one again."
            )
            if missing != self.question:
                sentence = f"It needs `{missing}`, which is not written yet."
            return CheckBox("open", f"{name} is not written yet", [sentence])
        if isinstance(error, NotAllowed):
            _shorten(error, [f"{self.question}: {error}"])
            return CheckBox(
                "failed", f"{name}: not yet", [str(error)], self.call, self._inputs
            )
        if isinstance(error, NameError) and self._answer is None:
            _shorten(error, [f"NameError: {error}"])
            sentence = "Run its cell first, and the cells above it."
            return CheckBox("open", f"{name} is not defined", [sentence])
        frames = _student_frames(trace, self._names)
        _shorten(error, [*frames, f"{type(error).__name__}: {error}"])
        lines = [f"Your code raised {type(error).__name__}: {error}"]
        if frames:
            lines.append(frames[-1].strip())
        return CheckBox("failed", f"{name}: not yet", lines, self.call, self._inputs)

    def _note(self, is_right: bool) -> None:
        if running_notebook() is not None and "assignment" in FACTS:
            folder, assignment = Path.cwd(), FACTS["assignment"]
            note_totals(folder, assignment, FACTS["of"])
            key = self.question if self._part == 1 else f"{self.question} {self._part}"
            note_progress(folder, assignment, "checks", key, is_right)


def _find_hints(question: str, hint: Any) -> list[str]:
    """The hints of a number, or of a number with values for the text's places."""
    values: Sequence[Any] = ()
    if isinstance(hint, tuple):
        hint, *values = hint
    if not isinstance(hint, int):
        return [hint] if hint else []
    texts = FACTS.get("hints", {}).get(question, [])
    hints = texts[hint - 1] if 0 < hint <= len(texts) else []
    return [text.format(*values) if values else text for text in hints]


def _describe_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[str, list[str]]:
    """A call with the shapes of its arguments, and its arguments with their values."""
    try:
        arguments = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        arguments = {str(number): value for number, value in enumerate(args)} | kwargs
    shown = [_show_argument(name, value) for name, value in arguments.items()]
    inputs = []
    for name, value in arguments.items():
        text = textwrap.shorten(repr(value), 2000, placeholder=" …")
        if len(text) < 600:
            inputs.append(f"{name} = {text}")
    return f"{function.__name__}({', '.join(shown)})", inputs


def _show_argument(name: str, value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = str(value.dtype).removeprefix("torch.")
        is_usual = dtype in ("float32", "float64")
        return f"{name}{list(value.shape)}{'' if is_usual else ' ' + dtype}"
    if isinstance(value, (int, float, str, bool, type(None))):
        return f"{name}={textwrap.shorten(show(value), 60, placeholder='…')}"
    if isinstance(value, (list, tuple)) and len(repr(value)) <= 60:
        return f"{name}={value!r}"
    return (
        f"{name}={type(value).__name__}"
        if not callable(value)
        else f"{name}=a function"
    )


def _first_argument(frame: types.FrameType) -> str:
    """The text of what a line of a check compares, as far as the notebook kept it."""
    with contextlib.suppress(Exception):
        source = "".join(linecache.getlines(frame.f_code.co_filename))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and node.lineno == frame.f_lineno:
                is_expect = isinstance(node.func, ast.Name) and node.func.id == "expect"
                if is_expect and node.args:
                    text = ast.get_source_segment(source, node.args[0]) or ""
                    return text if len(text) <= 60 and "\n" not in text else ""
    return ""


def _shorten(error: Exception, lines: list[str]) -> None:
    """Let IPython print these lines in place of the exception's traceback."""
    with contextlib.suppress(AttributeError, TypeError):
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]  # IPython's hook


def _student_frames(
    trace: types.TracebackType | None, names: dict[str, Any]
) -> list[str]:
    """The lines of a traceback that lie in the notebook, without the check's own."""
    frames = []
    inner = trace.tb_next if trace else None  # the check's cell comes first
    while inner is not None:
        code = inner.tb_frame.f_code
        if inner.tb_frame.f_globals is names:
            line = linecache.getline(code.co_filename, inner.tb_lineno).strip()
            frames.append(f"  line {inner.tb_lineno}, in {code.co_name}: {line}")
        inner = inner.tb_next
    return frames
