"""Puts all folders of tests on the path: under `--import-mode=importlib` none finds its neighbours else."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent

sys.path[:0] = sorted({str(path.parent) for path in TESTS.rglob("*.py")})
