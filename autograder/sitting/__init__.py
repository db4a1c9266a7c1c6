"""Runs a submission in front of its assignment's suite: verdicts, prices, two answers."""
