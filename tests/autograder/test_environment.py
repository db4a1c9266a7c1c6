"""environment.yml serves conda users with the packages of pyproject.toml, one for one."""

from __future__ import annotations

import yaml
from packaging.requirements import Requirement
from project_file import PROJECT, ROOT, core_requirements, extra_requirements

ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
CONDA = [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)]
(PIP,) = [
    entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)
]
CONDAS_NAMES = {"torch": "pytorch"}
ONLY_PIP_HAS = {"canvasapi", "httpx2", "lti1p3platform", "triton"}
"""No recipe of conda-forge makes them; Triton stands here for its marker, which conda cannot read."""


def as_conda_writes(requirement: Requirement) -> str:
    """A requirement without extras: conda's psycopg and PyJWT have what pip's ask for."""
    name = CONDAS_NAMES.get(requirement.name, requirement.name).lower()
    return f"{name}{requirement.specifier}"


def normal(line: str) -> str:
    requirement = Requirement(line)
    return f"{requirement.name}{requirement.specifier}"


def test_conda_users_get_the_same_packages() -> None:
    wanted = core_requirements() | extra_requirements("dev")
    for_pip = {
        requirement for requirement in wanted if requirement.name in ONLY_PIP_HAS
    }
    *lines, kit = PIP
    assert kit == "-e ."
    assert {str(Requirement(line)) for line in lines} == set(map(str, for_pip))
    assert sorted(map(normal, CONDA)) == sorted(
        [
            "pip",
            f"python{PROJECT['requires-python']}",
            *map(as_conda_writes, wanted - for_pip),
        ]
    )


def test_all_extras_are_in_it() -> None:
    everything = set().union(*map(extra_requirements, PROJECT["optional-dependencies"]))
    assert everything == extra_requirements("dev")
