"""`autograder hunt`: wrong answers with full marks are found, with the smallest call that shows it."""

from __future__ import annotations

import shutil
from pathlib import Path

import courses
import pytest
from click.testing import CliRunner
from tiny_course import SUITE, TINY, write_assignment

from autograder.basics.whole_files import write_whole
from autograder.cli.commands import main
from autograder.course import Course, load_course
from autograder.proof.equivalent import Equivalent
from autograder.proof.hunt import Hunt, HuntRequest, hunt
from autograder.proof.hunt_proposals import add_test
from autograder.proof.hunt_search import Find, HuntLimits
from autograder.proof.verify import ProofRequest, verify

CONTRACTS = """\
from autograder.suite.contracts import calls, contract, whole

contract("double", calls(x=whole(-20, 20)))
"""
ALTERNATES = """\
from autograder.suite import alternate


@alternate("double")
def fine(x):
    return 2 * x


@alternate("double")
def wrong_below_zero(x):
    return abs(x) + abs(x)


@alternate("double")
def refuses_large_ones(x):
    if x > 12:
        raise KeyError("too large")
    return x + x


seen = []


@alternate("double")
def remembers(x):
    seen.append(x)
    return 2 * x if len(seen) < 2 or seen[-2] >= x else 2 * seen[-2]
"""
ALTERNATES_OF_HALF = """

@alternate("half")
def times_a_half(x):
    return x * 0.5


@alternate("half")
def divides(x):
    return x / 2
"""
MISTAKES = """\
from autograder.suite import mistake


@mistake("double", hint="twice, not three times")
def triples(x):
    return 3 * x


@mistake("half", hint="two parts, not three")
def thirds(x):
    return x / 3
"""
FEW = HuntLimits(scripts=60)


@pytest.fixture(scope="module")
def hunted_course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    suite = {
        **SUITE,
        "contracts.py": CONTRACTS,
        "mistakes.py": MISTAKES,
        "alternates.py": ALTERNATES + ALTERNATES_OF_HALF,
    }

    def write(root: Path) -> None:
        write_assignment(root, "tiny", TINY, suite)

    return courses.built_course(tmp_path_factory.mktemp("hunted"), write)


@pytest.fixture
def own_course(
    hunted_course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Course:
    shutil.copytree(hunted_course.root, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    return load_course(tmp_path / "course")


pytestmark = pytest.mark.usefixtures("standing_host")


@pytest.fixture(scope="module")
def hunted(hunted_course: Course) -> Hunt:
    request = HuntRequest(question="double", limits=FEW, workers=1)
    return hunt(hunted_course, hunted_course.assignment("tiny"), request)


def test_wrong_answers_with_full_marks_are_found(hunted: Hunt) -> None:
    finds = {find.answer: find for find in hunted.finds}
    assert set(finds) == {"wrong_below_zero", "refuses_large_ones", "remembers"}
    assert hunted.problems == ()
    assert hunted.without_contract == ("half",)
    below_zero = finds["wrong_below_zero"]
    assert (below_zero.way, below_zero.title) == ("value", "double(-1)")
    assert (below_zero.right, below_zero.wrong) == ("-2", "2")
    assert finds["refuses_large_ones"].title == "double(13)"
    assert finds["refuses_large_ones"].wrong == "KeyError: 'too large'"


def test_a_memory_is_shown_by_two_calls(hunted: Hunt) -> None:
    """The second call is larger than the first, and doubles that one."""
    (find,) = [find for find in hunted.finds if find.answer == "remembers"]
    first, second = (
        int(line.removeprefix("double(").removesuffix(")")) for line in find.lines
    )
    assert first < second
    assert (find.right, find.wrong) == (str(2 * second), str(2 * first))


def test_verify_makes_a_short_hunt(hunted_course: Course) -> None:
    proof = verify(
        hunted_course, hunted_course.assignment("tiny"), ProofRequest(workers=1)
    )
    titles = [problem.partition(" differs from")[0] for problem in proof.problems]
    assert titles == [
        "double: alternate refuses_large_ones",
        "double: alternate remembers",
        "double: alternate wrong_below_zero",
    ]


def test_a_student_with_full_marks_is_named_and_a_test_is_proposed(
    own_course: Course,
) -> None:
    suite = own_course.assignment("tiny").suite
    (suite / "alternates.py").unlink()
    wrong = "def double(x):\n    return abs(x) + abs(x)\n"
    right = "def double(x):\n    return x * 2\n"
    half = "def half(x):\n    return x / 2\n"
    for student, double in (("ada", right), ("bob", wrong)):
        notebook = courses.handed_in({"double": double, "half": half})
        write_whole(Path(f"submitted/{student}/tiny/tiny.ipynb"), notebook)
    run = CliRunner()
    assert run.invoke(main, ["grade", "tiny", "--workers", "1"]).exit_code == 0
    answer = run.invoke(
        main, ["hunt", "tiny", "--workers", "1", "--minutes", "0.05", "--write"]
    )
    assert answer.exit_code == 1, answer.output
    assert "double is wrong somewhere, at full marks: bob" in answer.output
    text = (suite / "test_double.py").read_text(encoding="utf-8")
    assert text.endswith("    assert_close(student.double(-1), reference.double(-1))\n")
    regraded = run.invoke(main, ["regrade", "tiny", "--workers", "1"])
    assert "bob 5.5 → 5 of 5.5 (-0.5)" in regraded.output
    assert "ada" not in regraded.output


def find_named(answer: str, *lines: str, title: str = "double(-1)") -> Find:
    return Find(
        "student", "double", answer, "value", title, lines or ("double(-1)",), "-2", "2"
    )


def test_points_move_and_their_sum_stays() -> None:
    text = add_test(SUITE["test_double.py"], find_named("bob"))
    assert text is not None
    assert [line for line in text.split("\n") if line.startswith("@points")] == [
        "@points(1)",
        "@points(1)",
        "@points(0.5)",
    ]
    assert "from autograder.suite import assert_close" in text
    assert "def test_hunted_1(student, reference):" in text
    second = add_test(text, find_named("eve"))
    assert second is not None
    assert "def test_hunted_2(student, reference):" in second


def test_a_proposal_with_an_object() -> None:
    find = find_named(
        "bob", "made_0 = Cache(2)", "made_0.append(torch.tensor([1.]))", "made_0.length"
    )
    text = add_test(SUITE["test_double.py"], find)
    assert text is not None
    assert text.split('"""\n')[-1] == (
        "    mine_0 = student.Cache(2)\n"
        "    right_0 = reference.Cache(2)\n"
        "    assert_close(mine_0.append(torch.tensor([1.])), right_0.append(torch.tensor([1.])))\n"
        "    assert_close(mine_0.length, right_0.length)\n"
    )


def test_a_listed_find_is_known_by_its_name() -> None:
    find = find_named("bob")
    assert find.name == "student bob: value: double(-1)"
    assert Equivalent(
        "double", "…: value: double(-…)", "no number is negative"
    ).matches(find)
    assert not Equivalent("double", "…: form: …", "another way").matches(find)
    assert not Equivalent("half", "…", "another question").matches(find)


def test_a_find_with_a_reason_is_not_told(own_course: Course) -> None:
    suite = own_course.assignment("tiny").suite
    (suite / "hunted.toml").write_text(
        '[double]\n"no number is negative" = ["…: value: double(-…"]\n'
        '"nobody doubles so much" = ["…: error: …"]\n'
    )
    request = HuntRequest(question="double", limits=FEW, workers=1)
    told = hunt(own_course, own_course.assignment("tiny"), request).finds
    assert {find.answer for find in told} == {"remembers"}
