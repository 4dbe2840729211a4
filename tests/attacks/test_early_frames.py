"""A stranger puts thousands of frames behind a handshake's proof, to hold up a daemon and see who waits.

Whoever waits lives in the same process: so the mailboxes of a relay's daemon, or of one client, told
themselves. A hostile relay did the same to whoever dropped a message at it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

import pytest
import trio
import trio.testing
from small_network import SmallNetwork, small_network
from steps import Steps, one_step

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.links import MAX_HANDSHAKE_READ, Link
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    OverlayFrame,
    ParcelFrame,
    Ping,
    decode_overlay,
)
from hushcast_runtime.transports.channel import FRAMES_AT_ONCE, Channel, accept_channel

NETWORK = bytes(32)
DAEMON = Seed(bytes([1]) * 32)
EMPTY = bytes(4)
PING = struct.pack(">I", len(encode(Ping()))) + encode(Ping())
AMOUNT = (
    64 * 1024
)  # bytes; of the smallest frames they took 0.15 s of a processor, and four times as many 3 s


def sealed(link: Link, frame: bytes, amount: int, record: int = 2000) -> bytes:
    """So many bytes of one frame, again and again, as `link` seals them."""
    assert link._outgoing is not None
    return b"".join(
        part for _ in range(amount // record) for part in link._outgoing.seal(frame * (record // len(frame)))
    )


async def behind_an_initiators_proof(frame: bytes) -> tuple[Channel[OverlayFrame], trio.abc.Stream]:
    """A responder's channel before its handshake ends, and the stream of an initiator that has said all."""
    ours, theirs = trio.testing.memory_stream_pair()
    attacker = Link.initiate(NETWORK, DAEMON.public(), os.urandom, MAX_OVERLAY_FRAME)
    daemon = Link.respond(NETWORK, DAEMON, os.urandom, MAX_OVERLAY_FRAME)
    list(daemon.receive(attacker.data_to_send()))
    list(attacker.receive(daemon.data_to_send()))
    await theirs.send_all(attacker.data_to_send() + sealed(attacker, frame, AMOUNT))
    return Channel(ours, daemon, decode_overlay), theirs


async def behind_a_responders_proof(frame: bytes) -> tuple[Channel[OverlayFrame], trio.abc.Stream]:
    """An initiator's channel before its handshake ends, and the stream of a responder that has said all."""
    ours, theirs = trio.testing.memory_stream_pair()
    daemon = Link.initiate(NETWORK, DAEMON.public(), os.urandom, MAX_OVERLAY_FRAME)
    attacker = Link.respond(NETWORK, DAEMON, os.urandom, MAX_OVERLAY_FRAME)
    list(attacker.receive(daemon.data_to_send()))
    await theirs.send_all(attacker.data_to_send() + sealed(attacker, frame, AMOUNT))
    return Channel(ours, daemon, decode_overlay), theirs


each_end = pytest.mark.parametrize("end", [behind_an_initiators_proof, behind_a_responders_proof])
End = Callable[[bytes], "trio.abc.Awaitable[tuple[Channel[OverlayFrame], trio.abc.Stream]]"]


@each_end
@pytest.mark.parametrize("frame", [EMPTY, PING], ids=["empty", "ping"])
async def test_a_handshake_is_short_whatever_is_behind_it(end: End, frame: bytes) -> None:
    channel, _ = await end(frame)
    with one_step():
        await channel.handshake()
    assert len(channel._link._buffer) <= MAX_HANDSHAKE_READ


@each_end
async def test_frames_of_one_read_are_opened_some_at_a_time(end: End) -> None:
    channel, theirs = await end(PING)
    await channel.handshake()
    await theirs.aclose()
    count = 0
    while True:
        with one_step():
            batch = await channel.receive()
        if not batch:
            break
        assert len(batch) <= FRAMES_AT_ONCE
        count += len(batch)
    assert count == AMOUNT // 2000 * (2000 // len(PING))


@each_end
async def test_who_expects_one_frame_opens_one(end: End) -> None:
    channel, _ = await end(PING)
    opened: list[bytes] = []

    def decode(data: bytes) -> OverlayFrame:
        opened.append(data)
        return decode_overlay(data)  # type: ignore[no-any-return]

    await channel.handshake()
    channel = channel.speaking(decode)
    assert await channel.one(1.0) == Ping()
    assert len(opened) == 1


@each_end
async def test_an_empty_frame_ends_a_link(end: End) -> None:
    channel, _ = await end(EMPTY)
    await channel.handshake()
    with pytest.raises(DecodeError):
        await channel.one(1.0)
    with pytest.raises(DecodeError):
        await channel.receive()


async def burst(net: SmallNetwork, number: int, frame: bytes) -> None:
    """Connect to a relay without a name; send its proof and all the frames in one write."""
    relay = net.relays[number]
    stream = await net.wire(relay)
    attacker = Link.initiate(net.net.id, relay.id, os.urandom, MAX_OVERLAY_FRAME)
    await stream.send_all(attacker.data_to_send())
    while not attacker.is_open:
        list(attacker.receive(bytes(await stream.receive_some())))
    await stream.send_all(attacker.data_to_send() + sealed(attacker, frame, AMOUNT))


PARCEL = encode(ParcelFrame(0, bytes(900), None))


@pytest.mark.parametrize(
    "frame", [EMPTY, PING, struct.pack(">I", len(PARCEL)) + PARCEL], ids=["empty", "ping", "parcel"]
)
async def test_strangers_take_no_long_step_of_a_relay(frame: bytes) -> None:
    async with small_network(relays=2, clients=0, epoch=3600) as net:
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        for _ in range(4):
            await burst(net, 0, frame)
        stream = await net.wire(net.relays[0])
        with trio.fail_after(5):
            link = Link.initiate(net.net.id, net.relays[0].id, os.urandom, MAX_OVERLAY_FRAME)
            channel, _ = await accept_channel(stream, link, decode_overlay)
            await channel.aclose()
        trio.lowlevel.remove_instrument(steps)
        steps.check()
