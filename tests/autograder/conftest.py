"""For all tests of the kit, said before torch and triton are loaded: one thread, since graders are forked from this
process, and kernels that are interpreted."""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", TRITON_INTERPRET="1")
