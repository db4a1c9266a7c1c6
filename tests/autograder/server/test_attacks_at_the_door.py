"""Some of the attack corpus over HTTP; `tests/long/server_attacks.py` hands in all of it."""

from __future__ import annotations

import random
from pathlib import Path

from attacked_server import AT_THE_DOOR, NOTEBOOKS, attack_server

SAMPLE = 12


def test_the_corpus_gets_nothing_at_the_door(tmp_path: Path) -> None:
    fast = [attack for attack in AT_THE_DOOR if not attack.slow]
    attacks = [*NOTEBOOKS, *random.Random(0).sample(fast, SAMPLE)]
    findings = attack_server(tmp_path, attacks)
    assert findings.wrong == []
    assert findings.handed_in == len(attacks)
    assert findings.pages > len(attacks)
