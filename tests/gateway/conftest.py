"""Puts this folder on the path: under `--import-mode=importlib` tests cannot import their neighbours else."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
