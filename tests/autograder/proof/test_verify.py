"""`verify`: what proves a suite, and what each gap in the proof is called."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from small_course import SUITE

from autograder.basics.errors import BadSuite, KitError
from autograder.cli.commands import main
from autograder.course import Course, load_course
from autograder.course.fingerprint import suite_sha256
from autograder.proof.verify import ProofRequest, verify, verify_command

pytestmark = pytest.mark.usefixtures("standing_host")


def test_a_good_suite_is_proven(course: Course) -> None:
    assert [
        str(proof) for proof in verify_command(course, ["small"], ProofRequest())
    ] == [
        "small: proven behind strict walls; answer key 11 points, release 0, 3 mistakes caught, "
        "6 alternates pass"
    ]


@pytest.fixture
def own_course(course: Course, tmp_path: Path) -> Course:
    shutil.copytree(course.root, tmp_path / "course")
    return load_course(tmp_path / "course")


MISTAKES_AGAINST_A_WEAK_SUITE = SUITE["mistakes.py"].replace(
    "return self.value + n", "self.value = 0"
)


def problems(course: Course, **files: str) -> list[str]:
    suite = course.root / "tests" / "hidden" / "small"
    for name, text in files.items():
        (suite / f"{name}.py").write_text(text, encoding="utf-8")
    return list(
        verify(course, course.assignment("small"), ProofRequest(workers=1)).problems
    )


def test_every_gap_is_named(own_course: Course) -> None:
    mistakes = SUITE["mistakes.py"] + (
        "\n\n@mistake('softmax', hint='nothing')\ndef is_right(z, dim=-1):\n"
        "    e = torch.exp(z)\n    return e / e.sum(dim, keepdim=True)\n"
    )
    alternates = SUITE["alternates.py"] + (
        "\n\n@alternate('softmax')\ndef is_wrong(z, dim=-1):\n    return torch.zeros_like(z)\n"
    )
    passes = (
        SUITE["test_counter.py"]
        + "\n\n@points(1)\ndef test_asks_nothing():\n    pass\n"
    )
    found = problems(
        own_course, mistakes=mistakes, alternates=alternates, test_counter=passes
    )
    assert [problem.partition(": `")[0] for problem in found] == [
        "alternate softmax/is_wrong fails test_rows_sum_to_one",
        "alternate softmax/is_wrong fails test_values_are_those_of_the_answer_key",
        "mistake softmax/is_right is not caught by any test",
        "the untouched release passes counter: test_asks_nothing (1 points)",
    ]


def test_a_call_between_questions_must_be_declared(own_course: Course) -> None:
    undeclared = SUITE["test_attention.py"].replace('pytestmark = uses("softmax")', "")
    assert problems(own_course, test_attention=undeclared) == [
        "the answer to attention calls softmax: say so in test_attention.py (uses('softmax'))"
    ]


def test_too_few_known_answers_prove_nothing(own_course: Course) -> None:
    found = problems(
        own_course,
        mistakes="",
        alternates=SUITE["alternates.py"].replace('@alternate("softmax")\n', "", 1),
    )
    assert found == [
        "attention has no mistake in mistakes.py",
        "counter has no mistake in mistakes.py",
        "softmax has 1 alternates in alternates.py; at least 2 prove a suite",
        "softmax has no mistake in mistakes.py",
    ]


def test_what_is_not_proven_ends_the_command(
    own_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = own_course.root / "tests" / "hidden" / "small"
    (suite / "mistakes.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(own_course.root)
    ended = CliRunner().invoke(main, ["verify"])
    assert ended.exit_code == 1
    assert "small: attention has no mistake" in ended.output


def test_a_question_that_nobody_asks(own_course: Course) -> None:
    with pytest.raises(KitError, match="there is no question 'softmin' in small"):
        verify_command(own_course, [], ProofRequest(question="softmin"))


SAMPLES = """\
from autograder.suite import alternate, sample


