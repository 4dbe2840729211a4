"""Somebody fills what the spool keeps for one slow next hop, so that what others send that way is lost."""

from __future__ import annotations

import os

import pytest
import trio
from hosted_network import in_use, subscribed
from small_network import ONE, Ear, Node, SmallNetwork, small_network, unrouted, until

from hushcast_overlay.relay.detours import MAX_DETOURS
from hushcast_protocol.base.trace import kind_of
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frames import Drop, ParcelFrame, Receipt
from hushcast_protocol.overlay.leases import Install, ToRelay
from hushcast_protocol.overlay.parcels import Parcel, seal_parcel
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.storage import spool as spools
from hushcast_runtime.tracing import NoTracer

LONG = 4 * 3600  # seconds of an epoch, so long that no tree is mended during a test
SHARE = 40_000  # bytes, instead of 32 MiB
SIZES = (16_527, 4_239, 1_167)  # bytes of bodies; together they fill a share to the last kilobyte


@pytest.fixture(autouse=True)
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "MAX_SHARE", SHARE)


def tree_of(node: Node) -> Tree:
    (planned,) = node.route().planned.values()
    return planned.installation.tree


async def hand_in(net: SmallNetwork, relay: Node, frame: Drop | ParcelFrame) -> object:
    channel = await net.knock(relay)
    await channel.send(frame)
    answer = await channel.one(300)
    await channel.aclose()
    return answer


async def fill(net: SmallNetwork, relay: Node, slow: Node) -> None:
    """Point a token of one's own at a next hop, and drop messages until its share is full."""
    token = slow.id[:16]
    found = (element(net.profile, token, relay.id, ORIGIN),)
    day, epoch = net.calendar.day(net.now), net.calendar.epoch(net.now)
    install = Install(os.urandom(16), day, ToRelay(slow.id), found, os.urandom(16), os.urandom(16))
    parcel = Parcel(net.net.id, relay.id, epoch, install, 0, (), os.urandom(16))
    assert relay.identity is not None
    key = relay.identity.parcel_key.public()
    answer = await hand_in(net, relay, ParcelFrame(0, seal_parcel(parcel, key, os.urandom), None))
    assert answer.refused is None  # type: ignore[attr-defined]
    assert relay.daemon.overlay.relay is not None
    spool, hop = relay.daemon.overlay.relay.forwarding._spool, install.next_hop
    assert isinstance(hop, ToRelay)
    for size in SIZES:
        while spool.has_share(b"r" + hop.relay, size):  # type: ignore[arg-type]
            body = os.urandom(size)
            message = Message(message_id(day, body), day, (token,), bytes(TRAIL_SIZE), body)
            assert await hand_in(net, relay, Drop(message, None)) == Receipt("accepted")
            await trio.sleep(0.1)


async def fill_every_way(net: SmallNetwork) -> tuple[Node, list[Node]]:
    """Fill the shares of all that a relay can send to for the first client; return it, and them.

    They are its next hop in the tree, and the host, which takes what goes around.
    """
    tree = tree_of(net.clients[0])
    below, top = next((below, top) for below, top in tree.parents.items() if top is not None)
    slow = [node for node in net.relays if node.id != below]
    assert {node.id for node in slow} == {top, in_use(net, net.clients[0]).id}
    for node in slow:
        node.gate.shut()
        await fill(net, net.relay(below), node)
    return net.relay(below), slow


async def drop_honest(net: SmallNetwork, relay: Node, count: int = 3) -> list[bytes]:
    sent = [b"honest %d" % number for number in range(count)]
    for payload in sent:
        await net.drop_at(relay, ONE, Content(payload))
    return sent


async def all_arrive(net: SmallNetwork, ear: Ear, sent: list[bytes], within: float) -> None:
    assert sorted(await ear.hears(len(sent), within)) == sorted(sent)
    await trio.sleep(60)
    assert len(ear.heard) == len(sent), "nothing is shown twice"
    assert net.count("messages_over_share") == net.count("messages_lost_detour") == 0


async def test_what_is_accepted_goes_around_a_relay_whose_share_is_full() -> None:
    async with small_network(relays=5, clients=2, epoch=LONG, origins=1) as net:
        ear = await net.clients[0].listen()
        tree = tree_of(net.clients[0])
        below, top = next((below, top) for below, top in tree.parents.items() if top is not None)
        relay, slow = net.relay(below), net.relay(top)
        slow.gate.shut()
        await fill(net, relay, slow)
        sent = await drop_honest(net, relay)
        assert await ear.hears(1), "by way of others, while the next hop is slow"
        assert relay.count("messages_detoured") >= 3
        slow.gate.open()
        await all_arrive(net, ear, sent, 600)


@pytest.mark.parametrize("restarts", [False, True])
async def test_where_there_is_no_way_around_it_waits_on_disk(restarts: bool) -> None:
    async with small_network(relays=3, clients=2, epoch=LONG, origins=1, depth=2) as net:
        ear = await net.clients[0].listen()
        relay, slow = await fill_every_way(net)
        sent = await drop_honest(net, relay)
        await trio.sleep(3)
        assert await unrouted(relay) == 3
        if restarts:
            await relay.restart()
            await trio.sleep(3)
        for node in slow:
            node.gate.open()
        await all_arrive(net, ear, sent, 600)
        assert await unrouted(relay) == 0


async def test_what_is_tried_again_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=3, clients=2, epoch=LONG, origins=1, depth=2) as net:
        ear = await net.clients[0].listen()
        relay, slow = await fill_every_way(net)
        traced: list[str] = []
        assert relay.daemon.overlay.relay is not None
        tracer = NoTracer()
        monkeypatch.setattr(tracer, "is_on", True)
        monkeypatch.setattr(tracer, "observe", lambda observed: traced.append(kind_of(type(observed))))
        relay.daemon.overlay.relay.forwarding._tracer = tracer
        sent = await drop_honest(net, relay)
        await trio.sleep(25)
        assert await unrouted(relay) == 3
        assert traced.count("received") == 3
        for node in slow:
            node.gate.open()
        await all_arrive(net, ear, sent, 600)


@pytest.mark.slow
async def test_what_no_top_can_keep_for_a_host_is_lost_and_counted_and_stops_nobody() -> None:
    async with small_network(relays=4, clients=6, epoch=LONG, origins=1) as net:
        await subscribed(net.clients[0])
        away = in_use(net, net.clients[0])
        for client in net.clients[1:]:
            other = await client.listen()
            if in_use(net, client) is not away:
                break
        assert in_use(net, client) is not away
        await away.stop()
        up = [relay for relay in net.relays if relay is not away]
        sent = [b"%d" % number + bytes(16_000) for number in range(24)]
        for number, payload in enumerate(sent):
            await net.drop_at(up[number % 3], ONE, Content(payload))
            await other.hears(number + 1)
        await until(lambda: net.count("messages_over_share") > 0, what="what is lost is counted")
        for relay in up:
            assert relay.daemon.overlay.relay is not None
            held = relay.daemon.overlay.relay.forwarding._spool.size
            assert held <= 3 * SHARE, "for the host and the other relays"
            assert await unrouted(relay) == 0
        await trio.sleep(600)
        sent_so_far = net.count("messages_sent")
        # A way has three hops at most, the first one and each that goes around.
        assert sent_so_far <= 24 * 3 * (1 + MAX_DETOURS)
        await trio.sleep(600)
        assert net.count("messages_sent") == sent_so_far, "nothing walks for ever"
        assert net.count("leases_pruned") == 0
