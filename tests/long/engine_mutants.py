"""Mutants of the engine: do its own tests notice a changed condition, bound, constant or return?

    python tests/long/engine_mutants.py [--rooms grading,sandbox] [--sample 40] [--seed 1]
    python tests/long/engine_mutants.py --survivors    # after a change: those that survived, again
    python tests/long/engine_mutants.py --rooms intake --tests intake --budget 20    # in minutes

The first run measures which lines each test runs; `--tests` names the folders of tests/autograder
whose tests take part, all for none. A test that takes twice the budget is left out. A mutant meets
the tests that run its line, the quick ones first; it stands in a copy of this tree, and in the
place of the functions of a process that has collected all tests. Survivors that no test can kill
stand with a reason in `engine_equivalent.toml`.

mutmut 3.8 and cosmic-ray 8.7 were looked at for this. mutmut names the mutant in the environment,
which hosts and workers do not get, and leaves out what stands outside of functions; cosmic-ray
changes the tree itself and runs one whole command of tests a mutant.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from collected_tests import CollectedTests, ModuleChange
from engine_coverage import MOST_SECONDS, FileCoverage, TestLines, measure_coverage
from engine_mutations import EngineMutant, sample_mutants
from forked_tests import (
    ROOT,
    TIMED_OUT,
    copy_tree,
    find_importers,
    forget_modules,
    load_kit,
    load_libraries,
    run_tests,
)
from swapped_code import can_swap

from autograder.proof.equivalent import Equivalent, load_equivalent
from autograder.proof.proof_report import markdown_table

ROOMS = (
    "grading",
    "sandbox",
    "intake",
    "outputs",
    "sitting",
    "marks",
    "records",
    "nbgrader",
    "cluster",
    "ledger",
    "platforms",
    "reporting",
    "server",
)
RESULTS = ROOT / "build" / "engine_mutants.json"
EQUIVALENT = "engine_equivalent.toml"
KILLED = "killed"
SURVIVED = "survived"
LISTED = "listed"
_FOLDERS_APART = ("content",)
"""Tests of the assignments: they say nothing about the engine that its own do not."""
_FILES_APART = (
    "test_fault_runs.py",
    "test_killed.py",
    "test_postgresql.py",
    "test_workflows.py",
)
"""Tests that take minutes, or need a server."""
_QUICK = 1.0
"""Seconds: tests that take less go before all others."""
_LEEWAY = 2.0
"""How much longer than a mutant's budget a test may take while its lines are measured."""
BEGIN, END = "<!-- begin of the engine -->", "<!-- end of the engine -->"


@dataclass(frozen=True, slots=True)
class MutantResult:
    """What became of a mutant.

    Attributes:
        status: KILLED, SURVIVED or LISTED, which is a survivor with a reason.
        killer: the test that failed, or its file; "" for a survivor.
        in_time: False where the killer ran past its limit.
        tests: how many tests the mutant was to meet.
        tests_left: how many more run its line, which the budget left out.
    """

    module: str
    name: str
    status: str
    killer: str = ""
    in_time: bool = True
    tests: int = 0
    tests_left: int = 0

    @property
    def room(self) -> str:
        return self.module.partition("/")[0]


