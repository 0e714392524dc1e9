"""Settings for all tests: one thread an operation, since the tests themselves run side by side."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
