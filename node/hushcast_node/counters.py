"""What a node counts, by the carrier of its network."""

from __future__ import annotations

from hushcast_brokers.counters import CLIENT_COUNTERS
from hushcast_central.counters import USER_COUNTERS
from hushcast_local.counters import LOCAL_COUNTERS
from hushcast_overlay.counters import OVERLAY_COUNTERS
from hushcast_runtime.counters import COMMON_COUNTERS

OVERLAY_NODE = {**OVERLAY_COUNTERS, **LOCAL_COUNTERS, **COMMON_COUNTERS}
CENTRAL_NODE = {**USER_COUNTERS, **LOCAL_COUNTERS, **COMMON_COUNTERS}
BROKERS_NODE = {**CLIENT_COUNTERS, **LOCAL_COUNTERS, **COMMON_COUNTERS}
COUNTED = {"overlay": OVERLAY_NODE, "central": CENTRAL_NODE, "brokers": BROKERS_NODE}
"""By carrier, what a daemon counts, by name, with its meaning."""
COUNTERS = OVERLAY_NODE | USER_COUNTERS | CLIENT_COUNTERS
"""What any of them counts."""
