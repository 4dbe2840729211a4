"""Connections that are ready before there is anything to publish, in whole networks whose relays keep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from hosted_network import subscribed
from kept_network import kept_network
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import strangers
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.frames import Ping, Receipt
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.overlay.ready_slots import ReadyRule
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

EIGHT = ReadyRule(8, EPOCH_SECONDS / 2)
LASTING = ReadyRule(8, 6 * EPOCH_SECONDS)
"""For so long that few end in a test; six are open after some four epochs."""


@pytest.fixture
def never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of which slots are taken whenever there are any."""
    monkeypatch.setattr(ReadyRule, "rest", lambda rule, share: 0.0)


@asynccontextmanager
async def ready_network(rule: ReadyRule = EIGHT, **others: Any) -> AsyncIterator[SmallNetwork]:
    """A network whose relays keep, and whose daemons hold connections ready."""
    async with kept_network(clients=2, root=Root.HOST, ready=rule, **others) as net:
        yield net


async def heard(net: SmallNetwork, payloads: list[bytes], pause: float) -> None:
    """Have one client publish, one after the other, and see that the other one gets all."""
    listener, publisher = net.clients
    ear = await listener.listen()
    for payload in payloads:
        await publisher.daemon.service.publish(ONE, Content(payload))
        await trio.sleep(pause)
    assert sorted(await ear.hears(len(payloads))) == sorted(payloads)


def links_of(node: Node) -> int:
    return node.count("links_opened") + node.count("links_failed")


@pytest.mark.usefixtures("never_rests")
async def test_what_is_published_over_them_is_delivered() -> None:
    async with ready_network() as net:
        await heard(net, [b"%d" % number for number in range(10)], 5.0)
        publisher = net.clients[1]
        taken, lacking = publisher.count("slots_taken"), publisher.count("slots_lacking")
        assert taken > 0.5 * (taken + lacking)
        assert taken + lacking == 20


@pytest.mark.usefixtures("never_rests")
async def test_a_relay_waits_for_them_and_nothing_is_dialled_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who hands in has little time from its first byte; until that comes there is a room of its own."""
    monkeypatch.setattr(strangers, "ANONYMOUS_TIMEOUT", 3.0)
    async with ready_network(LASTING) as net:
        publisher = net.clients[1]
        await until(lambda: publisher.count("slots_opened") >= 6, DAY_SECONDS)
        await trio.sleep(EPOCH_SECONDS)
        before = links_of(publisher) - publisher.count("slots_opened")
        await publisher.daemon.service.publish(ONE, Content(b"over what was ready"))
        assert links_of(publisher) - publisher.count("slots_opened") == before
        assert publisher.count("slots_taken") == 2


@pytest.mark.slow
@pytest.mark.usefixtures("never_rests")
async def test_probes_have_their_own_until_the_subscription_ends() -> None:
    async with ready_network(probes_an_epoch=2.0) as net:
        quiet, subscriber = net.clients
        await subscribed(subscriber)

        async def opened_in(epochs: int) -> tuple[int, int]:
            before = subscriber.count("slots_opened"), quiet.count("slots_opened")
            await trio.sleep(epochs * EPOCH_SECONDS)
            return subscriber.count("slots_opened") - before[0], quiet.count("slots_opened") - before[1]

        two, one = await opened_in(8)
        assert 1.4 < two / one < 2.8
        assert subscriber.count("slots_taken") > 0
        assert quiet.count("slots_taken") == 0
        await subscriber.daemon.service.unsubscribe(ONE)
        ended, one = await opened_in(8)
        assert 0.7 < ended / one < 1.4


async def test_where_nobody_keeps_there_are_none() -> None:
    async with small_network(relays=4, clients=1, ready=EIGHT) as net:
        await trio.sleep(5 * EPOCH_SECONDS)
        assert net.count("slots_opened") == 0


async def test_a_room_full_of_the_silent_keeps_nobody_from_handing_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strangers, "MAX_READY", 8)
    async with ready_network(LASTING) as net:
        await until(lambda: net.clients[1].count("slots_opened") >= 6, DAY_SECONDS)
        for _ in range(10):
            for relay in net.relays:
                await net.knock(relay)
        assert net.count("ready_gave_way") > 0
        for relay in net.relays:
            channel = await net.knock(relay)
            await channel.aclose()
        await heard(net, [b"%d" % number for number in range(5)], 1.0)
        assert net.count("strangers_dropped") == 0


class EarlySpeaker:
    """A relay's part for unnamed connections that says something before it is asked, and waits."""

    def __init__(self, said: bytes | Wire) -> None:
        self.said = said
        self.ended: list[float] = []
        self.heard: list[object] = []

    async def serve(self, channel: Channel[Any]) -> None:
        began = trio.current_time()
        with suppress(TransportError, trio.BrokenResourceError):
            if isinstance(self.said, bytes):
                await channel._stream.send_all(self.said)
            else:
                await channel.send(self.said)
            self.heard += await channel.receive()
        self.ended.append(trio.current_time() - began)


@pytest.mark.parametrize("said", [b"\0", Ping(), Receipt("accepted")], ids=["a byte", "a ping", "a receipt"])
async def test_any_byte_before_the_request_ends_one_and_is_no_receipt(said: bytes | Wire) -> None:
    async with ready_network() as net:
        publisher = net.clients[1]
        speakers = []
        for relay in net.relays:
            assert relay.daemon.overlay.relay is not None
            speakers.append(EarlySpeaker(said))
            relay.daemon.overlay.relay.incoming._strangers = speakers[-1]  # type: ignore[assignment]
        before = publisher.count("slots_opened")
        await until(lambda: publisher.count("slots_opened") >= before + 6, DAY_SECONDS)
        ended = [seconds for speaker in speakers for seconds in speaker.ended]
        assert len(ended) >= 5
        assert max(ended) < 1.0, "after one way there and back"
        assert not any(speaker.heard for speaker in speakers)


@pytest.mark.usefixtures("never_rests")
async def test_one_that_broke_says_nothing_of_whether_relays_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[bool] = []
    async with ready_network(LASTING) as net:
        publisher = net.clients[1]
        await until(lambda: publisher.count("slots_opened") >= 6, DAY_SECONDS)
        monkeypatch.setattr(Contact, "note", lambda contact, worked: noted.append(worked))
        monkeypatch.setattr(Channel, "one", one_that_breaks_once_each(Channel.one))
        await publisher.daemon.service.publish(ONE, Content(b"by dialling"))
    assert publisher.count("slots_taken") == 2
    assert noted
    assert all(noted)


def one_that_breaks_once_each(one: Any) -> Any:
    breaks = [TransportError("it broke long before")] * 2

    async def broken(channel: Channel[Any], timeout: float) -> Any:
        if breaks:
            raise breaks.pop()
        return await one(channel, timeout)

    return broken
