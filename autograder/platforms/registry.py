"""The platforms by their names. Their modules are imported when the first of them is asked for."""

from __future__ import annotations

import functools
from importlib import import_module

from autograder.course.platform_names import PLATFORM_NAMES
from autograder.platforms.platform import Bundle, Platform


@functools.cache
def platforms() -> dict[str, Platform]:
    """Every platform by its name, in the order of `platform_names.py`."""
    modules = {
        entry.name: import_module(f"autograder.platforms.{entry.name}")
        for entry in PLATFORM_NAMES
    }
    return {name: module.PLATFORM for name, module in modules.items()}


def with_downloads() -> list[str]:
    """The words of `--from`."""
    return [name for name, platform in platforms().items() if platform.download]


def with_own_file() -> list[str]:
    """Platforms whose own file is read: those for which `--roster` is."""
    return [name for name, platform in platforms().items() if platform.own_file]


def export_formats() -> list[str]:
    """The words of `--format`: tables of ours, marks for platforms, feedback pages for
    platforms.
    """
    marks = [
        name
        for name, platform in platforms().items()
        if platform.own_file or platform.interface
    ]
    feedback = [
        f"{name}-feedback"
        for name, platform in platforms().items()
        if platform.feedback_name
    ]
    return ["csv", "tests", "junit", "gradebook", *marks, *feedback]


def bundles() -> dict[str, Bundle]:
    """Packed autograders by the word of `bundle --for`."""
    return {
        target: bundle
        for platform in platforms().values()
        for target, bundle in platform.bundles.items()
    }
