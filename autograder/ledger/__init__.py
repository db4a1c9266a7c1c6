"""The ledger: who is who in a course, whatever platforms, folders and results call them.

One module owns it; everything that maps people asks it, and no one else compares names.

    ledger = read_ledger(course)
    matches, conflicts = ledger.match_rows("moodle", "a2_attention", rows, students)

For an exporter: make an `Identity` of each row of the platform's own file (its id there, emails and
logins, the name, the group), ask for all rows at once, and give row n what `matches[n].key` has: a
student, called as in `Mark.student`, or None for nobody.
`assert_certain(conflicts, students, platform)` ends the command where a conflict concerns one of
the students who have a mark: call it before anything is written. `ledger.learn_rows` beforehand
takes groups and accounts out of the same rows, so that a group's members have marks of their own.
"""

from autograder.ledger.book import Ledger, read_ledger
from autograder.ledger.identity_matching import Conflict, Identity, Match
from autograder.ledger.person import assert_certain

__all__ = ["Conflict", "Identity", "Ledger", "Match", "assert_certain", "read_ledger"]
