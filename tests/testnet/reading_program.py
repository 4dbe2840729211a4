"""A program for a test: prints the id of each message on a topic, until one says `end`.

Its arguments are asyncio or trio, the daemon's socket and the topic.
"""

from __future__ import annotations

import sys

import anyio

import hushcast


async def main(socket: str, topic: str) -> None:
    async with hushcast.connect(socket, timeout=None) as daemon, daemon.subscribe(topic) as messages:
        print("ready", flush=True)
        async for message in messages:
            print(message.id, flush=True)
            if message.text == "end":
                break


if __name__ == "__main__":
    backend, *arguments = sys.argv[1:]
    anyio.run(main, *arguments, backend=backend)
