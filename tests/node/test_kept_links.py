"""Links to next hops of leases stay open while nothing passes, by few signs of life."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hosted_network import LONG, subscribed
from small_network import small_network

from hushcast_overlay.relay.kept_links import PREPARE, KeptLinks
from hushcast_overlay.relay.session import Session
from hushcast_protocol.base.link.hop_link import TRIED_AFTER
from hushcast_protocol.overlay.frames import Ping


async def test_idle_links_of_a_lease_stay_by_twenty_signs_of_life_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signs: dict[Any, int] = {}
    post = Session.post

    def posted(link: Session, frame: Any) -> None:
        signs[link] = signs.get(link, 0) + isinstance(frame, Ping)
        post(link, frame)

    async with small_network(relays=5, clients=1, epoch=LONG) as net:
        await subscribed(net.clients[0])
        await trio.sleep(TRIED_AFTER)
        opened = net.count("links_opened")
        monkeypatch.setattr(Session, "post", posted)
        await trio.sleep(3600)
        assert net.count("links_opened") == opened, "none has idled out, and been dialled anew"
        assert signs
        assert max(signs.values()) <= 20, "not at each look"


async def test_a_lease_whose_next_hop_is_linked_stirs_no_other_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who passed the parcel on is its next hop; a look then would show others that a lease came."""
    prepared: list[KeptLinks] = []
    prepare = KeptLinks._prepare

    def noted(links: KeptLinks) -> None:
        prepared.append(links)
        prepare(links)

    monkeypatch.setattr(KeptLinks, "_prepare", noted)
    async with small_network(relays=7, clients=1, epoch=LONG, depth=2) as net:
        await subscribed(net.clients[0])
        await trio.sleep(2 * PREPARE)
        (planned,) = net.clients[0].route().planned.values()
        tree = planned.installation.tree
        at_top = set(tree.children[None])
        relays = {node.id: node.daemon.overlay.relay for node in net.relays}
        have_looked = {name for name, relay in relays.items() if relay and relay.kept_links in prepared}
        assert tree.parents.keys() - at_top
        assert have_looked
        assert have_looked <= at_top
