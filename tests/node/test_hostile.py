"""Hostile strangers at a relay's door: refused, counted, shut out, and nobody else notices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from hosted_network import LONG
from small_network import BEGIN, EPOCH_SECONDS, ONE, Node, SmallNetwork, counted, derive, small_network, until

from hushcast_overlay.relay.strangers import READY_WITHIN
from hushcast_protocol.base.crypto.secrets import ParcelKey, Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.wire import Wire, encode
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message, message_id
from hushcast_protocol.content.tokens import token
from hushcast_protocol.overlay import leases, parcels
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Drop,
    Forward,
    OverlayFrame,
    ParcelAnswer,
    ParcelFrame,
    Receipt,
)
from hushcast_protocol.overlay.trail import label_bits, trail_of
from hushcast_protocol.shards.shard_requests import AskSlice, ShownSlice
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import HANDSHAKE_TIMEOUT, Channel

STRANGER = Seed(b"stranger" * 4)


@asynccontextmanager
async def network_that_stays_healthy(epoch: int = EPOCH_SECONDS) -> AsyncIterator[tuple[SmallNetwork, Node]]:
    """A network with a subscriber, and one of its relays to attack; afterwards all must work as before."""
    async with small_network(relays=3, origins=3, epoch=epoch) as net:
        ear = await net.clients[0].listen()
        await until(lambda: net.count("messages_sent") == net.count("messages_received"))
        yield net, net.relays[0]
        publication = await net.clients[1].daemon.service.publish(ONE, Content(b"still well"))
        await until(lambda: len(publication.origins) == 3)
        await until(lambda: b"still well" in ear.payloads)
        assert len(set(ear.payloads)) == len(ear.payloads)


def a_message(net: SmallNetwork, payload: bytes = b"forged", day: int | None = None) -> Message:
    """A message on topic one that any publisher could have made."""
    today = net.calendar.day(net.now) if day is None else day
    key = derive(ONE, net.net.id, today)
    return compose(key, today, (token(key),), Content(payload), net.env.randomness)


def changed(message: Message, **fields: object) -> Message:
    names = ("id", "day", "tokens", "trail", "body")
    return Message(**({name: getattr(message, name) for name in names} | fields))  # type: ignore[arg-type]


async def is_closed(stream: trio.abc.Stream, within: float = 5.0) -> bool:
    """Tell whether the other end closes a stream soon."""
    with trio.move_on_after(within), suppress(trio.BrokenResourceError):
        while await stream.receive_some():
            pass
        return True
    return False


async def is_shut(channel: Channel[OverlayFrame], within: float = 5.0) -> bool:
    return await is_closed(channel._stream, within)


async def answer_to(net: SmallNetwork, relay: Node, frame: Wire) -> OverlayFrame:
    """Hand in one frame anonymously; return the answer."""
    channel = await net.knock(relay)
    await channel.send(frame)
    answer = await channel.one(60)
    await channel.aclose()
    return answer


# Before the link is open


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01" + bytes(500),
        b"\xff" * 100_000,
        b"hushcast-link/1\n" + bytes(64),
    ],
    ids=["http", "tls", "noise", "version 1"],
)
async def test_garbage_is_shut_out_at_once(sent: bytes) -> None:
    async with network_that_stays_healthy() as (net, relay):
        stream = await net.wire(relay)
        await stream.send_all(sent)
        assert await is_closed(stream, 1.0)
        assert await counted(relay, "refused_form", 1)
        assert await counted(relay, "links_failed", 1)


async def test_a_truncated_handshake_is_given_up_in_time() -> None:
    async with network_that_stays_healthy() as (net, relay):
        hello = Link.initiate(net.net.id, relay.id, net.env.randomness, 100).data_to_send()
        streams = [await net.wire(relay) for _ in range(3)]
        await streams[0].send_all(hello[:40])
        await streams[1].send_all(hello)
        await streams[2].send_all(hello[:40])
        await streams[2].aclose()
        before = trio.current_time()
        for stream in streams[:2]:
            assert await is_closed(stream, HANDSHAKE_TIMEOUT + 5)
        assert trio.current_time() - before <= HANDSHAKE_TIMEOUT + 1
        await until(lambda: relay.count("links_failed") == 3)


async def test_another_network_is_shut_out() -> None:
    async with network_that_stays_healthy() as (net, relay):
        stream = await net.wire(relay)
        await stream.send_all(Link.initiate(bytes(32), relay.id, net.env.randomness, 100).data_to_send())
        assert await is_closed(stream, 1.0)
        assert await counted(relay, "refused_form", 1)


async def test_a_wrong_proof_is_shut_out() -> None:
    async with network_that_stays_healthy() as (net, relay):
        stream = await net.wire(relay)
        link = Link.initiate(net.net.id, relay.id, net.env.randomness, 100, STRANGER)
        link._identity = Seed(bytes(32))
        await stream.send_all(link.data_to_send())
        while not (proof := link.data_to_send()):
            list(link.receive(bytes(await stream.receive_some())))
        await stream.send_all(proof[:-1] + bytes([proof[-1] ^ 1]))
        assert await is_closed(stream, 1.0)
        assert await counted(relay, "refused_form", 1)


# Unnamed links


WRONG = {
    "forward": lambda net: Forward(a_message(net)),
    "ack": lambda net: Ack(1, ()),
    "receipt": lambda net: Receipt("accepted"),
    "answer": lambda net: ParcelAnswer(1, None, ()),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_frames_that_only_relays_send_end_an_unnamed_link(wrong: str) -> None:
    async with network_that_stays_healthy() as (net, relay):
        channel = await net.knock(relay)
        await channel.send(WRONG[wrong](net))
        assert await is_shut(channel)
        assert await counted(relay, "refused_form", 1)
        assert relay.count("messages_received") == 0


async def test_a_malformed_or_oversized_frame_ends_a_link() -> None:
    async with network_that_stays_healthy() as (net, relay):
        for number, frame in enumerate((b"", b"\xc1", b"\x92" * 10_000, bytes(MAX_OVERLAY_FRAME + 1))):
            channel = await net.knock(relay)
            channel._link.send(frame)
            with suppress(trio.BrokenResourceError):
                await channel._stream.send_all(channel._link.data_to_send())
            assert await is_shut(channel)
            assert await counted(relay, "refused_form", number + 1)


async def test_an_altered_frame_ends_a_link() -> None:
    async with network_that_stays_healthy() as (net, relay):
        channel = await net.knock(relay)
        channel._link.send(b"\x92\xa3ack\x01")
        data = bytearray(channel._link.data_to_send())
        data[-1] ^= 1
        await channel._stream.send_all(data)
        assert await is_shut(channel)
        assert await counted(relay, "refused_form", 1)


async def test_an_unnamed_link_has_one_question() -> None:
    async with network_that_stays_healthy() as (net, relay):
        channel = await net.knock(relay)
        drops = [Drop(a_message(net, b"%d" % number), None) for number in range(5)]
        await channel.send(*drops)
        assert await channel.one(5) == Receipt("accepted")
        assert await is_shut(channel, 30)
        assert relay.count("messages_dropped_here") == 1


async def test_what_is_behind_a_strangers_frame_is_not_opened() -> None:
    """An altered record behind a good one changes nothing: the good one is answered, and the link ends."""
    async with network_that_stays_healthy() as (net, relay):
        opened = relay.count("links_opened")
        channel = await net.knock(relay)
        await until(lambda: relay.count("links_opened") > opened)
        data = bytearray()
        for frame in (Drop(a_message(net), None), Ack(1, ())):
            channel._link.send(encode(frame))
            data += channel._link.data_to_send()
        data[-1] ^= 1
        await channel._stream.send_all(data)
        assert await channel.one(5) == Receipt("accepted")
        assert await is_shut(channel, 30)


@pytest.mark.slow
async def test_a_link_that_says_nothing_is_closed() -> None:
    async with network_that_stays_healthy(LONG) as (net, relay):
        channel = await net.knock(relay)
        assert not await is_shut(channel, READY_WITHIN - 60)
        assert await is_shut(channel, 120)


# Drops


@pytest.mark.slow
async def test_drops_are_refused_for_form_and_day() -> None:
    async with network_that_stays_healthy() as (net, relay):
        good = a_message(net)
        trail = trail_of(label_bits(b"x" * 16))
        tomorrow = a_message(net, day=net.calendar.day(net.now) + 1)
        yesterday = a_message(net, day=net.calendar.day(net.now) - 1)
        short = good.body[:-1]
        refused = {
            "form": [
                changed(good, trail=trail),
                changed(good, trail=b"\xff" * len(good.trail)),
                changed(good, id=bytes(32)),
                changed(good, body=good.body[:-1] + bytes([good.body[-1] ^ 1])),
                changed(good, day=good.day + 1),
                changed(good, body=short, id=message_id(good.day, short)),
                changed(good, body=b"", id=message_id(good.day, b"")),
            ],
            "day": [tomorrow, yesterday],
        }
        for verdict, messages in refused.items():
            for number, message in enumerate(messages):
                assert await answer_to(net, relay, Drop(message, None)) == Receipt(verdict)
                assert relay.count(f"refused_{verdict}") == number + 1
        assert relay.count("messages_dropped_here") == 0
        assert await relay.store.scan("intake") == []
        assert await answer_to(net, relay, Drop(good, None)) == Receipt("accepted")
        await until(lambda: net.count("messages_delivered") == 1)


async def test_a_message_dropped_again_is_shown_once() -> None:
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        message = a_message(net, b"once")
        for relay in (*net.relays, *net.relays):
            assert await answer_to(net, relay, Drop(message, None)) == Receipt("accepted")
        await ear.hears(1)
        await trio.sleep(60)
        assert ear.payloads == [b"once"]


async def test_what_does_not_open_under_the_topic_is_not_shown() -> None:
    """The token is no secret to relays: anybody who saw it can send rubbish under it."""
    async with network_that_stays_healthy() as (net, relay):
        good = a_message(net)
        rubbish = bytes(len(good.body))
        forged = changed(good, body=rubbish, id=message_id(good.day, rubbish))
        assert await answer_to(net, relay, Drop(forged, None)) == Receipt("accepted")
        await until(lambda: net.count("messages_not_ours") == 1)
        assert net.count("messages_delivered") == 0


# Parcels


def a_parcel(
    net: SmallNetwork, relay: Node, *, to: Node | None = None, epoch: int = 0, network: bytes = b""
) -> bytes:
    """A withdrawal of nothing, sealed to `relay`; `to` is the relay named inside."""
    assert relay.identity is not None
    parcel = parcels.Parcel(
        network or net.net.id,
        (to or relay).id,
        net.calendar.epoch(net.now) + epoch,
        leases.Withdraw(net.env.randomness(16)),
        0,
        (),
        net.env.randomness(16),
    )
    return parcels.seal_parcel(parcel, relay.identity.parcel_key.public(), net.env.randomness)


async def test_a_parcel_works_once() -> None:
    async with network_that_stays_healthy() as (net, relay):
        sealed = a_parcel(net, relay)
        opened = relay.count("parcels_opened")
        answer = await answer_to(net, relay, ParcelFrame(7, sealed, None))
        assert isinstance(answer, ParcelAnswer)
        assert (answer.number, answer.refused, len(answer.confirmations)) == (7, None, 1)
        assert await answer_to(net, relay, ParcelFrame(8, sealed, None)) == ParcelAnswer(8, "form", ())
        await relay.restart()
        assert await answer_to(net, relay, ParcelFrame(9, sealed, None)) == ParcelAnswer(9, "form", ())
        assert relay.count("parcels_opened") == opened + 1
        assert await counted(relay, "refused_form", 2)


async def test_parcels_meant_for_others_are_refused() -> None:
    async with network_that_stays_healthy() as (net, relay):
        stranger = ParcelKey(b"k" * 32)
        wrong = [
            a_parcel(net, net.relays[1]),
            a_parcel(net, relay, to=net.relays[1]),
            a_parcel(net, relay, network=bytes(32)),
            parcels.seal_parcel(
                parcels.Parcel(net.net.id, relay.id, 0, leases.Withdraw(bytes(16)), 0, (), bytes(16)),
                stranger.public(),
                net.env.randomness,
            ),
            a_parcel(net, relay)[:-1],
            b"",
            bytes(100),
        ]
        for number, sealed in enumerate(wrong):
            assert await answer_to(net, relay, ParcelFrame(1, sealed, None)) == ParcelAnswer(1, "form", ())
            assert await counted(relay, "refused_form", number + 1)


@pytest.mark.parametrize(("epoch", "refused"), [(-2, "day"), (-1, None), (0, None), (1, None), (2, "day")])
async def test_a_parcel_is_for_its_epoch(epoch: int, refused: str | None) -> None:
    async with network_that_stays_healthy() as (net, relay):
        assert net.now < BEGIN + 30  # the epoch does not change meanwhile
        answer = await answer_to(net, relay, ParcelFrame(1, a_parcel(net, relay, epoch=epoch), None))
        assert isinstance(answer, ParcelAnswer)
        assert answer.refused == refused
        assert relay.count("refused_day") == (refused is not None)


# Named links


async def test_a_named_peer_that_no_roster_lists_is_shut_out() -> None:
    async with network_that_stays_healthy() as (net, relay):
        channel = await net.knock(relay, STRANGER)
        with suppress(TransportError):
            await channel.send(Forward(a_message(net)))
        assert await is_shut(channel, 1.0)
        assert await counted(relay, "refused_form", 1)
        assert relay.count("messages_received") == 0


async def test_another_roster_for_the_same_epoch_ends_a_link_and_is_counted() -> None:
    """One that a listed relay shows; what strangers show proves nothing (`tests/attacks`)."""
    async with network_that_stays_healthy() as (net, relay):
        view = relay.daemon.overlay.rosters.view()
        assert view is not None
        us = net.relays[1].identity.seed  # type: ignore[union-attr]
        channel = await net.knock(relay, us, RosterView(view.epoch, bytes(32)))
        assert await is_shut(channel, 1.0)
        assert relay.count("roster_mismatches") == 1
        other_epoch = await net.knock(relay, us, RosterView(view.epoch + 1, bytes(32)))
        assert not await is_shut(other_epoch, 1.0)
        await other_epoch.aclose()
        assert relay.count("roster_mismatches") == 1


async def test_a_relay_that_forges_is_shut_out_and_what_was_good_counts() -> None:
    async with network_that_stays_healthy() as (net, _):
        (planned,) = net.clients[0].route().planned.values()
        tree = planned.installation.tree
        child = next(node for node in net.relays if tree.parents.get(node.id) is not None)
        top = net.relay(tree.parents[child.id])  # type: ignore[arg-type]
        assert child.identity is not None
        channel = await net.knock(top, child.identity.seed)
        good, forged = a_message(net, b"good"), changed(a_message(net, b"bad"), id=bytes(32))
        await channel.send(Forward(good), Forward(forged), Forward(a_message(net, b"after")))
        await until(lambda: net.count("messages_delivered") == 1)
        assert await is_shut(channel)
        assert top.count("messages_received") == 2


async def test_a_relay_whose_bytes_are_altered_is_shut_out_and_what_was_good_counts() -> None:
    async with network_that_stays_healthy() as (net, _):
        (planned,) = net.clients[0].route().planned.values()
        tree = planned.installation.tree
        child = next(node for node in net.relays if tree.parents.get(node.id) is not None)
        top = net.relay(tree.parents[child.id])  # type: ignore[arg-type]
        assert child.identity is not None
        opened = top.count("links_opened")
        channel = await net.knock(top, child.identity.seed)
        await until(lambda: top.count("links_opened") > opened)
        data = bytearray()
        for payload in (b"good", b"bad"):
            channel._link.send(encode(Forward(a_message(net, payload))))
            data += channel._link.data_to_send()
        data[-1] ^= 1
        await channel._stream.send_all(data)
        assert await is_shut(channel)
        await until(lambda: net.count("messages_delivered") == 1)
        assert top.is_up


async def test_frames_that_named_peers_do_not_send_end_the_link() -> None:
    async with network_that_stays_healthy() as (net, relay):
        assert net.relays[1].identity is not None
        for frame in (Drop(a_message(net), None), Receipt("accepted"), AskSlice(1, 0), ShownSlice(b"")):
            channel = await net.knock(relay, net.relays[1].identity.seed)
            await channel.send(frame)
            assert await is_shut(channel)
        assert relay.count("messages_dropped_here") == 0


@pytest.mark.parametrize("number", [1, 2**48 - 1])
async def test_acknowledgements_and_answers_of_nothing_are_nothing(number: int) -> None:
    async with network_that_stays_healthy() as (net, relay):
        assert net.relays[1].identity is not None
        channel = await net.knock(relay, net.relays[1].identity.seed)
        await channel.send(Ack(number, ()), ParcelAnswer(number, None, ()), ParcelAnswer(number, "form", ()))
        await channel.aclose()


async def test_another_daemon_at_a_relays_address_is_not_spoken_to() -> None:
    async with network_that_stays_healthy() as (net, relay):
        with pytest.raises(TransportError):
            await net.knock(relay, expected=net.relays[1].id)
        await until(lambda: relay.count("links_failed") == 1)
