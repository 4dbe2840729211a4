"""Somebody drops one body again and again, each time under another trunk, so that its id costs ever more."""

from __future__ import annotations

import os
import time

import pytest

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay import forwarding
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.forwarding import CIRCULATION, ForwardingOutcome, RecentIds, Router
from hushcast_protocol.overlay.hops import host_hop
from hushcast_protocol.overlay.leases import Lease, LeaseBook
from hushcast_protocol.overlay.profile import HARDENED

RELAY, PREVIOUS = b"r" * 32, b"p" * 32
CALENDAR = Calendar(3600)
NOW = 2.4e9
TRUE, ENTRY = b"t" * 16, b"e" * 16
ID, BODY = b"i" * 32, b"x" * 1167


def router_with(memory: RecentIds, hops: int) -> Router:
    """A relay where `hops` leases take whatever is dropped with one token, and one the true trunk."""
    book = LeaseBook(RELAY, CALENDAR, b"k" * 32)
    ways = [(ENTRY, ORIGIN)] * hops + [(TRUE, PREVIOUS)]
    for number, (token, previous) in enumerate(ways):
        name = number.to_bytes(16, "big")
        found = (element(HARDENED, token, RELAY, previous),)
        book.restore(Lease(name, CALENDAR.day(NOW), hop(number), None, found, name, name))
    return Router(RELAY, HARDENED, book, memory, b"l" * 16)


def hop(number: int) -> Hop:
    return host_hop(number.to_bytes(32, "big"))


def message(*tokens: bytes) -> Message:
    return Message(ID, CALENDAR.day(NOW), tokens, bytes(TRAIL_SIZE), BODY)


def seconds(router: Router, drops: int) -> float:
    """The least CPU that one drop takes, of the last of many: what else runs adds to the others."""
    least = 9.0
    for number in range(drops):
        began = time.process_time()
        decision = router.route(message(os.urandom(16), ENTRY), ORIGIN, NOW)
        if number >= drops - 20:
            least = min(least, time.process_time() - began)
        assert decision.outcome is ForwardingOutcome.FORWARDED
    return least


async def test_a_drop_costs_the_same_however_often_its_id_came() -> None:
    fresh = seconds(router_with(RecentIds(0.0), 100), 40)
    assert seconds(router_with(RecentIds(0.0), 100), 500) < 5 * fresh


async def test_the_true_message_is_sent_once_whatever_trunks_came_before() -> None:
    router = router_with(RecentIds(0.0), 3)
    for _ in range(100):
        router.route(message(os.urandom(16), ENTRY), ORIGIN, NOW)
    sends = router.route(message(TRUE), PREVIOUS, NOW).sends
    assert [send.hop for send in sends] == [hop(3)]
    for _ in range(300):
        router.route(message(os.urandom(16), ENTRY), ORIGIN, NOW)
    assert router.route(message(TRUE), PREVIOUS, NOW).outcome is ForwardingOutcome.DUPLICATE


@pytest.mark.parametrize("bound", ["MAX_SENDS", "capacity"])
async def test_a_flood_of_trunks_or_of_next_hops_pushes_out_nothing_that_another_link_brought(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    memory = RecentIds(0.0, 200 if bound == "capacity" else 100_000)
    if bound == "MAX_SENDS":
        monkeypatch.setattr(forwarding, "MAX_SENDS", 5000)
    router = router_with(memory, 100)
    assert router.route(message(TRUE), PREVIOUS, NOW).outcome is ForwardingOutcome.FORWARDED
    for number in range(400):
        router.route(message(os.urandom(16), ENTRY), ORIGIN, NOW)
        assert memory.knows(ID, TRUE)
        memory.note(number.to_bytes(32, "big"), TRUE, PREVIOUS, NOW, [hop(1)])
        assert memory.knows(number.to_bytes(32, "big"), TRUE)
        if number == 50:
            break
    for _ in range(150):
        router.route(message(os.urandom(16), ENTRY), ORIGIN, NOW)
    assert memory.knows(ID, TRUE)


async def test_what_was_pushed_out_still_ends_a_loop() -> None:
    """A copy that comes round under a trunk that is forgotten is known by its trail."""
    memory = RecentIds(NOW - 2 * CIRCULATION, capacity=3)
    router = router_with(memory, 1)
    (send,) = router.route(message(TRUE, ENTRY), ORIGIN, NOW).sends
    for _ in range(5):
        router.route(message(os.urandom(16), ENTRY), ORIGIN, NOW)
    assert router.route(send.message, PREVIOUS, NOW).outcome is ForwardingOutcome.LOOP
