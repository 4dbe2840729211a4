"""A host tells its owner what it likes: that all relays confirmed, that much was lost, what owners say.

It passes on everything that its owner says and hears. What it keeps back is lost, or told by others; what it
makes up counts as nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import trio
from core_examples import host_card
from hosted_network import LONG, box_of, drop_everywhere, hosts_of, in_use
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.routes.box_remainders import MAX_TOLD_LOST
from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay.box_frames import BoxStanding, Hold, HoldAnswer
from hushcast_protocol.overlay.confirmations import room
from hushcast_protocol.overlay.frames import Forward, ParcelAnswer, ParcelFrame, Ping

DAY = 10_000


def answers_parcels(node: Node, answer: Callable[[bytes], ParcelAnswer]) -> None:
    """Have a relay answer what strangers hand in, and pass nothing on."""
    relay: Any = node.daemon.overlay.relay

    async def taken(sealed: bytes, previous: bytes) -> ParcelAnswer:
        await trio.lowlevel.checkpoint()
        return answer(sealed)

    relay.parcels.take = taken


def made_up(sealed: bytes) -> ParcelAnswer:
    return ParcelAnswer(0, None, tuple(sorted(os.urandom(LABEL) for _ in range(room(len(sealed))))))


def nothing(sealed: bytes) -> ParcelAnswer:
    return ParcelAnswer(0, None, ())


def everybody_lies_but(net: SmallNetwork, *honest: Node, answer: Callable[[bytes], ParcelAnswer]) -> None:
    for relay in net.relays:
        if relay not in honest:
            answers_parcels(relay, answer)


@pytest.mark.parametrize("answer", [made_up, nothing])
async def test_made_up_confirmations_count_as_none_and_tops_are_told_by_the_owner(
    answer: Callable[[bytes], ParcelAnswer],
) -> None:
    async with small_network(relays=6, epoch=LONG) as net:
        subscriber = net.clients[0]
        everybody_lies_but(net, answer=answer)
        with trio.move_on_after(200) as waited:
            await subscriber.listen()
        assert waited.cancelled_caught, "nobody has confirmed"
        (planned,) = subscriber.route().planned.values()
        assert planned.unconfirmed == planned.installation.tree.parents.keys()
        honest = [relay for relay in net.relays if relay is not in_use(net, subscriber)]
        for relay in honest:
            del relay.daemon.overlay.relay.parcels.take  # type: ignore[union-attr]
        ear = await subscriber.listen()
        assert ear.feed.nodes == len(honest)
        await drop_everywhere(net, *(b"%d" % number for number in range(6)))
        await ear.hears(6)


def says(node: Node, *frames: Wire) -> None:
    """Have a relay say these to each owner as soon as it has told how the box stands."""
    links: Any = node.daemon.overlay.relay.box_links  # type: ignore[union-attr]
    begin = links.begin

    def begun(box: bytes, channel: Any) -> Any:
        link = begin(box, channel)
        for frame in frames:
            link.writer.post(frame)
        return link

    links.begin = begun


def of_another(body: bytes) -> Message:
    return Message(os.urandom(32), DAY, (os.urandom(16),), bytes(TRAIL_SIZE), body)


SAID: dict[str, tuple[Wire, ...]] = {
    "standing again": (BoxStanding((), 7, host_card(0), bytes(32), 0),),
    "answers to nothing": (HoldAnswer(999, None), ParcelAnswer(999, None, ()), HoldAnswer(0, "quota")),
    "pings": (Ping(),) * 500,
    "what is no message": (Forward(of_another(b"x" * 1167)),),
    "what owners say": (ParcelFrame(1, b"x" * 400, None),),
}


@pytest.mark.parametrize("said", SAID)
async def test_what_a_host_says_beside_ends_its_link_at_most(said: str) -> None:
    async with small_network(relays=6, epoch=LONG) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        first, second = hosts_of(net, subscriber)
        says(first, *SAID[said])
        box = box_of(subscriber)
        link = box.link(first.id)
        assert link is not None
        link.end()
        await trio.sleep(600)
        assert box.hosts.relays == (first.id, second.id)
        assert first.count("links_opened") < 400
        await first.restart()  # honest again
        await publisher.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1, 300) == [b"x"]
        assert ear.feed.lost() == 0


def refuses_as_the_first(subscriber: Node, node: Node) -> None:
    """Have a relay hold nothing for a daemon whose first host it is."""
    requests: Any = node.daemon.overlay.relay.incoming._owners._requests  # type: ignore[union-attr]
    hold = requests.hold

    async def held(box: bytes, frame: Hold) -> HoldAnswer:
        if box_of(subscriber).hosts.relays[0] == node.id:
            return HoldAnswer(frame.number, "quota")
        answer: HoldAnswer = await hold(box, frame)
        return answer

    requests.hold = held


async def test_a_host_that_refuses_to_hold_is_left_for_the_second() -> None:
    async with small_network(relays=6) as net:
        subscriber = net.clients[0]
        for relay in net.relays:
            refuses_as_the_first(subscriber, relay)
        ear = await subscriber.listen()
        first, second = hosts_of(net, subscriber)
        assert in_use(net, subscriber) is second
        assert second.daemon.overlay.relay is not None
        assert len(second.daemon.overlay.relay.boxes) == 1
        await drop_everywhere(net, *(b"%d" % number for number in range(6)))
        await ear.hears(6)
        assert first.count("messages_without_box") == 0


async def test_what_a_host_claims_to_have_lost_is_told_as_its_word_and_once() -> None:
    async with small_network(relays=6, epoch=LONG) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        host = in_use(net, subscriber)
        boxes: Any = host.daemon.overlay.relay.boxes  # type: ignore[union-attr]
        honest = boxes.standing
        box = box_of(subscriber)
        for claimed in (5, 5, 3, 2**40):
            boxes.standing = lambda key, claimed=claimed: (honest(key)[0], claimed)
            link = box.link(host.id)
            assert link is not None
            link.end()
            await until(lambda link=link: box.link(host.id) not in (None, link), 200)
        assert ear.feed.lost() == 5 + MAX_TOLD_LOST
        assert ear.feed.lost() == 0
