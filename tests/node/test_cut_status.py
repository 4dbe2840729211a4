"""What a daemon shows of a day that is cut into shards: in `status`, in its status line, by the doctor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_network import Node, SmallNetwork, small_network

from hushcast_node.overlay_doctor import examine_overlay
from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.roster_standing import RosterStanding
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.shards.assignment import shard_of_relay

BEACON = b"beacon" + bytes(26)


def cut(net: SmallNetwork, node: Node) -> Neighbourhood:
    """Have a daemon hold that today is cut in four; return its relays as before, as if one shard's."""
    overlay = node.daemon.overlay
    newest = overlay.rosters.newest
    assert newest is not None
    near = Neighbourhood(net.calendar, net.env)
    near.hold(RosterStanding(newest, newest))
    told = Sharding(net.calendar.day(net.now), BEACON, 2, bytes(32), bytes(32), 2001)
    roster = replace(newest, relays={}, shards=(told,))
    overlay.rosters._hold_all([RosterStanding(roster, roster)])
    return near


def one(found: list[Finding], about: str) -> Finding:
    return next(finding for finding in found if finding.check == about)


async def test_all_relays_are_counted_and_a_relay_names_its_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=4) as net:
        relay, client = net.relays[0], net.clients[0]
        overlay = relay.daemon.overlay
        whole = overlay.status()["roster"]
        assert whole == {"epoch": whole["epoch"], "relays": 4, "held": 0}
        assert overlay.describe() == "4 relays in the roster"
        near = cut(net, relay)
        cut(net, client)
        told = {"epoch": whole["epoch"], "relays": 2001, "held": 0, "shards": 4}
        assert overlay.status()["roster"] == told, "it does not know whether it is in its shard"
        assert client.daemon.overlay.status()["roster"] == told
        assert client.daemon.overlay.describe() == "2,001 relays in 4 shards"
        monkeypatch.setattr(overlay.shards, "own", lambda day: near)
        assert overlay.status()["roster"] == told | {"shard": shard_of_relay(BEACON, relay.id, 2)}


async def test_the_doctor_looks_for_the_seat_in_the_relays_own_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=4) as net:
        overlay = net.relays[0].daemon.overlay
        near = cut(net, net.relays[0])
        monkeypatch.setattr(overlay.source, "terms", lambda: "of several directories: one alone cuts nothing")
        monkeypatch.setattr(overlay.shards, "own", lambda day: None)
        found = await examine_overlay(overlay, None, True, net.env)
        assert one(found, "seat").verdict == "warning"
        monkeypatch.setattr(overlay.shards, "own", lambda day: near)
        found = await examine_overlay(overlay, None, True, net.env)
        assert one(found, "seat").verdict == "good"
        assert "with 3 other relays" in one(found, "seat").found
        assert one(found, "roster").found == "fresh, 2,001 relays"
        client = await examine_overlay(net.clients[0].daemon.overlay, None, False, net.env)
        assert not [finding for finding in client if finding.check == "seat"]
