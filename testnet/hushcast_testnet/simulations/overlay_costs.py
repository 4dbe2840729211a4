"""What a simulated overlay costs its daemons: leases and links of relays, what daemons fetch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from hushcast_testnet.simulations.overlay_members import OverlayMember


def costs_of(relays: Sequence[OverlayMember], clients: Sequence[OverlayMember]) -> dict[str, Any]:
    """Return the figures of now; relays that are away have neither leases nor links.

    `bytes_fetched` are of rosters and of parts of shards, of all lives.
    """
    told = [relay.daemon.overlay.status() for relay in relays if relay.is_up]
    rosters = [status["roster"] for status in told if status["roster"] is not None]
    return {
        "shards": max((roster.get("shards", 1) for roster in rosters), default=0),
        "leases": _spread([status["leases"] for status in told]),
        "links": _spread([status["links"] for status in told]),
        "installed": sum(relay.counters["parcels_opened"] for relay in relays),
        "bytes_fetched": {
            "relay": _spread([relay.counters["bytes_fetched"] for relay in relays]),
            "client": _spread([client.counters["bytes_fetched"] for client in clients]),
        },
    }


def _spread(counts: Sequence[int]) -> dict[str, float]:
    if not counts:
        return {}
    return {"least": min(counts), "mean": round(fmean(counts), 1), "most": max(counts)}
