"""Downloads in which names and numbers mislead, as the platforms write them.

Read in their sources: canvas-lms `lib/content_zipper.rb`, moodle
`mod/assign/classes/downloader.php`, GitHub Classroom `app/models/concerns/nameable.rb`, edx-ora2
`openassessment/data.py`. Those of Sakai, Gradescope and Brightspace are as their downloads have
them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from downloads import Download

from autograder.basics.errors import KitError
from autograder.course import About, Course
from autograder.intake.collected import read_collected
from autograder.ledger import read_ledger
from autograder.platforms.collect import collect

# Canvas


def test_a_sortable_name_that_ends_in_a_number_is_no_user(download: Download) -> None:
    """Canvas takes `_7_` out of the middle of a name, and leaves `_7` at its end."""
    lines = download(
        "canvas", {"doejane_777_101_9001_m1.ipynb": "a", "roe_102_9002_2_m1.ipynb": "b"}
    )
    assert download.there() == {"doejane_777_101": "a", "roe_102": "b"}
    assert any(line.startswith("doejane_777_101: user 101, or 777?") for line in lines)


@pytest.mark.parametrize(
    ("listed", "student"), [("777", "doejane_777"), ("101", "doejane_777_101")]
)
def test_of_two_numbers_the_one_in_the_class_list_is_the_id(
    download: Download, listed: str, student: str
) -> None:
    download.class_list(f"id,canvas\ns1,{listed}\n")
    lines = download("canvas", {"doejane_777_101_9001_2_m1.ipynb": "a"})
    assert download.there() == {"s1": "a"}
    assert read_collected(download.submitted, "m1").students["s1"].name == student
    assert lines == ["1 submissions of m1: 1 new, 0 replaced, 0 unchanged"]


def test_a_file_name_of_numbers_makes_nobody_somebody_else(download: Download) -> None:
    """Eve's upload has the number 10, and her file is called `99_m1.ipynb`."""
    download("canvas", {"eve_1_10_99_m1.ipynb": "a", "vic_10_20_m1.ipynb": "b"})
    assert download.there() == {"eve_1": "a", "vic_10": "b"}


def test_canvas_gradebook_says_which_number_is_an_id(download: Download) -> None:
    roster = 'Student,ID,SIS Login ID,Section\n"Doe, Jane_777",101,jdoe,A\n'
    lines = download("canvas", {"doejane_777_101_9001_2_m1.ipynb": "a"}, roster)
    assert (list(download.there()), len(lines)) == (["doejane_777_101"], 1)


def test_anonymous_ids_of_five_digits_are_nobodys_user_id(download: Download) -> None:
    download.class_list("id,canvas\ns1,12345\n")
    download(
        "canvas", {"anon_12345_67890_m1.ipynb": "a", "anon_Ab3dE_67891_m1.ipynb": "b"}
    )
    assert download.there() == {"anon_12345": "a", "anon_Ab3dE": "b"}
    ledger = read_ledger(download.course)
    assert ledger.ids("anon_12345", "m1") == {"canvas-anonymous": "12345"}
    assert ledger.ids("anon_12345", "m2") == {}
    assert read_collected(download.submitted, "m1").students["anon_12345"].anonymous


def test_somebody_may_be_called_anon(download: Download) -> None:
    download("canvas", {"anon_12345_67890_m1.ipynb": "a", "roe_102_9002_m1.ipynb": "b"})
    assert read_ledger(download.course).ids("anon_12345", "m1") == {"canvas": "12345"}


def test_a_group_on_canvas_is_its_members_by_the_class_list(download: Download) -> None:
    """Canvas gives a group's file the group's name, and the user id of whoever handed it in."""
    download.class_list(
        "id,name,canvas,group\ns1,Person One,101,Team Red\ns2,Person Two,102,Team Red\n"
    )
    download("canvas", {"teamred_101_9001_m1.ipynb": "a"})
    ledger = read_ledger(download.course)
    assert list(download.there()) == ["teamred"]
    assert ledger.members("teamred", "m1") == ("s1", "s2")
    assert ledger.ids("teamred", "m1") == {}


# Namesakes


NAMESAKES = {
    "John Doe_502_assignsubmission_file/m1.ipynb": "a",
    "John Doe_503_assignsubmission_file/m1.ipynb": "b",
}


