"""A daemon that nobody answers any more says so: in its status, at its subscriptions, in their coverage."""

from __future__ import annotations

import pytest
import trio
from small_network import EPOCH_SECONDS, SmallNetwork, small_network, until

pytestmark = pytest.mark.slow

EPOCH = 1200  # seconds
MANY = {"probes_an_epoch": 60.0, "epoch": EPOCH}


async def stop_relays(net: SmallNetwork) -> None:
    for relay in net.relays:
        await relay.stop()


async def test_dead_relays_show_though_the_directory_lives() -> None:
    async with small_network(relays=3, clients=1, **MANY) as net:
        daemon = net.clients[0].daemon
        await net.clients[0].listen()
        await trio.sleep(EPOCH)
        coverage = net.clients[0].route().coverage
        before = coverage.describe()
        assert before["share"] == before["delivered"] == 1.0
        assert daemon.is_connected
        await stop_relays(net)
        await until(lambda: not daemon.is_connected, EPOCH, "it finds out")
        assert daemon.overlay.cut_off is not None
        assert "no relay answers" in daemon.overlay.cut_off
        assert daemon.status()["cut_off"] == daemon.overlay.cut_off
        assert daemon.service.subscriptions()[0]["nodes"] == 0
        await trio.sleep(EPOCH)
        after = coverage.describe()
        assert after["probes"] > before["probes"]
        assert after["share"] < 1.0
        assert after["delivered"] < 1.0
        assert after["suspects"] == []  # whose fault it is, nobody can tell
        for relay in net.relays:
            await relay.start()
        await until(lambda: daemon.is_connected, 3 * EPOCH, "one answers again")
        assert daemon.overlay.cut_off is None


async def test_silence_shows_where_nothing_is_tried() -> None:
    async with small_network(relays=3, clients=1) as net:
        client = net.clients[0]
        await net.directory.stop()
        await stop_relays(net)
        await trio.sleep(EPOCH_SECONDS)
        assert client.daemon.is_connected  # a directory that is restarted misses one
        await trio.sleep(2 * EPOCH_SECONDS)
        assert not client.daemon.is_connected
        assert "neither the directory nor a relay has answered for" in client.daemon.status()["cut_off"]


async def test_a_roster_from_before_disputes_no_clock() -> None:
    async with small_network(relays=3, clients=1) as net:
        client = net.clients[0]
        await net.directory.stop()
        await client.stop()
        await trio.sleep(5 * EPOCH_SECONDS)
        await client.start()
        assert client.daemon.overlay.rosters.newest is not None
        assert client.daemon.clock.describe()["disputed"] is False
        assert not client.daemon.clock.is_certain()  # nothing vouches for it, either
        assert not client.daemon.is_connected


async def test_relays_that_are_gone_do_not_hide_those_that_answer() -> None:
    async with small_network(relays=8, clients=1, probes_an_epoch=0.0) as net:
        client = net.clients[0]
        for relay in net.relays[:4]:
            await relay.stop()
        await client.listen()  # those that are gone are told by themselves, one after the other
        assert client.daemon.status()["cut_off"] is None
        await trio.sleep(EPOCH_SECONDS)
        assert client.daemon.is_connected
