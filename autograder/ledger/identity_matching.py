"""Who is meant: identities, as platforms write them, matched to people.

There is one rule, for downloads, for rows of a platform's file and for the class list:

1. The platform's own id decides: Canvas's user id, Moodle's number, a username at GitHub.
2. Else an account decides: an email, a login, a student number, the id in the class list. It does
   not decide for somebody of whom another id on that platform is known.
3. Else the name, under the same condition, if one person alone has the name and one identity alone
  claims it.

Where two claim one person, or one claims two, nobody is chosen: that is a `Conflict`, which names
them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from autograder.course.platform_names import ANONYMOUS
from autograder.course.roster import same

Evidence = Literal["id", "account", "name", "group", "new", ""]
Id = tuple[str, str]
"""A platform's name, and what it knows one person by."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a download, or a row of a platform's file, says about whose it is.

    Attributes:
        ids: the platform's own id of the person, mostly one.
        accounts: what else is one person's alone: emails, logins, student numbers.
        name: the person's name, or that of a group.
        group: the group that the person is in for this assignment, where the row says so.
    """

    ids: tuple[Id, ...] = ()
    accounts: tuple[str, ...] = ()
    name: str = ""
    group: str = ""

    def __str__(self) -> str:
        """For messages: the name, and the id by which somebody finds the row."""
        known_by = [f"{platform} {id_}" for platform, id_ in self.ids] or [*self.accounts[:1]]
        return (
            f"{self.name} ({known_by[0]})"
            if self.name and known_by
            else self.name or "".join(known_by)
        )


@dataclass(frozen=True, slots=True)
class Known:
    """Somebody whom an identity can be matched to.

    Attributes:
        key: what a match returns: the student's name in this course.
        ids: the ids on platforms; False where one was concluded from a name.
        accounts, names: as in `Identity`.
    """

    key: str
    ids: Mapping[Id, bool] = field(default_factory=dict)
    accounts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """Who an identity is, and what it was concluded from; `key` is None where nobody is known by
    it.
    """

    identity: Identity
    key: str | None = None
    evidence: Evidence = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Identities of which nobody can say who they are; `keys` are the people whom they may be."""

    identities: tuple[Identity, ...]
    keys: tuple[str, ...]
    message: str


def match_identities(
    identities: Sequence[Identity], people: Iterable[Known], everybody: Iterable[Identity] = ()
) -> tuple[list[Match], list[Conflict]]:
    """Who each identity is, in their order, and what could not be decided.

    Args:
        everybody: who else there is on the platform: somebody's namesake among them is not meant by
            the name.
    """
    matcher = _Matcher(identities, people, everybody)
    matcher.by_id()
    matcher.by_account()
    matcher.by_name()
    matches = [
        matcher.found.get(number, Match(identity)) for number, identity in enumerate(identities)
    ]
    return matches, matcher.conflicts


def id_key(id_: Id) -> Id:
    """The id so that two writings of it are equal. Canvas's anonymous ids tell capitals from small
    letters.
    """
    platform, value = id_
    return platform, value if platform == ANONYMOUS else same(value)


def name_key(name: str) -> str:
    """The name's letters and digits alone: platforms drop spaces, commas and apostrophes from file
    names.
    """
    return "".join(re.findall(r"\w+", same(unicodedata.normalize("NFKC", name)))).replace("_", "")


def name_keys(name: str) -> set[str]:
    """Every order in which a platform may write the name: first name first, or last."""
    words = re.findall(r"[^\W_]+", same(unicodedata.normalize("NFKC", name)))
    return {"".join((*words[start:], *words[:start])) for start in range(len(words))}


