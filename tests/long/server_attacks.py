"""Hands the whole attack corpus in at `autograder serve`, over HTTP, and looks at every page: nothing
gets points that it does not deserve, nothing hidden is shown, nothing live is rendered, the server
stays up and grades everybody else.

    python tests/long/server_attacks.py [--graders N]

tests/autograder/server/test_attacks_at_the_door.py hands a part of it in with each `make test`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

AUTOGRADER_TESTS = Path(__file__).resolve().parents[1] / "autograder"
sys.path[:0] = [str(AUTOGRADER_TESTS), str(AUTOGRADER_TESTS / "server")]


def main() -> None:
    """Run, print what is wrong, and say so with the exit status."""
    from attacked_server import AT_THE_DOOR, attack_server

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graders", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        findings = attack_server(Path(folder), AT_THE_DOOR, options.graders)
    print("\n".join(findings.wrong) or "nothing gets through")
    print(
        f"{findings.handed_in} handed in, {findings.refused} of them refused at the door, "
        f"{findings.pages} pages looked at"
    )
    sys.exit(bool(findings.wrong))


if __name__ == "__main__":
    main()