def test_two_namesakes_and_a_list_of_one_are_refused_and_nothing_is_written(
    download: Download,
) -> None:
    download.class_list("id,name,email\ns2,John Doe,john@example.org\n")
    with pytest.raises(
        KitError,
        match=r"John Doe \(moodle 502\) and John Doe \(moodle 503\) have one name.*s2",
    ):
        download("moodle", NAMESAKES)
    assert download.there() == {}
    assert not (download.course.root / "ledger.json").exists()


def test_a_number_in_the_class_list_or_the_worksheet_tells_namesakes_apart(
    download: Download,
) -> None:
    download.class_list("id,name,email,moodle\ns2,John Doe,john@example.org,503\n")
    download("moodle", NAMESAKES)
    assert download.there() == {"John Doe_502": "a", "s2": "b"}


def test_the_worksheets_emails_tell_namesakes_apart(download: Download) -> None:
    download.class_list("id,name,email\ns2,John Doe,john@example.org\n")
    rows = (
        '"Participant 502","John Doe",other@example.org\n"Participant 503","John '
        'Doe",john@example.org\n'
    )
    download("moodle", NAMESAKES, f'Identifier,"Full name","Email address"\n{rows}')
    assert download.there() == {"John Doe_502": "a", "s2": "b"}


def test_a_worksheet_corrects_what_a_name_had_linked(download: Download) -> None:
    """Only 503 had handed in, and was taken for the one John Doe of the list, who is 502."""
    download.class_list("id,name,email\ns2,John Doe,john@example.org\n")
    only = {"John Doe_503_assignsubmission_file/m1.ipynb": "b"}
    download("moodle", only)
    assert download.there() == {"s2": "b"}
    rows = (
        '"Participant 502","John Doe",john@example.org\n"Participant 503","John '
        'Doe",other@example.org\n'
    )
    lines = download("moodle", only, f'Identifier,"Full name","Email address"\n{rows}')
    assert download.there() == {"John Doe_503": "b"}
    assert any(
        line.startswith(
            "s2: what lay here was handed in by moodle 503, who is John Doe_503"
        )
        for line in lines
    )


def test_work_that_a_name_gave_to_the_wrong_student_is_put_aside(
    download: Download,
) -> None:
    download.class_list("id,name\ns1,John Doe\n")
    download("canvas", {"doejohn_102_9002_m1.ipynb": "of 102"})
    assert download.there() == {"s1": "of 102"}
    download.class_list("id,name,canvas\ns1,John Doe,103\n")
    lines = download("canvas", {"doejohn_102_9002_m1.ipynb": "of 102"})
    assert download.there() == {"doejohn_102": "of 102"}
    assert (
        "s1: what lay here was handed in by canvas 102, who is doejohn_102: it is kept "
        "in previous/1" in lines
    )
    assert list(read_collected(download.submitted, "m1").students) == ["doejohn_102"]


# Moodle's groups


GROUPS = {
    "Group A_501_assignsubmission_file/m1.ipynb": "a",
    "Group B_17_assignsubmission_file/m1.ipynb": "b",
    "Default group_assignsubmission_file/m1.ipynb": "c",
}
WORKSHEET = """Identifier,Full name,Email address,Status,Group,Grade
Participant 501,Person One,one@example.org,Submitted,Group A,
Participant 17,Person Two,two@example.org,Submitted,Group A,
Participant 18,Person Three,three@example.org,Submitted,Group_B,
Participant 19,Person Four,four@example.org,Submitted,Default group,
"""


def test_moodles_groups_are_one_submission_of_their_members(download: Download) -> None:
    download.class_list(
        "id,name,email\ns1,Person One,one@example.org\ns2,Person Two,two@example.org\n"
    )
    download("moodle", GROUPS, WORKSHEET)
    ledger = read_ledger(download.course)
    assert download.there() == {"Default group": "c", "Group A": "a", "Group B": "b"}
    assert ledger.members("Group A", "m1") == ("s1", "s2")
    assert ledger.members("Group B", "m1") == ("Person Three_18",)
    assert ledger.members("Default group", "m1") == ("Person Four_19",)
    assert ledger.ids("s2", "m1").get("moodle", "") == "17"
    download("moodle", GROUPS)  # without the worksheet, what is known stays
    assert read_ledger(download.course).members("Group A", "m1") == ("s1", "s2")
    assert read_ledger(download.course).ids("Group B", "m1").get("moodle", "") == ""


# GitHub


