"""What submissions share: seen through new names, comments and another order; not where the
assignment explains it.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.authoring.demo_class import write_demo_class
from autograder.basics.errors import KitError, UnreadableSubmission
from autograder.course import Assignment, Course, load_course
from autograder.intake.find import find_submissions
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import load_release
from autograder.outputs import similarity
from autograder.outputs.code_fingerprints import (
    Fingerprint,
    _tokens,
    fingerprints,
    hash_run,
)
from autograder.outputs.shingles import shingles
from autograder.outputs.similarity import (
    ComparedCell,
    _shared_by_pairs,
    find_similar_pairs,
    read_known_texts,
    render_similarity,
    similarity_command,
)
from autograder.records.submission import Answer, Cell, Submission

ROOT = Path(__file__).resolve().parents[3]

OWN = """
def attention_weights(scores: Any, mask: Any = None) -> None:
    # numerically safe
    biggest = scores.max(dim=-1, keepdim=True).values
    shifted = scores - biggest
    if mask is not None:
        shifted = shifted.masked_fill(~mask, float("-inf"))
    powers = shifted.exp()
    total = powers.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, powers / total.clamp_min(1e-9), torch.zeros_like(powers))


def mixture(queries: Any, keys: Any, values: Any) -> None:
    rows = []
    for position in range(queries.shape[0]):
        row = torch.stack([(queries[position] * key).sum() for key in keys])
        rows.append(attention_weights(row.unsqueeze(0)).squeeze(0) @ values)
    return torch.stack(rows)
"""
RENAMED = re.sub(
    r"scores|biggest|shifted|powers|total|rows|position|queries|keys|values(?!$)",
    lambda found: (
        f"{found.group()[:2]}_{len(found.group())}"
        if found.group() != "values"
        else "values"
    ),
    OWN.replace("# numerically safe", "# my own idea"),
)
REORDERED = "\n\n".join(reversed(OWN.strip().split("\n\n\n")))
OTHER = """
def attention_weights(z: Any) -> None:
    e = torch.exp(z - torch.amax(z, -1, True))
    return e / torch.sum(e, -1, True)


def mixture(q: Any, k: Any, v: Any) -> None:
    scores = torch.einsum("qd,kd->qk", q, k)
    return torch.einsum("qk,kd->qd", attention_weights(scores), v)
"""


def handed_in(student: str, source: str) -> Submission:
    return Submission(
        student, "small", Path(), "sha", (Cell("attend", "question", source),)
    )


def pairs(*sources: str, explaining: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    made = [
        handed_in(f"student-{number}", source)
        for number, source in enumerate(sources, start=1)
    ]
    return [pair.students for pair in find_similar_pairs(made, explaining)]


def test_a_copy_is_seen_through_new_names_and_another_order() -> None:
    assert RENAMED != OWN != REORDERED
    assert pairs(OWN, OTHER, RENAMED) == [("student-1", "student-3")]
    assert pairs(OTHER, REORDERED, OWN) == [("student-2", "student-3")]


def test_what_the_assignment_holds_explains_itself() -> None:
    assert pairs(OWN, OWN, explaining=(OWN,)) == []


def test_what_many_have_is_what_people_write() -> None:
    assert len(pairs(OWN, OWN, OWN)) == 3
    assert pairs(OWN, OWN, OWN, OWN) == []


def test_the_pairs_that_share_most_come_first_and_forty_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eve and Fay share 8 fingerprints, and every other pair 6 or 5; 6 are enough."""
    students = [f"s{number:02}" for number in range(50)]
    shared = {
        (student, "zoe"): {b"%d" % value for value in range(6)}
        for student in reversed(students)
    }
    shared["eve", "fay"] = {b"%d" % value for value in range(8)}
    shared["ada", "ben"] = {b"%d" % value for value in range(5)}
    monkeypatch.setattr(similarity, "_shared_by_pairs", lambda *_: shared)
    names = [*students, "ada", "ben", "eve", "fay", "zoe"]
    found = find_similar_pairs([handed_in(name, "x = 1") for name in names], ())
    assert [(pair.students, pair.shared) for pair in found] == [
        (("eve", "fay"), 8),
        *[((student, "zoe"), 6) for student in students[:39]],
    ]


def test_a_tenth_of_a_large_class_writes_alike() -> None:
    """Of 39 submissions three may share a fingerprint before it is common, of 40 four."""
    students = {b"three": {"a", "b", "c"}, b"four": {"d", "e", "f", "g"}}
    shared = _shared_by_pairs(students, 39)
    assert set().union(*shared.values()) == {b"three"}
    shared = _shared_by_pairs(students, 40)
    assert shared["d", "g"] == {b"four"}
    assert len(shared) == 3 + 6
    students[b"five"] = set("hijkl")
    assert len(_shared_by_pairs(students, 40)) == 3 + 6


