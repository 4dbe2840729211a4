"""A geographic box and a private topic over a private Tor network, from command line to command line."""

from __future__ import annotations

import itertools
import json
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

pytestmark = [pytest.mark.tor, pytest.mark.processes]

COMMAND = [sys.executable, "-m", "hushcast_cli.start"]
WITHIN = 90  # seconds that a subscription or a delivery may take over Tor
LATE = 3  # seconds in which whatever is still on its way would come

BOX = "lat in [60, 61], lon in [24, 25], kind = fire"
INSIDE = [
    ({"lat": "60.17", "lon": "24.94", "kind": "fire"}, {"lat": 60.17, "lon": 24.94, "kind": "fire"}),
    ({"lat": "60", "lon": "25", "kind": "fire"}, {"lat": 60, "lon": 25, "kind": "fire"}),
    ({"lat": "61.0004", "lon": "24.5", "kind": "fire"}, {"lat": 61, "lon": 24.5, "kind": "fire"}),
]
OUTSIDE = [
    {"lat": "61.0006", "lon": "24.5", "kind": "fire"},
    {"lat": "60.17", "lon": "23.999", "kind": "fire"},
    {"lat": "60.17", "lon": "24.94", "kind": "flood"},
    {"lat": "60.17", "lon": "24.94"},
    {},
]

_fresh = itertools.count()


def fresh_topic(name: str) -> str:
    """Tests share one testnet: each has topics of its own."""
    return f"{name} {secrets.token_hex(4)} {next(_fresh)}"


async def hushcast(*arguments: str | Path) -> bytes:
    """Run a command to its end and return what it printed; fail unless it succeeds."""
    with trio.fail_after(WITHIN):
        done = await trio.run_process(
            [*COMMAND, *arguments], capture_stdout=True, capture_stderr=True, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Listener:
    """A running `hushcast subscribe --json`: its messages, as they come."""

    def __init__(self) -> None:
        self.ready = trio.Event()
        self.messages: list[dict[str, Any]] = []
        self._news = trio.Event()

    async def collect(self, stream: trio.abc.ReceiveStream) -> None:
        """Read events until standard output ends."""
        rest = b""
        async for part in stream:
            *lines, rest = (rest + part).split(b"\n")
            for event in map(json.loads, lines):
                if event["event"] == "message":
                    self.messages.append(event)
                self.ready.set()
                self._news.set()
                self._news = trio.Event()

    async def until(self, count: int) -> None:
        """Wait for so many messages, and then for those that should not come."""
        with trio.fail_after(WITHIN):
            while len(self.messages) < count:
                await self._news.wait()
        await trio.sleep(LATE)


@asynccontextmanager
async def subscribe(socket: Path, *arguments: str | Path) -> AsyncIterator[Listener]:
    """Listen through the command line; the block starts once relays route to the daemon."""
    listener = Listener()
    process = await trio.lowlevel.open_process(
        [*COMMAND, "--json", "--socket", str(socket), "subscribe", *map(str, arguments)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.collect, process.stdout)
            with trio.fail_after(WITHIN):
                await listener.ready.wait()
            yield listener
            nursery.cancel_scope.cancel()
    finally:
        process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdout.aclose()


async def test_only_what_lies_in_a_geographic_box_arrives(tor_testnet, tmp_path) -> None:
    net, link = tor_testnet, tmp_path / "fires.link"
    specs = ("kind", "lat:-90..90:0.001", "lon:-180..180:0.001")
    options = [word for spec in specs for word in ("--attribute", spec)]
    await hushcast("topic", "new", fresh_topic("fires"), *options, "--output", link)

    async def publish(daemon: str, values: dict[str, str], payload: str) -> None:
        settings = [word for pair in values.items() for word in ("--set", "=".join(pair))]
        socket = net.socket(daemon)
        await hushcast("--socket", socket, "publish", "--link-file", link, *settings, payload)

    async with subscribe(net.socket("client-1"), "--link-file", link, "--where", BOX) as listener:
        async with trio.open_nursery() as publishing:
            limit = trio.CapacityLimiter(3)

            async def one_of_few(*arguments: Any) -> None:
                async with limit:
                    await publish(*arguments)

            for number, values in enumerate(OUTSIDE):
                publishing.start_soon(one_of_few, "client-2", values, f"outside {number}")
            for number, (values, _) in enumerate(INSIDE):
                publishing.start_soon(one_of_few, "relay-4", values, f"inside {number}")
        await listener.until(len(INSIDE))
    shown = {message["payload"]: message["attributes"] for message in listener.messages}
    assert shown == {f"inside {number}": expected for number, (_, expected) in enumerate(INSIDE)}
    assert len(listener.messages) == len(INSIDE), "none comes twice"
    await net.forget(link.read_text().strip(), "client-1")


async def test_a_private_topic_reaches_only_those_with_its_link(tor_testnet, tmp_path) -> None:
    net, name = tor_testnet, fresh_topic("family")
    link, key = tmp_path / "family.link", tmp_path / "author.key"
    await hushcast("topic", "new", name, "--private", "--output", link)
    fingerprint = (await hushcast("admin", "key", "new", key)).decode().strip()
    sender = net.socket("client-2")
    async with (
        subscribe(net.socket("client-1"), "--link-file", link) as family,
        subscribe(net.socket("relay-2"), name) as stranger,
    ):
        signed = ("--socket", sender, "publish", "--link-file", link, "--as", key)
        await hushcast(*signed, "dinner is ready")
        await hushcast("--socket", sender, "publish", "--link-file", link, "unsigned")
        await hushcast("--socket", sender, "publish", name, "hello, stranger")
        await family.until(2)
        await stranger.until(1)
    assert {message["payload"]: message.get("author") for message in family.messages} == {
        "dinner is ready": fingerprint,
        "unsigned": None,
    }
    assert [message["payload"] for message in stranger.messages] == ["hello, stranger"]
    assert all(message["topic"] == name for message in family.messages + stranger.messages)
    secret = link.read_text().strip()
    for daemon in net.daemons:
        assert secret not in (Path(net.member(daemon).config).parent / "log").read_text()
    await net.forget(secret, "client-1")
    await net.forget(name, "relay-2")