@sample("softmax", deserves="over_the_rows")
def by_columns(z, dim=-1):
    return z.exp() / z.exp().sum(dim=0)


@sample("attention", deserves="no_scale")
def nothing_under_the_scores(q, k, v):
    out = []
    for row in q:
        out.append(softmax((k * row).sum(-1)) @ v)
    return torch.stack(out)


@alternate("counter", function="Counter")
class Remembers:
    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value = self.value + n
        return self.value
"""


def test_samples_get_the_name_they_deserve_and_mistakes_alone_cost_nothing_elsewhere(
    own_course: Course,
) -> None:
    small = own_course.assignment("small")
    samples = small.suite / "samples.py"
    before = suite_sha256(small.suite)
    samples.write_text(SAMPLES, encoding="utf-8")
    assert suite_sha256(small.suite) == before
    proof = verify(own_course, small, ProofRequest(samples=None, alone=None, workers=1))
    assert proof.problems == ()
    assert [(one.name, one.named) for one in proof.samples] == [
        ("by_columns", ("over_the_rows",)),
        ("nothing_under_the_scores", ("no_scale",)),
        ("Remembers", ()),
    ]
    assert [
        (one.name, one.named, one.elsewhere, one.hinted) for one in proof.lone_mistakes
    ] == [(name, (name,), {}, ()) for name in ("over_the_rows", "no_scale", "Forgets")]
    assert (
        "3 samples: 100% named rightly, 0% wrongly, 3 of 3 mistakes alone touch no other question"
        in str(proof)
    )


def test_mutants_that_survive_are_named_unless_they_are_listed(
    own_course: Course,
) -> None:
    small = own_course.assignment("small")
    wanted = ProofRequest(question="counter", mutants=None, workers=1)
    listed = small.suite / "equivalent.toml"
    wrapped = (
        '"one counter is counted" = ["Counter.add: returns floats for whole numbers", '
        '"Counter: objects share their attributes"]\n'
    )
    listed.write_text(
        f'[counter]\n"nobody counts" = ["self.value += n: left out"]\n{wrapped}',
        encoding="utf-8",
    )
    proof = verify(own_course, small, wanted)
    assert fates(proof)[:3] == ["killed", "killed", "killed"]
    assert [question.name for question in proof.figures] == ["counter"]
    assert proof.problems == (
        "equivalent.toml, [counter]: the mutant 'self.value += n: left out' is killed; "
        "take the entry 'self.value += n: left out' out",
    )
    weak = SUITE["test_counter.py"].replace("counter.value == 7", "counter.value >= 3")
    small.suite.joinpath("test_counter.py").write_text(weak, encoding="utf-8")
    small.suite.joinpath("mistakes.py").write_text(
        MISTAKES_AGAINST_A_WEAK_SUITE, encoding="utf-8"
    )
    for_nothing = (
        "counter: an answer that is its first argument scores 100% of the points"
    )
    assert verify(own_course, small, wanted).problems == (for_nothing,)
    listed.write_text(f"[counter]\n{wrapped}", encoding="utf-8")
    proof = verify(own_course, small, wanted)
    assert fates(proof)[:3] == ["killed", "survived", "killed"]
    assert proof.problems == (
        "80.0% of the mutants are killed, of at least 99%; these survive:",
        for_nothing,
        "survives: counter: self.value += n: left out",
    )


def fates(proof: Any) -> list[str]:
    """The fates of the mutants, in their order: first those of one change."""
    return [mutant.fate for mutant in proof.mutants]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def test_nothing(student):\n    pass\n", "test_nothing has no @points"),
        ("import nothing_of_that_name\n", "it does not import"),
    ],
)
def test_a_suite_that_cannot_grade_is_refused(
    own_course: Course, text: str, said: str
) -> None:
    with pytest.raises(BadSuite, match=said):
        problems(own_course, test_softmax=text)
