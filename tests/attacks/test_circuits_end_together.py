"""Whoever runs relays' onion services sees when circuits to them end: none may end with another.

tor closes all circuits that were used long enough ago at one moment. So two relays that were given something
within half a minute, messages or instructions for a subscription, would know that it came from one daemon.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import pytest
import trio

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.tor.circuits import LINGER
from hushcast_runtime.tor.control import open_control
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener
from hushcast_testnet.tor.private_tor import TorNetwork

pytestmark = pytest.mark.tor

APART = LINGER[1] + 3  # seconds between two uses: by chance no two of their circuits end together
WITHIN = 60.0


async def hold(stream: trio.abc.Stream) -> None:
    """Leave it to whoever came when circuits end."""
    async with stream:
        await stream.receive_some(1)
        await stream.send_all(b"y")
        await trio.sleep_forever()


async def test_circuits_of_one_daemon_end_apart(tor_network: TorNetwork) -> None:
    control, socks = tor_network.clients[0].endpoints()
    ended: list[float] = []
    listeners: list[Listener] = []

    def handle(event: Any) -> None:
        mine = {listener.address.partition(".")[0] for listener in listeners}  # the tor serves others, too
        if (event.purpose, event.status) == ("HS_SERVICE_REND", "CLOSED") and event.rend_query in mine:
            ended.append(trio.current_time())

    async with open_control(control, handle) as watched, trio.open_nursery() as nursery:
        daemon, relays = (TorTransport(TorSettings(control=control, socks=socks)) for _ in range(2))
        with trio.fail_after(WITHIN):
            await nursery.start(daemon.run)
            await nursery.start(relays.run)
            for _ in range(2):
                listeners.append(await relays.listen(Seed.draw(os.urandom)))
            for listener in listeners:
                nursery.start_soon(listener.serve, hold)
                await listener.published()
        await watched.set_events("CIRC")
        used = []
        for number, listener in enumerate(listeners):
            with trio.fail_after(WITHIN):
                stream = await daemon.connect(listener.address, f"message-{number}")
                async with stream:
                    await stream.send_all(b"x")
                    assert await stream.receive_some(1) == b"y"
            used.append(trio.current_time())
            await trio.sleep(APART)
        assert len(ended) == len(used), "each has ended by now"
        for end, use in zip(ended, used, strict=True):
            assert LINGER[0] - 0.5 < end - use < APART
        assert all(later - earlier > 0.5 for earlier, later in pairwise(ended))
        nursery.cancel_scope.cancel()
