"""A mailbox: relays of the roster bring it messages, and to nobody else does it say anything."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from hanging_disk import Disk
from small_network import ONE, TWO, Node, SmallNetwork, counted, derive, small_network, until

from hushcast_protocol.base.links import Link
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.tokens import token
from hushcast_protocol.content.topics import Interest
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Drop,
    Forward,
    OverlayFrame,
    decode_overlay,
)
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.shards.shard_requests import AskSlice, ShardUnavailable
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

STRANGER = Seed(b"stranger" * 4)


def a_top(net: SmallNetwork, is_top: bool = True) -> Node:
    """A relay that stands directly under the mailbox, or one that does not."""
    route = net.clients[0].route()
    (held,) = route.mailboxes
    return next(node for node in net.relays if route.is_top(held.seed, node.id) == is_top)


def seed_of(node: Node) -> Seed:
    assert node.identity is not None
    return node.identity.seed


async def visit(
    net: SmallNetwork, us: Seed | None, view: RosterView | None = None
) -> tuple[Channel[OverlayFrame], RosterView | None]:
    """Open a link to the mailbox of the first client's subscription."""
    (held,) = net.clients[0].route().mailboxes
    assert held.address is not None
    link = Link.initiate(net.net.id, held.seed.public(), net.env.randomness, MAX_OVERLAY_FRAME, us, view)
    channel, established = await open_channel(
        net.wires.transport(), held.address, "test", link, decode_overlay
    )
    return channel, established.view


def a_message(net: SmallNetwork, payload: bytes = b"x", topic: object = ONE) -> Message:
    day = net.calendar.day(net.now)
    key = derive(topic, net.net.id, day)
    return compose(key, day, (token(key),), Content(payload), net.env.randomness)


async def says_nothing(channel: Channel[OverlayFrame]) -> bool:
    with trio.move_on_after(5), suppress(TransportError):
        await channel.one(4)
        return False
    return True


@pytest.mark.parametrize("us", [None, STRANGER], ids=["anonymous", "stranger"])
async def test_only_relays_of_the_roster_are_listened_to(us: Seed | None) -> None:
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        channel, _ = await visit(net, us)
        with suppress(TransportError):
            await channel.send(Forward(a_message(net)))
        assert await says_nothing(channel)
        assert await counted(subscriber, "refused_form", 1)
        assert ear.heard == []
        assert subscriber.daemon.status()["ready"]


async def test_it_takes_a_message_from_a_relay_and_acknowledges() -> None:
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        ear = await net.clients[0].listen()
        channel, _ = await visit(net, seed_of(a_top(net)))
        message = a_message(net)
        await channel.send(Forward(message), Forward(message), Forward(a_message(net, b"y")))
        assert await channel.one(5) in (Ack(1, ()), Ack(2, ()), Ack(3, ()))
        assert await ear.hears(2) == [b"x", b"y"]
        await channel.aclose()


async def test_a_repeat_is_not_acknowledged_either_before_the_message_is_on_disk() -> None:
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        disk = subscriber.store = Disk(subscriber.store)
        await subscriber.restart()
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        message = a_message(net)
        disk.hang()
        links = [(await visit(net, seed_of(a_top(net))))[0] for _ in range(2)]
        await links[0].send(Forward(message))
        await trio.sleep(1)
        await links[0].aclose()  # in the middle of writing
        await links[1].send(Forward(message))
        assert await says_nothing(links[1])
        await subscriber.stop()
        disk.lose()
        await subscriber.start()
        ear = await subscriber.listen()
        channel, _ = await visit(net, seed_of(a_top(net)))
        await channel.send(Forward(message))
        assert await channel.one(5) == Ack(1, ())
        assert await ear.hears(1) == [b"x"]
        await channel.aclose()


async def test_a_relay_that_stands_elsewhere_in_the_tree_is_not_listened_to() -> None:
    async with small_network(relays=4, root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        channel, _ = await visit(net, seed_of(a_top(net, is_top=False)))
        with suppress(TransportError):
            await channel.send(Forward(a_message(net)))
        assert await says_nothing(channel)
        assert await counted(subscriber, "refused_form", 1)
        assert ear.heard == []


@pytest.mark.parametrize("shown", ["none", "ours", "other", "later"])
async def test_it_shows_no_roster_and_does_not_react_to_any(shown: str) -> None:
    """A directory that gave one daemon a roster of its own could else tell whose the mailbox is."""
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        ours = net.relays[0].daemon.overlay.rosters.view()
        assert ours is not None
        views = {
            "none": None,
            "ours": ours,
            "other": RosterView(ours.epoch, bytes(32)),
            "later": RosterView(ours.epoch + 1, bytes(32)),
        }
        channel, view = await visit(net, seed_of(a_top(net)), views[shown])
        assert view is None
        await channel.send(Forward(a_message(net)))
        assert await channel.one(5) == Ack(1, ())
        assert await ear.hears(1) == [b"x"]
        assert subscriber.count("roster_mismatches") == 0
        await channel.aclose()


async def test_frames_other_than_messages_end_the_link() -> None:
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        await subscriber.listen()
        for number, frame in enumerate(
            (Ack(1, ()), Drop(a_message(net), None), AskSlice(1, 0), ShardUnavailable())
        ):
            channel, _ = await visit(net, seed_of(a_top(net)))
            await channel.send(frame)
            assert await says_nothing(channel)
            assert await counted(subscriber, "refused_form", number + 1)


async def test_forged_and_foreign_messages_are_not_shown() -> None:
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        good = a_message(net)
        channel, _ = await visit(net, seed_of(a_top(net)))
        await channel.send(Forward(a_message(net, topic=TWO)))
        assert await channel.one(5) == Ack(1, ())
        assert subscriber.count("messages_not_ours") == 1
        await channel.send(Forward(Message(bytes(32), good.day, good.tokens, good.trail, good.body)))
        assert await says_nothing(channel)
        assert await counted(subscriber, "refused_form", 1)
        assert ear.heard == []
        await net.clients[1].daemon.service.publish(ONE, Content(b"true"))
        assert await ear.hears(1) == [b"true"]


async def test_mailboxes_of_one_subscriber_share_nothing() -> None:
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        for topic in (ONE, TWO):
            await subscriber.listen(topic)
        one, two = subscriber.route(ONE), subscriber.route(TWO)
        (one_mailbox,), (two_mailbox,) = one.mailboxes, two.mailboxes
        assert one_mailbox.address != two_mailbox.address
        assert one_mailbox.seed != two_mailbox.seed
        assert one_mailbox.renewal != two_mailbox.renewal
        (first,), (second,) = one.planned.values(), two.planned.values()
        assert first.installation.secret != second.installation.secret
        assert first.installation.trunk != second.installation.trunk
        assert set(first.installation.entries).isdisjoint(second.installation.entries)


async def test_a_mailbox_whose_address_cannot_be_opened_is_tried_again() -> None:
    async with small_network(relays=3, root=Root.MAILBOX) as net:
        subscriber, publisher = net.clients
        await subscriber.listen()
        held = subscriber.route()
        await subscriber.stop()
        squatter = await net.wires.transport().listen(held.mailboxes[0].seed)
        await subscriber.start()
        await trio.sleep(5)
        assert not subscriber.daemon.service.subscriptions()[0]["ready"]
        await squatter.aclose()
        ear = await subscriber.listen()
        await publisher.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]
        await until(lambda: subscriber.daemon.service.subscriptions()[0]["ready"])
