"""A bot: answers commands on a topic. Under asyncio.

    python examples/bot.py garden --key bot.key
    hushcast publish garden '!time'

It signs with a key, so that readers know its answers from anybody's. SIGTERM, as of `systemctl stop`, ends it
in order: a command is acknowledged when it was answered, so one that it was at comes again at the next start.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import hushcast


async def main(options: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    me = asyncio.current_task()
    assert me is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, me.cancel)
    topic = hushcast.read_link(options.link_file) if options.link_file else options.topic
    key = Path(options.key)
    author = hushcast.read_author(key) if key.exists() else hushcast.new_author(key)
    async with (
        hushcast.connect(options.socket, wait=True, timeout=None) as daemon,
        daemon.subscribe(topic) as messages,
    ):
        print(f"answering on {messages.topic} as {author.fingerprint}", flush=True)
        async for message in messages:
            if (answer := await answered(daemon, topic, message.text)) is not None:
                try:
                    await daemon.enqueue(topic, answer, author=author)
                except hushcast.Refusal as error:  # the outbox is full
                    print(f"one answer is lost: {error}", file=sys.stderr)


async def answered(daemon: hushcast.Daemon, topic: str, text: str) -> str | None:
    """Return what to say to a text; what is no command, as the bot's own answers, needs none."""
    match text.split():
        case ["!help"]:
            return "I know !help, !time, !echo TEXT and !coverage"
        case ["!time"]:
            return f"it is {datetime.now(UTC):%H:%M} UTC"
        case ["!echo", *words]:
            return " ".join(words)[:1000].lstrip("!") or "nothing"
        case ["!coverage"]:
            shares = [one.share for one in await daemon.coverage(topic)]
            return f"I hear {', '.join('?' if share is None else f'{share:.0%}' for share in shares)}"
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Answer commands on a topic.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("topic", nargs="?")
    where.add_argument("--link-file", help="the link of a private topic")
    parser.add_argument("--key", default="bot.key", help="the author's key; made if there is none")
    parser.add_argument("--socket", help="the daemon's; else HUSHCAST_SOCKET, or the usual places")
    with suppress(asyncio.CancelledError):
        try:
            asyncio.run(main(parser.parse_args()))
        except hushcast.HushcastError as error:
            sys.exit(f"bot: {error}")
