"""Killed at any moment: nothing durable is lost, and nothing acknowledged is shown again."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import trio
from press import Press

import hushcast

TOPIC = "kills"
KILLS = 12
SUBSCRIBER, PUBLISHER = "client-1", "client-2"
ARRIVES_WITHIN = 120.0  # seconds; daemons that were killed are dialled again with backoff


class Application:
    """Listens, is killed, listens again; acknowledges now and then."""

    def __init__(self, net: Any, choice: random.Random) -> None:
        self._socket = net.socket(SUBSCRIBER)
        self._choice = choice
        self._scope = trio.CancelScope()
        self._by_cursor: dict[int, str] = {}
        self.subscribed = trio.Event()
        self.shown: Counter[str] = Counter()
        self.acknowledged: set[str] = set()
        self.perhaps: set[str] = set()  # the daemon was killed before it answered

    def kill(self) -> None:
        """Die at once, whatever was just received."""
        self._scope.cancel()

    async def run(self) -> None:
        """Live again after each death of ours or of the daemon."""
        while True:
            with trio.CancelScope() as self._scope:
                try:
                    await self._listen()
                except (hushcast.NoDaemon, hushcast.Refusal):  # it refuses while it starts
                    await trio.sleep(0.05)

    async def _listen(self) -> None:
        async with (
            hushcast.connect(self._socket, timeout=None, reconnect=False) as daemon,
            daemon.subscribe(TOPIC, acknowledge="manual") as messages,
        ):
            self.subscribed.set()
            async for message in messages:
                assert message.id not in self.acknowledged, "what was acknowledged is shown again"
                self.shown[message.id] += 1
                self._by_cursor[message.cursor] = message.id
                if self._choice.random() < 0.2:
                    await self._acknowledge(messages, message)

    async def _acknowledge(self, messages: hushcast.Messages, message: hushcast.Message) -> None:
        ids = {message_id for number, message_id in self._by_cursor.items() if number <= message.cursor}
        self.perhaps |= ids
        await messages.acknowledge(message)
        self.acknowledged |= ids


async def kept(net: Any, wanted: set[str]) -> set[str]:
    """Return the ids that a listener gets that begins before everything."""
    got: set[str] = set()
    async with (
        hushcast.connect(net.socket(SUBSCRIBER)) as daemon,
        daemon.subscribe(TOPIC, since=0, acknowledge="manual") as messages,
    ):
        with trio.move_on_after(20):
            while wanted - got:
                got.add((await anext(messages)).id)
    return got


@pytest.mark.processes
async def test_nothing_durable_is_lost_and_nothing_acknowledged_comes_again(
    tcp_testnet: Any,
) -> None:
    net, choice = tcp_testnet, random.Random(4)
    application, press = Application(net, choice), Press(net.socket(PUBLISHER), TOPIC)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(application.run)
        with trio.fail_after(60):
            await application.subscribed.wait()
        async with trio.open_nursery() as publishing:  # its end is awaited: no id is noted afterwards
            publishing.start_soon(press.run)
            for number in range(KILLS):
                await trio.sleep(choice.uniform(0.1, 1.5))
                if number % 3 == 2:
                    application.kill()
                else:
                    await net.restart((SUBSCRIBER, PUBLISHER)[number % 3], by_kill=True)
            publishing.cancel_scope.cancel()
        with trio.move_on_after(ARRIVES_WITHIN):
            while press.queued - application.shown.keys():  # noqa: ASYNC110 - as above
                await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    assert len(press.accepted) > 20
    assert len(application.acknowledged) > 20
    assert not press.queued - application.shown.keys(), "what was durable arrives, receipt or not"
    again = await kept(net, press.queued - application.perhaps)
    assert not again & application.acknowledged
    assert not press.queued - application.perhaps - again, "what nobody acknowledged is kept"
    await net.unsubscribe(SUBSCRIBER, TOPIC)
