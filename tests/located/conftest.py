"""Tests of located feeds draw the same small worlds as those of the pure part, and run on a fake daemon."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("located", "protocol", "carriers", "cli")]
