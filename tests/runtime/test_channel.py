"""Channels: two real ends over memory streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.link import links
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.translations import Translation
from hushcast_protocol.base.versions.wires import WireTable
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import Ack, OverlayFrame, ParcelFrame, Receipt, decode_overlay
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import (
    CONNECT_TIMEOUT,
    FRAMES_AT_ONCE,
    HANDSHAKE_TIMEOUT,
    LINGER,
    Channel,
    accept_channel,
    open_channel,
)
from hushcast_runtime.transports.memory import MemoryNetwork

NETWORK = bytes(range(32))
RELAY, US, OTHER = (Seed(bytes([number]) * 32) for number in (1, 2, 3))
MAX_FRAME = 10_000
draw = simulated_environment("channel tests").randomness

Streams = tuple[Any, Any]


def initiator(expected: bytes | None = None, us: Seed | None = US, network: bytes = NETWORK) -> Link:
    return Link.initiate(network, expected or RELAY.public(), draw, MAX_FRAME, us)


def responder() -> Link:
    return Link.respond(NETWORK, RELAY, draw, MAX_FRAME)


@dataclass
class Pair:
    """Two channels that finished their handshake, and the streams below."""

    left: Channel[OverlayFrame]
    right: Channel[OverlayFrame]
    streams: Streams


async def connect(
    us: Seed | None = US, make: Callable[[], Streams] = trio.testing.memory_stream_pair
) -> Pair:
    streams = make()
    ends: dict[str, Channel[OverlayFrame]] = {}

    async def finish(name: str, stream: trio.abc.Stream, link: Link) -> None:
        ends[name], _ = await accept_channel(stream, link, decode_overlay)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(finish, "left", streams[0], initiator(us=us))
        nursery.start_soon(finish, "right", streams[1], responder())
    return Pair(ends["left"], ends["right"], streams)


async def take(channel: Channel[OverlayFrame], count: int) -> list[OverlayFrame]:
    taken: list[OverlayFrame] = []
    while len(taken) < count and (batch := await channel.receive()):
        taken += batch
    return taken


async def take_until(error: type[Exception], channel: Channel[OverlayFrame]) -> list[OverlayFrame]:
    """Take frames until reading ends in an error of this type; return them."""
    taken: list[OverlayFrame] = []

    async def take_all() -> None:
        while batch := await channel.receive():
            taken.extend(batch)

    with pytest.raises(error):
        await take_all()
    return taken


async def test_both_ends_learn_who_the_other_is() -> None:
    pair = await connect()
    assert (pair.left.peer, pair.right.peer) == (RELAY.public(), US.public())
    pair = await connect(us=None)
    assert (pair.left.peer, pair.right.peer) == (RELAY.public(), None)


async def test_frames_travel_both_ways_in_order() -> None:
    pair = await connect()
    frames = [Ack(number, ()) for number in range(200)]
    async with trio.open_nursery() as nursery:
        for end, other in ((pair.left, pair.right), (pair.right, pair.left)):

            async def check(channel: Channel[OverlayFrame] = other) -> None:
                assert await take(channel, len(frames)) == frames

            nursery.start_soon(check)
            nursery.start_soon(end.send, *frames)


async def test_frames_sent_by_several_tasks_stay_whole() -> None:
    pair = await connect(make=lambda: trio.testing.lockstep_stream_pair())
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(pair.left.send, ParcelFrame(number, bytes([number]) * 3000, None))
        taken = await take(pair.right, 20)
    assert {frame.number: set(frame.sealed) for frame in taken if isinstance(frame, ParcelFrame)} == {
        number: {number} for number in range(20)
    }


async def test_a_frame_that_comes_with_the_handshake_is_not_lost() -> None:
    """The initiator may speak as soon as the responder has proved itself; all may come in one read."""
    left, right = trio.testing.memory_stream_pair()
    link, answering = initiator(), responder()
    await left.send_all(link.data_to_send())
    list(answering.receive(bytes(await right.receive_some())))
    await right.send_all(answering.data_to_send())
    list(link.receive(bytes(await left.receive_some())))
    link.send(encode(Ack(1, ())))
    link.send(encode(Ack(2, ())))
    await left.send_all(link.data_to_send())
    channel = Channel(right, answering, decode_overlay)
    established = await channel.handshake()
    assert established.peer == US.public()
    assert await take(channel, 2) == [Ack(1, ()), Ack(2, ())]


async def test_frames_of_one_read_come_some_at_a_time() -> None:
    """Between two batches others have their turn."""
    pair = await connect()
    frames = [Ack(number, ()) for number in range(3 * FRAMES_AT_ONCE + 1)]
    for frame in frames:
        pair.left._link.send(encode(frame))
    await pair.streams[0].send_all(pair.left._link.data_to_send())
    taken: list[list[OverlayFrame]] = []
    turns: list[int] = []

    async def others() -> None:
        while True:
            turns.append(len(taken))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        while sum(map(len, taken)) < len(frames):
            taken.append(await pair.right.receive())
        nursery.cancel_scope.cancel()
    assert [len(batch) for batch in taken] == [FRAMES_AT_ONCE] * 3 + [1]
    assert [frame for batch in taken for frame in batch] == frames
    assert len(turns) >= 3


async def test_a_batch_that_is_not_taken_is_lost_to_nobody() -> None:
    pair = await connect()
    frames = [Ack(number, ()) for number in range(2 * FRAMES_AT_ONCE)]
    await pair.left.send(*frames)
    first = await pair.right.receive()
    with trio.CancelScope() as scope:
        scope.cancel()
        await pair.right.receive()
    assert scope.cancelled_caught
    assert first + await pair.right.receive() == frames


async def test_a_bad_frame_behind_a_full_batch_comes_next() -> None:
    pair = await connect()
    for number in range(FRAMES_AT_ONCE):
        pair.left._link.send(encode(Ack(number, ())))
    pair.left._link.send(b"\xc1 is never used")
    await pair.streams[0].send_all(pair.left._link.data_to_send())
    assert len(await pair.right.receive()) == FRAMES_AT_ONCE
    for _ in range(2):
        with pytest.raises(DecodeError):
            await pair.right.receive()


async def test_where_one_frame_is_expected_one_is_opened() -> None:
    pair = await connect()
    opened: list[bytes] = []

    def decode(data: bytes) -> OverlayFrame:
        opened.append(data)
        return decode_overlay(data)  # type: ignore[no-any-return]

    right = pair.right.speaking(decode)
    await pair.left.send(*[Ack(number, ()) for number in range(5)])
    assert await right.one(1.0) == Ack(0, ())
    assert len(opened) == 1
    assert await right.receive() == [Ack(number, ()) for number in range(1, 5)]


async def test_what_is_sent_at_once_is_sealed_some_at_a_time() -> None:
    pair = await connect()
    sizes: list[int] = []
    send_all = pair.streams[0].send_stream.send_all

    async def note(data: bytes) -> None:
        sizes.append(len(data))
        await send_all(data)

    pair.streams[0].send_stream.send_all = note
    frames = [ParcelFrame(number, bytes(9000), None) for number in range(100)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.left.send, *frames)
        assert await take(pair.right, len(frames)) == frames
    assert len(sizes) == 4
    assert max(sizes) < 280_000


def sockets() -> Streams:
    near, far = trio.socket.socketpair()
    return trio.SocketStream(near), trio.SocketStream(far)


async def test_what_a_socket_does_not_take_at_once_goes_before_what_is_sent_later() -> None:
    pair = await connect(make=sockets)
    frames = [ParcelFrame(number, bytes(9000), None) for number in range(200)]
    assert pair.left.is_free
    pair.left.send_at_once(*frames)
    assert pair.left.holds_unsent
    assert not pair.left.is_free
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.left.send, Ack(7, ()))
        assert await take(pair.right, 201) == [*frames, Ack(7, ())]
    assert pair.left.is_free
    for end in (pair.left, pair.right):
        await end.aclose()


@pytest.mark.parametrize("ends", ["near", "far"])
async def test_a_socket_that_ended_takes_nothing_at_once(ends: str) -> None:
    pair = await connect(make=sockets)
    await (pair.left if ends == "near" else pair.right).aclose()
    with pytest.raises(TransportError):
        pair.left.send_at_once(Ack(1, ()))
    with pytest.raises(TransportError):
        await pair.left.send(Ack(2, ()))
    for end in (pair.left, pair.right):
        await end.aclose()


async def test_a_stream_that_has_to_be_waited_for_takes_nothing_at_once() -> None:
    assert not (await connect()).left.is_free


async def test_the_end_of_the_stream_ends_the_frames() -> None:
    pair = await connect()
    await pair.left.send(Ack(1, ()))
    await pair.left.aclose()
    assert await take(pair.right, 99) == [Ack(1, ())]


async def corrupt_last(pair: Pair, *frames: bytes) -> None:
    """Send frames in one write, each in a record of its own, the last with its last bit flipped."""
    link = pair.left._link
    data = bytearray()
    for frame in frames:
        link.send(frame)
        data += link.data_to_send()
    data[-1] ^= 1
    await pair.streams[0].send_all(data)


async def test_what_came_whole_before_an_altered_frame_counts() -> None:
    pair = await connect()
    await corrupt_last(pair, encode(Ack(1, ())), encode(Ack(2, ())), encode(Ack(3, ())))
    assert await take_until(AuthenticationError, pair.right) == [Ack(1, ()), Ack(2, ())]


async def test_what_came_whole_before_a_malformed_frame_counts() -> None:
    pair = await connect()
    for frame in (encode(Ack(1, ())), b"\xc1 is never used", encode(Ack(2, ()))):
        pair.left._link.send(frame)
    await pair.streams[0].send_all(pair.left._link.data_to_send())
    assert await take_until(DecodeError, pair.right) == [Ack(1, ())]


async def test_the_way_bytes_are_cut_changes_nothing() -> None:
    for cut in (1, 7, 64, 1000):
        pair = await connect()
        for number in range(5):
            pair.left._link.send(encode(ParcelFrame(number, bytes(50), None)))
        data = pair.left._link.data_to_send()

        async def trickle(stream: Any = pair.streams[0], data: bytes = data, cut: int = cut) -> None:
            for start in range(0, len(data), cut):
                await stream.send_all(data[start : start + cut])
                await trio.testing.wait_all_tasks_blocked()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trickle)
            taken = await take(pair.right, 5)
        assert taken == [ParcelFrame(number, bytes(50), None) for number in range(5)]


async def test_a_frame_over_the_limit_is_refused_before_it_is_held() -> None:
    pair = await connect()
    await pair.streams[0].send_all((MAX_FRAME + 21).to_bytes(4, "big"))
    with pytest.raises(DecodeError, match="limits"):
        await take(pair.right, 1)


async def test_a_cancelled_send_breaks_the_channel() -> None:
    """Half a frame may be under way: what followed would be taken for its second half."""
    pair = await connect(make=lambda: trio.testing.lockstep_stream_pair())
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pair.left.send, Ack(1, ()))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    with pytest.raises(TransportError):
        await pair.left.send(Ack(2, ()))
    with pytest.raises(TransportError):
        await pair.left.send(Receipt("accepted"))


async def test_a_send_cancelled_before_its_turn_breaks_nothing() -> None:
    pair = await connect(make=lambda: trio.testing.lockstep_stream_pair())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.left.send, Ack(1, ()))
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await pair.left.send(Ack(2, ()))
        nursery.start_soon(pair.left.send, Ack(3, ()))
        assert await take(pair.right, 2) == [Ack(1, ()), Ack(3, ())]


async def test_a_broken_stream_is_a_transport_error() -> None:
    pair = await connect()
    await pair.right.aclose()
    with pytest.raises(TransportError):
        await pair.left.send(Ack(1, ()))
    await pair.left.aclose()
    with pytest.raises(TransportError):
        await take(pair.left, 1)


async def test_one_waits_for_one_frame_and_not_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    pair = await connect()
    before = trio.current_time()
    with pytest.raises(TransportError, match="time"):
        await pair.right.one(12.0)
    assert trio.current_time() - before == pytest.approx(12.0)
    await pair.left.send(Ack(7, ()))
    assert await pair.right.one(12.0) == Ack(7, ())
    await pair.left.aclose()
    with pytest.raises(TransportError, match="closed"):
        await pair.right.one(12.0)


async def test_nothing_is_sent_after_a_bad_frame_came() -> None:
    """Whoever wants to acknowledge what came before it hears that the connection is over, and no more."""
    pair = await connect()
    await corrupt_last(pair, encode(Ack(1, ())), encode(Ack(2, ())))
    assert await pair.right.receive() == [Ack(1, ())]
    with pytest.raises(TransportError):
        await pair.right.send(Ack(9, ()))
    with pytest.raises(AuthenticationError):
        await pair.right.receive()
    with pytest.raises(PeerError):
        await pair.right.receive()


async def test_finishing_waits_for_the_other_end_for_a_moment(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pair = await connect()
    before = trio.current_time()
    await pair.right.finish()
    assert trio.current_time() - before == pytest.approx(LINGER)
    await pair.left.aclose()
    before = trio.current_time()
    await pair.right.finish()
    assert trio.current_time() == before


# The handshake


async def test_a_silent_end_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    for link in (initiator(), responder()):
        near, far = trio.testing.memory_stream_pair()
        before = trio.current_time()
        with pytest.raises(TransportError, match="time"):
            await accept_channel(near, link, decode_overlay)
        assert trio.current_time() - before == pytest.approx(HANDSHAKE_TIMEOUT)
        with pytest.raises(trio.BrokenResourceError):
            await far.send_all(b"x")


async def test_a_handshake_that_trickles_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    """The deadline is for the handshake, not for each read."""
    near, far = trio.testing.memory_stream_pair()
    hello = initiator().data_to_send()

    async def trickle() -> None:
        for index in range(len(hello)):
            await trio.sleep(1)
            try:
                await far.send_all(hello[index : index + 1])
            except trio.BrokenResourceError:
                return

    before = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trickle)
        with pytest.raises(TransportError, match="time"):
            await accept_channel(near, responder(), decode_overlay)
        assert trio.current_time() - before == pytest.approx(HANDSHAKE_TIMEOUT)


@asynccontextmanager
async def answering(link: Link) -> AsyncIterator[Any]:
    """A responder in the background; yields the stream to it."""
    near, far = trio.testing.memory_stream_pair()

    async def answer() -> None:
        with pytest.raises((PeerError, TransportError)):
            await accept_channel(far, link, decode_overlay)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        yield near


async def test_whoever_expects_another_key_at_the_address_hears_nothing() -> None:
    async with answering(responder()) as stream:
        with pytest.raises(TransportError, match="closed"):
            await accept_channel(stream, initiator(expected=OTHER.public()), decode_overlay)


async def test_another_key_at_the_address_is_refused_before_we_show_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "compare_digest", lambda *_: True)  # it answers whoever comes
    async with answering(responder()) as stream:
        link = initiator(expected=OTHER.public())
        with pytest.raises(AuthenticationError, match="another daemon"):
            await accept_channel(stream, link, decode_overlay)
        assert link.data_to_send() == b""


async def test_another_network_is_refused() -> None:
    async with answering(responder()) as stream:
        with pytest.raises(TransportError):
            await accept_channel(stream, initiator(network=bytes(32)), decode_overlay)


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x00", b"hushcast-link/1\n"])
async def test_strangers_are_refused_at_their_first_wrong_byte(
    sent: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    async with answering(responder()) as stream:
        await stream.send_all(sent)
        assert await stream.receive_some() == b""
    assert trio.current_time() == 0


async def test_a_stream_that_ends_in_the_handshake_is_an_error() -> None:
    async with answering(responder()) as stream:
        await stream.send_all(initiator().data_to_send()[:40])
        await stream.aclose()


async def test_a_failed_handshake_closes_the_stream() -> None:
    near, far = trio.testing.memory_stream_pair()
    await far.send_all(b"nonsense")
    with pytest.raises(DecodeError):
        await accept_channel(near, responder(), decode_overlay)
    assert await far.receive_some() == b""


async def test_opening_to_nobody_is_an_error(autojump_clock: trio.testing.MockClock) -> None:
    network = MemoryNetwork()
    listener = await network.transport().listen(OTHER)
    await listener.aclose()
    with pytest.raises(TransportError):
        await open_channel(network.transport(), listener.address, "a", initiator(), decode_overlay)


async def test_an_address_that_never_answers_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    network = MemoryNetwork(delay=lambda: 1e6)
    listener = await network.transport().listen(OTHER)
    before = trio.current_time()
    with pytest.raises(TransportError, match="time"):
        await open_channel(network.transport(), listener.address, "a", initiator(), decode_overlay)
    assert trio.current_time() - before == pytest.approx(CONNECT_TIMEOUT)


async def test_a_link_of_another_wire_carries_what_that_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has no words for is passed over, and nothing that stands behind is lost."""
    between = Translation({Receipt: lambda said: None}, {ParcelFrame: lambda said: None})
    monkeypatch.setattr(WireTable, "translation", lambda *_: between)
    pair = await connect()
    passed_over = [Receipt("quota")] * (FRAMES_AT_ONCE + 3)
    await pair.left.send(ParcelFrame(1, b"", None), *passed_over, Ack(1, ()), Receipt("quota"), Ack(2, ()))
    assert await pair.right.first() == Ack(1, ())
    assert await pair.right.receive() == [Ack(2, ())]
    await pair.left.aclose()
    assert await pair.right.receive() == []