class Trial:
    """The copied tree in which mutants meet tests.

    Attributes:
        budget: seconds of tests that a mutant meets at most.
    """

    def __init__(
        self,
        tree: Path,
        collected: CollectedTests,
        coverage: dict[str, FileCoverage],
        budget: float,
    ) -> None:
        self.tree = tree
        self.collected = collected
        self.coverage = coverage
        self.budget = budget
        self.equivalent = load_equivalent(Path(__file__).parent, EQUIVALENT)
        self.importers = find_importers(tree)
        self._is_sound: dict[str, bool] = {}

    def judge(self, mutant: EngineMutant) -> MutantResult:
        """Run the tests that run the mutant's line, until one fails."""
        if is_listed(mutant, self.equivalent):
            return MutantResult(mutant.module, mutant.name, LISTED)
        path = self.tree / "autograder" / mutant.module
        original = path.read_text(encoding="utf-8")
        tests, left = self._affordable_tests(mutant)
        path.write_text(mutant.source, encoding="utf-8")
        try:
            if can_swap(original, mutant.source):
                change = ModuleChange(mutant.module, original, mutant.source)
                killer, in_time = self._find_killer(mutant, change, tests)
            else:
                killer, in_time = self._find_killer_by_import(mutant, tests)
        finally:
            path.write_text(original, encoding="utf-8")
        status = KILLED if killer else SURVIVED
        return MutantResult(
            mutant.module, mutant.name, status, killer, in_time, len(tests), left
        )

    def _find_killer(
        self, mutant: EngineMutant, change: ModuleChange, tests: list[TestLines]
    ) -> tuple[str, bool]:
        """The first test that fails with a change, and whether that was in time."""
        limits = {test.test: 5.0 + 3.0 * (test.seconds + test.shared) for test in tests}
        while limits:
            status, last = self.collected.run(limits, change)
            if status == 0:
                break
            if not last:  # no function of the module was loaded
                return self._find_killer_by_import(mutant, tests)
            names = list(limits)
            later = names[names.index(last) + 1 :]
            if status == TIMED_OUT:  # a busy machine, or a loop without end
                limit = 2.0 * limits[last]
                status, _ = self.collected.run({last: limit}, change)
            if status != 0 and self._passes_without(change, last):
                return last, status != TIMED_OUT
            limits = {name: limits[name] for name in later}
        return "", True

    def _passes_without(self, change: ModuleChange, test: str) -> bool:
        """Whether a test passes alone, without the change."""
        if test not in self._is_sound:
            path = self.tree / "autograder" / change.module
            path.write_text(change.original, encoding="utf-8")
            status, _ = self.collected.run({test: MOST_SECONDS})
            path.write_text(change.changed, encoding="utf-8")
            self._is_sound[test] = status == 0
            if status != 0:
                print(f"{test} fails without a mutant", flush=True)
        return self._is_sound[test]

    def _find_killer_by_import(
        self, mutant: EngineMutant, tests: list[TestLines]
    ) -> tuple[str, bool]:
        """As `_find_killer`, for what runs when the module is imported. Slower: file by file."""
        name = mutant.module.removesuffix(".py").removesuffix("/__init__")
        outdated = self.importers["autograder." + name.replace("/", ".")]

        def prepare() -> list[object]:
            forget_modules(outdated)
            return []

        by_file = defaultdict(list)
        for test in tests:
            by_file[test.test.partition("::")[0]].append(test)
        for file, file_tests in by_file.items():
            names = [test.test for test in file_tests]
            seconds = sum(test.seconds for test in file_tests)
            limit = 20.0 + 5.0 * seconds
            status = run_tests(self.tree, names, limit, prepare)
            if status == TIMED_OUT:
                status = run_tests(self.tree, names, 3.0 * limit, prepare)
            if status != 0:
                return file, status != TIMED_OUT
        return "", True

    def _affordable_tests(self, mutant: EngineMutant) -> tuple[list[TestLines], int]:
        """The tests of `_tests_in_order` within the budget, and how many there are beside them."""
        tests = self._tests_in_order(mutant)
        affordable = []
        prepared = set()
        spent = 0.0
        for test in tests:
            file = test.test.partition("::")[0]
            seconds = test.seconds
            if test.shared and file not in prepared:
                seconds += test.shared
            if spent + seconds <= self.budget:
                spent += seconds
                affordable.append(test)
                prepared.add(file)
        return affordable, len(tests) - len(affordable)

    def _tests_in_order(self, mutant: EngineMutant) -> list[TestLines]:
        """Tests that run the mutant's line: quick ones first, of these the own room's; those of a
        file beside each other, since they share fixtures.
        """
        room = mutant.module.partition("/")[0]
        tests = []
        for name, coverage in self.coverage.items():
            is_elsewhere = Path(name).parent.name != room
            is_named = self._names_module(self.tree / name, mutant.module)
            for test in _tests_that_run(mutant, coverage.tests, is_named=is_named):
                is_slow = test.seconds + test.shared >= _QUICK
                key = (is_slow, is_elsewhere, name, test.seconds, test.test)
                tests.append((key, test))
        tests.sort(key=lambda pair: pair[0])
        return [test for _, test in tests]

    @staticmethod
    def _names_module(path: Path, module: str) -> bool:
        """Whether a test file imports from a module of the engine."""
        name = module.removesuffix(".py").replace("/", ".")
        return path.is_file() and f"autograder.{name} " in path.read_text("utf-8")


def _tests_that_run(
    mutant: EngineMutant, tests: Sequence[TestLines], *, is_named: bool
) -> list[TestLines]:
    """Which tests of a file may notice a mutant.

    What stands outside of functions, such as a field's default, runs at import: then all tests of
    the file, where one of them runs a line of the module, or where the file imports from it: to
    make a record runs none of its lines.

    Args:
        is_named: whether the file imports from the mutant's module.
    """
    lines = set(mutant.lines)
    if lines:
        return [
            test
            for test in tests
            if not lines.isdisjoint(test.lines.get(mutant.module, ()))
        ]
    is_run = any(mutant.module in test.lines for test in tests)
    return list(tests) if is_run or is_named else []


def is_listed(mutant: EngineMutant, equivalent: Iterable[Equivalent]) -> bool:
    """Whether a reason is written down why no test kills the mutant."""
    return any(entry.matches(mutant) for entry in equivalent)


def describe_result(result: MutantResult) -> str:
    """One line: the status, the mutant, and what met it."""
    if result.killer:
        limit = "" if result.in_time else ", past its limit of time"
        met = f"{result.killer}{limit}"
    elif result.status == LISTED:
        met = f"see {EQUIVALENT}"
    elif not result.tests and not result.tests_left:
        met = "no test runs it"
    else:
        met = f"{result.tests} tests, {result.tests_left} left out"
    return f"{result.status:8} {result.module} {result.name}  [{met}]"


