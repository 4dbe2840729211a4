"""A daemon reads under cover over a private Tor, tors 40 ms apart; it is killed, and then all hosts are."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from running_net import RunningTestnet

import hushcast
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_testnet import testnet
from hushcast_testnet.tor.distance import Distance

# A porter and a lane begin within a day of 24 epochs each, so no such test is a short one.
pytestmark = [pytest.mark.tor, pytest.mark.processes, pytest.mark.soak]

EPOCH = 30  # seconds
DAY = 24 * EPOCH
RELAYS, CLIENTS = 14, 3
READER, AUTHOR, PLAIN = "client-1", "client-2", "client-3"
TOLD_WITHIN = 2 * DAY  # seconds: letters begin within a day, and each relay's goes in a round of its topic
HEARD_WITHIN = 12 * LEAST_ROUND  # seconds from a publication without cover
COVERED_WITHIN = 30 * LEAST_ROUND  # seconds from one with cover
UNDER_COVER = '\n[cover]\non = true\nread = true\nhold = "never"\n'
TOPIC = "news"


@pytest.fixture
def net(tmp_path: Path) -> Iterator[RunningTestnet]:
    directory = tmp_path / "n"
    testnet.up(
        directory, RELAYS, CLIENTS, "tor", EPOCH, authorities=3, keepers=0, cover=True, distance=Distance(40)
    )
    try:
        yield RunningTestnet(directory)
    finally:
        testnet.down(directory)


async def _told(net: RunningTestnet) -> None:
    """Wait until all relays but the host have been told, and a lane brings blocks."""
    with trio.fail_after(TOLD_WITHIN):
        while True:
            async with hushcast.connect(net.socket(READER)) as daemon:
                (told,) = [one.described for one in await daemon.subscriptions()]
            if told["nodes"] == RELAYS - 1 and "; " not in told["outlook"]:
                return
            await trio.sleep(2)


async def _hosts(net: RunningTestnet) -> list[str]:
    counted = {name: (await net.status(name))["counters"]["blocks_given"] for name in net.relays}
    return [name for name, given in counted.items() if given]


class Watch:
    """Seconds since the last step."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}
        self._since = time.monotonic()

    def note(self, what: str) -> None:
        now = time.monotonic()
        self.took[what], self._since = round(now - self._since, 1), now


async def test_a_reader_hears_over_tor_and_what_comes_while_it_or_its_host_is_dead(
    net: RunningTestnet, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (READER, AUTHOR):
        config = Path(net.member(name).config)
        config.write_text(config.read_text() + UNDER_COVER)
        await net.restart(name)
    watch = Watch()
    async with net.listening(READER, TOPIC, keep=True):
        await _told(net)
    watch.note("all told")
    async with net.listening(READER, TOPIC, keep=True) as ear:
        heard = {await net.publish(PLAIN, TOPIC, "without cover")}
        await ear.until(heard, HEARD_WITHIN)
        watch.note("without cover")
        async with hushcast.connect(net.socket(AUTHOR)) as daemon:
            heard.add((await daemon.enqueue(TOPIC, "under cover")).id)
        await ear.until(heard, COVERED_WITHIN)
        watch.note("under cover")
        assert dict(ear.shown) == dict.fromkeys(heard, 1)
    await net.end(READER, by_kill=True)
    away = {await net.publish(PLAIN, TOPIC, "while it is dead")}
    await trio.sleep(2 * LEAST_ROUND)
    watch.note("it is dead")
    await net.start(READER, [sys.executable])
    async with net.listening(READER, TOPIC, keep=True) as ear:
        await ear.until(away, HEARD_WITHIN)
        watch.note("while it is dead")
        hosts = await _hosts(net)
        for name in hosts:
            await net.end(name, by_kill=True)
        away.add(await net.publish(PLAIN, TOPIC, "while its host is dead"))
        await trio.sleep(LEAST_ROUND)
        for name in hosts:
            await net.start(name, [sys.executable])
        watch.note("its host is dead")
        await ear.until(away, HEARD_WITHIN)
        watch.note("while its host is dead")
        assert {one: ear.shown[one] for one in away} == dict.fromkeys(away, 1)
    with capsys.disabled():
        print(json.dumps(watch.took))