class _Matcher:
    """One matching: indices of the people, and what is decided so far."""

    def __init__(
        self, identities: Sequence[Identity], people: Iterable[Known], everybody: Iterable[Identity]
    ) -> None:
        self.identities = identities
        self._everybody = everybody
        self.found: dict[int, Match] = {}
        self.conflicts: list[Conflict] = []
        self._people = {person.key: person for person in people}
        self._ids: dict[Id, set[str]] = defaultdict(set)
        self._accounts: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, set[str]] = defaultdict(set)
        for person in self._people.values():
            for id_ in person.ids:
                self._ids[id_key(id_)].add(person.key)
            for account in person.accounts:
                self._accounts[same(account)].add(person.key)
            for form in set().union(*map(name_keys, person.names)):
                self._names[form].add(person.key)

    def by_id(self) -> None:
        for number, identity in enumerate(self.identities):
            keys = set().union(*(self._ids.get(id_key(id_), set()) for id_ in identity.ids))
            self._decide(number, keys, "id")

    def by_account(self) -> None:
        for number, identity in self._open():
            named = set().union(
                *(self._accounts.get(same(account), set()) for account in identity.accounts)
            )
            self._decide(
                number, {key for key in named if not self._has_other_id(key, identity)}, "account"
            )

    def by_name(self) -> None:
        taken = {match.key: match for match in self.found.values()}
        ids_here = {id_key(id_) for identity in self.identities for id_ in identity.ids}
        elsewhere = (
            platform_identity
            for platform_identity in self._everybody
            if not ids_here & set(map(id_key, platform_identity.ids))
        )
        settled = (match.identity for match in self.found.values())
        namesakes = set().union(
            *(name_keys(platform_identity.name) for platform_identity in (*settled, *elsewhere))
        )
        claims: dict[str, list[Identity]] = defaultdict(list)
        numbers: dict[int, int] = {}
        for number, identity in self._open():
            keys = self._names.get(name_key(identity.name), set()) if identity.name else set()
            key = next(iter(keys)) if len(keys) == 1 else ""
            holder = taken.get(key)
            if holder is not None and self._by_name_earlier(holder):
                claims[key] = claims[key] or [holder.identity]
            elif not key or holder is not None or self._has_other_id(key, identity):
                continue
            elif name_keys(identity.name) & namesakes:
                continue  # which of the two is meant no name tells
            claims[key].append(identity)
            numbers[id(identity)] = number
        for key, rivals in claims.items():
            earlier = [
                f"{platform} {value}"
                for (platform, value), sure in self._people[key].ids.items()
                if not sure and all(self._is_other((platform, value), rival) for rival in rivals)
            ]
            if len(rivals) == 1 and not earlier:
                self.found[numbers[id(rivals[0])]] = Match(rivals[0], key, "name")
            else:
                shown = " and ".join([*map(str, rivals), *earlier])
                message = f"{shown} have one name, and either may be {key}"
                self.conflicts.append(Conflict(tuple(rivals), (key,), message))

    def _by_name_earlier(self, match: Match) -> bool:
        """Whether an id decides that only a name had linked to the person before."""
        sure = self._people[match.key].ids if match.key is not None else {}
        return match.evidence == "id" and not any(
            is_sure
            for id_, is_sure in sure.items()
            if id_key(id_) in map(id_key, match.identity.ids)
        )

    def _open(self) -> list[tuple[int, Identity]]:
        undecided = {
            id(identity) for conflict in self.conflicts for identity in conflict.identities
        }
        return [
            (number, identity)
            for number, identity in enumerate(self.identities)
            if number not in self.found and id(identity) not in undecided
        ]

    def _decide(self, number: int, keys: set[str], evidence: Evidence) -> None:
        identity = self.identities[number]
        if len(keys) > 1:
            message = f"{identity} is {' and '.join(sorted(keys))} at once"
            self.conflicts.append(Conflict((identity,), tuple(sorted(keys)), message))
        elif keys:
            (key,) = keys
            rival = next(
                (
                    match.identity
                    for match in self.found.values()
                    if match.key == key
                    and any(self._is_other(id_, identity) for id_ in match.identity.ids)
                ),
                None,
            )
            if rival is None:
                self.found[number] = Match(identity, key, evidence)
            else:
                message = f"{rival} and {identity} are both {key}"
                self.conflicts.append(Conflict((rival, identity), (key,), message))

    def _has_other_id(self, key: str, identity: Identity) -> bool:
        """Whether the platform is known to call this person something else."""
        return any(
            sure and self._is_other(id_, identity) for id_, sure in self._people[key].ids.items()
        )

    @staticmethod
    def _is_other(id_: Id, identity: Identity) -> bool:
        on_platform = [id_key(own_id) for own_id in identity.ids if own_id[0] == id_[0]]
        return bool(on_platform) and id_key(id_) not in on_platform
