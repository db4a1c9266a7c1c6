"""The strict interpreter of Triton kernels: a library of its own, which imports nothing of the
kit.
"""