def score_rooms(results: Iterable[MutantResult]) -> list[dict[str, str]]:
    """A row of the table for each room."""
    by_room = defaultdict(list)
    for result in results:
        by_room[result.room].append(result.status)
    rows = []
    for room in sorted(by_room):
        statuses = by_room[room]
        killed, listed = statuses.count(KILLED), statuses.count(LISTED)
        tried = len(statuses) - listed
        rows.append(
            {
                "room": f"`{room}/`",
                "mutants": str(tried),
                "killed": str(killed),
                "killed, in %": f"{100 * killed / tried:.0f}" if tried else "",
                "listed with a reason": str(listed),
            }
        )
    return rows


def load_results() -> list[MutantResult]:
    """The results of the last runs, of all rooms."""
    if not RESULTS.exists():
        return []
    return [
        MutantResult(**entry)
        for entry in json.loads(RESULTS.read_text(encoding="utf-8"))
    ]


def store_results(results: Iterable[MutantResult]) -> None:
    """Add results to those of other mutants."""
    stored = {(result.module, result.name): result for result in load_results()}
    stored |= {(result.module, result.name): result for result in results}
    text = json.dumps([asdict(stored[key]) for key in sorted(stored)], indent=1)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def write_report(page: Path) -> None:
    """Put the table between its two marks in a page."""
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    table = markdown_table(score_rooms(load_results()))
    page.write_text(f"{head}{BEGIN}\n{table}\n{END}{tail}", encoding="utf-8")


def choose_mutants(arguments: argparse.Namespace) -> list[EngineMutant]:
    """The mutants that the options ask for."""
    survivors = {
        (result.module, result.name)
        for result in load_results()
        if result.status == SURVIVED
    }

    def is_wanted(module: str, name: str) -> bool:
        if arguments.survivors and (module, name) not in survivors:
            return False
        return arguments.only in f"{module} {name}"

    count = None if arguments.survivors or arguments.only else arguments.sample
    chosen = []
    for room in arguments.rooms.split(","):
        package = ROOT / "autograder"
        chosen += sample_mutants(package, room, count, arguments.seed, is_wanted)
    return chosen


def files_of_tests(folders: Iterable[str] = ()) -> list[str]:
    """The files of tests that a mutant may meet.

    Args:
        folders: of tests/autograder; all for none.
    """
    chosen = set(folders)
    tests = ROOT / "tests" / "autograder"
    for folder in sorted(chosen):
        if not (tests / folder).is_dir():
            raise SystemExit(f"--tests: there is no folder tests/autograder/{folder}")
    paths = sorted(tests.glob("*/test_*.py"))
    return [
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.parent.name not in _FOLDERS_APART
        and path.name not in _FILES_APART
        and not path.stem.endswith("_in_a_browser")
        and (not chosen or path.parent.name in chosen)
    ]


def main() -> int:
    """Judge mutants, print each, and return the exit status: 1 where too many survive."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--sample", type=int, default=40, help="mutants a room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--survivors", action="store_true", help="those of earlier runs, again"
    )
    parser.add_argument(
        "--only", default="", help="all mutants with this in module and name"
    )
    parser.add_argument(
        "--tests",
        default="",
        metavar="FOLDERS",
        help="only the tests of these folders of tests/autograder, as grading,sandbox",
    )
    parser.add_argument(
        "--budget", type=float, default=60.0, help="seconds of tests a mutant"
    )
    parser.add_argument(
        "--least", type=float, default=0.0, help="percent that must be killed"
    )
    parser.add_argument(
        "--report", type=Path, help="a page whose table is written anew"
    )
    arguments = parser.parse_args()
    mutants = choose_mutants(arguments)
    files = files_of_tests(filter(None, arguments.tests.split(",")))
    load_libraries()
    results = []
    with tempfile.TemporaryDirectory(prefix="engine-mutants-") as folder:
        Path(folder).chmod(0o755)  # workers of another user import the kit from there
        tree = Path(folder) / "tree"
        copy_tree(tree)
        load_kit(tree)
        collected = CollectedTests(tree, files)
        limit = _LEEWAY * arguments.budget
        coverage = measure_coverage(collected, tree, files, limit)
        trial = Trial(tree, collected, coverage, arguments.budget)
        for mutant in mutants:
            result = trial.judge(mutant)
            results.append(result)
            store_results([result])
            print(describe_result(result), flush=True)
        collected.close()
    rows = score_rooms(results)
    print(markdown_table(rows))
    if arguments.report:
        write_report(arguments.report)
    killed = sum(result.status == KILLED for result in results)
    tried = sum(result.status != LISTED for result in results)
    return int(100 * killed < arguments.least * tried)


if __name__ == "__main__":
    sys.exit(main())
