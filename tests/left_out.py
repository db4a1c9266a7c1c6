"""Lists the tests that a run left out, by reason: `make test` calls this at its end.

    python tests/left_out.py FILE

Each process of pytest adds a line to the file for each skipped test: the reason, a tab, the test.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path


def list_left_out(text: str) -> list[str]:
    """The lines to print: how many tests were left out, then each reason with its tests' files."""
    files = defaultdict(list)
    for line in text.splitlines():
        reason, _, test = line.partition("\t")
        files[reason].append(test.partition("::")[0])
    count = sum(map(len, files.values()))
    if not count:
        return ["No test was left out."]
    lines = [f"Tests left out: {count}"]
    for reason, places in sorted(
        files.items(), key=lambda item: (-len(item[1]), item[0])
    ):
        lines.append(f"  {len(places)} x {reason} ({', '.join(sorted(set(places)))})")
    return lines


def main() -> None:
    """Print the list for the file that the command line names, which need not exist."""
    path = Path(sys.argv[1])
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    print("\n".join(list_left_out(text)))


if __name__ == "__main__":
    main()
