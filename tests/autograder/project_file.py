"""pyproject.toml as tests compare it with lock files and conda's environment."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads(
    (ROOT / "pyproject.toml").read_text(encoding="utf-8")
)["project"]


def extra_requirements(extra: str) -> set[Requirement]:
    """What an extra asks for, those extras included that it names."""
    requirements = set()
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if requirement.name == PROJECT["name"]:
            for named in requirement.extras:
                requirements |= extra_requirements(named)
        else:
            requirements.add(requirement)
    return requirements


def core_requirements() -> set[Requirement]:
    """What the kit asks for without extras."""
    return set(map(Requirement, PROJECT["dependencies"]))
