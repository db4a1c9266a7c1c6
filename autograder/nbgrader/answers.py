"""Remembers in the gradebook what was answered when a cell was last graded, and so tells a new answer from an old one.

Timestamps do not tell: platforms drop them, and a second upload of the same file has a new one. Two tables of our own
stand beside nbgrader's, which nbgrader leaves alone, so that scores and what they were given for change together: the
hash of each answer, and that of the notebook that the answers stood in. `earlier_answers.py` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Column, MetaData, String, Table, bindparam, delete, insert, select
from sqlalchemy.orm import Session

from autograder.nbgrader.earlier_answers import answer_sha256

Key = tuple[str, str]
"""(submitted notebook, cell), as the database names them."""

_OURS = MetaData()
_ANSWERS = Table(
    "attention_kit_answer",
    _OURS,
    Column("notebook_id", String(32), primary_key=True),
    Column("cell_id", String(32), primary_key=True),
    Column("sha256", String(64), nullable=False),
)
_SUBMISSIONS = Table(
    "attention_kit_submission",
    _OURS,
    Column("notebook_id", String(32), primary_key=True),
    Column("sha256", String(64), nullable=False),
)


def remember_answers(db: Session, answers: Mapping[Key, str], submissions: Mapping[str, str]) -> set[Key]:
    """Note what was handed in, for one batch of submissions. Commits nothing.

    Args:
        answers: what was answered in each cell.
        submissions: submitted notebook → hash of the file that its rows are filled from; "" where that is not known.

    Returns:
        The answers that are other than before, or that nothing was known of.
    """
    _OURS.create_all(db.connection())
    rows = db.execute(select(_ANSWERS).where(_ANSWERS.c.notebook_id.in_(submissions)))
    known = {(row.notebook_id, row.cell_id): row.sha256 for row in rows}
    new = {key: answer_sha256(answer) for key, answer in answers.items()}
    changed = {key for key, digest in new.items() if known.get(key) != digest}
    if changed:
        this_answer = (_ANSWERS.c.notebook_id == bindparam("notebook"), _ANSWERS.c.cell_id == bindparam("cell"))
        db.execute(delete(_ANSWERS).where(*this_answer), [{"notebook": key[0], "cell": key[1]} for key in changed])
        columns = [{"notebook_id": key[0], "cell_id": key[1], "sha256": new[key]} for key in sorted(changed)]
        db.execute(insert(_ANSWERS), columns)
    db.execute(delete(_SUBMISSIONS).where(_SUBMISSIONS.c.notebook_id.in_(submissions)))
    if hashes := [{"notebook_id": key, "sha256": sha256} for key, sha256 in submissions.items() if sha256]:
        db.execute(insert(_SUBMISSIONS), hashes)
    return changed
