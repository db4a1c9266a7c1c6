"""What crosses the wall: frames of JSON and tensors, and nothing that could run.

The trusted and the untrusted side import this package, which imports neither.
"""
