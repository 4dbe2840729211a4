"""Missed trees: whether a relay was away while subscribers told of a day's trees, and may lack leases.

A restart is an absence of seconds: who told of a tree in them does not tell again on its day.
"""

from __future__ import annotations

import math

from hushcast_overlay.relay.times_there import TimesThere
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.renewals import RENEWS_FROM


class MissedTrees:
    """What one relay knows of its own absences since trees of a day are told."""

    def __init__(self, relay: RelayId, shards: Shards, there: TimesThere) -> None:
        self._relay = relay
        self._shards = shards
        self._there = there

    def may_lack(self, day: int) -> bool:
        """Tell whether somebody may have told of a tree of a day while this relay was away, or not listed.

        Nobody did before the first of the relays was listed that are in a network, or shard, now.
        """
        near = self._shards.own(day)
        try:
            relays = near.current().relays if near is not None else {}
        except Refusal:
            return True
        if self._relay not in relays:
            return True
        since = relays[self._relay].since

        def was_absent(told_from: int) -> bool:
            # In the epoch in which it is first listed it need not have been there from the beginning.
            watched = range(max(told_from, since + 1), (day + 1) * EPOCHS_A_DAY)
            return since > told_from or self._there.may_have_missed(watched)

        told_from = math.ceil((day - 1 + RENEWS_FROM) * EPOCHS_A_DAY)
        # Each drop asks: all relays are looked through only where it was absent, and the network may be new.
        return was_absent(told_from) and was_absent(
            max(told_from, min(relay.since for relay in relays.values()))
        )
