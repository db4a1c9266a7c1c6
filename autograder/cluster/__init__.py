"""A class graded on the machines of a cluster: a driver hands submissions out, Dask's `distributed`
carries them, and each machine grades with hosts, walls and graders of its own.

Nothing here is imported unless `--cluster` is asked for.
"""
