"""Puts this folder, and the examples and worlds of tests beside it, on the path."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent
sys.path[:0] = map(
    str,
    [
        HERE,
        TESTS,
        TESTS / "protocol" / "mqtt",
        TESTS / "protocol",
        TESTS / "central",
        TESTS / "directory",
        TESTS.parent / "tools",
    ],
)
