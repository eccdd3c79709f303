"""The native command line: one command a file."""

import os

# OpenBLAS starts a thread for every core when NumPy loads, and they spin: half the CPU time of a short run. What is heavy here
# runs on svmkit's own threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
