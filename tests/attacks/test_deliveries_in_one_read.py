"""A proxy, or whoever publishes much, has as many deliveries as a read holds come at once, to keep a daemon
busy with opening them."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from daemons import daemons
from small_network import until
from steps import BUDGET, Steps

from hushcast_central.proxy.attached_users import AttachedUser
from hushcast_protocol.central.frames import Delivery
from hushcast_protocol.central.inner_message import inside_of
from hushcast_protocol.central.rerouting import WrappedMessage, wrap
from hushcast_runtime.transports.channel import FRAMES_AT_ONCE


async def test_deliveries_of_one_read_are_opened_in_short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[Any] = []
    begin = AttachedUser.begin

    def watched(user: AttachedUser, writer: Any, answer: Any) -> None:
        writers.append(writer)
        begin(user, writer, answer)

    monkeypatch.setattr(AttachedUser, "begin", watched)
    async with daemons(count=1, profile="paper") as network:
        node = network.nodes[0]
        await node.listen()
        await until(lambda: bool(writers))
        (pseudonym,) = node.routes[0].receiver.pseudonyms.values()
        good = wrap(pseudonym.credentials.key, inside_of(network.message()), network.env.randomness)
        bad = WrappedMessage(good.mask, good.masked, bytes(16))
        several = [*[Delivery(good)] * 190, *[Delivery(bad)] * (FRAMES_AT_ONCE - 190)]
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        await writers[-1].channel.send(*several)
        await until(lambda: node.count("deliveries_refused") == FRAMES_AT_ONCE - 190)
        assert steps.longest < BUDGET / 2, steps.place  # all of it just about reaches the whole
