"""``python -m lucid_onnx`` is the command ``lucid-onnx``."""

import sys

from lucid_onnx.cli import main

sys.exit(main())
