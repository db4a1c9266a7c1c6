"""Errors, times, tables, files that are written whole, text made harmless."""
