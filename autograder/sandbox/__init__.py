"""The trusted side of the boundary: starts hosts, requests workers, limits their time, and checks
their answers.
"""