def test_release_key_and_known_answers_explain_and_a_students_mistake_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = Assignment("m1", tmp_path)
    assignment.solution.parent.mkdir(parents=True)
    assignment.solution.touch()
    reads: list[object] = []

    def read_key(path: Path, most_mb: int) -> SimpleNamespace:
        reads.append((path, most_mb))
        question = SimpleNamespace(role="question", name="double", source="key")
        return SimpleNamespace(
            cells=[question, SimpleNamespace(role="text", source="t")]
        )

    def load_answers(path: Path, answers: dict[str, str]) -> list[SimpleNamespace]:
        reads.append((path.name, answers))
        own = SimpleNamespace(cell=f"of {path.name}", is_students=False)
        return [own, SimpleNamespace(cell="a student's", is_students=True)]

    release = SimpleNamespace(cells=[SimpleNamespace(source="released")])
    monkeypatch.setattr(similarity, "read_notebook", read_key)
    monkeypatch.setattr(similarity, "load_release", lambda assignment: release)
    monkeypatch.setattr(similarity, "load_known_answers", load_answers)
    course = Course(tmp_path)
    assert read_known_texts(course, assignment) == [
        "released",
        "key",
        "t",
        "of mistakes.py",
        "of alternates.py",
    ]
    assert reads == [
        (assignment.solution.resolve(), course.limits.notebook_mb),
        ("mistakes.py", {"double": "key"}),
        ("alternates.py", {"double": "key"}),
    ]


def test_an_assignment_that_is_not_built_explains_nothing(tmp_path: Path) -> None:
    with pytest.raises(KitError, match=r"is not built; run `autograder build m1`$"):
        read_known_texts(Course(tmp_path), Assignment("m1", tmp_path))


def test_given_cells_are_not_compared() -> None:
    given = [
        Submission(s, "small", Path(), "sha", (Cell("imports", "given", OWN),))
        for s in ("ada", "eve")
    ]
    assert find_similar_pairs(given, ()) == []


@pytest.mark.parametrize(
    "source",
    ["", "x = 1", "'" * 5000, '"""' + "x" * 5000, "\\" * 5000, "\ud800 = 1\n" * 100],
)
def test_any_text_has_fingerprints(source: str) -> None:
    assert all(0 <= print_.first <= print_.last for print_ in fingerprints(source))


def test_the_page_shows_the_passages_escaped_and_marked() -> None:
    marked = OWN + "    # <script>alert(1)</script>\n"
    submissions = [handed_in("<b>ada</b>", marked), handed_in("eve", RENAMED)]
    page = render_similarity("small", 2, find_similar_pairs(submissions, ()))
    assert "<script>" not in page
    assert "<b>ada" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<mark>    shifted = scores - biggest</mark>" in page
    assert page.count("<mark>") > 10


def test_an_honest_class_has_no_pairs_and_a_copy_in_it_is_found(tmp_path: Path) -> None:
    """The demo class comes from the answer key and the known answers: all that it shares is
    read_known_texts.
    """
    course = load_course(ROOT)
    assignment = course.assignment("a2_attention")
    write_demo_class(course, assignment, tmp_path)
    release = load_release(assignment)
    readable = []
    for found in find_submissions(course, assignment, [tmp_path]):
        with contextlib.suppress(UnreadableSubmission):
            readable.append(read_submission(found, release, course.limits))
    assert len(readable) >= 28
    known = read_known_texts(course, assignment)
    assert find_similar_pairs(readable, known) == []
    copies = [handed_in("student-101", OWN), handed_in("student-102", RENAMED)]
    assert [p.students for p in find_similar_pairs([*readable, *copies], known)] == [
        ("student-101", "student-102")
    ]


# Answers in words

PROMPT = (
    "## 3. In your own words\n\nWhy does k-means stop after finitely many steps, whatever the "
    "points are?\n\n"
)
ADA = (
    "Every step of the algorithm can only lower the inertia or leave it alone, and since a given "
    "assignment of points "
    "to centers fixes the inertia, no assignment comes back; there are only finitely many of them."
)
SHUFFLED = (
    "there are only finitely many of them, I think. *Every* step of the algorithm can only lower "
    "the Inertia - or "
    "leave it alone, and since a given assignment of points to centers fixes the inertia, "
    "nothing comes back"
)
OWN_WORDS = (
    "The sum of squares never grows. There are finitely many ways to give N points to K centers, "
    "so it must end."
)


def wrote(student: str, text: str, *, blank: bool = False) -> Submission:
    answer = Answer("written_why", PROMPT + text, blank)
    return Submission(student, "small", Path("x"), "sha", (), (answer,))


