"""Cells of a submission, compiled in its worker or before that."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.worker import cells


def test_given_cells_are_compiled_once_and_run_as_they_would_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    original = cells._compile

    def noted(cell_id: str, source: str, *functions: Any) -> Any:
        compiled.append(source)
        return original(cell_id, source, *functions)

    monkeypatch.setattr(cells, "_compiled_ahead", {})
    monkeypatch.setattr(cells, "_compile", noted)
    cells.compile_ahead({"given_sizes": "width = 5", "given_broken": "width ="})
    names: dict[str, Any] = {}
    assert cells.run_cell("given_sizes", "width = 5", names) is None
    assert names["width"] == 5
    assert compiled == ["width = 5", "width ="]
    assert (
        cells.run_cell("given_sizes", "width = 7", names) is None
    )  # a student has changed it
    assert names["width"] == 7
    error = cells.run_cell("given_broken", "width =", names)
    assert error is not None
    assert error["type"] == "SyntaxError"
