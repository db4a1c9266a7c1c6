"""The programs of tests/long that change the engine and see whether its tests notice."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

LONG = Path(__file__).resolve().parents[1] / "long"
MODULE = '''\
LIMIT = 3
Either = int | None


def pick(numbers, least):
    """Numbers of at least `least`."""
    picked = []
    for number in numbers:
        if number >= least and number != 0:
            picked.append(number)
    return picked
'''


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of tests/long, by attribute."""
    monkeypatch.syspath_prepend(str(LONG))
    names = [
        "collected_tests",
        "engine_mutations",
        "engine_mutants",
        "forked_tests",
        "line_marks",
        "swapped_code",
    ]
    programs = ModuleType("programs")
    for name in names:
        setattr(programs, name, __import__(name))
    yield programs
    for name in [*names, "engine_coverage"]:
        sys.modules.pop(name, None)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with one room of one module, and its tests."""
    tree = tmp_path / "tree"
    room = tree / "autograder" / "room"
    room.mkdir(parents=True)
    (room / "numbers.py").write_text(MODULE, encoding="utf-8")
    return tree


def all_mutants(programs: Any, tree: Path, count: int | None = None) -> dict[str, Any]:
    sample = programs.engine_mutations.sample_mutants(
        tree / "autograder", "room", count, 1
    )
    return {mutant.name: mutant for mutant in sample}


def test_conditions_bounds_constants_statements_and_returns_change(
    programs: Any, tree: Path
) -> None:
    condition = "number >= least and number != 0"
    line = f"pick: if {condition}"
    assert all_mutants(programs, tree).keys() == {
        "module: LIMIT = 3: 3 → 4",
        "module: LIMIT = 3: 3 → 2",
        "module: LIMIT = 3: 3 → 6",
        "module: LIMIT = 3: 3 → 0",
        "pick: for number in numbers: left out",
        f"{line}: {condition} → not (number >= least and number != 0)",
        f"{line}: {condition} → False",
        f"{line}: {condition} → True",
        f"{line}: {condition} → number >= least or number != 0",
        f"{line}: {condition} → number != 0",
        f"{line}: {condition} → number >= least",
        f"{line}: number >= least → number > least",
        f"{line}: number >= least → number < least",
        f"{line}: number != 0 → number == 0",
        f"{line}: 0 → 1",
        f"{line}: 0 → -1",
        "pick: picked.append(number): left out",
        "pick: return picked: picked → None",
    }


def test_a_mutant_is_the_module_with_one_change_and_the_lines_of_its_statement(
    programs: Any, tree: Path
) -> None:
    mutants = all_mutants(programs, tree)
    mutant = mutants["pick: picked.append(number): left out"]
    assert mutant.source == MODULE.replace("picked.append(number)", "pass")
    assert (mutant.module, mutant.question, mutant.lines) == (
        "room/numbers.py",
        "room/numbers.py",
        (10,),
    )
    assert mutants["pick: for number in numbers: left out"].lines == (8,)
    assert mutants["module: LIMIT = 3: 3 → 4"].lines == ()


def test_checks_that_never_fire_have_no_mutants(programs: Any, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    text = "if TYPE_CHECKING:\n    X = int\n\ndef pair(a, b):\n    return zip(a, b, strict=True)\n"
    text += "T = TypeVar('T', covariant=True)\n"
    (room / "pairs.py").write_text(text, encoding="utf-8")
    mutants = programs.engine_mutations.sample_mutants(tmp_path, "room", None, 1)
    names = [mutant.name for mutant in mutants]
    assert names
    assert not [name for name in names if "TYPE_CHECKING" in name or "True →" in name]


def test_a_difference_that_is_turned_round_in_a_distance_is_no_mutant(
    programs: Any, tmp_path: Path
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    text = "def apart(a, b):\n    return abs(a - b) > a - b or (a - b).abs()\n"
    (room / "pairs.py").write_text(text, encoding="utf-8")
    mutants = programs.engine_mutations.sample_mutants(tmp_path, "room", None, 1)
    edited = [ast.unparse(ast.parse(mutant.source)) for mutant in mutants]
    head = "def apart(a, b):\n    return"
    assert f"{head} abs(a - b) > b - a or (a - b).abs()" in edited
    assert f"{head} abs(a + b) > a - b or (a - b).abs()" in edited
    assert f"{head} abs(b - a) > a - b or (a - b).abs()" not in edited
    assert f"{head} abs(a - b) > a - b or (b - a).abs()" not in edited


def test_what_python_does_not_compile_is_no_mutant(
    programs: Any, tmp_path: Path
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    text = """\
def count():
    number = 0
    def more():
        nonlocal number
        number += 1
    return more
