"""The matching of identities, as platforms write them, to people.

One rule serves downloads, rows of a platform's file and the class list:

1. The platform's own id decides: Canvas's user id, Moodle's number, a username at GitHub.
2. Else an account decides: an email, a login, a student number, the id in the class list. An
   account does not decide for a person of whom another id on that platform is known.
3. Else the name decides, under the same condition, if one person alone has the name and one
   identity alone claims the person.

Where two identities claim one person, or one identity claims two, nobody is chosen: that is a
`Conflict`, which names them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from autograder.course.platform_names import ANONYMOUS
from autograder.course.roster import fold_text

Evidence = Literal["id", "account", "name", "group", "new", ""]
Id = tuple[str, str]
"""A platform's name, and the platform's id of one person."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A person or a group, as a download or a row of a platform's file describes them.

    Attributes:
        ids: the platform's ids of the person, mostly one.
        accounts: emails, logins and student numbers: each is one person's alone.
        name: the person's name, or the group's.
        group: the group that the person is in for this assignment, where the row says so.
    """

    ids: tuple[Id, ...] = ()
    accounts: tuple[str, ...] = ()
    name: str = ""
    group: str = ""

    def __str__(self) -> str:
        """For messages: the name, and the id by which somebody finds the row."""
        labels = [f"{platform} {id_}" for platform, id_ in self.ids] or [
            *self.accounts[:1]
        ]
        if not labels:
            return self.name
        if not self.name:
            return "".join(labels)
        return f"{self.name} ({labels[0]})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A person to whom an identity can be matched.

    Attributes:
        key: the student's name in this course, which a match returns.
        ids: the person's ids on platforms; False for an id that was concluded from a name.
        accounts: emails, logins and student numbers.
        names: the names by which the person can be found.
    """

    key: str
    ids: Mapping[Id, bool] = field(default_factory=dict)
    accounts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """The person whom an identity means, and the evidence; `key` is None where no candidate is
    meant.
    """

    identity: Identity
    key: str | None = None
    evidence: Evidence = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Identities that cannot be told apart; `keys` are the people whom they may mean."""

    identities: tuple[Identity, ...]
    keys: tuple[str, ...]
    message: str


def match_identities(
    identities: Sequence[Identity],
    candidates: Iterable[Candidate],
    everybody: Iterable[Identity] = (),
) -> tuple[list[Match], list[Conflict]]:
    """Match each identity to a candidate; returns a match for each, in their order, and what could
    not be decided.

    Args:
        everybody: all people on the platform. A name that one of them has too decides nothing.
    """
    matching = _Matching(identities, candidates)
    matching.decide_by_id()
    matching.decide_by_account()
    matching.decide_by_name(everybody)
    matches = []
    for number, identity in enumerate(identities):
        match = matching.matches.get(number, Match(identity))
        matches.append(match)
    return matches, matching.conflicts


def id_key(id_: Id) -> Id:
    """The id in a form that is equal for all writings of the id. Canvas's anonymous ids tell
    capitals from small letters.
    """
    platform, value = id_
    return platform, value if platform == ANONYMOUS else fold_text(value)


def name_key(name: str) -> str:
    """The letters and digits of a name: platforms drop spaces, commas and apostrophes from file
    names.
    """
    return "".join(_words(name))


def name_keys(name: str) -> set[str]:
    """Every order in which a platform may write the name: first name first, or last."""
    words = _words(name)
    forms = set()
    for start in range(len(words)):
        rotated = words[start:] + words[:start]
        forms.add("".join(rotated))
    return forms


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", fold_text(unicodedata.normalize("NFKC", name)))


class _Matching:
    """One matching in progress: indices of the candidates, and the decisions so far."""

    def __init__(
        self, identities: Sequence[Identity], candidates: Iterable[Candidate]
    ) -> None:
        self.matches: dict[int, Match] = {}
        self.conflicts: list[Conflict] = []
        self._identities = identities
        self._candidates = {candidate.key: candidate for candidate in candidates}
        self._ids: dict[Id, set[str]] = defaultdict(set)
        self._accounts: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, set[str]] = defaultdict(set)
        for candidate in self._candidates.values():
            for id_ in candidate.ids:
                self._ids[id_key(id_)].add(candidate.key)
            for account in candidate.accounts:
                self._accounts[fold_text(account)].add(candidate.key)
            for name in candidate.names:
                for form in name_keys(name):
                    self._names[form].add(candidate.key)

    def decide_by_id(self) -> None:
        for number, identity in enumerate(self._identities):
            keys: set[str] = set()
            for id_ in identity.ids:
                keys |= self._ids.get(id_key(id_), set())
            self._decide(number, keys, "id")

    def decide_by_account(self) -> None:
        for number, identity in self._undecided():
            keys: set[str] = set()
            for account in identity.accounts:
                keys |= self._accounts.get(fold_text(account), set())
            keys = {key for key in keys if not self._has_other_id(key, identity)}
            self._decide(number, keys, "account")

    def decide_by_name(self, everybody: Iterable[Identity]) -> None:
        namesakes = self._names_of_others(everybody)
        decided = {match.key: number for number, match in self.matches.items()}
        claims: dict[str, list[int]] = defaultdict(list)
        for number, identity in self._undecided():
            keys = self._names.get(name_key(identity.name), set())
            if len(keys) != 1:
                continue
            (key,) = keys
            if key in decided:
                if not self._only_a_name_linked(self.matches[decided[key]]):
                    continue
                claims[key] = claims[key] or [decided[key]]
            elif self._has_other_id(key, identity):
                continue
            elif name_keys(identity.name) & namesakes:
                continue  # the name does not tell which of the two is meant
            claims[key].append(number)
        for key, numbers in claims.items():
            self._settle(key, numbers)

    def _names_of_others(self, everybody: Iterable[Identity]) -> set[str]:
        """Names of people who are decided already or not among the identities."""
        present: set[Id] = set()
        for identity in self._identities:
            present.update(map(id_key, identity.ids))
        names: set[str] = set()
        for match in self.matches.values():
            names |= name_keys(match.identity.name)
        for person in everybody:
            if present.isdisjoint(map(id_key, person.ids)):
                names |= name_keys(person.name)
        return names

    def _settle(self, key: str, numbers: Sequence[int]) -> None:
        """Match the candidate to the one identity that claims their name, or note the conflict."""
        rivals = [self._identities[number] for number in numbers]
        earlier_ids = []
        for id_, is_sure in self._candidates[key].ids.items():
            is_nobodys = all(self._differs(id_, rival) for rival in rivals)
            if is_nobodys and not is_sure:
                platform, value = id_
                earlier_ids.append(f"{platform} {value}")
        if len(rivals) == 1 and not earlier_ids:
            self.matches[numbers[0]] = Match(rivals[0], key, "name")
            return
        shown = " and ".join([*map(str, rivals), *earlier_ids])
        message = f"{shown} have one name, and either may be {key}"
        self.conflicts.append(Conflict(tuple(rivals), (key,), message))

    def _only_a_name_linked(self, match: Match) -> bool:
        """Whether the match is by an id that only a name had linked to the person before."""
        assert match.key is not None
        if match.evidence != "id":
            return False
        ids = set(map(id_key, match.identity.ids))
        links = self._candidates[match.key].ids
        sure_ids = [id_key(id_) for id_, is_sure in links.items() if is_sure]
        return ids.isdisjoint(sure_ids)

    def _undecided(self) -> list[tuple[int, Identity]]:
        in_conflict: set[int] = (
            set()
        )  # of the objects: two rows may describe equal identities
        for conflict in self.conflicts:
            in_conflict.update(map(id, conflict.identities))
        undecided = []
        for number, identity in enumerate(self._identities):
            if number not in self.matches and id(identity) not in in_conflict:
                undecided.append((number, identity))
        return undecided

    def _decide(self, number: int, keys: set[str], evidence: Evidence) -> None:
        """Match an identity to the only candidate, or note the conflict."""
        identity = self._identities[number]
        if len(keys) > 1:
            people = tuple(sorted(keys))
            message = f"{identity} is {' and '.join(people)} at once"
            self.conflicts.append(Conflict((identity,), people, message))
            return
        if not keys:
            return
        (key,) = keys
        rival = self._rival(key, identity)
        if rival is None:
            self.matches[number] = Match(identity, key, evidence)
        else:
            message = f"{rival} and {identity} are both {key}"
            self.conflicts.append(Conflict((rival, identity), (key,), message))

    def _rival(self, key: str, identity: Identity) -> Identity | None:
        """An identity with another id that is matched to the candidate already."""
        for match in self.matches.values():
            if match.key != key:
                continue
            if any(self._differs(id_, identity) for id_ in match.identity.ids):
                return match.identity
        return None

    def _has_other_id(self, key: str, identity: Identity) -> bool:
        """Whether the platform is known to have another id for this person."""
        ids = self._candidates[key].ids
        return any(
            is_sure and self._differs(id_, identity) for id_, is_sure in ids.items()
        )

    @staticmethod
    def _differs(id_: Id, identity: Identity) -> bool:
        """Whether the identity has ids on the platform of this id, and all are others."""
        wanted_platform, _ = id_
        on_platform = []
        for other in identity.ids:
            platform, _ = other
            if platform == wanted_platform:
                on_platform.append(id_key(other))
        return bool(on_platform) and id_key(id_) not in on_platform
