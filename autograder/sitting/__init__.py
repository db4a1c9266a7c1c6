"""One submission in front of its assignment's suite: outcomes, carried points, prices."""