"""
    (room / "counters.py").write_text(text, encoding="utf-8")
    mutants = programs.engine_mutations.sample_mutants(tmp_path, "room", None, 1)
    names = {mutant.name for mutant in mutants}
    assert "count.more: number += 1: left out" in names
    assert "count: number = 0: left out" not in names


def test_a_sample_is_the_same_for_its_seed_and_a_part_of_a_larger_one(
    programs: Any, tree: Path
) -> None:
    few, more = (list(all_mutants(programs, tree, count)) for count in (5, 9))
    assert len(few) == 5
    assert few == list(all_mutants(programs, tree, 5)) == more[:5]


def test_importers_are_those_through_others_too(programs: Any, tree: Path) -> None:
    room = tree / "autograder" / "room"
    (room / "middle.py").write_text("from autograder.room.numbers import pick\n")
    (room / "top.py").write_text("def f():\n    from autograder.room import middle\n")
    (room / "apart.py").write_text("import autograder.other\n")
    importers = programs.forked_tests.find_importers(tree)
    named = {
        name.removeprefix("autograder.room.")
        for name in importers["autograder.room.numbers"]
    }
    assert named == {"numbers", "middle", "top"}
    assert importers["autograder.room.apart"] == {"autograder.room.apart"}


def test_lines_that_run_are_marked_until_they_are_taken(
    programs: Any, tree: Path, tmp_path: Path
) -> None:
    programs.line_marks.lay_out(tree, tmp_path / "marks")
    marks = programs.line_marks.LineMarks(tmp_path / "marks")
    path = tree / "autograder/room/numbers.py"
    names: dict[str, Any] = {}
    exec(compile(MODULE, str(path), "exec"), names)
    tracer = sys.gettrace()
    marks.start()
    try:
        names["pick"]([], 1)
    finally:
        sys.settrace(tracer)
    assert marks.take() == {str(path): [5, 7, 8, 11]}
    assert marks.take() == {}


@pytest.mark.parametrize(
    ("body", "status"),
    [("pass", 0), ("assert False", 1), ("while True:\n        pass", -1)],
)
def test_tests_of_a_tree_run_in_a_fork(
    programs: Any, tree: Path, body: str, status: int
) -> None:
    (tree / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    (tree / "pytest.ini").write_text("[pytest]\n")
    seconds = 2.0 if status == -1 else 60.0
    assert programs.forked_tests.run_tests(tree, ["test_it.py"], seconds) == status


def test_the_table_counts_what_is_not_listed(programs: Any) -> None:
    """Three of four killed, and one listed."""
    result = programs.engine_mutants.MutantResult
    statuses = ["killed", "survived", "killed", "listed", "killed"]
    results = [
        result("room/a.py", str(number), status)
        for number, status in enumerate(statuses)
    ]
    assert programs.engine_mutants.score_rooms(results) == [
        {
            "room": "`room/`",
            "mutants": "4",
            "killed": "3",
            "killed, in %": "75",
            "listed with a reason": "1",
        }
    ]
    lines = [programs.engine_mutants.describe_result(each) for each in results[1:2]]
    assert lines == ["survived room/a.py 1  [no test runs it]"]


def test_quick_tests_come_first_and_then_those_of_the_own_room(
    programs: Any, tree: Path
) -> None:
    engine_coverage = sys.modules["engine_coverage"]

    def covered(*tests: tuple[str, float, list[int]]) -> Any:
        return engine_coverage.FileCoverage(
            {},
            [
                engine_coverage.TestLines(name, seconds, {"room/numbers.py": lines})
                for name, seconds, lines in tests
            ],
        )

    coverage = {
        "tests/autograder/other/test_quick.py": covered(("quick", 0.1, [10])),
        "tests/autograder/room/test_own.py": covered(
            ("slow", 5.0, [10]),
            ("fast", 0.9, [9, 10]),
            ("no", 0.1, [9]),
        ),
        "tests/autograder/room/test_first.py": covered(("first", 0.5, [10])),
    }
    trial = programs.engine_mutants.Trial(tree, None, coverage, 6.4)
    mutant = all_mutants(programs, tree)["pick: picked.append(number): left out"]
    tests = trial._tests_in_order(mutant)
    assert [test.test for test in tests] == ["first", "fast", "quick", "slow"]
    # what runs at import may be noticed by any test of these files
    constant = all_mutants(programs, tree)["module: LIMIT = 3: 3 → 4"]
    tests = trial._tests_in_order(constant)
    assert [test.test for test in tests] == ["first", "no", "fast", "quick", "slow"]
    # a file that imports from the module makes records of it, which runs no line there
    default = tree / "tests/autograder/room/test_defaults.py"
    default.parent.mkdir(parents=True, exist_ok=True)
    default.write_text("from autograder.room.numbers import LIMIT\n", encoding="utf-8")
    records = [engine_coverage.TestLines("default", 0.2, {})]
    name = default.relative_to(tree).as_posix()
    coverage[name] = engine_coverage.FileCoverage({}, records)
    tests = trial._tests_in_order(constant)
    assert [test.test for test in tests][:2] == ["default", "first"]
    assert "default" not in [test.test for test in trial._tests_in_order(mutant)]
    affordable, left = trial._affordable_tests(mutant)
    assert [test.test for test in affordable] == ["first", "fast", "quick"]
    assert left == 1


def test_a_change_within_functions_is_swapped_and_no_other(programs: Any) -> None:
    can_swap = programs.swapped_code.can_swap
    assert can_swap(MODULE, MODULE.replace(">=", ">"))
    assert can_swap(MODULE, MODULE.replace("number != 0", "number !=\\\n 0"))
    assert not can_swap(MODULE, MODULE.replace("LIMIT = 3", "LIMIT = 4"))
    assert not can_swap(MODULE, MODULE.replace("least)", "least=0)"))
    field = "class Box:\n    size = 1\n"
    assert not can_swap(field, field.replace("1", "True"))
    table = "SQUARES = [number * 2 for number in (1, 2)]\n"
    assert not can_swap(table, table.replace("* 2", "* 3"))


def test_swapped_functions_run_the_changed_text(programs: Any, tree: Path) -> None:
    path = str(tree / "autograder/room/numbers.py")
    names: dict[str, Any] = {}
    exec(compile(MODULE, path, "exec"), names)
    swapped_code = programs.swapped_code
    functions = swapped_code.loaded_functions(tree / "autograder")[path]
    assert functions == [names["pick"]]
    swapped_code.swap_code(functions, MODULE, MODULE.replace(">=", ">"))
    assert names["pick"]([0, 1, 2], 1) == [2]


SESSION = """
from autograder_room import pick

