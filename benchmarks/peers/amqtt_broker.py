"""Runs amqtt's broker on the loopback port that is its argument, without its logging plugins."""

from __future__ import annotations

import asyncio
import logging
import sys

from amqtt.broker import Broker

_ANONYMOUS = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}


async def main(port: int) -> None:
    """Serve until killed."""
    listeners = {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}}
    broker = Broker({"listeners": listeners, "plugins": _ANONYMOUS})
    await broker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(main(int(sys.argv[1])))