def written_pairs(
    *given: Submission, explaining: tuple[str, ...] = (PROMPT,)
) -> list[tuple[str, str]]:
    return [pair.students for pair in find_similar_pairs(given, explaining)]


def test_an_answer_in_the_same_words_is_shown_whatever_their_order_and_markup() -> None:
    given = wrote("ada", ADA), wrote("ben", SHUFFLED), wrote("cem", OWN_WORDS)
    assert written_pairs(*given) == [("ada", "ben")]
    page = render_similarity("small", 3, find_similar_pairs(given, (PROMPT,)))
    assert "<code>written_why</code>" in page
    assert "<mark>Every step" in page
    assert "<mark>Why does" not in page


def test_the_prompt_the_key_and_what_is_blank_explain_themselves() -> None:
    assert written_pairs(wrote("ada", ""), wrote("ben", "")) == []
    assert (
        written_pairs(
            wrote("ada", ADA), wrote("ben", ADA), explaining=(PROMPT, f"The key: {ADA}")
        )
        == []
    )
    assert (
        written_pairs(wrote("ada", ADA, blank=True), wrote("ben", ADA, blank=True))
        == []
    )
    # what the whole class has, somebody told it
    assert written_pairs(*(wrote(f"s{n}", ADA) for n in range(4))) == []


def test_a_sentence_of_twelve_words_is_not_enough_and_one_of_thirteen_is() -> None:
    """Twelve words have nine runs of four."""
    words = "one two three four five six seven eight nine ten eleven twelve thirteen"
    assert written_pairs(wrote("ada", words), wrote("ben", words)) == [("ada", "ben")]
    twelve = words.removesuffix(" thirteen")
    assert written_pairs(wrote("ada", twelve), wrote("ben", twelve)) == []


def test_runs_of_words_are_those_that_a_reader_sees() -> None:
    """Case, an invisible space, a ligature and lines do not count; Chinese has a word in each
    character.
    """
    plain = [run.value for run in shingles("the first difficult word")]
    assert [
        run.value for run in shingles("The  \ufb01rst, **diffi\u200bcult**\nword!")
    ] == plain
    assert [(run.first, run.last) for run in shingles("a b\nc d e")] == [(0, 1), (0, 1)]
    assert len(shingles("步骤不会增加")) == 3
    assert shingles("too few words") == []


def test_the_lines_of_shared_fingerprints_are_marked_and_no_others() -> None:
    cell = ComparedCell(
        "a\nb\nc\nd",
        [
            Fingerprint(b"shared", 1, 2),
            Fingerprint(b"own", 0, 0),
            Fingerprint(b"own too", 3, 3),
        ],
    )
    assert cell.values() == {b"shared", b"own", b"own too"}
    assert cell.marked_lines({b"shared", b"elsewhere"}) == [
        ("a", False),
        ("b", True),
        ("c", True),
        ("d", False),
    ]


def test_a_submission_that_cannot_be_read_is_named_and_the_others_compared(
    tmp_path: Path,
) -> None:
    course = load_course(ROOT)
    assignment = course.assignment("a2_attention")
    (submission,) = [path for path in [assignment.solution] if path.exists()]
    for student in ("ada", "bob"):
        (tmp_path / f"{student}.ipynb").write_bytes(submission.read_bytes())
    (tmp_path / "cyd.ipynb").write_text("no notebook")
    lines = list(
        similarity_command(course, assignment, [tmp_path], tmp_path / "results")
    )
    assert [line for line in lines if line.startswith("not compared: cyd: ")]
    # the answer key twice: everything is explained by the answer key
    assert not [line for line in lines if line.startswith("to look at:")]
    assert (tmp_path / "results" / "a2_attention.similarity.html").is_file()


def test_signs_keywords_and_what_follows_a_dot_stand_as_written() -> None:
    assert _tokens("if a:  # why\n  b.cat = 'x' + 2.5e3\n") == [
        ("if", 0),
        ("name", 0),
        (":", 0),
        ("name", 1),
        (".", 1),
        ("cat", 1),
        ("=", 1),
        ("text", 1),
        ("+", 1),
        ("number", 1),
    ]


def test_a_run_has_sixteen_tokens_and_each_six_runs_a_fingerprint() -> None:
    """22 equal tokens have 7 runs, and so 2 windows; of equal hashes the last one is kept."""
    assert fingerprints("+\n" * 15) == []
    value = hash_run(["+"] * 16)
    kept = [(mark.first, mark.last) for mark in fingerprints("+\n" * 16)]
    assert kept == [(0, 15)]
    marks = fingerprints("+\n" * 22)
    assert [(mark.value, mark.first, mark.last) for mark in marks] == [
        (value, 5, 20),
        (value, 6, 21),
    ]
