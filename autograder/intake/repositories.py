"""Clones of students' repositories at GitHub: whose each is.

GitHub Classroom calls a repository `<slug>-<username>`, or `<slug>-<team>`, and where there is one of that name
already, since somebody accepts an assignment again, adds `-1`, `-2` and so on (classroom, `app/models/concerns/
nameable.rb`). The slug is the assignment's title in small letters, in which underscores stay. `gh classroom clone`
puts all clones into `<slug>-submissions`. Forks have equal names, and differ in their owners.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from autograder.errors import KitError
from autograder.handed_in import shown
from autograder.intake.archives import Incoming, notebook_stem
from autograder.intake.owners import FindOwner, KnowsId, Owner, file_stem, seconds
from autograder.ledger.matching import Identity

_ACCEPTED_AGAIN = re.compile(r"(.+)-(\d{1,3})")


def repository_prefix(assignment: str) -> str:
    """What GitHub Classroom puts before the username, where the assignment has the same title there."""
    return re.sub(r"[^a-z0-9_]+", "-", assignment.lower()).strip("-") + "-"


def owners_of_repositories(files: Sequence[Incoming], assignment: str, knows: KnowsId) -> FindOwner:
    """How to tell whose each file in these clones is."""
    notebooks = [file for file in files if notebook_stem(file.name)]
    prefix = repository_prefix(assignment)
    if not any(_repository(file, prefix) for file in notebooks):
        prefix = _shared_prefix(notebooks)
    repositories = {place for file in notebooks if (place := _repository(file, prefix))}
    _assert_several(repositories, notebooks, prefix)
    forks = _forks(repositories or _equal_folders(notebooks))
    names = {place[-1][len(prefix) :].lower() for place in repositories - forks}

    def find_owner(file: Incoming) -> Owner | None:
        fork = next((place for place in forks if file.parts[: len(place)] == place), None)
        place = fork or _repository(file, prefix)
        if place is None:
            return None
        user = fork[-2] if fork else place[-1][len(prefix) :]
        accepted_again = _ACCEPTED_AGAIN.fullmatch(user) if not fork else None
        number = 0
        owner = accepted_again[1] if accepted_again and not knows("github", user) else ""
        if accepted_again and owner and (owner.lower() in names or knows("github", owner)):
            user, number = owner, int(accepted_again[2])
        rank = (-float(len(file.parts) - len(place)), seconds(file.modified))
        identity = Identity((("github", user),), (user,), user)
        return Owner(user, identity, file_stem(file.name), rank=rank, attempt=(float(number),), place=place)

    return find_owner


def _repository(file: Incoming, prefix: str) -> tuple[str, ...] | None:
    """The folder of the clone that the file lies in; a name that a student chose stands further in, and is none."""
    plain = prefix.replace("_", "-")
    for depth, part in enumerate(file.parts[:-1], 1):
        name = part.lower().replace("_", "-")
        if prefix and name.startswith(plain) and len(name) > len(plain):
            if name == f"{plain}submissions" and len(file.parts) - depth > 1:
                continue  # the folder that holds all clones
            return file.parts[:depth]
    return None


def _assert_several(repositories: set[tuple[str, ...]], notebooks: Sequence[Incoming], prefix: str) -> None:
    """A folder that is called like a repository, and holds what look like repositories, may be the whole class's.

    Raises:
        KitError: it is the only one. A student may call folders like others' repositories, so nobody is guessed.
    """
    if len(repositories) != 1:
        return
    (only,) = repositories
    inner = {file.parts[len(only)] for file in notebooks if file.parts[: len(only)] == only}
    if sum(_repository(Incoming((name, "")), prefix) is not None for name in inner) > 1:
        raise KitError(
            f"all notebooks lie in {shown('/'.join(only))}, which is called like one student's repository, and holds "
            "several: name that folder itself where they are the class's clones"
        )


def _forks(places: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Repositories of equal names, in folders that are called like their owners."""
    places = {place for place in places if len(place) > 1}
    equal = Counter(place[-1].lower() for place in places)
    return {place for place in places if equal[place[-1].lower()] > 1}


def _equal_folders(notebooks: Sequence[Incoming]) -> set[tuple[str, ...]]:
    """`<owner>/<repository>` where no name has the assignment's in front, and all repositories are called the same."""
    for depth in range(2, max((len(file.parts) for file in notebooks), default=0)):
        places = {file.parts[:depth] for file in notebooks if len(file.parts) > depth}
        if len(places) > 1 and len({place[-1].lower() for place in places}) == 1:
            return places
    return set()


def _shared_prefix(notebooks: Sequence[Incoming]) -> str:
    """What the folders' names have in common, up to a hyphen; "" where that is nothing."""
    for level in range(max((len(file.parts) for file in notebooks), default=1) - 1):
        names = sorted({file.parts[level].lower() for file in notebooks if len(file.parts) > level + 1})
        if len(names) > 1:
            first, last = (name.replace("_", "-") for name in (names[0], names[-1]))
            same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
            return first[: first[:same].rfind("-") + 1]
    return ""
