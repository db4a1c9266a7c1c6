"""Plugs the kit into nbgrader's commands, formgrader and gradebook (`nbgrader_config.py`).

Commands, database and formgrader stay nbgrader's. The kit replaces the steps in which nbgrader
would run student code without walls or give points where nothing was tested; docs/nbgrader.md lists
these steps with the reasons.
"""
