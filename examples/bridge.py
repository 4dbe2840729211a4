"""A bridge to a web hook: each message of a topic is POSTed to a URL as JSON, at least once.

    python examples/bridge.py https://hooks.example.org/orders orders

A message is acknowledged when the hook has answered 2xx, and not before: whether this program, the hook or
the daemon dies, what was not taken is sent again. So a hook may get a message twice, and knows it by its id.
A hook that refuses a message for ever holds up the rest: decide here what should become of such a message.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import sys
import urllib.request
from contextlib import suppress

import trio

import hushcast

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds until a hook that failed is asked again
ANSWERS_WITHIN = 30.0  # seconds


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Takes a redirection for a failure: followed, it would be a GET, which brings nothing."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


async def main(options: argparse.Namespace) -> None:
    """Carry messages until the subscription is ended."""
    topic = hushcast.read_link(options.link_file) if options.link_file else options.topic
    async with (
        hushcast.connect(options.socket, wait=True, timeout=None) as daemon,
        daemon.subscribe(topic, acknowledge="manual") as messages,
    ):
        async for message in messages:
            await deliver(options.url, message)
            await messages.acknowledge(message)


async def deliver(url: str, message: hushcast.Message) -> None:
    """Return when the hook has taken a message."""
    wait = FIRST_WAIT
    while True:
        try:
            return await trio.to_thread.run_sync(post, url, message, abandon_on_cancel=True)
        except (OSError, http.client.HTTPException) as error:  # urllib's own are OSErrors
            print(f"the hook failed, again in {wait:g} s: {error}", file=sys.stderr, flush=True)
        await trio.sleep(wait)
        wait = min(LONGEST_WAIT, 2 * wait)


def post(url: str, message: hushcast.Message) -> None:
    """Send a message; raise an error unless the answer is 2xx."""
    told = {
        "id": message.id,
        "received_at": message.received_at,
        "attributes": message.attributes,
        "author": message.author,
        "payload": base64.b64encode(message.payload).decode(),
    }
    headers = {"Content-Type": "application/json", "Idempotency-Key": message.id}
    request = urllib.request.Request(url, json.dumps(told).encode(), headers)  # noqa: S310 - the user's own
    with urllib.request.build_opener(NoRedirect).open(request, timeout=ANSWERS_WITHIN):
        pass


def hook(url: str) -> str:
    """Return a URL to which can be posted."""
    if not url.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError("a hook's URL begins with https:// or http://")
    return url


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="POST the messages of a topic to a URL.")
    parser.add_argument("url", type=hook)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("topic", nargs="?")
    where.add_argument("--link-file", help="the link of a private topic")
    parser.add_argument("--socket", help="the daemon's; else HUSHCAST_SOCKET, or the usual places")
    with suppress(KeyboardInterrupt):
        try:
            trio.run(main, parser.parse_args())
        except hushcast.HushcastError as error:
            sys.exit(f"bridge: {error}")
