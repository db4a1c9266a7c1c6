"""Errors, times, tables, files that are written whole, and cleaned text."""
