"""The ledger: who is who in a course, whatever platforms, folders and results call them.

Everything that maps people asks the ledger, and no other module compares names:

    ledger = read_ledger(course)
    matches, conflicts = match_rows(ledger, "moodle", "a2_attention", rows, students)

For an exporter: make an `Identity` of each row of the platform's file (the id there, emails and
logins, the name, the group) and ask for all rows at once. Row n belongs to `matches[n].key`: a
student, named as in `Mark.student`, or None for nobody.
`assert_certain(conflicts, students, platform)` ends the command where a conflict concerns a student
who has a mark: call it before anything is written. `learn_rows`, called before, takes groups and
accounts out of the same rows, so that a group's members have marks of their own.
"""

from autograder.ledger.book import Ledger, read_ledger
from autograder.ledger.identity_matching import Conflict, Identity, Match
from autograder.ledger.linking import (
    assert_certain,
    find_in_class_list,
    learn_rows,
    link_download,
    match_rows,
)

__all__ = [
    "Conflict",
    "Identity",
    "Ledger",
    "Match",
    "assert_certain",
    "find_in_class_list",
    "learn_rows",
    "link_download",
    "match_rows",
    "read_ledger",
]
