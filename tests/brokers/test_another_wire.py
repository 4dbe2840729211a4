"""A root announces another wire a day ahead, and a network of brokers goes on to it, and back."""

from __future__ import annotations

import pytest
import trio
from drilled_wire import BOTH, LinksOpened
from small_network import until
from small_tree import SmallTree, small_tree

from hushcast_brokers import upstream
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.network_wire import BEGINNING, AnnouncedWire, NetworkWire

CHAIN = (("inner", "inner", "root"), ("edge", "edge", "inner"))
DAY = 40 * EPOCHS_A_DAY


def test_a_wire_is_announced_a_whole_day_ahead_one_step_at_a_time() -> None:
    announced = BEGINNING.towards(3, DAY + 5)
    assert announced == AnnouncedWire(1, 2, DAY + 2 * EPOCHS_A_DAY)
    assert announced.by(DAY + 5) == NetworkWire(1, 2, DAY + 2 * EPOCHS_A_DAY)
    assert announced.towards(None, DAY + 6) == announced, "some rely on what was announced"
    begun = announced.begins
    assert announced.by(begun) == NetworkWire(2)
    assert announced.towards(3, begun) == AnnouncedWire(2, 3, begun + 2 * EPOCHS_A_DAY)
    assert announced.towards(2, begun) == announced.towards(None, begun) == AnnouncedWire(2, None, 0)
    assert announced.towards(1, begun + 1) == AnnouncedWire(2, 1, begun + 2 * EPOCHS_A_DAY)


async def until_spoken(network: SmallTree, wire: int) -> None:
    calendar = network.calendar
    begins = network.root.daemon.tree.wire.begins
    assert begins % EPOCHS_A_DAY == 0
    assert calendar.epoch_start(begins) - network.now > calendar.day_seconds
    await trio.sleep(calendar.epoch_start(begins) - network.now + 1)
    for member in network.members:
        assert member.daemon._held.spoken(network.now) == wire


async def test_brokers_go_on_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = LinksOpened(monkeypatch, upstream)
    async with small_tree(CHAIN) as network:
        monkeypatch.setattr(wires, "table", lambda: BOTH)
        root = network.root.daemon
        for wire in (2, 1):
            version = root.tree.version
            await root.replace_seats(network.seats, wire)
            assert root.tree.version == version + 1
            assert root.tree.wire.coming == wire
            await network.linked()
            await until_spoken(network, wire)
            opened.links.clear()
            for name in ("inner", "edge"):
                await network[name].restart()
            await network.linked()
            assert {spoken for _, spoken in opened.links} == {wire}
            assert (root.tree.wire.now, root.tree.wire.coming) in ((wire, None), (3 - wire, wire))


async def test_who_is_too_old_says_so_and_dials_its_parent_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_tree(CHAIN) as network:
        edge = network["edge"].daemon
        monkeypatch.setattr(wires, "table", lambda: BOTH)
        await network.root.daemon.replace_seats(network.seats, 2)
        await until(lambda: edge.tree.wire.coming == 2, 30.0, "it was told")
        monkeypatch.undo()
        calendar = network.calendar
        (finding,) = edge.tree.wire.by(calendar.epoch(network.now)).examine(calendar)
        assert finding.verdict == "warning"
        await trio.sleep(calendar.epoch_start(edge.tree.wire.begins) - network.now + 1)
        (finding,) = edge.tree.wire.by(calendar.epoch(network.now)).examine(calendar)
        assert finding.found == "this network speaks wire 2, and this program wire 1"
        with pytest.raises(wires.OtherWire):
            edge._held.spoken(network.now)


def test_a_root_is_not_asked_for_what_it_does_not_speak() -> None:
    from hushcast_brokers.broker.settings import parse_broker

    text = 'state = "/s"\nrole = "root"\nwire = {}\n[network]\ncarrier = "brokers"\nname = "n"\n'
    assert parse_broker(text.format(1).encode(), "file").wire == 1  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="this program speaks wire 1: write that, or leave it out"):
        parse_broker(text.format(2).encode(), "file")
