"""Settings for all tests: PyTorch and NumPy take one thread each, since the tests run side by side."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
