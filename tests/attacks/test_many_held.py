"""Somebody fills a spool and drops a message for thousands of next hops, which is held, and tried again.

He wants the relay to spend seconds on each try: by then it does nothing else.
"""

from __future__ import annotations

import time

import pytest

from hushcast_node.counters import COUNTERS
from hushcast_overlay.relay.placement import SpoolPlacement
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.forwarding import RecentIds, Router
from hushcast_protocol.overlay.hops import host_hop
from hushcast_protocol.overlay.leases import LeaseBook
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage import spool as spools
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import MemoryStore

ID, TRUNK, BODY = b"i" * 32, b"t" * 16, b"x" * 1167


def seconds(next_hops: int) -> float:
    """The least CPU that it takes to hold all but one copy of a message."""
    sends = tuple(
        HopMessage(host_hop(number.to_bytes(32, "big")), Message(ID, 1, (TRUNK,), bytes(TRAIL_SIZE), BODY))
        for number in range(next_hops)
    )
    least = 99.0
    for _ in range(5):
        memory = RecentIds(0.0)
        memory.note(ID, TRUNK, ORIGIN, 0.0, [send.hop for send in sends])
        router = Router(
            b"r" * 32, HARDENED, LeaseBook(b"r" * 32, Calendar(3600), b"k" * 32), memory, b"l" * 16
        )
        placing = SpoolPlacement(
            Spool(MemoryStore()), None, router, simulated_environment(1), Counters(COUNTERS)
        )
        began = time.process_time()
        ways, is_held = placing.place(sends, (), 0)
        least = min(least, time.process_time() - began)
        assert is_held
        assert ways == [sends[0]]
        assert memory.sent(ID, TRUNK) == {sends[0].hop}
    return least


async def test_what_is_held_costs_as_much_as_there_are_next_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "MAX_SPOOL", len(BODY))
    assert seconds(4000) < 8 * seconds(1000)
