"""Puts folders on the path: under `--import-mode=importlib` tests cannot import their neighbours else."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "first_hour")]
