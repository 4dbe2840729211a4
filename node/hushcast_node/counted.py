"""What a node counts."""

from __future__ import annotations

from hushcast_local.counted import LOCAL_COUNTERS
from hushcast_overlay.counted import OVERLAY_COUNTERS
from hushcast_runtime.counters import COMMON_COUNTERS

COUNTERS = {**OVERLAY_COUNTERS, **LOCAL_COUNTERS, **COMMON_COUNTERS}
"""By name, with its meaning."""
