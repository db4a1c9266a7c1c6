"""Make a wheel of the installed kit, for machines that cannot get this version otherwise.

Another machine should grade a course with the kit that proved the course's suites. So the wheel is
made of the running package and pip's metadata, and has the same files under the same names as the
wheel of the kit's own build.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import autograder
from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Course
from autograder.outputs.bundle import archive_entry, files_below

DISTRIBUTION = "attention-kit"
_PROJECT = DISTRIBUTION.replace("-", "_")
KIT_FOLDER = "kit"
"""The course's folder for the wheel; workflows in bundles install from this folder."""

_WHEEL = "Wheel-Version: 1.0\nGenerator: attention-kit\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_kit_wheel(course: Course, folder: Path) -> Path:
    """Put the wheel into a folder, in place of another version's wheel, and return its path."""
    name, content = kit_wheel()
    with FileTransaction(course.kept, "`autograder bundle`") as files:
        for wheel in folder.glob(f"{_PROJECT}-*.whl"):
            if wheel.name != name:
                files.remove(wheel)
        files.write(folder / name, content)
    return folder / name


def kit_wheel() -> tuple[str, bytes]:
    """The wheel's file name and its bytes: the same bytes every time.

    Raises:
        KitError: the kit runs from a folder that pip does not know.
    """
    try:
        kit = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise KitError(
            f"{DISTRIBUTION} is not installed here: install it with pip, so that a "
            "wheel can be made"
        ) from error
    name = f"{_PROJECT}-{kit.version}"
    contents = {
        **dict(_package_files()),
        **dict(_metadata_files(kit, f"{name}.dist-info")),
    }
    lines = [
        f"{path},sha256={_digest(content)},{len(content)}"
        for path, content in sorted(contents.items())
    ]
    record = f"{name}.dist-info/RECORD"
    contents[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(contents.items()):
            archive.writestr(archive_entry(path, 0o644), content)
    return f"{name}-py3-none-any.whl", packed.getvalue()


def _package_files() -> Iterator[tuple[str, bytes]]:
    """The files of the package, by their path in the wheel."""
    package = Path(autograder.__file__).parent
    for path in files_below(package):
        yield f"autograder/{path.relative_to(package).as_posix()}", path.read_bytes()


def _metadata_files(
    kit: metadata.Distribution, folder: str
) -> Iterator[tuple[str, bytes]]:
    """The files that pip reads: requirements, the command `autograder`, licences."""
    yield f"{folder}/WHEEL", _WHEEL.encode()
    for name in ("METADATA", "entry_points.txt"):
        yield f"{folder}/{name}", (kit.read_text(name) or "").encode()
    for path in kit.files or ():
        if path.parent.name == "licenses":
            yield (
                f"{folder}/licenses/{path.name}",
                Path(str(path.locate())).read_bytes(),
            )


def _digest(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
