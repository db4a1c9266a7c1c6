"""The trusted side of the boundary: starts the host, asks it for workers, keeps their time, checks
their answers.
"""
