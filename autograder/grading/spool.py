"""What a run has written, kept once more on disk: the folder of results may disappear while a run goes on."""

from __future__ import annotations

import tempfile
import zlib
from types import TracebackType


class Spool:
    """Files by name, in one nameless temporary file. A context manager: they are gone when it ends."""

    def __enter__(self) -> Spool:
        self._file = tempfile.TemporaryFile()
        self._places: dict[str, tuple[int, int]] = {}
        return self

    def put(self, name: str, content: bytes) -> None:
        """Keep a file's content."""
        packed = zlib.compress(content, level=1)
        self._places[name] = (self._file.seek(0, 2), len(packed))
        self._file.write(packed)

    def get(self, name: str) -> bytes:
        """The content that was put under this name."""
        start, length = self._places[name]
        self._file.seek(start)
        return zlib.decompress(self._file.read(length))

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
