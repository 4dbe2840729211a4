"""A link that is given up: it is read no more, whether its reader waits for more or takes what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import trio
import trio.testing

from hushcast_overlay.relay.session import Session
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, OverlayFrame, Ping, decode_overlay
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, accept_channel
from hushcast_runtime.transports.memory import MemoryStream, Pipe

draw = simulated_environment("given up").randomness
US, OTHER, NETWORK = Seed(b"u" * 32), Seed(b"o" * 32), b"n" * 32
Streams = tuple[trio.abc.Stream, trio.abc.Stream]


class Closing:
    """What a session does with its channel."""

    is_free, holds_unsent = True, False

    def __init__(self) -> None:
        self.closed = 0
        self.sent: list[Any] = []

    def send_at_once(self, *frames: Any) -> None:
        self.sent += frames

    async def aclose(self) -> None:
        self.closed += 1


async def test_the_stream_is_closed_once_and_nothing_is_written_any_more() -> None:
    channel = Closing()
    async with trio.open_nursery() as nursery:
        session = Session(cast("Any", channel), nursery.start_soon, trio.current_time())
        session.post(Ping())
        await trio.testing.wait_all_tasks_blocked()
        session.give_up()
        session.give_up()
        session.post(Ping())
        await trio.testing.wait_all_tasks_blocked()
        session.end()
        session.give_up()
    assert (channel.closed, channel.sent) == (1, [Ping()])


def in_memory() -> Streams:
    forth, back = Pipe(0.0, None), Pipe(0.0, None)
    return MemoryStream(forth, back), MemoryStream(back, forth)


def sockets() -> Streams:
    near, far = trio.socket.socketpair()
    return trio.SocketStream(near), trio.SocketStream(far)


@pytest.mark.parametrize("make", [in_memory, sockets])
async def test_a_reader_that_waits_for_more_hears_of_it(make: Callable[[], Streams]) -> None:
    near, far = make()
    ends: dict[str, Channel[OverlayFrame]] = {}

    async def shake(name: str, stream: trio.abc.Stream, link: Link) -> None:
        ends[name], _ = await accept_channel(stream, link, decode_overlay)

    async with trio.open_nursery() as nursery:
        ours = Link.initiate(NETWORK, OTHER.public(), draw, MAX_OVERLAY_FRAME, US)
        nursery.start_soon(shake, "near", near, ours)
        nursery.start_soon(shake, "far", far, Link.respond(NETWORK, OTHER, draw, MAX_OVERLAY_FRAME))
    heard = trio.Event()

    async def read() -> None:
        with pytest.raises(TransportError):
            await ends["near"].receive()
        heard.set()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            session = Session(ends["near"], nursery.start_soon, trio.current_time())
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            assert not heard.is_set()
            session.give_up()
            await heard.wait()
        assert await ends["far"].receive() == []  # and so does the other end
        await ends["far"].aclose()


async def test_what_is_being_taken_is_left() -> None:
    """Also where a frame of a batch has the link given up, and messages stand behind it in the same batch."""
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            session = Session(cast("Any", Closing()), nursery.start_soon, trio.current_time())

            async def take() -> None:
                with session.taking():
                    await trio.sleep_forever()  # for room
                with session.taking():
                    await trio.sleep_forever()

            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            session.give_up()
