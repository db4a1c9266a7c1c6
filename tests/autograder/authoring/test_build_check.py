"""`build --check`: stale files, leaks, and notebooks that run in a real kernel. Each run of a kernel takes seconds."""

from __future__ import annotations

import pytest
from tiny_course import TINY

from autograder.authoring.build import build_assignment, write_build
from autograder.authoring.check import check_assignment, file_problems, leak_problems, run_problems
from autograder.authoring.execute import execute_notebook
from autograder.errors import StaleBuild


def build(course, tiny, points, text=TINY):
    tiny.source.write_text(text, encoding="utf-8")
    built = build_assignment(course, tiny, points)
    write_build(tiny, built)
    return built


def release_problems(built, cell_seconds=60.0):
    return run_problems("the release", built.release_bytes, built, cell_seconds, stubs=True)


def test_a_sound_assignment_passes_and_nothing_is_written(course, tiny, points, monkeypatch, tmp_path):
    built = build(course, tiny, points)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    before = {path: path.stat().st_mtime_ns for path in course.root.rglob("*")}
    assert check_assignment(course, tiny, points) == built
    after = {path: path.stat().st_mtime_ns for path in course.root.rglob("*")}
    assert after == before


def test_all_problems_are_listed_at_once(course, tiny, points):
    build(course, tiny, points)
    tiny.solution.unlink()
    tiny.release.write_bytes(tiny.solution.parent.joinpath("figures/line.svg").read_bytes())
    broken = TINY.replace("print(shown)", "print(shown)\n1 / 0").replace("shown = half(double(5))", "shown = 1")
    tiny.source.write_text(broken)
    with pytest.raises(StaleBuild) as caught:
        check_assignment(course, tiny, points)
    assert str(caught.value).split("\n") == [
        "tiny: 5 problems",
        "  - assignments/tiny/tiny.ipynb is stale: run `autograder build tiny`",
        "  - solutions/tiny/tiny.ipynb is missing: run `autograder build tiny`",
        "  - assignments/tiny/tiny.ipynb is not a notebook",
        "  - the release does not run: cell 8, demo 'both': ZeroDivisionError: division by zero",
        "  - the answer key does not run: cell 8, demo 'both': ZeroDivisionError: division by zero",
    ]


def test_stale_and_missing_files_are_named(course, tiny, points):
    built = build(course, tiny, points)
    assert file_problems(tiny, built) == []
    (tiny.release.parent / "figures" / "line.svg").write_text("<svg></svg>")
    (tiny.release.parent / "data").mkdir()
    (tiny.release.parent / "data" / "old.csv").write_text("1")
    tiny.release.unlink()
    assert file_problems(tiny, built) == [
        "assignments/tiny/figures/line.svg is stale: run `autograder build tiny`",
        "assignments/tiny/tiny.ipynb is missing: run `autograder build tiny`",
        "assignments/tiny/data/old.csv is not in the source any more",
    ]


def test_a_release_edited_by_hand_is_searched_for_leaks_too(course, tiny, points):
    built = build(course, tiny, points)
    tiny.release.write_bytes(built.solution_bytes)
    assert leak_problems(tiny, built) == [
        "assignments/tiny/tiny.ipynb: cell 3 (double) gives away a line of the answer to double: "
        "doubled_by_addition = x + x",
        "assignments/tiny/tiny.ipynb: cell 6 (half) gives away a line of the answer to half: "
        "return x * math.exp(-math.log(2.0))",
        "assignments/tiny/tiny.ipynb: cell 9 (why) gives away a line of the answer to why: "
        "Halving undoes doubling, since one multiplies by two and the other divides by it.",
    ]


def test_cells_that_need_an_unanswered_question_may_fail(course, tiny, points):
    after = '\n# %% demo="after"\nprint(shown)\n\n# %% demo="wrapped"\ntry:\n    half(1)\nexcept NotImplementedError as e:\n'
    after += '    raise RuntimeError("the kernel failed") from e\n'
    assert release_problems(build(course, tiny, points, TINY + after)) == []


def test_cells_that_fail_by_themselves_may_not(course, tiny, points):
    text = TINY.replace("import math\n", "import math\nimport no_such_module\n")
    text += '\n# %% demo="typo"\nprint(shwon)\n\n# %% demo="own"\nraise NotImplementedError("later")\n'
    assert release_problems(build(course, tiny, points, text)) == [
        "the release does not run: cell 2, given 'imports': ModuleNotFoundError: No module named 'no_such_module'",
        "the release does not run: cell 10, demo 'typo': NameError: name 'shwon' is not defined",
        "the release does not run: cell 11, demo 'own': NotImplementedError: later",
    ]


def test_given_code_may_not_need_an_answer(course, tiny, points):
    text = TINY + '\n# %% given="table"\nTABLE = [double(i) for i in range(3)]\n'
    assert release_problems(build(course, tiny, points, text)) == [
        "the release does not run: cell 10, given 'table': NotImplementedError: double: write your answer here"
    ]


def test_a_cell_that_takes_too_long_ends_the_run(course, tiny, points):
    text = TINY.replace("shown = half(double(5))", "import time\ntime.sleep(60)")
    assert release_problems(build(course, tiny, points, text), cell_seconds=2.0) == [
        "the release does not run: cell 8, demo 'both': Timeout: took longer than 2 seconds"
    ]


def test_a_kernel_that_dies_is_a_problem(course, tiny, points):
    text = TINY.replace("shown = half(double(5))", "import os\nos._exit(1)")
    assert release_problems(build(course, tiny, points, text)) == [
        "the release does not run: cell 8, demo 'both': KernelDied: the kernel died"
    ]


def test_the_notebook_finds_its_data_and_writes_nothing_into_the_home(course, tiny, points, monkeypatch, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    reads = 'assert open("data/numbers.csv").read() == "1,2"\nprint("noise")'
    (tiny.source.parent / "data").mkdir()
    (tiny.source.parent / "data" / "numbers.csv").write_text("1,2")
    built = build(course, tiny, points, TINY.replace("print(shown)", reads))
    assert execute_notebook(built.solution_bytes, built.files) == ()
    assert list(home.iterdir()) == []
