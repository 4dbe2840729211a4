"""A daemon that starts: what it says of itself until applications can be served."""

from __future__ import annotations

from typing import Any

import trio
from small_network import small_network, until


async def test_a_daemon_that_has_a_roster_is_not_ready_until_applications_are_served() -> None:
    async with small_network(relays=3) as net:
        client = net.clients[0]
        await client.stop()
        scan, go_on = client.store.scan, trio.Event()

        async def slow(kind: str, *others: Any, **named: Any) -> list[tuple[bytes, bytes]]:
            if kind == "interest":
                await go_on.wait()
            return await scan(kind, *others, **named)

        client.store.scan = slow  # type: ignore[method-assign]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.start)
            await until(
                lambda: client._daemon is not None and client.daemon.overlay.rosters.newest is not None
            )
            await trio.sleep(10)
            assert not client.daemon.ready
            assert not client.daemon.status()["ready"]
            go_on.set()
        assert client.daemon.ready
