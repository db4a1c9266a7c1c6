"""Grades a class: chooses submissions, runs graders and hosts, and writes results.

The environment gives numerical libraries one thread, before torch can be loaded: graders share the
cores by processes, and a fork of a process whose torch has run two threads hangs in its first
larger operation.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
