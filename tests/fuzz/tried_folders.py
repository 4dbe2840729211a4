"""Puts folders of what is tried on the path: this one, and of tests beside it."""

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
