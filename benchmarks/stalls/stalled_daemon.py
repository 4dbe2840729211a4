"""One daemon as a process that does what lines on its standard input say, and may have an old fault.

`subscribe TOPIC`, `publish TOPIC`, or `stall SECONDS`: for so long its loop is then held by each frame that
does not decode, as thousands of early frames once held it. Its one argument is that of `relay_process`.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import trio

from benchmarks.relay.relay_process import live
from hushcast_node.daemon import NodeDaemon
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, Topic, parse_topic
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.transports.channel import Channel


class OldFault:
    """Holds the loop at each frame that does not decode."""

    seconds = 0.0

    def plant(self) -> None:
        """Give it to all channels of this process."""
        honest = Channel._opened

        def opened(channel: Channel[Any], coming: Iterator[Any], most: int) -> list[Any]:
            try:
                return honest(channel, coming, most)
            except PeerError:
                time.sleep(self.seconds)
                raise

        Channel._opened = opened  # type: ignore[method-assign, assignment]


async def subscribe(daemon: NodeDaemon, topic: Topic) -> None:
    """Subscribe, with no application that listens."""
    with suppress(Refusal):
        (await daemon.service.subscribe(Interest(topic))).close()


async def publish(daemon: NodeDaemon, topic: Topic) -> None:
    """Publish, and leave it to the outbox."""
    await daemon.service.enqueue(topic, Content(b"hello"))


async def obey(fault: OldFault, daemon: NodeDaemon) -> None:
    """Do what is said, once this daemon is ready, until nothing more comes."""
    while not daemon.ready:  # noqa: ASYNC110 - it tells nobody
        await trio.sleep(0.05)
    said = b""
    async with trio.open_nursery() as nursery:
        async for data in trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())):
            *lines, said = (said + data).split(b"\n")
            for word, what in (line.decode().split(" ", 1) for line in lines):
                if word == "stall":
                    fault.seconds = float(what)
                else:
                    does = subscribe if word == "subscribe" else publish
                    nursery.start_soon(does, daemon, parse_topic(what))


if __name__ == "__main__":
    configure_logs("error", False)
    planted = OldFault()
    planted.plant()
    trio.run(live, json.loads(sys.argv[1]), functools.partial(obey, planted))
