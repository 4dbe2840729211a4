"""Who saw a message before its origins did drops its body under another trunk there, to keep it from keepers.

A message's id is that of its day and body, so that of the two is the same: at no hop may one stand for the
other. An origin that is hostile has a message first, and so has whoever reads it while it is dropped anew.
"""

from __future__ import annotations

import pytest
from kept_network import all_kept, has, keepers_of, kept_network
from owner_end import drop, message

from hushcast_protocol.content.messages import Message

OTHER = b"o" * 16


@pytest.mark.slow
async def test_a_body_under_another_trunk_keeps_no_message_from_its_keepers() -> None:
    async with kept_network(clients=0) as net:
        one = message(net.calendar.day(net.now))
        other = Message(one.id, one.day, (OTHER,), one.trail, one.body)
        for relay in net.relays:
            await drop(net, relay, other)
        await all_kept(net, other)
        for relay in net.relays:
            await drop(net, relay, one)
        await all_kept(net, one)
        assert all(has(keeper, one) for keeper in keepers_of(net, one))


async def test_what_is_dropped_again_is_handed_in_once() -> None:
    async with kept_network(clients=0) as net:
        one = message(net.calendar.day(net.now))
        origin = next(relay for relay in net.relays if relay not in keepers_of(net, one))
        await drop(net, origin, one)
        await all_kept(net, one)
        count = origin.count("messages_handed_in")
        await drop(net, origin, one)
        assert origin.count("messages_handed_in") == count == len(keepers_of(net, one))
