"""The drill: a network goes on to a next wire under traffic, and nothing is lost by it nor comes twice.

The next wire of the drill differs in its number alone. Programs of the release before, and then of one that
speaks both, are the same code here: what it speaks changes at a moment, and each is restarted after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from small_network import DAY_SECONDS, EPOCH_SECONDS, SmallNetwork, small_network, until

from hushcast_directory.client import directory_client
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_overlay import connector
from hushcast_protocol.base import wires
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.links import Link
from hushcast_protocol.base.wires import LASTING, WireRange
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import parse_topic

pytestmark = pytest.mark.slow

BOTH = WireRange(1, 2)
TOPIC = parse_topic("over the change")
EVERY = 20.0  # virtual seconds between two publications


class Opened:
    """In which wire links were opened, and when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.links: list[tuple[float, int]] = []
        opened = self.links

        class Recorded(Link):
            @classmethod
            def initiate(cls, *arguments: Any, **named: Any) -> Link:
                link = Link.initiate(*arguments, **named)
                opened.append((trio.current_time(), link.wire))
                return link

        for module in (connector, directory_client):
            monkeypatch.setattr(module, "Link", Recorded)

    def between(self, begin: float, end: float) -> set[int]:
        return {wire for at, wire in self.links if begin <= at < end}


async def publish(net: SmallNetwork, sent: list[bytes], numbers: Iterator[int]) -> None:
    """Publish now and then, whatever happens around."""
    while True:
        payload = b"%d" % next(numbers)
        await net.clients[1].daemon.service.enqueue(TOPIC, Content(payload))
        sent.append(payload)
        await trio.sleep(EVERY)


async def upgrade(net: SmallNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all daemons be of a release that speaks one wire more, and restart them one after the other."""
    monkeypatch.setattr(wires, "SPOKEN", BOTH)
    await net.directory.restart()  # type: ignore[attr-defined]
    for relay in net.relays:
        await relay.restart()
        await trio.sleep(EPOCH_SECONDS / 2)
    await net.clients[0].restart()


async def change_to(net: SmallNetwork, wire: int) -> float:
    """Have the directory's operator ask for a wire; return the time at which it comes into force."""
    net.directory.agreeing.sit(SetOfOne(len(net.relays), wire=wire))
    reader = net.clients[0].daemon
    await until(lambda: reader.status()["wire"]["coming"] == wire, 2 * EPOCH_SECONDS)
    machine = net.directory.agreeing.machine
    assert machine is not None
    assert machine.chain.head is not None
    change = machine.chain.head.change
    assert change is not None
    assert change.epoch % EPOCHS_A_DAY == 0
    assert change.epoch > net.calendar.epoch(net.now) + EPOCHS_A_DAY - 2, "a day ahead"
    return trio.current_time() + net.calendar.epoch_start(change.epoch) - net.now


async def test_a_network_goes_on_to_another_wire_and_back_under_traffic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = Opened(monkeypatch)
    async with small_network(relays=4, clients=2) as net:
        sent: list[bytes] = []
        ear = await net.clients[0].listen(TOPIC)
        ear.close()
        net.nursery.start_soon(publish, net, sent, iter(range(10_000)))
        await trio.sleep(2 * EPOCH_SECONDS)
        await upgrade(net, monkeypatch)
        await trio.sleep(EPOCH_SECONDS)
        upgraded = trio.current_time()
        on = await change_to(net, 2)
        await trio.sleep(on - trio.current_time() + 2 * EPOCH_SECONDS)
        assert net.clients[1].daemon.status()["wire"]["now"] == 2
        back = await change_to(net, 1)
        await trio.sleep(back - trio.current_time() + DAY_SECONDS / 8)
        assert opened.between(0.0, on - 1) <= {1, LASTING}, "none of what one can, before it is spoken"
        assert opened.between(upgraded, on - 1) == {1}
        assert opened.between(on + 1, back - 1) == {2}
        assert opened.between(back + 1, trio.current_time()) == {1}
        ear = await net.clients[0].listen(TOPIC)
        heard = await ear.hears(len(sent))
        assert sorted(heard, key=int) == sent, "none lost, none twice"
        assert len(sent) > 100
