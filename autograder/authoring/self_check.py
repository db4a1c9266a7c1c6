"""Is your notebook ready to be handed in? `python check.py a2_attention.ipynb` says so.

It runs the notebook from top to bottom in a fresh kernel, without the demos, and says which visible checks pass. It
looks whether every question is there and answered, and whether the file is fit to hand in. It sees what is saved: save
first. It changes nothing. It needs Python with Jupyter, and what the notebook needs.

Ends with 0 where all is well, 1 where something is to be done, 2 where it was called wrongly.
"""

from __future__ import annotations

import ast
import contextlib
import datetime
import dis
import hashlib
import json
import queue
import re
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLE = ".cells.json"
"""How the file ends that says which cells an assignment has; it lies beside this program."""
SECONDS, GRACE = 120, 10
"""What one cell may take here, and what it may take to stop when it is interrupted."""
WRITTEN_STUB = "*Your answer here.*"
_STUB = re.compile(r"^[^#\n]*raise NotImplementedError\(.*write your answer here", re.MULTILINE)
_CONFLICT = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
_NOT_WRITTEN = ": not written yet"
_CODE = ("question", "given", "check", "demo")


class NotReady(Exception):
    """The file is no notebook, or no kernel can be started; the text says what to do."""


@dataclass(frozen=True)
class Cell:
    """One cell of a notebook file.

    Attributes:
        number: counted from 1.
        kind: "code", "markdown" or "raw".
        id: the cell of the release that its metadata names; "" where there is none.
        role: what its metadata says that it is for, or "".
        has_files: pictures or other files are attached to it.
    """

    number: int
    kind: str
    source: str
    id: str = ""
    role: str = ""
    has_files: bool = False

    @property
    def place(self) -> str:
        """Where it stands, for somebody who looks at the notebook: Jupyter shows no numbers."""
        first = next((line.strip() for line in self.source.split("\n") if line.strip()), "")
        return f"cell {self.number} ({first[:37] + '...' if len(first) > 40 else first})"


@dataclass(frozen=True)
class Released:
    """One cell of the release, as the table names it.

    Attributes:
        id: its name in nbgrader's metadata, or one like it.
        role: question, given, check, demo, written or text.
        name: of the question, for a question and its checks; the cell's own otherwise.
        defines: functions and classes that a question's cell defines.
        text: hash of its text.
        first_line: hash of its first line.
    """

    id: str
    role: str
    name: str
    defines: tuple[str, ...]
    text: str
    first_line: str


@dataclass(frozen=True)
class Table:
    """What the file beside this program tells of an assignment.

    Attributes:
        only_in_checks: names that only a check or a demo defines, each with that cell, in words.
    """

    assignment: str
    cells: tuple[Released, ...]
    notebook_mb: int
    only_in_checks: Mapping[str, str]


Found = Mapping[str, Sequence[Cell]]
"""The cells of the file that stand for each cell of the release, by its id, in their order; no id without one."""


@dataclass
class Findings:
    """What is to be done before handing in, and what is only said."""

    to_do: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    """Check the one notebook that is named; returns the exit status."""
    path = Path(arguments[0]) if len(arguments) == 1 else None
    if path is None or arguments[0].startswith("-"):
        return _wrong("python check.py NOTEBOOK, for instance: python check.py a2_attention.ipynb")
    if not path.is_file():
        there = sorted(other.name for other in Path.cwd().glob("*.ipynb"))
        return _wrong(f"{path}: there is no such file. Notebooks here: {', '.join(there) or 'none'}")
    tables = _tables(path)
    if not tables:
        return _wrong(f"no file *{TABLE} lies beside check.py: unpack it from what you were given, next to check.py")
    ago = int(time.time() - path.stat().st_mtime)
    print(f"{path.name}, saved {datetime.datetime.fromtimestamp(path.stat().st_mtime):%Y-%m-%d %H:%M} ({_ago(ago)})\n")
    try:
        cells = read_cells(path.read_bytes())
    except NotReady as problem:
        print(f"Not ready: {problem}")
        return 1
    table = max(tables, key=lambda each: (each.assignment == path.stem, len(match(each.cells, cells))))
    name, released = table.assignment, table.cells
    found = match(released, cells)
    if not any(each.role == "question" and each.id in found for each in released):
        print(f"Not ready: it has no question of {name}. Is it the right file?")
        return 1
    findings = Findings()
    _look_at_file(path, name, cells, table.notebook_mb, findings)
    _look_at_cells(released, found, cells, findings)
    _look_at_names(table, found, cells, findings)
    _run(path.parent, released, found, cells, findings)
    return _say(findings)


