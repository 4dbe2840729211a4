"""A stranger hands in parcels that are passed on over a busy link, so that its messages are late.

One parcel ended the link: the messages that waited to be written to it were counted as answers that the other
end does not read, and one more frame was one too many. And as many of the largest as a relay holds for
strangers were all written before the first message: half a minute of a circuit, as often as he likes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
import trio.testing

from hushcast_overlay.relay.session import MAX_CONFIRMATIONS_WAITING, MAX_REQUESTS, Session
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay.confirmations import MAX_CONFIRMATIONS
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Forward,
    OverlayFrame,
    ParcelAnswer,
    ParcelFrame,
    decode_overlay,
)
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.spool import SpooledMessage
from hushcast_runtime.transports.channel import Channel, accept_channel, open_channel
from hushcast_runtime.transports.memory import MemoryNetwork

draw = simulated_environment("busy link").randomness
US, OTHER, NETWORK = Seed(b"u" * 32), Seed(b"o" * 32), b"n" * 32
LARGE = 128 * 1024  # bytes of a parcel
BODY = 1167  # bytes of a message
BUSY = 3 * MAX_REQUESTS  # messages; the first third is on the wire, whose other end does not read


def message(number: int) -> Message:
    return Message(number.to_bytes(32, "big"), 7, (b"t" * 16,), bytes(TRAIL_SIZE), bytes(BODY))


@asynccontextmanager
async def session() -> AsyncIterator[tuple[Session, Channel[OverlayFrame]]]:
    """A session, and the other end of its link."""
    network = MemoryNetwork()
    listener = await network.transport().listen(OTHER)
    accepted: list[Channel[OverlayFrame]] = []
    over = trio.Event()

    async def serve(stream: trio.abc.Stream) -> None:
        link = Link.respond(NETWORK, OTHER, draw, MAX_OVERLAY_FRAME)
        channel, _ = await accept_channel(stream, link, decode_overlay)
        accepted.append(channel)
        await over.wait()

    async with trio.open_nursery() as nursery:

        def spawn(task: Callable[..., object], *args: object) -> None:
            nursery.start_soon(task, *args)

        nursery.start_soon(listener.serve, serve)
        link = Link.initiate(NETWORK, OTHER.public(), draw, MAX_OVERLAY_FRAME, US)
        channel, _ = await open_channel(network.transport(), listener.address, "", link, decode_overlay)
        await trio.testing.wait_all_tasks_blocked()
        yield Session(channel, spawn, trio.current_time()), accepted[0]
        over.set()
        nursery.cancel_scope.cancel()


async def test_messages_that_wait_to_be_written_are_no_unread_answers() -> None:
    async with session() as (busy, other):
        busy.forward(SpooledMessage(b"", message(number), BODY) for number in range(BUSY))
        await trio.testing.wait_all_tasks_blocked()
        busy.post(ParcelAnswer(1, None, ()))
        assert not busy.is_over
        frames: list[OverlayFrame] = []
        while len(frames) < BUSY + 1:
            frames += await other.receive()
        assert [frame.message.id for frame in frames if isinstance(frame, Forward)] == [
            message(number).id for number in range(BUSY)
        ]
        at = next(place for place, frame in enumerate(frames) if isinstance(frame, ParcelAnswer))
        assert at < BUSY, "an answer does not wait for all messages"


async def test_who_reads_no_answers_is_given_up_all_the_same() -> None:
    async with session() as (unread, _):
        unread.forward(SpooledMessage(b"", message(number), BODY) for number in range(BUSY))
        await trio.testing.wait_all_tasks_blocked()
        for number in range(MAX_REQUESTS):
            unread.post(ParcelAnswer(number, None, ()))
        assert not unread.is_over
        unread.post(ParcelAnswer(MAX_REQUESTS, None, ()))
        assert unread.is_over


async def test_who_reads_no_long_answers_is_given_up_before_they_take_much() -> None:
    """The longest answers have some thousand times what others have."""
    longest = (bytes(16),) * MAX_CONFIRMATIONS
    async with session() as (unread, _):
        unread.forward(SpooledMessage(b"", message(number), BODY) for number in range(BUSY))
        await trio.testing.wait_all_tasks_blocked()
        most = MAX_CONFIRMATIONS_WAITING // MAX_CONFIRMATIONS
        for number in range(most):
            unread.post(ParcelAnswer(number, None, longest))
        assert not unread.is_over
        unread.post(ParcelAnswer(most, None, longest))
        assert unread.is_over


async def test_who_reads_them_may_have_any_number_of_answers() -> None:
    longest = (bytes(16),) * MAX_CONFIRMATIONS
    async with session() as (busy, other):
        for number in range(3 * MAX_CONFIRMATIONS_WAITING // MAX_CONFIRMATIONS):
            busy.post(ParcelAnswer(number, None, longest))
            assert await other.receive()
        assert not busy.is_over


async def test_parcels_and_messages_that_wait_take_turns() -> None:
    async with session() as (shared, other), trio.open_nursery() as nursery:
        for _ in range(64):
            nursery.start_soon(shared.request, bytes(LARGE))
        await trio.testing.wait_all_tasks_blocked()  # what the stream takes is on its way
        shared.forward(SpooledMessage(b"", message(number), BODY) for number in range(200))
        frames: list[OverlayFrame] = []
        while sum(isinstance(frame, Forward) for frame in frames) < 200:
            frames += await other.receive()
        nursery.cancel_scope.cancel()
    parcels = sum(isinstance(frame, ParcelFrame) for frame in frames)
    assert parcels * LARGE <= 200 * 1167 + 2 * 1024 * 1024, "messages get half of what is written"
    last = len(frames) - 1 - next(at for at, frame in enumerate(frames) if isinstance(frame, Forward))
    assert last >= 200, "and parcels the other half"
