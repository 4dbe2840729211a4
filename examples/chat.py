"""Chat: what you type is published on a topic, and what anybody says there is printed.

    python examples/chat.py garden --name ada

Start it once beside each of two daemons, say with --socket. Your own lines come back as everybody's do: when
you see one, the network has it. Under trio, whose threads let the program end while one waits for a line.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

import trio

import hushcast


async def main(options: argparse.Namespace) -> None:
    """Talk and listen until the input ends."""
    topic = hushcast.read_link(options.link_file) if options.link_file else options.topic
    async with (
        hushcast.connect(options.socket) as daemon,
        daemon.subscribe(topic) as messages,
        trio.open_nursery() as nursery,
    ):
        print(f"{messages.topic}: type, and end with Ctrl-D", file=sys.stderr)
        nursery.start_soon(listen, messages)
        with suppress(KeyboardInterrupt):  # here, because a nursery wraps what leaves it
            await talk(daemon, topic, options.name)
        nursery.cancel_scope.cancel()


async def talk(daemon: hushcast.Daemon, topic: str, name: str) -> None:
    """Publish each line of the input; the daemon has it on disk, and waits for the network in our place."""
    while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        try:
            await daemon.enqueue(topic, f"{name}: {line.strip()}")
        except hushcast.HushcastError as error:
            print(error, file=sys.stderr)


async def listen(messages: hushcast.Messages) -> None:
    """Print what comes; each message is acknowledged when the next is asked for."""
    async for message in messages:
        # Anybody may write: what would move the cursor or ring the bell is shown as a question mark.
        print("".join(sign if sign.isprintable() else "?" for sign in message.text), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Chat on a topic.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("topic", nargs="?")
    where.add_argument("--link-file", help="the link of a private topic")
    parser.add_argument("--name", default="somebody", help="put before your lines")
    parser.add_argument("--socket", help="the daemon's; else HUSHCAST_SOCKET, or the usual places")
    with suppress(KeyboardInterrupt):
        try:
            trio.run(main, parser.parse_args())
        except hushcast.HushcastError as error:
            sys.exit(f"chat: {error}")
