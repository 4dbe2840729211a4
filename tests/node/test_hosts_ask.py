"""Hosts ask keepers for what their boxes lack: what was published is there after two weeks away."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from hosted_network import box_of, drop_everywhere, hosts_of, in_use, subscribed
from kept_network import all_kept, ask, has, keepers_of, kept_network, kept_of, loses_all, next_day, questions
from owner_end import OwnerEnd, drop, leads_to, message
from small_network import EPOCH_SECONDS, Node, SmallNetwork, until

from hushcast_overlay.relay.boxes.sought_trunks import CLOCKS_DIFFER
from hushcast_overlay.relay.keepers.inquiries import AGAIN_AFTER, LAST
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT, NOTHING_KEPT
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.keeper_frames import AskKept
from hushcast_protocol.overlay.profile import Root

LONG = 10 * EPOCH_SECONDS  # seconds of an epoch in which much is dropped
FEW = 6  # relays, where days pass: two keepers of each trunk
ASKED_WITHIN = 2.5 * EPOCH_SECONDS  # seconds until the epoch of now has been asked for


async def seeking(net: SmallNetwork, subscriber: Node) -> Node:
    """Subscribe; return the host, once it has the trunks of the days to come."""
    await subscribed(subscriber)
    host = in_use(net, subscriber)
    until_day = net.calendar.day(net.now) + MAX_DAYS_KEPT
    await until(lambda: box_of(subscriber).at[host.id].sought == until_day, 120, "trunks are left")
    return host


async def owner_at(net: SmallNetwork, host: Node, *days: int, is_whole: bool = False) -> OwnerEnd:
    """An owner whose host seeks for its box."""
    owner = OwnerEnd(net, host)
    await owner.attach()
    await owner.hold()
    assert await owner.seek(*days, is_whole=is_whole) is None
    return owner


def apart(net: SmallNetwork, one: Message) -> Node:
    """A relay that does not keep a message."""
    return next(relay for relay in net.relays if relay not in keepers_of(net, one))


@pytest.mark.slow
@pytest.mark.parametrize(("days", "count"), [(4, 300), pytest.param(13, 1000, marks=pytest.mark.soak)])
async def test_who_was_away_for_all_days_but_one_finds_all_of_it(days: int, count: int) -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        host = await seeking(net, subscriber)
        await subscriber.stop()
        sent = [b"%d" % number for number in range(count)]
        for day in range(days):
            await next_day(net, epochs=2 + day)
            await drop_everywhere(net, *sent[day::days])
            if day == days // 2:
                await host.restart()
        await next_day(net)
        await subscriber.start()
        ear = await subscriber.listen()
        await ear.hears(count, within=60.0)
        assert sorted(ear.payloads) == sorted(sent)
        assert ear.feed.lost() == 0
        assert net.count("messages_lost_hosts") == net.count("keepers_silent") == 0
        await trio.sleep(2 * EPOCH_SECONDS)
        await subscriber.restart()
        await trio.sleep(2 * EPOCH_SECONDS)
        assert len((await subscriber.listen()).heard) == 0, "nothing is shown twice"


@pytest.mark.slow
@pytest.mark.parametrize("bad", [pytest.param(2, marks=pytest.mark.soak), 4])
async def test_of_what_an_honest_origin_took_nothing_lacks_after_an_epoch(bad: int) -> None:
    """Of twenty relays 10 and 20 % lose everything, those that most of the tree goes through.

    Each message has one origin, where publications have two.
    """
    async with kept_network(relays=20, clients=1, epoch=LONG, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        host = await seeking(net, subscriber)
        children = subscriber.route().on(net.calendar.day(net.now))[0].installation.tree.children
        others = [relay for relay in net.relays if relay is not host]
        hostile = sorted(others, key=lambda relay: -len(children.get(relay.id, ())))[:bad]
        for relay in hostile:
            loses_all(relay)
        ear = await subscriber.listen()
        await trio.sleep(AGAIN_AFTER + 5)  # until the first questions are over
        sent = {b"%d" % number: net.relays[number % 20] for number in range(100)}
        await drop_everywhere(net, *sent)
        await trio.sleep(5)
        by_tree = len(ear.payloads)
        await trio.sleep(2.5 * LONG)
        assert sorted(ear.payloads) == sorted(one for one, origin in sent.items() if origin not in hostile)
        assert by_tree < 0.7 * len(ear.payloads), "the tree alone loses what passes them"


@pytest.mark.slow
async def test_a_host_asks_the_same_whether_or_not_the_owner_is_there() -> None:
    """In number, windows and moments; for two days, while messages come."""
    seen: list[list[int]] = []
    for stays in (True, False):
        async with kept_network(FEW, clients=1, root=Root.HOST) as net:
            subscriber, *_ = net.clients
            await seeking(net, subscriber)
            await net.sleep_until(net.calendar.epoch_start(net.calendar.epoch(net.now) + 4))
            asked = questions(net)
            if not stays:
                await subscriber.stop()
            for _ in range(40):
                await drop_everywhere(net, b"one", b"two")
                await trio.sleep(EPOCH_SECONDS)
            for moment, _, question in asked:
                assert question.epoch is not None
                into = moment / EPOCH_SECONDS - question.epoch - 1
                assert CLOCKS_DIFFER <= into <= LAST + 0.1, "the epoch before, whole"
            assert len({(name, question) for _, name, question in asked}) == len(asked)
            counts = Counter(question.epoch or 0 for _, _, question in asked)
            seen.append([counts[epoch] for epoch in sorted(counts)])
    assert seen[0] == seen[1]


@pytest.mark.slow
async def test_what_came_just_before_a_subscription_comes_within_a_minute_though_no_tree_leads_there() -> (
    None
):
    async with kept_network(clients=0, epoch=LONG) as net:
        day = net.calendar.day(net.now)
        before, during = message(day), message(day)
        host = apart(net, before)
        origin = next(relay for relay in net.relays if relay is not host)
        await drop(net, origin, before)
        await all_kept(net, before)
        asked = questions(net)
        owner = await owner_at(net, host)
        await owner.hears(before, within=5)
        await drop(net, origin, during)
        await owner.hears(during, within=AGAIN_AFTER + 5)
        assert {question.epoch for _, _, question in asked} == {net.calendar.epoch(net.now)}
        assert len(owner.heard) == 2


@pytest.mark.slow
async def test_each_message_comes_by_tree_or_keepers_over_midnight_and_restarts_of_the_host() -> None:
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        sent = [message(day)]
        host = apart(net, sent[0])
        top, other = [relay for relay in net.relays if relay is not host][:2]
        owner = await owner_at(net, host, day, day + 1)
        await owner.hold(top)
        await leads_to(net, top, host)
        await drop(net, top, sent[0])
        await owner.hears(sent[0], within=10)
        midnight = net.calendar.day_start(day + 1)
        await net.sleep_until(midnight - 1.0)
        last = message(day)
        await drop(net, other, last)
        await net.sleep_until(midnight + 1.0)
        first, straggler = message(day + 1), message(day)
        await drop(net, other, first, straggler)
        await owner.detach()
        await host.restart()
        await trio.sleep(ASKED_WITHIN)
        await host.restart()
        await owner.attach()
        await owner.hears(*sent, last, first, straggler, within=ASKED_WITHIN)
        await trio.sleep(3 * EPOCH_SECONDS)
        came = Counter(one.id for one in owner.heard)
        # What was handed on came before the host forgot, by its restart, that it has had it.
        assert came == Counter([sent[0].id, last.id, last.id, first.id, straggler.id])


@pytest.mark.slow
async def test_a_box_keeps_what_keepers_keep_and_lasts_until_its_last_day() -> None:
    async with kept_network(FEW, clients=0) as net:
        day = net.calendar.day(net.now)
        one = message(day)
        host = apart(net, one)
        owner = await owner_at(net, host, *range(day, day + 4))
        await owner.detach()
        await drop(net, net.relays[0], one)
        for _ in range(3):
            await next_day(net)
        assert owner.waiting() > 0, "a day longer than a box keeps what is not sought"
        boxes = host.daemon.overlay.relay.boxes  # type: ignore[union-attr]
        await owner.attach()
        assert owner.standings[-1].sought == day + 3
        await owner.hears(one)
        await owner.detach()
        for _ in range(2):
            await next_day(net)
        assert owner.box not in boxes
        await owner.attach()
        assert owner.standings[-1].sought is None


@pytest.mark.slow
async def test_a_keeper_that_was_away_is_handed_what_the_others_show() -> None:
    async with kept_network(relays=12, clients=0) as net:
        day = net.calendar.day(net.now)
        one = message(day)
        keepers, host = keepers_of(net, one), apart(net, one)
        origin = next(relay for relay in net.relays if relay not in (*keepers, host))
        await owner_at(net, host, day)
        lacks = next(keeper for keeper in keepers)
        kept: Any = kept_of(lacks)
        take, kept._take = kept._take, lambda *_: True
        await drop(net, origin, one)
        await until(lambda: all(has(keeper, one) for keeper in keepers if keeper is not lacks), 30)
        kept._take = take
        await until(lambda: has(lacks, one), ASKED_WITHIN)


@pytest.mark.slow
async def test_what_a_keeper_took_late_comes_though_it_says_it_was_away_when_that_was_published() -> None:
    """Nobody else answers; the host asks for the epoch once, and for the next one, in which it was taken."""
    # An origin without a route hands nothing on here, so that it comes by no other way.
    async with kept_network(clients=0, epoch=LONG, later=0, late_routes=False) as net:
        day = net.calendar.day(net.now)
        one = message(day)
        keepers, host = keepers_of(net, one), apart(net, one)
        origin = next(relay for relay in net.relays if relay not in (*keepers, host))
        owner = await owner_at(net, host)
        epoch = net.calendar.epoch(net.now) + 1
        await net.sleep_until(net.calendar.epoch_start(epoch) + 0.9 * LONG)
        back, *others = keepers
        await back.stop()
        await drop(net, origin, one)
        await until(lambda: all(has(keeper, one) for keeper in others), 30)
        for keeper in others:
            await keeper.stop()
        await net.sleep_until(net.calendar.epoch_start(epoch + 1) + 0.01 * LONG)
        await back.start()
        await until(lambda: has(back, one), LONG, "its origin hands it in")
        answer = await ask(net, back, AskKept(day, one.tokens[0], epoch))
        assert answer.ids == ()
        assert answer.away == (epoch,)
        await owner.hears(one, within=2.5 * LONG)
        assert host.count("messages_from_keepers") == 1


@pytest.mark.slow
async def test_another_host_is_asked_for_the_days_that_the_first_took_with_it() -> None:
    async with kept_network(clients=1, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        first = await seeking(net, subscriber)
        second = hosts_of(net, subscriber)[1]
        await subscriber.stop()
        await next_day(net)
        await next_day(net)
        await drop_everywhere(net, b"yesterday")
        await next_day(net)
        await first.stop()
        await drop_everywhere(net, b"today")
        await subscriber.start()
        ear = await subscriber.listen()
        await until(lambda: in_use(net, subscriber) is second, 8 * EPOCH_SECONDS)
        assert sorted(await ear.hears(2, within=ASKED_WITHIN)) == [b"today", b"yesterday"]


@pytest.mark.slow
async def test_a_host_that_lost_its_boxes_is_asked_for_the_days_as_a_whole() -> None:
    async with kept_network(clients=1, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        host = await seeking(net, subscriber)
        await subscriber.stop()
        await drop_everywhere(net, b"one", b"two")
        await trio.sleep(2)
        await host.stop()
        for kind in ("box", "sought", "lease", "spool", "spool-body"):
            host.store._records.pop(kind, None)  # type: ignore[attr-defined]
        await host.start()
        await next_day(net)
        await subscriber.start()
        ear = await subscriber.listen()
        assert sorted(await ear.hears(2, within=8 * EPOCH_SECONDS)) == [b"one", b"two"]


async def test_where_nothing_is_kept_nothing_is_left_with_a_host() -> None:
    async with kept_network(relays=6, clients=1, keeping=NOTHING_KEPT, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        await subscribed(subscriber)
        await trio.sleep(EPOCH_SECONDS)
        assert box_of(subscriber).at[in_use(net, subscriber).id].sought == -1
        owner = OwnerEnd(net, net.relays[0])
        await owner.attach()
        await owner.hold()
        assert await owner.seek() == "quota"
        assert net.count("keepers_asked") == 0


@pytest.mark.slow
async def test_a_host_that_came_today_asks_for_days_before_it_came() -> None:
    async with kept_network(FEW, clients=0) as net:
        one = message(net.calendar.day(net.now))
        await drop(net, net.relays[0], one)
        await all_kept(net, one)
        await next_day(net)
        await next_day(net)
        late = net.add("late", True)
        net.relays.append(late)
        await late.start()
        await trio.sleep(2 * EPOCH_SECONDS)
        owner = await owner_at(net, late, one.day, is_whole=True)
        await owner.hears(one, within=ASKED_WITHIN)
        before = await owner_at(net, late, one.day - 1, is_whole=True)
        await trio.sleep(ASKED_WITHIN)
        assert before.heard == []
