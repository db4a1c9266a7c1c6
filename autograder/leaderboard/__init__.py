"""Ranks a class by counts, and by weights that are handed in. What a suite's `leaderboard.py`
imports is here.
"""

from autograder.leaderboard.measures import Entrant, NotRanked, measure

__all__ = ["Entrant", "NotRanked", "measure"]
