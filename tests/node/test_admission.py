"""Admission: so many connections at once, the next is closed, and a place that comes free is given again."""

from __future__ import annotations

import trio
import trio.testing

from hushcast_node.admission import Admission
from hushcast_runtime.counters import Counters

CAP = 3


async def is_closed(stream: trio.abc.Stream) -> bool:
    with trio.move_on_after(1):
        try:
            return await stream.receive_some(1) == b""
        except trio.BrokenResourceError:
            return True
    return False


async def test_connections_beyond_the_cap_are_closed_and_places_come_free(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    served: list[trio.Event] = []

    async def serve(stream: trio.abc.Stream) -> None:
        done = trio.Event()
        served.append(done)
        await done.wait()

    counters = Counters()
    admission = Admission(serve, CAP, counters)
    ours: list[trio.abc.Stream] = []

    async def knock() -> trio.abc.Stream:
        near, far = trio.testing.memory_stream_pair()

        async def handle() -> None:
            async with far:
                await admission.admit(far)

        nursery.start_soon(handle)
        await trio.testing.wait_all_tasks_blocked()
        ours.append(near)
        return near

    for _ in range(CAP):
        assert not await is_closed(await knock())
    assert await is_closed(await knock())
    assert len(served) == CAP
    assert counters["refused_quota"] == 1
    served[0].set()
    await trio.testing.wait_all_tasks_blocked()
    assert not await is_closed(await knock())
    assert len(served) == CAP + 1
