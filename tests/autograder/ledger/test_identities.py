"""The one rule by which identities are matched to people."""

from __future__ import annotations

import unicodedata

import pytest

from autograder.ledger.identity_matching import Candidate, Identity, match_identities


def canvas(id_: str, name: str = "", *accounts: str) -> Identity:
    return Identity((("canvas", id_),), accounts, name)


def keys(identities: list[Identity], people: list[Candidate]) -> list[str | None]:
    matches, conflicts = match_identities(identities, people)
    assert conflicts == []
    return [found.key for found in matches]


def test_an_id_beats_an_account_and_a_name() -> None:
    people = [
        Candidate("s1", {("canvas", "1"): True}, ("one@example.org",), ("Person One",)),
        Candidate("s2", {("canvas", "2"): True}, ("two@example.org",), ("Person Two",)),
    ]
    assert keys([canvas("1", "Person Two", "two@example.org")], people) == ["s1"]


def test_an_account_beats_a_name() -> None:
    people = [
        Candidate("s1", {}, ("one@example.org",), ("Person One",)),
        Candidate("s2", {}, (), ("Person Two",)),
    ]
    assert keys([canvas("1", "Person Two", "ONE@example.org")], people) == ["s1"]


def test_nobody_whose_id_is_another_is_meant_by_account_or_name() -> None:
    people = [Candidate("s1", {("canvas", "1"): True}, ("one",), ("Person One",))]
    assert keys([canvas("9", "Person One", "one")], people) == [None]
    # of GitHub nothing is known
    assert keys([Identity((("github", "9"),), ("one",), "")], people) == ["s1"]


@pytest.mark.parametrize(
    "written",
    [
        "Doe, Jane",
        "doejane",
        "Jane Doe",
        "JANE  DOE",
        "Jané Doe".replace("é", "e"),
        "jane_doe",
    ],
)
def test_a_name_in_any_order_and_without_its_spaces_is_the_name(written: str) -> None:
    assert keys([canvas("1", written)], [Candidate("s1", {}, (), ("Jane Doe",))]) == [
        "s1"
    ]


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("Zoe\u0301 O'Neil", "Zo\u00e9 O\u2019Neil"),
        ("Zoé ONeil", "Zoé O'Neil"),
        (
            unicodedata.normalize("NFD", "müllerlüdenscheidt"),
            "Müller-Lüdenscheidt T".removesuffix(" T"),
        ),
        ("DE LA CRUZ, Maria", "Maria de la Cruz"),
    ],
)
def test_apostrophes_hyphens_and_composed_letters_are_one_writing(
    written: str, listed: str
) -> None:
    assert keys([canvas("1", written)], [Candidate("s1", {}, (), (listed,))]) == ["s1"]


def test_a_name_of_two_people_is_nobodys() -> None:
    people = [
        Candidate("s1", {}, (), ("John Doe",)),
        Candidate("s2", {}, (), ("Doe John",)),
    ]
    assert keys([canvas("1", "John Doe")], people) == [None]


def test_two_claims_on_one_name_are_refused_with_both_named() -> None:
    matches, (conflict,) = match_identities(
        [canvas("1", "John Doe"), canvas("2", "Doe, John")],
        [Candidate("s1", {}, (), ("John Doe",))],
    )
    assert [found.key for found in matches] == [None, None]
    assert conflict.keys == ("s1",)
    assert (
        "John Doe (canvas 1) and Doe, John (canvas 2) have one name" in conflict.message
    )


def test_a_namesake_elsewhere_on_the_platform_makes_a_name_nobodys() -> None:
    john, other = canvas("1", "John Doe"), canvas("2", "Doe, John")
    people = [
        Candidate("s1", {}, (), ("John Doe",)),
        Candidate("s2", {("canvas", "2"): True}),
    ]
    assert match_identities([john], people, [john])[0][0].key == "s1"
    assert match_identities([john], people, [john, other])[0][0].key is None
    assert keys([john, other], people) == [None, "s2"]


def test_an_id_settles_which_of_two_claims_is_meant() -> None:
    people = [Candidate("s1", {("canvas", "2"): True}, (), ("John Doe",))]
    assert keys([canvas("1", "John Doe"), canvas("2", "John Doe")], people) == [
        None,
        "s1",
    ]


@pytest.mark.parametrize("download", [["2"], ["1", "2"]])
def test_an_id_that_only_a_name_has_linked_does_not_settle_it(
    download: list[str],
) -> None:
    people = [Candidate("s1", {("canvas", "1"): False}, (), ("John Doe",))]
    matches, (conflict,) = match_identities(
        [canvas(id_, "John Doe") for id_ in download], people
    )
    assert "canvas 1" in conflict.message
    assert "canvas 2" in conflict.message
    assert matches[-1].key is None


def test_a_conflict_names_who_is_there_and_no_id_that_is_certain() -> None:
    """Canvas 3 is the person's for sure, and nobody's in this download."""
    ids = {("canvas", "1"): False, ("canvas", "3"): True}
    people = [Candidate("s1", ids, (), ("John Doe",))]
    _, (conflict,) = match_identities(
        [canvas("1", "John Doe"), canvas("2", "John Doe")], people
    )
    assert conflict.message == (
        "John Doe (canvas 1) and John Doe (canvas 2) have one name, and either may be s1"
    )


def test_who_is_two_people_at_once_is_refused() -> None:
    people = [Candidate("s1", {}, ("one",)), Candidate("s2", {}, ("two",))]
    (found,), (conflict,) = match_identities([canvas("1", "", "one", "two")], people)
    assert found.key is None
    assert conflict.message == "canvas 1 is s1 and s2 at once"


def test_whoever_is_two_people_is_not_a_third_by_weaker_evidence() -> None:
    """Two by id, and a third by the email; two by logins, and a third by the name."""
    people = [
        Candidate("s1", {("canvas", "1"): True}, ("one",)),
        Candidate("s2", {("github", "octo"): True}, ("two",)),
        Candidate("s3", {}, ("doe@x.edu",), ("John Doe",)),
    ]
    by_id = Identity((("canvas", "1"), ("github", "octo")), ("doe@x.edu",), "")
    by_login = Identity((), ("one", "two"), "John Doe")
    for identity in (by_id, by_login):
        (match,), (conflict,) = match_identities([identity], people)
        assert (match.key, conflict.keys) == (None, ("s1", "s2"))
    # s1 has another id on Canvas for sure: the login is not theirs
    assert keys([canvas("7", "John Doe", "one", "two")], people) == ["s2"]


def test_two_ids_of_one_person_are_refused_with_both_named() -> None:
    people = [Candidate("s1", {}, ("one", "one@example.org"))]
    matches, (conflict,) = match_identities(
        [canvas("1", "", "one"), canvas("2", "", "one@example.org")], people
    )
    assert [found.key for found in matches] == ["s1", None]
    assert conflict.message == "canvas 1 and canvas 2 are both s1"


def test_anonymous_ids_tell_capitals_from_small_letters() -> None:
    people = [
        Candidate("s1", {("canvas-anonymous", "aB3de"): True}),
        Candidate("s2", {("github", "Octocat"): True}),
    ]
    identities = [
        Identity((("canvas-anonymous", "Ab3de"),)),
        Identity((("github", "octocat"),)),
    ]
    assert keys(identities, people) == [None, "s2"]