def _wrong(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 2


def _ago(seconds: int) -> str:
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{seconds // length} {unit}{'s' * (seconds // length > 1)} ago"
    return "just now"


def _tables(path: Path) -> list[Table]:
    """Every table beside this program or the notebook."""
    files = {file.name: file for folder in (path.parent, Path(__file__).parent) for file in folder.glob(f"*{TABLE}")}
    tables = []
    for file in files.values():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # it is no table of ours
            raw = json.loads(file.read_text(encoding="utf-8"))
            cells = tuple(Released(**{**cell, "defines": tuple(cell["defines"])}) for cell in raw["cells"])
            tables.append(Table(str(raw["assignment"]), cells, int(raw["notebook_mb"]), raw.get("only_in_checks", {})))
    return tables


def read_cells(data: bytes) -> tuple[Cell, ...]:
    """The cells of a notebook's bytes, of any format since 3.

    Raises:
        NotReady: it is no notebook.
    """
    again = "open it in Jupyter, save it, and check again"
    try:
        try:
            raw = json.loads(data)
        except UnicodeDecodeError:
            raw = json.loads(data.decode("cp1252", errors="replace"))
        sheets = [raw] if "cells" in raw else raw["worksheets"]
        return tuple(_cell(number, cell) for number, cell in enumerate((c for s in sheets for c in s["cells"]), 1))
    except (ValueError, RecursionError):
        if conflict := re.search(rb"^<{7} ", data, re.MULTILINE):
            line = data.count(b"\n", 0, conflict.start()) + 1
            raise NotReady(f"a merge conflict begins in line {line} (<<<<<<<): resolve it, {again}") from None
        raise NotReady(f"it is not valid JSON; {again}, or go back to an older copy") from None
    except (AttributeError, KeyError, TypeError):
        raise NotReady("it is JSON, and no notebook: it has no list of cells") from None


def _cell(number: int, raw: Mapping[str, Any]) -> Cell:
    metadata = raw.get("metadata") or {}
    kit = metadata.get("attention_kit") or {}
    text = raw.get("source", raw.get("input", ""))
    if isinstance(text, list):  # some editors leave the ends of the lines out
        text = ("" if len(text) < 2 or any("\n" in line for line in text) else "\n").join(text)
    id_ = (metadata.get("nbgrader") or {}).get("grade_id")
    if not id_ and kit.get("role") in (*_CODE, "written"):
        id_ = kit["name"] if kit["role"] == "question" else f"{kit['role']}_{kit['name']}"
    role, has_files = kit.get("role") or "", bool(raw.get("attachments"))
    return Cell(number, raw["cell_type"], text.replace("\r\n", "\n"), id_ or "", role, has_files)


def hash_of(text: str) -> str:
    """Of what a text says: empty lines, spaces at the ends of lines and the place for a written answer do not count."""
    lines = [line.rstrip() for line in text.split("\n") if line.strip() not in ("", WRITTEN_STUB)]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]


def hash_of_first_line(text: str) -> str:
    """Of the first line that is not empty: what an answer below it does not change."""
    return hash_of(next((line for line in text.split("\n") if line.strip()), ""))


def defined_in(source: str) -> frozenset[str]:
    """Functions and classes that a cell defines, whether or not it is valid Python."""
    return frozenset(re.findall(r"^(?:async +)?(?:def|class)[ \t]+(\w+)", source, re.MULTILINE))


def match(released: Sequence[Released], cells: Sequence[Cell]) -> Found:
    """Say which cell is which: by metadata, else by its text, what it defines, or its first line."""
    found: dict[str, list[Cell]] = {}
    names = {each.id for each in released}
    free = [cell for cell in cells if cell.id not in names]
    first_lines = [each.first_line for each in released if each.role != "text"]
    for each in released:
        if own := [cell for cell in cells if cell.id == each.id]:
            found[each.id] = own
            continue
        alike = [cell for cell in free if hash_of(cell.source) == each.text]
        if each.role == "text":  # locked, and of no name: whoever wrote into one has a cell of their own
            alike = [cell for cell in alike if cell.kind != "code"]
        alike = alike or [c for c in free if c.kind == "code" and defined_in(c.source) & set(each.defines)]
        if not alike and each.role != "text" and first_lines.count(each.first_line) == 1:
            alike = [cell for cell in free if hash_of_first_line(cell.source) == each.first_line]
        if alike:
            found[each.id] = alike
            free = [cell for cell in free if cell not in alike]
    return found


def _look_at_file(path: Path, name: str, cells: Sequence[Cell], limit_mb: int, findings: Findings) -> None:
    """Its name and size, and copies that may be the one that was worked in."""
    if path.name != f"{name}.ipynb":
        findings.to_do.append(f"the file is called {path.name}: hand it in as {name}.ipynb")
    if path.stat().st_size > limit_mb << 20:
        findings.to_do.append(f"the file is larger than {limit_mb} MB: clear the outputs and save it")
    copies = [path.parent / ".ipynb_checkpoints" / f"{path.stem}-checkpoint.ipynb"]
    copies += sorted(other for other in path.parent.glob(f"{name}*.ipynb") if other.name != path.name)
    own = [(cell.kind, cell.source) for cell in cells]
    for copy in copies:
        with contextlib.suppress(NotReady):
            newer = copy.is_file() and copy.stat().st_mtime > path.stat().st_mtime
            if newer and [(cell.kind, cell.source) for cell in read_cells(copy.read_bytes())] != own:
                findings.to_do.append(
                    f"{copy.relative_to(path.parent)} is newer than the file, and differs: save your work as "
                    f"{name}.ipynb, and remove what is not it"
                )


def _look_at_cells(released: Sequence[Released], found: Found, cells: Sequence[Cell], findings: Findings) -> None:
    texts = {each.id for each in released if each.role == "text"}
    unnamed = {id_ for id_, own in found.items() if own[0].id != id_} - texts
    for each in released:
        own = found.get(each.id, ())
        if each.role == "question":
            _look_at_question(each, own, cells, findings)
        elif each.role == "written":
            if not own:  # an editor that drops metadata may cut text anew
                (findings.notes if unnamed else findings.to_do).append(
                    f"written answer {each.name}: its cell was not found; see that it stands below its question"
                )
            elif all(hash_of(cell.source) == each.text and not cell.has_files for cell in own):
                _look_for_answer(each, own[0], found, cells, findings)
        elif each.role in ("given", "check"):
            if not own:
                findings.notes.append(f"{each.id}: this locked cell was deleted. Grading has its own")
            elif all(hash_of(cell.source) != each.text for cell in own):
                findings.notes.append(f"{own[0].place}: you changed this locked cell. Grading takes it as released")
    for cell in cells:
        if _CONFLICT.search(cell.source):
            findings.to_do.append(f"{cell.place}: lines of a merge conflict (<<<<<<<, >>>>>>>): choose one version")
    graded = [each for each in released if each.role not in ("demo", "text")]
    if lost := [each for each in graded if each.id in unnamed]:
        findings.notes.append(
            f"{len(lost)} of {len(graded)} cells have lost the notebook's metadata, as some editors do. They were "
            "recognised by what stands in them; grading does the same"
        )


def _look_for_answer(written: Released, prompt: Cell, found: Found, cells: Sequence[Cell], findings: Findings) -> None:
    """The prompt was left as released: is the answer in a text cell of one's own? Right below, it counts."""
    released = {cell.number for matched in found.values() for cell in matched}
    texts = [c for c in cells if c.number not in released and c.kind != "code" and (c.source.strip() or c.has_files)]
    below = next((c for c in cells if c.number > prompt.number and (c.number in released or c in texts)), None)
    if below in texts:
        return
    problem = f"written answer {written.name}: nothing is written yet in {prompt.place}"
    if texts:
        nearest = min(texts, key=lambda cell: abs(cell.number - prompt.number))
        problem += f"; if your answer is {nearest.place}, move it there, or a person has to find it"
    findings.to_do.append(problem)


def _look_at_names(table: Table, found: Found, cells: Sequence[Cell], findings: Findings) -> None:
    """Answers that need a name which only a check or a demo defines: grading does not run these cells."""
    roles = {cell.number: each.role for each in table.cells for cell in found.get(each.id, ())}
    graded = [c for c in cells if c.kind == "code" and roles.get(c.number) not in ("check", "demo")]
    if any("import *" in cell.source for cell in graded):
        return
    compiled = {cell: code for cell in graded if (code := _compiled(cell.source)) is not None}
    defined = {step.argval for code in compiled.values() for step in dis.get_instructions(code)
               if step.opname.startswith("STORE_")}  # fmt: skip
    for cell, code in compiled.items():
        for name in sorted(_globals_used(code) & table.only_in_checks.keys() - defined):
            findings.to_do.append(
                f"{cell.place} needs {name}, which only {table.only_in_checks[name]} defines: checks and demos do not "
                "run in grading; define it in a cell of your own"
            )


def _compiled(source: str) -> types.CodeType | None:
    """The cell's code, which does not run here; None for what is no plain Python."""
    with warnings.catch_warnings(), contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        warnings.simplefilter("ignore")
        code: types.CodeType = compile(source, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return code
    return None


def _globals_used(code: types.CodeType) -> frozenset[str]:
    """The names that code looks up as globals, in its functions too."""
    steps = list(dis.get_instructions(code))
    stored = {step.argval for step in steps if step.opname == "STORE_NAME"}
    read = {step.argval for step in steps if step.opname == "LOAD_NAME"} - stored
    read |= {step.argval for step in steps if step.opname.startswith("LOAD_") and step.opname.endswith("GLOBAL")}
    inner = (_globals_used(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(read).union(*inner)


def _look_at_question(question: Released, found: Sequence[Cell], cells: Sequence[Cell], findings: Findings) -> None:
    """Is it there, in a code cell, answered, once, and at its place?"""
    name = question.name
    answered = [cell for cell in cells if cell.kind == "code" and defined_in(cell.source) & set(question.defines)]
    answered = [cell for cell in answered if not _unfinished(cell, question)]
    own = [cell for cell in found if cell in answered]
    elsewhere = [cell for cell in answered if cell not in found]
    if not found:
        where = f"; the answer stands in {elsewhere[-1].place}, and is found there" if elsewhere else ""
        (findings.notes if elsewhere else findings.to_do).append(
            f"{name}: its cell is not there{where or ': copy it from the release, and answer in it'}"
        )
    elif all(cell.kind != "code" for cell in found):
        findings.to_do.append(f"{name}: {found[0].place} is no code cell any more: make it one")
    elif not own and elsewhere:
        findings.to_do.append(f"{name}: the answer stands in {elsewhere[-1].place}: move it to {found[0].place}")
    elif not own and any(_unfinished(cell, question) for cell in found):
        findings.to_do.append(f"{name}{_NOT_WRITTEN}, in {found[0].place}")
    elif not own:
        findings.to_do.append(f"{name}: {found[0].place} does not define {' or '.join(question.defines)} any more")
    elif len(own) > 1:
        findings.notes.append(f"{name}: there are {len(own)} cells for it; the last, {own[-1].place}, counts")


def _unfinished(cell: Cell, question: Released) -> bool:
    return bool(_STUB.search(cell.source)) or hash_of(cell.source) == question.text


def _run(folder: Path, released: Sequence[Released], found: Found, cells: Sequence[Cell], findings: Findings) -> None:
    """Run the code cells but demos in a fresh kernel; print how each check fared."""
    roles = {cell.number: each for each in released for cell in found.get(each.id, ()) if each.role in _CODE}
    runs = [cell for cell in cells if cell.kind == "code" and cell.source.strip()]
    runs = [cell for cell in runs if cell.number not in roles or roles[cell.number].role != "demo"]
    passed = checks = 0
    unwritten = {line.partition(_NOT_WRITTEN)[0] for line in findings.to_do if _NOT_WRITTEN in line}
    try:
        for cell, problem, skipped in _outcomes(folder, runs):
            each = roles.get(cell.number)
            if each is not None and each.role == "check":
                if skipped or not re.search(r"^\s*[^#\s]", cell.source, re.MULTILINE):
                    print(f"  {each.name:<28} {skipped or 'has no visible check'}")
                    continue
                checks += 1
                passed += not problem
                unwritten_too = problem and each.name in unwritten
                print(f"  {each.name:<28} {'not written yet' if unwritten_too else problem or 'passes'}", flush=True)
                if problem and not unwritten_too:
                    findings.to_do.append(f"{each.name}: its check in {cell.place} does not pass")
            elif problem:
                whose = f"{each.role} {each.name}" if each else "one of your own"
                findings.to_do.append(f"{cell.place}, {whose}, does not run: {problem}")
    except NotReady as problem:
        findings.to_do.append(f"nothing ran: {problem}")
    print(f"\n{passed} of {checks} visible checks pass. They are a first test: hidden tests run when it is graded.\n")


def _outcomes(folder: Path, cells: Sequence[Cell]) -> Iterator[tuple[Cell, str, str]]:
    """Each cell, what went wrong in it, and why it did nothing, as they run; ends where the kernel does."""
    try:
        from jupyter_client.kernelspec import NoSuchKernel
        from jupyter_client.manager import start_new_kernel
    except ImportError as problem:
        raise NotReady(f"{problem}. Run it with the Python in which Jupyter is, or: pip install jupyter") from None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        kernel, client = start_new_kernel(kernel_name="python3", cwd=str(folder.resolve()), **quiet)
    except NoSuchKernel:
        raise NotReady("this Python has no kernel. Run: pip install ipykernel") from None
    except RuntimeError as problem:
        raise NotReady(f"the kernel does not start: {problem}") from None
    try:
        for cell in cells:
            yield (cell, *_executed(kernel, client, cell.source))
            if not kernel.is_alive():
                return
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def _executed(kernel: Any, client: Any, source: str) -> tuple[str, str]:
    """Run one cell; its error in one line, "" where there is none, and what it printed where it was skipped.

    As kernels' checks are where there is no Triton: what they print begins with "Skipped: ".
    """
    request = client.execute(source, allow_stdin=False)
    problem = skipped = late = ""
    ends = time.monotonic() + SECONDS
    while True:
        if time.monotonic() > ends:
            if late:  # it does not let itself be interrupted
                kernel.shutdown_kernel(now=True)
                return f"{late}, and the kernel had to be ended: nothing below it ran", ""
            late, ends = f"took longer than {SECONDS} s", ends + GRACE
            kernel.interrupt_kernel()
        try:
            message = client.get_iopub_msg(timeout=0.5)
        except queue.Empty:
            if not kernel.is_alive():
                return "the kernel died in it, and nothing below it ran", ""
            continue
        kind, content = message["msg_type"], message["content"]
        if message["parent_header"].get("msg_id") != request:
            continue
        if kind == "error":
            problem = late or _in_one_line(content["ename"], content["evalue"])
        elif kind == "stream" and content["text"].startswith("Skipped: "):
            skipped = content["text"].strip()
        elif kind == "status" and content["execution_state"] == "idle":
            return problem, skipped


def _in_one_line(name: str, text: str) -> str:
    text = " ".join(text.split())
    shown = text if name == "AssertionError" and text else f"{name}: {text}"
    return shown.rstrip(": ") if len(shown) <= 160 else shown[:157] + "..."


def _say(findings: Findings) -> int:
    for title, lines in (("To do:", findings.to_do), ("Notes, which cost nothing:", findings.notes)):
        if lines:
            print("\n  - ".join([title, *lines]) + "\n")
    print("Not ready to be handed in." if findings.to_do else "Ready to be handed in.")
    return 1 if findings.to_do else 0


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a console may lack a letter
    sys.exit(main(sys.argv[1:]))
