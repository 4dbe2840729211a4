"""So many named connections at once, one more is closed, and a place that comes free is given."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from hushcast_node.counters import COUNTERS
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.transports import connection_guard
from hushcast_runtime.transports.connection_guard import ConnectionGuard

CAP = 3


async def is_closed(stream: trio.abc.Stream) -> bool:
    with trio.move_on_after(1):
        try:
            return await stream.receive_some(1) == b""
        except trio.BrokenResourceError:
            return True
    return False


class Peer:
    """What admission sees of a channel: a name, or none, and how to close it."""

    def __init__(self, stream: trio.abc.Stream, peer: bytes | None) -> None:
        self.peer = peer
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()


class Guarded:
    """A `ConnectionGuard` whose handshake is one byte, `n` of who shows a name; serving lasts until told."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.counters = Counters(COUNTERS)
        self.served: list[trio.Event] = []
        self._guard = ConnectionGuard(
            self._accept,  # type: ignore[arg-type]
            self._serve,
            CAP,
            simulated_environment("admission", 0.0),
            self.counters,
        )
        self._nursery = nursery

    async def _accept(self, stream: trio.abc.Stream) -> Peer:
        said = await stream.receive_some(1)
        return Peer(stream, b"name" if said == b"n" else None)

    async def _serve(self, channel: object) -> None:
        done = trio.Event()
        self.served.append(done)
        await done.wait()

    async def connect(self, say: bytes = b"n") -> trio.abc.Stream:
        near, far = trio.testing.memory_stream_pair()

        async def handle() -> None:
            async with far:
                await self._guard.admit(far)

        self._nursery.start_soon(handle)
        if say:
            await near.send_all(say)
        await trio.testing.wait_all_tasks_blocked()
        return near


async def test_connections_beyond_the_cap_are_closed_and_places_come_free(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    guarded = Guarded(nursery)
    for _ in range(CAP):
        assert not await is_closed(await guarded.connect())
    assert await is_closed(await guarded.connect())
    assert len(guarded.served) == CAP
    assert guarded.counters["refused_quota"] == 1
    guarded.served[0].set()
    await trio.testing.wait_all_tasks_blocked()
    assert not await is_closed(await guarded.connect())
    assert len(guarded.served) == CAP + 1


async def test_silent_strangers_take_no_place_and_give_way_to_each_other(
    nursery: trio.Nursery, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_guard, "MAX_STRANGERS", CAP)
    guarded = Guarded(nursery)
    silent = [await guarded.connect(b"") for _ in range(4 * CAP)]
    assert [await is_closed(stream) for stream in silent].count(False) == CAP
    assert guarded.counters["strangers_dropped"] == 3 * CAP
    for _ in range(CAP):
        assert not await is_closed(await guarded.connect())
    assert len(guarded.served) == CAP
    assert guarded.counters["refused_quota"] == 0


async def test_who_shows_no_name_is_not_counted_here(nursery: trio.Nursery, autojump_clock: object) -> None:
    """Whoever serves them limits them: a relay by frames and by what it carries out at once."""
    guarded = Guarded(nursery)
    for _ in range(2 * CAP):
        assert not await is_closed(await guarded.connect(b"a"))
    for _ in range(CAP):
        assert not await is_closed(await guarded.connect())
    assert guarded.counters["refused_quota"] == 0
