"""A publisher through a daemon that may be killed at any moment."""

from __future__ import annotations

from pathlib import Path

import trio

import hushcast


class Press:
    """Publishes one message after the other; knows which are durable and which a relay took."""

    def __init__(self, socket: Path, topic: str) -> None:
        self._socket = socket
        self._topic = topic
        self.queued: set[str] = set()
        self.accepted: set[str] = set()

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            try:
                await self._publish(b"%d" % number)
            except (hushcast.NoDaemon, hushcast.Refusal, hushcast.Waiting):
                await trio.sleep(0.05)  # gone, starting, or no relay took it at first

    async def _publish(self, payload: bytes) -> None:
        async with hushcast.connect(self._socket, timeout=None, reconnect=False) as daemon:
            publication = await daemon.enqueue(self._topic, payload, at_once=True)
            self.queued.add(publication.id)
            await daemon.accepted(publication)
            self.accepted.add(publication.id)
