"""Learns new known mistakes from the wrong answers of a class."""
