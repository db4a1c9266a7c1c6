"""The untrusted half: the host that forks workers, the walls around them, and the loop inside.

Nothing here is imported by the trusted half, and nothing of the trusted half is imported here. No
file of this folder knows where the suites, the solutions or the submissions lie.
"""
