"""A stranger fills a spool with what nobody takes, so that the relay stands still when the day ends.

All that waits from a day gone by was forgotten in one step, at a moment that everybody knows: 0.2 s of a
processor for 100,000 messages, and a spool holds more.
"""

from __future__ import annotations

import time

from steps import Moves

from hushcast_overlay.relay.forwarding import COPIES_AT_ONCE
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay.hops import host_hop
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import MemoryStore

MESSAGES = 40
HOPS = [host_hop(number.to_bytes(32, "big")) for number in range(COPIES_AT_ONCE)]
SHORT = 1 / 8  # of what it takes to forget all


def test_what_waits_from_a_day_gone_by_is_forgotten_in_steps() -> None:
    spool = Spool(MemoryStore())
    for number in range(MESSAGES):
        message = Message(number.to_bytes(32, "big"), 7, (b"t" * 16,), bytes(TRAIL_SIZE), bytes(1167))
        spool.put([HopMessage(hop, message) for hop in HOPS])
    spool.put([HopMessage(HOPS[0], Message(b"l" * 32, 8, (b"t" * 16,), bytes(TRAIL_SIZE), bytes(1167)))])
    moves, began = Moves(), time.thread_time()
    for _ in spool.expire(lambda _, day: day == 8):
        moves.next()
    moves.next()
    assert moves.longest < (time.thread_time() - began) * SHORT + 0.005
    assert len(spool) == 1
