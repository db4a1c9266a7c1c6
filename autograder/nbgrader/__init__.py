"""nbgrader's commands on this course: what `nbgrader_config.py` plugs into nbgrader, and the
gradebook.

nbgrader keeps its commands, its database and its formgrader. Replaced are the steps in which it
would run student code without walls or give points where nothing was tested; docs/nbgrader.md lists
them and says why.
"""
