"""Relays that work together know a topic's name, and want its subscriber before anything is published on it.

Whoever knows the topic computes its trunk token, and so the mark of each of its leases: the traces of daemons
give this to an adversary to go by. With a listed root, as published, it names the subscriber, else a host.
Of a topic that they do not know, their leases say nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_network import ONE, TWO, Node, small_network

from hushcast_protocol.overlay.installations import HostRoot
from hushcast_protocol.overlay.leases import LeaseBook, lease_mark
from hushcast_protocol.overlay.profile import PAPER, Root

COMMON = {"schema", "node", "time", "epoch", "kind"}
OF_A_LEASE = {"lease", "mark", "day", "next", "previous", "elements", "children"}
AS_PUBLISHED = {"root": Root.LISTED, "edge_elements": PAPER.edge_elements, "detours": PAPER.detours}


def installed(directory: Path) -> list[dict[str, Any]]:
    """What all relays observed of leases."""
    files = sorted(directory.glob("*.observations.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if line["kind"] == "installed"]


def book(relay: Node) -> LeaseBook:
    assert relay.daemon.overlay.relay is not None
    return relay.daemon.overlay.relay.leases.book


def planned(owner: Node) -> list[Any]:
    """The installations of all days of a daemon's subscriptions."""
    return [plan.installation for topic in (ONE, TWO) for plan in owner.route(topic).planned.values()]


async def subscribe(owner: Node) -> None:
    """Nothing is ever published here."""
    for topic in (ONE, TWO):
        await owner.listen(topic)


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "host"])
async def test_who_knows_the_topic_needs_no_message(tmp_path: Path, listed: bool) -> None:
    profile = AS_PUBLISHED if listed else {}
    async with small_network(relays=9, clients=1, traces=tmp_path / "traces", depth=2, **profile) as net:
        owner = net.relays[0] if listed else net.clients[0]
        await subscribe(owner)
        seen, found = installed(tmp_path / "traces"), 0
        relays = {relay.id.hex() for relay in net.relays}
        for installation in planned(owner):
            marks = {name: lease_mark(installation.trunk, bytes.fromhex(name)).hex() for name in relays}
            leases = [one for one in seen if one["mark"] == marks[one["node"]]]
            found += len(leases)
            # All of the topic's leases on that day, and no others.
            assert {one["node"] for one in leases} == {relay.hex() for relay in installation.tree.parents}
            assert {one["day"] for one in leases} == {installation.day}
            if listed:
                assert {one["next"] for one in leases if "previous" not in one} == {owner.id.hex()}
            else:  # who told relays at the top, and what they send to, is the host
                assert isinstance(installation.root, HostRoot)
                host = installation.root.relay.hex()
                assert {one["next"] for one in leases if one["previous"] == host} == {host}
                assert owner.name not in {one["next"] for one in leases}
        # What hosts hold for boxes has no mark.
        assert found == len([one for one in seen if int(one["mark"], 16)])


async def test_who_does_not_know_the_topic_has_no_more_than_its_leases(tmp_path: Path) -> None:
    async with small_network(relays=9, clients=1, traces=tmp_path / "traces", depth=2) as net:
        owner = net.clients[0]
        await subscribe(owner)
        seen = installed(tmp_path / "traces")
        held = {lease.id.hex(): lease for relay in net.relays for lease in book(relay).leases()}
        secrets = {text for topic in (ONE, TWO) for text in (topic.name, topic.name.encode().hex())}
        for installation in planned(owner):
            secrets |= {token.hex() for token in (installation.trunk, *installation.entries)}
        assert seen
        holders: dict[str, set[str]] = {}
        for one in seen:
            assert one.keys() - COMMON <= OF_A_LEASE
            assert one["mark"] == held[one["lease"]].mark.hex()
            assert not any(secret in json.dumps(one) for secret in secrets)
            holders.setdefault(one["mark"], set()).add(one["node"])
        # By marks alone two relays cannot tell that two leases are of one topic; those for boxes have none.
        assert all(len(nodes) == 1 for mark, nodes in holders.items() if int(mark, 16))
