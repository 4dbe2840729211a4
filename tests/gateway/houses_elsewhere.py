"""Other houses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from houses import LINK, House

import hushcast
from hushcast_protocol.mqtt.envelope import OpenedEnvelope, Place, enclose


class Elsewhere:
    """A gateway elsewhere that says what the test says."""

    def __init__(self, daemon: hushcast.Daemon, source: bytes) -> None:
        self._daemon = daemon
        self._source = source

    async def says(
        self, number: int, payload: bytes, retain: bool = False, epoch: int = 1, path: str = "a"
    ) -> None:
        place = Place(self._source, epoch, number, number == 1)
        await self._daemon.publish(LINK, enclose(OpenedEnvelope(payload, path, retain, {}, 1, place)))


@asynccontextmanager
async def elsewhere(house: House, source: bytes = b"source 1") -> AsyncIterator[Elsewhere]:
    async with hushcast.connect(house.daemon.socket) as daemon:
        yield Elsewhere(daemon, source)
