"""Names the mistake behind a wrong answer by comparing it with known mistakes."""