def test_underscores_stay_in_slugs_and_in_usernames(course: Course) -> None:
    (course.root / "source/k1_means").mkdir()
    (course.root / "source/k1_means/k1_means.py").touch()
    files = {
        "k1_means-submissions/k1_means-jane_univ/a.ipynb": "a",
        "k1_means-submissions/k1_means-octocat/a.ipynb": "b",
    }
    path = course.root / "clones"
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True)
        (path / name).write_text(content)
    collect(course, course.assignment("k1_means"), path, "github")
    there = {
        p.parent.parent.name: p.read_text()
        for p in course.submitted.glob("*/k1_means/*.ipynb")
    }
    assert there == {"jane_univ": "a", "octocat": "b"}


def test_a_second_repository_of_one_user_is_a_later_attempt(download: Download) -> None:
    lines = download(
        "github",
        {
            "m1-octocat/m1.ipynb": "a",
            "m1-octocat-2/m1.ipynb": "c",
            "m1-octocat-1/m1.ipynb": "b",
        },
    )
    assert download.there() == {"octocat": "c"}
    assert lines[1].startswith("octocat: 3 notebooks; took m1-octocat-2/m1.ipynb")


def test_a_username_may_end_in_a_number(download: Download) -> None:
    download.class_list("id,github\ns1,octocat\ns2,octocat-1\n")
    download(
        "github",
        {
            "m1-octocat/m1.ipynb": "a",
            "m1-octocat-1/m1.ipynb": "b",
            "m1-hubot-7/m1.ipynb": "c",
        },
    )
    assert download.there() == {"hubot-7": "c", "s1": "a", "s2": "b"}


@pytest.mark.parametrize("fork", ["m1-starter", "m1", "exercises"])
def test_forks_of_equal_names_are_their_owners(download: Download, fork: str) -> None:
    download(
        "github", {f"ann-b/{fork}/m1.ipynb": "a", f"octocat/{fork}/work/m1.ipynb": "b"}
    )
    assert download.there() == {"ann-b": "a", "octocat": "b"}


def test_a_folder_that_is_called_like_a_repository_is_not_the_whole_class(
    download: Download,
) -> None:
    with pytest.raises(
        KitError,
        match=r"all notebooks lie in m1-2026, which is called like one student's repository",
    ):
        download(
            "github",
            {"m1-2026/m1-ann/m1.ipynb": "a", "m1-2026/m1-octocat/m1.ipynb": "b"},
        )
    assert download.there() == {}


# Gradescope


def listed(number: int, *people: tuple[str, str, str], day: int = 1) -> str:
    lines = [
        f"  - :name: {name}\n    :sid: {sid}\n    :email: {email}"
        for name, sid, email in people
    ]
    text = "\n".join(lines)
    return f"submission_{number}:\n  :submitters:\n{text}\n  :created_at: 2026-10-0{day} 21:00:00 Z\n"


def test_a_student_id_that_comes_later_is_no_second_person(download: Download) -> None:
    jane = ("Person One", "", "one@example.org")
    download(
        "gradescope",
        {"submission_metadata.yml": listed(7, jane), "submission_7/m1.ipynb": "a"},
    )
    assert list(download.there()) == ["one@example.org"]
    with_sid = listed(21, ("Person One", "4104", "one@example.org"), day=2)
    download(
        "gradescope",
        {"submission_metadata.yml": with_sid, "submission_21/m1.ipynb": "b"},
    )
    assert download.there() == {"one@example.org": "b"}
    only_sid = listed(22, ("Person One", "4104", ""), day=3)
    download(
        "gradescope",
        {"submission_metadata.yml": only_sid, "submission_22/m1.ipynb": "c"},
    )
    assert download.there() == {"one@example.org": "c"}


def test_namesakes_on_gradescope_without_ids_are_refused(download: Download) -> None:
    john = ("John Doe", "", "")
    files = {"submission_1/m1.ipynb": "a", "submission_2/m1.ipynb": "b"}
    with pytest.raises(
        KitError, match="John Doe stands in several of Gradescope's submissions"
    ):
        download(
            "gradescope",
            {"submission_metadata.yml": listed(1, john) + listed(2, john), **files},
        )


