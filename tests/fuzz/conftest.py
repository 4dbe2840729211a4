"""Puts this folder, and the protocol tests' examples beside it, on the path."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "protocol" / "mqtt"), str(HERE.parent / "protocol")]
