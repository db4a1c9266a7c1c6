"""Links in a written answer, clicked by an instructor in the formgrader: none of them runs anything
there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from formgrader_server import formgrader
from nbgrader_course import TinyCourse

from autograder.nbgrader.formgrader import _as_text
from autograder.nbgrader.gradebook import open_gradebook

sys.path.append(str(Path(__file__).resolve().parents[1] / "outputs"))

from browser import needs_chromium
from devtools import Tab, open_tab

_SCRIPT = "javascript:void(document.documentElement.dataset.ran=1)"
ANSWER = (
    f"[one](files/{_SCRIPT}) <a href='files/{_SCRIPT}'>two</a> <a "
    f"href='/files/{_SCRIPT}'>three</a> "
    f"[four](files/files/{_SCRIPT}) <svg><a xlink:href='{_SCRIPT}'><text "
    "y='9'>five</text></a></svg> "
    f"<a href='{_SCRIPT}'>six</a> [honest](https://example.org/x)"
)
NAME = 'ada"><img src=x onerror=document.documentElement.dataset.ran=1>'
"""A folder's name, as a platform may have written it from the name that the student chose there."""
_LINKS = "document.querySelectorAll('#notebook-container .rendered_html a:not(.anchor-link)')"


def _open_the_submission(tab: Tab, address: str, course: Path) -> list[str]:
    """Open the course's one submission; where its links lead, "" for one that leads nowhere."""
    tab.go(f"{address}formgrader?path={course}")
    tab.wait_for("location.pathname.endsWith('manage_assignments')")
    tab.go(f"{address}formgrader/gradebook/tiny/tiny")
    tab.click("tbody td a[href*='/submissions/']")
    tab.wait_for(
        "typeof submission_id != 'undefined' && formgrader.grades?.loaded && "
        "formgrader.comments?.loaded"
    )
    tab.look(f"{_LINKS}.forEach((link, place) => {{ link.dataset.place = place }})")
    targets: list[str] = tab.look(
        f"[...{_LINKS}].map(link => link.getAttribute('href') || '')"
    )
    return targets


def test_names_in_the_formgraders_pages_are_text() -> None:
    values = {
        "student_id": '"</script><b>',
        "index": 1,
        "resources": {"student": "a&b", "late": None},
    }
    assert _as_text(values) == {
        "student_id": "&quot;&lt;/script&gt;&lt;b&gt;",
        "index": 1,
        "resources": {"student": "a&amp;b", "late": None},
    }


@needs_chromium
def test_no_link_of_an_answer_runs_wherever_jupyter_was_started(
    tiny: TinyCourse,
) -> None:
    """Jupyter is started beside the course, so the formgrader reads its settings late. Without our
    filters one runs.
    """
    tiny.hand_in_words("ada", ANSWER)
    tiny.export_gradebook()
    with open_gradebook(tiny.course) as gradebook:
        gradebook.update_or_create_student("ada", first_name="Ada", last_name=NAME)
    with formgrader(tiny.root, tiny.root.parent) as address, open_tab() as tab:
        tab.go(f"{address}login?token=secret&next=/formgrader?path={tiny.root}")
        tab.wait_for("location.pathname.endsWith('manage_assignments')")
        targets = _open_the_submission(tab, address, tiny.root)
        assert sorted(targets) == ["", "", "", "", "", "https://example.org/x"]
        for place in range(5):
            tab.click(f"a[data-place='{place}']")
        # a script in a link runs late, too
        tab.look("setTimeout(() => document.documentElement.dataset.later = 1)")
        tab.wait_for("document.documentElement.dataset.later")
        assert not tab.look("document.documentElement.dataset.ran")
        assert NAME in tab.look("document.querySelector('.live-notebook').textContent")
        with (tiny.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write("\nc.HTMLExporter.filters = {}\n")
        assert _open_the_submission(tab, address, tiny.root)[0] == _SCRIPT
        tab.click("a[data-place='0']")
        tab.wait_for("document.documentElement.dataset.ran")
