"""The strict interpreter of Triton kernels: a library that imports nothing of the kit."""
