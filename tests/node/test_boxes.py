"""Boxes: a relay keeps what comes for an owner that it does not know, for whoever has the key."""

from __future__ import annotations

import os

import pytest
import trio
from owner_end import BODY, TRUNK, OwnerEnd, card_of, drop, leads_to, message
from small_network import EPOCH_SECONDS, small_network, until

from hushcast_overlay.relay.boxes import box_links
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.overlay.box_frames import MessageCopy
from hushcast_protocol.overlay.confirmations import confirm
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frames import ParcelAnswer, ParcelFrame
from hushcast_protocol.overlay.hops import box_hop
from hushcast_protocol.overlay.leases import Install, ToHost, lease_mark
from hushcast_protocol.overlay.parcels import OnwardParcel, Parcel, seal_parcel
from hushcast_runtime.storage import spool as spools

LONG = 4 * 3600  # seconds of an epoch, so long that no day ends


async def test_what_comes_for_a_box_waits_and_is_pushed() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        assert (await owner.attach()).leases == ()
        lease = await owner.hold(top)
        await leads_to(net, top, host)
        one, two, three = (message(net.calendar.day(net.now)) for _ in range(3))
        await drop(net, top, one)
        await owner.hears(one)
        await until(lambda: owner.waiting() == 0, 10, "what was acknowledged is settled")
        await owner.detach()
        await drop(net, top, two, three)
        await until(lambda: owner.waiting() > 0, 10)
        await host.restart()
        assert (await owner.attach()).leases == (lease,)
        await owner.hears(two, three)
        assert [each.id for each in owner.heard] == [one.id, two.id, three.id]
        assert len(top.daemon.overlay.relay.peers._spool) == 0  # type: ignore[union-attr]


async def test_a_link_outlasts_what_was_acknowledged_on_it() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold(top)
        await leads_to(net, top, host)
        one = message(net.calendar.day(net.now))
        await drop(net, top, one)
        await owner.hears(one)
        await trio.sleep(600)
        assert owner.links_ended == 0
        assert owner.copies == [MessageCopy(one.id, top.id)]


async def test_of_too_many_copies_the_owner_hears_that_some_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(box_links, "MAX_TOP_COPIES", 3)
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        lease = await owner.hold(top)
        assert host.daemon.overlay.relay is not None
        links = host.daemon.overlay.relay.forwarding._next_hops._box_links
        for _ in range(5):
            links.came((box_hop(owner.box),), os.urandom(32), top.id)
        await until(lambda: owner.parts_of_copies == 1, 10)
        assert len(owner.copies) == 3
        links.came((box_hop(owner.box),), os.urandom(32), top.id)
        await until(lambda: len(owner.copies) == 4, 10)
        assert owner.parts_of_copies == 1
        assert (await owner.attach()).leases == (lease,)


async def test_a_tree_is_told_through_the_host() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold(top)
        epoch, day = net.calendar.epoch(net.now), net.calendar.day(net.now)
        elements, mark = (element(net.profile, TRUNK, top.id, ORIGIN),), lease_mark(TRUNK, top.id)
        install = Install(os.urandom(16), day, ToHost(card_of(host)), elements, mark, os.urandom(16))
        assert top.identity is not None
        assert host.identity is not None
        words = os.urandom(16), os.urandom(16)
        inner = Parcel(net.net.id, top.id, epoch, install, 0, (), words[0])
        sealed = seal_parcel(inner, top.identity.parcel_key.public(), os.urandom)
        outer = Parcel(net.net.id, host.id, epoch, None, 20, (OnwardParcel(top.id, sealed),), words[1])
        through = seal_parcel(outer, host.identity.parcel_key.public(), os.urandom)
        await owner.say(ParcelFrame(7, through, None))
        await until(lambda: len(owner.answers) == 2, 30)
        answer = owner.answers[-1]
        assert isinstance(answer, ParcelAnswer)
        assert (answer.number, answer.refused) == (7, None)
        below = confirm(words[0], (), 0, os.urandom)
        assert set(confirm(words[1], below, 0, os.urandom)) <= set(answer.confirmations)
        one = message(day)
        await drop(net, top, one)
        await owner.hears(one)


async def test_a_message_dropped_at_the_host_itself_arrives_once() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold(top)
        await leads_to(net, top, host)
        one, two, three = (message(net.calendar.day(net.now)) for _ in range(3))
        await drop(net, host, one)
        await drop(net, top, one)
        await drop(net, top, two)
        await drop(net, host, two)
        await drop(net, host, three)
        await owner.hears(one, two, three)
        await trio.sleep(10)
        assert len(owner.heard) == 3


async def test_what_was_dropped_at_the_host_before_the_hold_is_routed_late() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        owner, one = OwnerEnd(net, host), message(net.calendar.day(net.now))
        await drop(net, host, one)
        await owner.attach()
        await owner.hold()
        await owner.hears(one)


async def test_of_two_links_the_newer_is_served() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        seed = Seed(os.urandom(32))
        older, newer = OwnerEnd(net, host, seed, acknowledges=False), OwnerEnd(net, host, seed)
        await older.attach()
        await older.hold()
        one, two = (message(net.calendar.day(net.now)) for _ in range(2))
        await drop(net, host, one)
        await older.hears(one)
        await newer.attach()
        await until(lambda: older.links_ended == 1, 10, "the older link ends")
        await newer.hears(one)
        await drop(net, host, two)
        await newer.hears(two)
        assert older.ids == {one.id}
        assert len(host.daemon.overlay.relay.box_links) == 1  # type: ignore[union-attr]


