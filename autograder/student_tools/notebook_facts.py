"""What `build` knows of a notebook and writes at the end of its companion: hints, forbidden
functions, predictions, and how many of each there are.
"""

from __future__ import annotations

import base64
import json
from typing import Any

FACTS: dict[str, Any] = {}
STUB = ": write your answer here"
"""Part of the message of an answer that is not written yet."""


def take_facts(encoded: str) -> None:
    """Take the facts. They are encoded so that no hint, and no answer to a prediction, is read by
    chance.
    """
    FACTS.update(json.loads(base64.b64decode(encoded)))
