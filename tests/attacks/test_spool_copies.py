"""Somebody installs many leases at a relay and drops one message, so that its copies fill memory and disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from small_network import Node, SmallNetwork, small_network, unrouted

from hushcast_overlay.relay.lease_store import _StoredLease
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frames import Drop, Receipt
from hushcast_protocol.overlay.hops import host_hop
from hushcast_protocol.overlay.leases import Lease
from hushcast_runtime.storage import spool as spools
from hushcast_runtime.storage import store as stores
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import SqliteStore

LARGEST = 262_287  # bytes of the largest body
SMALLEST = 1_167
TOKEN = b"t" * 16


async def install(net: SmallNetwork, relay: Node, count: int) -> None:
    """Leases for mailboxes that are nowhere, as any number of parcels may bring them."""
    found = (element(net.profile, TOKEN, relay.id, ORIGIN),)
    day = net.calendar.day(net.now)
    for number in range(count):
        mailbox = Seed(number.to_bytes(32, "big")).public()
        name = number.to_bytes(16, "big")
        stored = _StoredLease(day, host_hop(mailbox), memory_address(mailbox), found, name, name)
        await relay.store.write(Change("lease", name, encode(stored)))
    await relay.restart()


async def drop(net: SmallNetwork, relay: Node, size: int) -> str:
    day, body = net.calendar.day(net.now), os.urandom(size)
    channel = await net.knock(relay)
    await channel.send(Drop(Message(message_id(day, body), day, (TOKEN,), bytes(TRAIL_SIZE), body), None))
    receipt = await channel.one(300)
    await channel.aclose()
    assert isinstance(receipt, Receipt)
    return receipt.verdict


def spool_of(relay: Node) -> Spool:
    assert relay.daemon.overlay.relay is not None
    return relay.daemon.overlay.relay.forwarding._spool


@pytest.mark.parametrize("leases", [50, 100])
async def test_one_drop_takes_its_body_once_and_little_for_each_next_hop(leases: int) -> None:
    async with small_network(relays=2, clients=0, epoch=3600) as net:
        relay = net.relays[0]
        await install(net, relay, leases)
        assert await drop(net, relay, LARGEST) == "accepted"
        await trio.sleep(5)
        assert spool_of(relay).size == LARGEST + leases * spools.REFERENCE
        kinds = [record for kind in ("spool", "spool-body") for record in await relay.store.scan(kind)]
        assert sum(len(key) + len(value) for key, value in kinds) <= spool_of(relay).size


@pytest.mark.slow
async def test_the_spool_never_holds_more_than_its_cap_and_what_was_accepted_waits_for_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cap = 60 * spools.REFERENCE
    monkeypatch.setattr(spools, "MAX_SPOOL", cap)
    async with small_network(relays=2, clients=0, epoch=3600) as net:
        relay = net.relays[0]
        await install(net, relay, 40)
        verdicts = []
        for _ in range(30):
            verdicts.append(await drop(net, relay, SMALLEST))
            assert spool_of(relay).size <= cap
        assert set(verdicts) == {"accepted", "quota"}
        await trio.sleep(30)
        waiting = await unrouted(relay)
        assert waiting > 0, "what was accepted and has no room is kept"
        await relay.restart()
        await trio.sleep(30)
        assert await unrouted(relay) == waiting
        assert spool_of(relay).size <= cap
        monkeypatch.setattr(spools, "MAX_SPOOL", 1000 * cap)
        await trio.sleep(30)
        assert await unrouted(relay) == 0
        for lease in leases_of(relay):  # some twice, after a restart; mailboxes know their ids
            ids = {item.message.id for item in await spool_of(relay).waiting(lease.hop)}
            assert len(ids) == verdicts.count("accepted")


def leases_of(relay: Node) -> list[Lease]:
    assert relay.daemon.overlay.relay is not None
    return relay.daemon.overlay.relay.leases.book.leases()


@pytest.mark.slow
async def test_a_disk_takes_one_body_and_gives_it_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    message = Message(bytes(32), 1, (TOKEN,), bytes(TRAIL_SIZE), os.urandom(LARGEST))

    def on_disk() -> int:
        return sum(file.stat().st_size for file in tmp_path.iterdir())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        spool = Spool(store)
        placed = spool.put([HopMessage(host_hop(os.urandom(32)), message) for _ in range(2000)])
        await spool.durable()
        assert on_disk() < 2 * spool.size + stores.MAX_WRITE_AHEAD
        spool.done(item for _, item in placed)
        await spool.durable()
        nursery.cancel_scope.cancel()
    store.close()
    assert on_disk() < 2_000_000
