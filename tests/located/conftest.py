"""Tests of located feeds draw the same small worlds as those of the pure part."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "protocol")]
