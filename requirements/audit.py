"""Look up known vulnerabilities of every package in the lock files, where their database can be
reached.

    python requirements/audit.py LOCK...

Exits with 1 where one is known. Where the database does not answer, or does not know a package, the
line says so, and the exit status is 0: that is no finding, and no all-clear.
"""

from __future__ import annotations

import json
import subprocess
import sys


def audited(lock: str) -> tuple[str, bool]:
    """What is known of a lock file's packages, in words; and whether any has a known
    vulnerability.
    """
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner=off",
        "--timeout=20",
        "--format=json",
        "--requirement",
        lock,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no word from pip-audit"])[-1]
        return f"NOT looked up: {reason[:200]}", False
    known = [package for package in packages if package.get("vulns")]
    skipped = sum("skip_reason" in package for package in packages)
    if skipped == len(packages):
        return (
            f"NOT looked up: the database knows none of {skipped} packages, or cannot be "
            "reached from here",
            False,
        )
    lines = [
        f"{len(packages) - skipped} packages looked up, {skipped} not; {len(known)} with a known "
        "vulnerability"
    ]
    for package in known:
        ids = ", ".join(vulnerability["id"] for vulnerability in package["vulns"])
        lines.append(f"  {package['name']} {package['version']}: {ids}")
    return "\n".join(lines), bool(known)


def main() -> int:
    vulnerable = False
    for lock in sys.argv[1:]:
        words, found = audited(lock)
        print(f"{lock}: {words}")
        vulnerable |= found
    return int(vulnerable)


if __name__ == "__main__":
    sys.exit(main())
