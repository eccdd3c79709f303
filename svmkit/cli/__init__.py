"""The native command line: one command a file."""

import gc
import os

#: The environment that programs are started with which are not ours.
ENVIRONMENT = dict(os.environ)

# OpenBLAS starts a thread for every core when NumPy loads, and they spin: half the CPU time of a short run. What is heavy here
# runs on svmkit's own threads, and sums would depend on how many OpenBLAS has.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# Importing makes tens of thousands of objects and no garbage, and Python would look through them dozens of times.
gc.set_threshold(50_000)
