"""Mutants of the engine: do its own tests notice a changed condition, bound, constant or return?

    python tests/long/engine_mutants.py [--rooms grading,sandbox] [--sample 40] [--seed 1]
    python tests/long/engine_mutants.py --survivors    # after a change: those that survived, again

The first run measures which lines each test runs. A mutant meets the tests that run its line, those
of its own room first, then the quickest; it stands in a copy of this tree. Survivors that no test
can kill stand with a reason in `engine_equivalent.toml`.

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
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from engine_coverage import COLLECTION, FileCoverage, TestLines, measure_coverage
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
)
RESULTS = ROOT / "build" / "engine_mutants.json"
EQUIVALENT = "engine_equivalent.toml"
KILLED = "killed"
SURVIVED = "survived"
LISTED = "listed"
_FOLDERS_APART = ("content",)
"""Tests of the assignments: they say nothing about the engine that its own do not."""
_COLLECTING = 1.0
"""Seconds that a file of tests takes before its first test."""
BEGIN, END = "<!-- begin of the engine -->", "<!-- end of the engine -->"


@dataclass(frozen=True, slots=True)
class MutantResult:
    """What became of a mutant.

    Attributes:
        status: KILLED, SURVIVED or LISTED, which is a survivor with a reason.
        test_file: the file whose test failed; "" for a survivor.
        in_time: False where the tests ran past their limit.
        test_files: how many files were run.
        tests_left: how many tests were left out when the budget was spent.
    """

    module: str
    name: str
    status: str
    test_file: str = ""
    in_time: bool = True
    test_files: int = 0
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
        coverage: dict[str, FileCoverage],
        budget: float,
    ) -> None:
        self.tree = tree
        self.coverage = coverage
        self.budget = budget
        self.equivalent = load_equivalent(Path(__file__).parent, EQUIVALENT)
        self.importers = find_importers(tree)

    def judge(self, mutant: EngineMutant) -> MutantResult:
        """Run the tests that run the mutant's line, until one fails."""
        if is_listed(mutant, self.equivalent):
            return MutantResult(mutant.module, mutant.name, LISTED)
        path = self.tree / "autograder" / mutant.module
        original = path.read_bytes()
        path.write_text(mutant.source, encoding="utf-8")
        try:
            return self._run_tests_on(mutant)
        finally:
            path.write_bytes(original)

    def _run_tests_on(self, mutant: EngineMutant) -> MutantResult:
        name = mutant.module.removesuffix(".py").removesuffix("/__init__")
        outdated = self.importers["autograder." + name.replace("/", ".")]

        def prepare() -> list[object]:
            forget_modules(outdated)
            return []

        spent = 0.0
        files = 0
        left = 0
        for name, tests in self._files_in_order(mutant):
            affordable, seconds = _within(tests, self.budget - spent)
            left += len(tests) - len(affordable)
            if not affordable:
                continue
            spent += seconds
            files += 1
            limit = 20.0 + 5.0 * seconds  # measured on a machine that may be slower now
            status = run_tests(self.tree, affordable, limit, prepare)
            if status == TIMED_OUT:  # a busy machine, or a loop without end
                status = run_tests(self.tree, affordable, 3.0 * limit, prepare)
            if status != 0:
                in_time = status != TIMED_OUT
                return MutantResult(
                    mutant.module, mutant.name, KILLED, name, in_time, files
                )
        return MutantResult(mutant.module, mutant.name, SURVIVED, "", True, files, left)

    def _files_in_order(
        self, mutant: EngineMutant
    ) -> list[tuple[str, list[TestLines]]]:
        """Test files with the tests that run the mutant's line, the quickest first."""
        room = mutant.module.partition("/")[0]
        files = []
        for name, coverage in self.coverage.items():
            tests = [test for test in coverage.tests if _runs(test, mutant)]
            if tests:
                tests.sort(key=lambda test: test.seconds)
                is_elsewhere = Path(name).parent.name != room
                files.append(((is_elsewhere, tests[0].seconds), name, tests))
        files.sort(key=lambda file: file[:2])
        return [(name, tests) for _, name, tests in files]


def _runs(test: TestLines, mutant: EngineMutant) -> bool:
    lines = test.lines.get(mutant.module)
    if test.test == COLLECTION or lines is None:
        return False
    return not mutant.lines or not set(mutant.lines).isdisjoint(lines)


def _within(tests: list[TestLines], seconds: float) -> tuple[list[str], float]:
    """The first tests that fit into so many seconds, and the seconds that they take."""
    spent = _COLLECTING
    names = []
    for test in tests:
        if spent + test.seconds > seconds:
            break
        spent += test.seconds
        names.append(test.test)
    return names, spent if names else 0.0


def is_listed(mutant: EngineMutant, equivalent: Iterable[Equivalent]) -> bool:
    """Whether a reason is written down why no test kills the mutant."""
    return any(entry.matches(mutant) for entry in equivalent)


def describe_result(result: MutantResult) -> str:
    """One line: the status, the mutant, and what met it."""
    if result.test_file:
        limit = "" if result.in_time else ", past its limit of time"
        met = f"{result.test_file}{limit}"
    elif result.status == LISTED:
        met = f"see {EQUIVALENT}"
    elif not result.test_files and not result.tests_left:
        met = "no test runs it"
    else:
        met = f"{result.test_files} files of tests, {result.tests_left} tests left out"
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


def test_files() -> list[str]:
    """The files of tests that a mutant may meet."""
    paths = sorted(ROOT.glob("tests/autograder/*/test_*.py"))
    return [
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.parent.name not in _FOLDERS_APART
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
    load_libraries()
    results = []
    with tempfile.TemporaryDirectory(prefix="engine-mutants-") as folder:
        Path(folder).chmod(0o755)  # workers of another user import the kit from there
        tree = Path(folder) / "tree"
        copy_tree(tree)
        coverage = measure_coverage(tree, test_files())
        load_kit(tree)
        trial = Trial(tree, coverage, arguments.budget)
        for mutant in mutants:
            result = trial.judge(mutant)
            results.append(result)
            store_results([result])
            print(describe_result(result), flush=True)
    rows = score_rooms(results)
    print(markdown_table(rows))
    if arguments.report:
        write_report(arguments.report)
    killed = sum(result.status == KILLED for result in results)
    tried = sum(result.status != LISTED for result in results)
    return int(100 * killed < arguments.least * tried)


if __name__ == "__main__":
    sys.exit(main())