def test_right():
    assert pick([1, 2], 1) == [1, 2]

def test_wrong():
    assert pick([1], 0) == []

def test_endless():
    while True:
        pass
"""


def test_collected_tests_run_in_forks_and_tell_which_failed(
    programs: Any, tree: Path
) -> None:
    module = tree / "autograder/autograder_room.py"
    module.write_text(MODULE, encoding="utf-8")
    lines = ["import sys", f"sys.path.insert(0, {str(module.parent)!r})", SESSION]
    (tree / "test_it.py").write_text("\n".join(lines), encoding="utf-8")
    (tree / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    collected_tests = programs.collected_tests
    change = collected_tests.ModuleChange(
        "autograder_room.py", MODULE, MODULE.replace(">=", ">")
    )
    collected = collected_tests.CollectedTests(tree, ["test_it.py"])
    try:
        right, wrong, endless = collected.node_ids
        assert collected.run({right: 60.0}) == (0, right)
        assert collected.run({right: 60.0, wrong: 60.0}) == (1, wrong)
        assert collected.run({right: 60.0, wrong: 60.0}, change) == (1, right)
        assert collected.run({right: 60.0, endless: 0.5}) == (-1, endless)
    finally:
        collected.close()


def test_a_test_past_its_limit_is_left_out_and_the_next_ones_are_measured(
    programs: Any, tree: Path
) -> None:
    engine_coverage = sys.modules["engine_coverage"]
    room = tree / "autograder/room"
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(room)!r})",
        "from numbers_room import pick",
        "def test_first():\n    assert pick([], 1) == []",
        "def test_endless():\n    while True:\n        pass",
        "def test_wrong():\n    assert pick([2], 1) == []",
        "def test_last():\n    assert pick([0, 2], 1) == [2]",
    ]
    (room / "numbers_room.py").write_text(MODULE, encoding="utf-8")
    (tree / "test_it.py").write_text("\n".join(lines), encoding="utf-8")
    (tree / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    collected = programs.collected_tests.CollectedTests(tree, ["test_it.py"])
    try:
        coverage = engine_coverage._measure_file(collected, tree, "test_it.py", 1.0)
    finally:
        collected.close()
    measured = {test.test: test.lines for test in coverage.tests}
    module = "room/numbers_room.py"
    assert measured["test_it.py::test_first"][module][-3:] == [7, 8, 11]
    assert measured["test_it.py::test_last"][module][-4:] == [8, 9, 10, 11]
    assert coverage.too_long == ["test_it.py::test_endless"]
    assert coverage.not_passed == ["test_it.py::test_wrong"]


def test_what_was_ended_early_is_measured_again_under_a_longer_limit(
    programs: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine_coverage = sys.modules["engine_coverage"]
    monkeypatch.setattr(engine_coverage, "ROOT", tmp_path)
    (tmp_path / "test_it.py").write_text("one text", encoding="utf-8")
    hashes = {"test_it.py": engine_coverage._hash(tmp_path / "test_it.py")}
    coverage = engine_coverage.FileCoverage(hashes, too_long=["slow"], limit=20.0)
    assert coverage.is_current(20.0)
    assert not coverage.is_current(21.0)
    coverage.too_long = []
    assert coverage.is_current(21.0)
    (tmp_path / "test_it.py").write_text("another", encoding="utf-8")
    assert not coverage.is_current(21.0)


def test_tests_can_be_those_of_some_folders(programs: Any) -> None:
    files_of_tests = programs.engine_mutants.files_of_tests
    chosen = files_of_tests(["ledger", "records"])
    folders = {Path(name).parent.name for name in chosen}
    assert folders == {"ledger", "records"}
    assert "tests/autograder/records/test_sums.py" in chosen
    assert set(chosen) < set(files_of_tests())
    assert "tests/autograder/grading/test_killed.py" not in files_of_tests(["grading"])
    with pytest.raises(SystemExit, match="no folder tests/autograder/ledgers"):
        files_of_tests(["ledgers"])
