"""What crosses the wall: frames of JSON and tensors, and nothing that could run.

Both halves import this package, and it imports neither of them.
"""
