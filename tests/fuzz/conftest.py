"""Has tests of the fuzzer find what it tries."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import tried_folders  # noqa: F401
