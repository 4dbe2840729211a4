"""Helpers of these tests lie beside them."""

from __future__ import annotations

import sys
from pathlib import Path

# Under `--import-mode=importlib` tests cannot import their neighbours else.
sys.path.insert(0, str(Path(__file__).parent))
