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

MANY = 500
"""How many values one query is given: databases limit the number of parameters."""

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


def remember_answers(db: Session, answers: Mapping[Key, str]) -> set[Key]:
    """Note these answers; returns those that are other than before, or that nothing was known of. Commits nothing."""
    _ANSWERS.create(db.connection(), checkfirst=True)
    notebooks = list(dict.fromkeys(notebook for notebook, _ in answers))
    query = select(_ANSWERS.c.notebook_id, _ANSWERS.c.cell_id, _ANSWERS.c.sha256)
    known = {}
    for start in range(0, len(notebooks), MANY):
        some = query.where(_ANSWERS.c.notebook_id.in_(notebooks[start : start + MANY]))
        known.update({(row[0], row[1]): row[2] for row in db.execute(some)})
    new = {key: answer_sha256(answer) for key, answer in answers.items()}
    changed = {key for key, digest in new.items() if known.get(key) != digest}
    if old := [{"notebook": key[0], "cell": key[1]} for key in changed & known.keys()]:
        of_key = (_ANSWERS.c.notebook_id == bindparam("notebook"), _ANSWERS.c.cell_id == bindparam("cell"))
        db.execute(delete(_ANSWERS).where(*of_key), old)
    if changed:
        rows = [{"notebook_id": key[0], "cell_id": key[1], "sha256": new[key]} for key in sorted(changed)]
        db.execute(insert(_ANSWERS), rows)
    return changed


def remember_submissions(db: Session, submissions: Mapping[str, str]) -> None:
    """Note which notebook each submitted notebook's row was filled from: its id in the database → hash of the file.

    Commits nothing.
    """
    _SUBMISSIONS.create(db.connection(), checkfirst=True)
    keys = list(submissions)
    for start in range(0, len(keys), MANY):
        some = keys[start : start + MANY]
        db.execute(delete(_SUBMISSIONS).where(_SUBMISSIONS.c.notebook_id.in_(some)))
        if known := [{"notebook_id": key, "sha256": submissions[key]} for key in some if submissions[key]]:
            db.execute(insert(_SUBMISSIONS), known)