def test_a_group_on_gradescope_hands_in_once_and_may_part(download: Download) -> None:
    one, two = (
        ("Person One", "1", "one@example.org"),
        ("Person Two", "2", "two@example.org"),
    )
    apart = listed(1, one) + listed(2, two)
    download(
        "gradescope",
        {
            "submission_metadata.yml": apart,
            "submission_1/m1.ipynb": "a",
            "submission_2/m1.ipynb": "b",
        },
    )
    lines = download(
        "gradescope",
        {
            "submission_metadata.yml": listed(3, one, two, day=2),
            "submission_3/m1.ipynb": "c",
        },
    )
    assert download.there() == {"1": "c"}
    assert "2: hands in with 1 now; the earlier notebook is in previous/" in lines
    assert read_ledger(download.course).members("1", "m1") == ("1", "2")
    parted = listed(4, one, day=3) + listed(5, two, day=3)
    download(
        "gradescope",
        {
            "submission_metadata.yml": parted,
            "submission_4/m1.ipynb": "d",
            "submission_5/m1.ipynb": "e",
        },
    )
    assert download.there() == {"1": "d", "2": "e"}
    assert read_ledger(download.course).members("1", "m1") == ("1",)


# Brightspace, Sakai, Open edX


def test_two_attempts_on_brightspace_are_one_person(download: Download) -> None:
    download.course = replace(download.course, about=About(timezone="Europe/Berlin"))
    lines = download(
        "brightspace",
        {
            "index.html": "<html>",
            "12345-67890 - Person One - Oct 1, 2026 1115 PM/m1.ipynb": "new",
            "12345-67890 - Person One - Oct 1, 2026 959 PM/m1.ipynb": "old",
            "12346-67890 - Person - Two - Oct 12, 2026 1205 AM/m1.ipynb": "b",
        },
    )
    assert download.there() == {"Person - Two_12346": "b", "Person One_12345": "new"}
    assert download.time("Person One_12345") == "2026-10-01 21:15:00.000000 UTC"
    assert download.time("Person - Two_12346") == "2026-10-11 22:05:00.000000 UTC"
    assert lines[-1] == "1 other files beside the notebooks were left"


def test_sakai_knows_people_by_the_id_in_brackets(download: Download) -> None:
    download.class_list("id,name,sakai\ns1,Person One,pone\n")
    folder = "Assignment 1/One, Person(pone)"
    download(
        "sakai",
        {
            "Assignment 1/grades.csv": "",
            f"{folder}/timestamp.txt": "20261001215900123",
            f"{folder}/Submission attachment(s)/m1.ipynb": "a",
            f"{folder}/Feedback Attachment(s)/m1.ipynb": "x",
            "Assignment 1/Two, Person (B.)(ptwo)/Submission attachment(s)/work.ipynb": "b",
        },
    )
    assert download.there() == {"ptwo": "b", "s1": "a"}
    assert download.time("s1") == "2026-10-01 21:59:00.123000 UTC"


def test_open_edx_puts_the_username_between_hyphens(download: Download) -> None:
    unit = "[1]Week 1, [1]Homework, [1]k-means"
    download(
        "edx",
        {
            "submissions.csv": "",
            f"{unit}/[1] - p-one - m1.ipynb": "a",
            f"{unit}/[1] - p-one - prompt_0.txt": "",
            "Removed from course/[x] - p_two - a - b.ipynb": "b",
        },
    )
    assert download.there() == {"p-one": "a", "p_two": "b"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["A/Doe, Jane(jdoe)/Submission attachment(s)/m1.ipynb"], "--from sakai"),
        (
            ["12345-67890 - Jane Doe - Oct 1, 2026 1015 PM/m1.ipynb"],
            "--from brightspace",
        ),
        (["[1]Week, [1]Work, [1]Unit/[1] - jdoe - m1.ipynb"], "--from edx"),
        (["Jane Doe_501_assignsubmission_file/m1.ipynb"], "--from moodle"),
        (
            ["s1/work/m1.ipynb", "s2/work/m1.ipynb"],
            "work would be one student with notebooks from 2 places",
        ),
        (
            ["a/s1.ipynb", "b/a/s2.ipynb"],
            "a would be one student with notebooks from 2 places: a, b/a",
        ),
    ],
)
def test_a_folder_in_which_one_student_would_be_several_is_refused(
    download: Download, files: list[str], message: str
) -> None:
    with pytest.raises(KitError, match=message):
        download("folder", dict.fromkeys(files, "a"))
    assert download.there() == {}


def test_a_roster_is_of_the_platform(download: Download, tmp_path: Path) -> None:
    with pytest.raises(
        KitError,
        match="--roster is for --from canvas, its gradebook, and --from moodle",
    ):
        download("github", {"m1-ann/m1.ipynb": "a"}, "Identifier\n")
    with pytest.raises(KitError, match=r"roster\.csv: nobody stands in it"):
        download("moodle", NAMESAKES, "Student,ID\n")