async def test_late_acknowledgements_end_the_link_and_a_sign_of_life_keeps_it() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold()
        await trio.sleep(3600)
        assert owner.links_ended == 0
        assert owner.pings > 20
        owner.acknowledges = False
        one = message(net.calendar.day(net.now))
        await drop(net, host, one)
        began = trio.current_time()
        await until(lambda: owner.links_ended == 1, 40, "it is given up")
        assert trio.current_time() - began > 25
        owner.acknowledges = True
        await owner.attach()
        await until(lambda: [each.id for each in owner.heard] == [one.id, one.id], 10, "it comes again")


async def test_a_box_that_is_done_with_takes_what_comes_and_keeps_nothing() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host, acknowledges=False)
        await owner.attach()
        await owner.hold(top)
        await leads_to(net, top, host)
        await drop(net, top, message(net.calendar.day(net.now)))
        await until(lambda: owner.waiting() > 0, 10)
        await owner.forget()
        assert await owner.spooled() == []
        await drop(net, top, message(net.calendar.day(net.now)))
        await trio.sleep(5)
        assert await owner.spooled() == []
        assert top.count("messages_without_box") == 0
        assert len(top.daemon.overlay.relay.peers._spool) == 0  # type: ignore[union-attr]
        assert await owner.ask(owner.hold_of(top)) == "withdrawn"
        await host.restart()
        await drop(net, top, message(net.calendar.day(net.now)))
        await trio.sleep(5)
        assert await owner.spooled() == []
        await owner.attach()
        await owner.forget()  # said again, as after an answer that was not heard


async def test_a_host_that_lost_its_disk_tells_and_nothing_waits_for_ever() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        lease = await owner.hold(top)
        await leads_to(net, top, host)
        await host.stop()
        one, two = (message(net.calendar.day(net.now)) for _ in range(2))
        await drop(net, top, one)
        await trio.sleep(3600)
        assert len(top.daemon.overlay.relay.peers._spool) == 1  # type: ignore[union-attr]
        assert top.count("messages_detoured") == top.count("next_hops_away") == 0
        await host.start()
        await owner.attach()
        await owner.hears(one)
        await trio.sleep(1)  # until the host has acknowledged it
        await host.stop()
        host.store._records.clear()  # type: ignore[attr-defined]
        await host.start()
        await drop(net, top, two)
        await until(lambda: top.count("messages_without_box") == 1, 120, "it is settled")
        assert len(top.daemon.overlay.relay.leases.book) == 1  # type: ignore[union-attr]
        assert top.count("leases_pruned") == top.count("messages_detoured") == 0
        assert (await owner.attach()).leases == ()
        assert await owner.hold(top, lease=lease) == lease
        await drop(net, top, three := message(net.calendar.day(net.now)))
        await owner.hears(three)


async def test_what_is_over_a_hosts_share_is_lost_not_gone_around(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spools, "MAX_SHARE", 4 * BODY)
    async with small_network(relays=4, clients=0, epoch=LONG) as net:
        top, host, *_ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold(top)
        await leads_to(net, top, host)
        await host.stop()
        sent = [message(net.calendar.day(net.now)) for _ in range(6)]
        await drop(net, top, *sent)
        await until(lambda: top.count("messages_over_share") == 2, 10)
        await host.start()
        await owner.attach()
        await owner.hears(*sent[:4])
        await trio.sleep(120)
        assert owner.ids == {one.id for one in sent[:4]}
        assert net.count("messages_detoured") == 0


@pytest.mark.slow
async def test_an_owner_has_the_day_after_to_come_and_a_box_goes_with_the_last_that_waits_in_it() -> None:
    async with small_network(relays=3, clients=0) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold(top)
        await leads_to(net, top, host)
        day = net.calendar.day(net.now)
        await net.sleep_until(net.calendar.day_start(day + 1) - 1)
        one, two = message(day), message(day + 1)
        await owner.hold(trunk=b"u" * 16, day=day + 1)
        await owner.detach()
        await drop(net, top, one)
        await net.sleep_until(net.calendar.day_start(day + 1) + 5)
        tomorrow = message(day + 1, trunk=b"u" * 16)
        await drop(net, host, tomorrow)
        await net.sleep_until(net.calendar.day_start(day + 2) - EPOCH_SECONDS)
        assert {each.id for each in await owner.spooled()} == {one.id, tomorrow.id}
        await host.restart()
        await owner.attach()
        await owner.hears(one, tomorrow)
        await drop(net, host, two)  # nothing leads to it
        unfetched = message(day + 1, trunk=b"u" * 16)
        await owner.detach()
        await drop(net, host, unfetched)
        await net.sleep_until(net.calendar.day_start(day + 3) - EPOCH_SECONDS)
        assert owner.waiting() == BODY
        assert host.count("boxes_forgotten") == 0
        await net.sleep_until(net.calendar.day_start(day + 3) + 2 * EPOCH_SECONDS)
        assert len(host.daemon.overlay.relay.boxes) == 0  # type: ignore[union-attr]
        assert host.count("boxes_forgotten") == 1
        assert await owner.spooled() == []
