"""One course and one yard for the whole corpus; one batch for each tier that stands here."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator

import pytest
from courses import HIDDEN_INI, built_course
from vault_course import write_vault
from yard import OF_TIER, Batch, Yard, orphans, stay_behind

from autograder.basics.errors import IsolationUnavailable
from autograder.worker.walls import open_to_all


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Where only root can read Python, the tier uid cannot stand for root: one skip says so, and
    not one for each attack. test_ordinary_user.py tries the tier then, with Python opened up.
    """
    if os.geteuid() != 0 or open_to_all(sysconfig.get_path("stdlib"), "uid"):
        return
    of_uid = [
        item
        for item in items
        if item.path.name == "test_attacks.py" and _tier(item) == "uid"
    ]
    config.hook.pytest_deselected(items=of_uid[1:])
    items[:] = [item for item in items if item not in of_uid[1:]]


def _tier(item: pytest.Item) -> str:
    call = getattr(item, "callspec", None)
    return str(call.params.get("tier", "")) if call else ""


@pytest.fixture(scope="session")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    course = built_course(
        tmp_path_factory.mktemp("vault"), lambda root: write_vault(root, HIDDEN_INI)
    )
    course.root.chmod(0o700)
    made = Yard(course, tmp_path_factory.mktemp("handed-in"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def batch(yard: Yard) -> Callable[[str], Batch]:
    """The batch of a tier, graded when it is first asked for; the test is skipped where the tier
    does not stand.
    """
    graded: dict[str, Batch | IsolationUnavailable] = {}
    before = orphans()

    def of(tier: str) -> Batch:
        if tier not in graded:
            try:
                graded[tier] = yard.grade(OF_TIER[tier], tier)
            except IsolationUnavailable as error:
                graded[tier] = error
            assert stay_behind(before) == set()
        found = graded[tier]
        if isinstance(found, IsolationUnavailable):
            pytest.skip(
                f"{tier} does not stand here: {str(found).splitlines()[1].strip()}"
            )
        return found

    return of
