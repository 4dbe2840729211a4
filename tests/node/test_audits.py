"""Owners ask a keeper, once a day and topic, whether their hosts have brought all of a day gone by."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from audit_scene import DAY_SECONDS, TWO_DAYS, brought_by_an_audit, loses_what_it_is_to_bring, questions_of
from hosted_network import box_of, drop_everywhere, hosts_of, in_use, subscribed
from kept_network import keepers_of, kept_network, kept_of, next_day
from owner_end import message
from small_network import EPOCH_SECONDS, ONE, Node, SmallNetwork, until

from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.host_audits import drawn_audit
from hushcast_protocol.overlay.keeper_frames import AskKept, AskKeptMessages, ShownKept, ShownKeptMessages
from hushcast_protocol.overlay.kept_answers import last_epoch
from hushcast_protocol.overlay.profile import Root

RELAYS = 6  # two keepers of each trunk; every relay more is a sixth more to compute, for days


@asynccontextmanager
async def audited_network(clients: int = 1, relays: int = RELAYS) -> AsyncIterator[SmallNetwork]:
    async with kept_network(relays, keeping=TWO_DAYS, clients=clients, root=Root.HOST) as net:
        yield net


def audit_moment(net: SmallNetwork, node: Node) -> float:
    """When a daemon asks today."""
    today = net.calendar.day(net.now)
    audit = drawn_audit(node.route().wanted.name, today, TWO_DAYS.days)
    assert audit is not None
    return net.calendar.day_start(today) + audit.moment * DAY_SECONDS


async def drop_away_from(net: SmallNetwork, host: Node, *payloads: bytes) -> None:
    """Publish at relays that are no host."""
    others = [relay for relay in net.relays if relay is not host]
    for number, payload in enumerate(payloads):
        await net.drop_at(others[number % len(others)], ONE, Content(payload))


@pytest.mark.slow
async def test_what_a_host_loses_comes_by_an_audit_and_the_other_host_is_used() -> None:
    async with audited_network() as net:
        subscriber, *_ = net.clients
        host, other = await brought_by_an_audit(net, partial(drop_away_from, net))
        assert subscriber.count("hosts_left") == 1
        assert hosts_of(net, subscriber) == [other, host], "nobody else"
        await subscriber.restart()
        assert hosts_of(net, subscriber) == [other, host], "it is on disk"
        ear = await subscriber.listen()
        await trio.sleep(2 * EPOCH_SECONDS)
        await drop_away_from(net, host, b"again")
        await until(lambda: b"again" in ear.payloads, 3 * EPOCH_SECONDS, "the other host brings it")


@pytest.mark.slow
async def test_an_honest_host_is_asked_about_once_a_day_and_not_when_its_owner_was_away() -> None:
    async with audited_network(clients=2) as net:
        subscriber, other = net.clients
        await subscribed(subscriber)
        await subscribed(other)
        hosts = hosts_of(net, subscriber)
        asked = questions_of(net)
        away = 0
        for _ in range(3):
            await next_day(net)
            await drop_everywhere(net, b"one", b"two")
            moment, midnight = audit_moment(net, other), net.calendar.day_start(net.calendar.day(net.now) + 1)
            if not away and net.now < moment < midnight - 2 * EPOCH_SECONDS:
                before = other.count("audits")
                await other.stop()
                await net.sleep_until(moment + 1)
                await other.start()
                await net.sleep_until(midnight - 1)
                assert other.count("audits") == before, "not that day any more"
                away = 1
        await next_day(net, epochs=0.0)
        assert subscriber.count("audits") == 3, "on each day, of the one before yesterday"
        assert other.count("audits") == 3 - away == 2
        assert subscriber.count("keepers_asked") == subscriber.count("audits"), "one question each"
        assert subscriber.count("hosts_left") == subscriber.count("messages_from_audits") == 0
        assert hosts_of(net, subscriber) == hosts
        audits = [request for _, request in asked if isinstance(request, AskKept)]
        by_day: dict[int, set[AskKept | AskKeptMessages]] = {}
        for moment, request in asked:
            by_day.setdefault(net.calendar.day(moment), set()).add(request)
        assert len(audits) == subscriber.count("audits") + other.count("audits")
        assert all(len(requests) == 1 for requests in by_day.values()), "the same of all readers"


@pytest.mark.slow
async def test_what_keepers_say_was_there_and_cannot_show_is_told_as_a_gap() -> None:
    """Who listens later hears how many were lost."""
    async with audited_network(clients=2) as net:
        for subscriber in net.clients:
            await subscribed(subscriber)
        listens, listens_later = net.clients
        early = await listens.listen()
        await next_day(net)
        hosts = [in_use(net, subscriber) for subscriber in net.clients]
        for host in set(hosts):
            loses_what_it_is_to_bring(host)
        await net.drop_at(next(relay for relay in net.relays if relay not in hosts), ONE, Content(b"lost"))

        async def no_bodies(node: Node) -> None:
            kept: Any = kept_of(node)
            read = kept._read

            async def nothing(name: bytes, request: AskKeptMessages) -> tuple[Message, ...]:
                await read(name, request)
                return ()

            kept._read = nothing

        for node in net.relays:
            await no_bodies(node)
        for subscriber in net.clients:
            await until(lambda one=subscriber: one.count("gaps_found"), 4 * DAY_SECONDS, "a gap is told")
        await trio.sleep(DAY_SECONDS)
        late = await listens_later.listen()
        for ear, gaps in ((early, 1), (late, 0)):
            assert (ear.payloads, len(ear.gaps), ear.feed.lost()) == ([], gaps, 1 - gaps)
        for subscriber in net.clients:
            assert subscriber.count("gaps_found") == 1, "once"
            assert subscriber.count("hosts_left") == 0, "nothing came that the host could have brought"


@pytest.mark.slow
async def test_what_one_keeper_makes_up_drives_nobody_from_a_host() -> None:
    """What is made up is asked for, whether or not there is a body, and nothing else follows."""
    async with audited_network() as net:
        subscriber, *_ = net.clients
        await subscribed(subscriber)
        hosts = hosts_of(net, subscriber)
        made_up: list[Message] = []
        for is_shown in (True, False):
            await next_day(net)
            trunk = (await subscriber.route().wanted.tokens(net.calendar.day(net.now))).trunk
            made_up.append(message(net.calendar.day(net.now), trunk))
            makes_up(keeper_asked(net, subscriber, made_up[-1]), made_up[-1], is_shown)
        for _ in range(3):
            await next_day(net)
        assert subscriber.count("audits") == 4
        assert subscriber.count("keepers_asked") >= 4 + len(made_up), "what it shows is asked for"
        assert subscriber.count("hosts_left") == subscriber.count("gaps_found") == 0
        assert hosts_of(net, subscriber) == hosts
        assert box_of(subscriber).hosts.current == hosts[0].id


def keeper_asked(net: SmallNetwork, owner: Node, one: Message) -> Node:
    """Which keeper of a message's trunk its owner asks about the day, two days later."""
    audit = drawn_audit(owner.route().wanted.name, one.day + 2, TWO_DAYS.days)
    assert audit is not None
    keepers = keepers_of(net, one)
    return keepers[audit.place % len(keepers)]


def makes_up(keeper: Node, made_up: Message, is_shown: bool) -> None:
    """Have a keeper say of a day that it has this alone, and show it or not; hosts it shows nothing."""
    kept: Any = kept_of(keeper)
    before = kept.answer

    async def answer(request: Any) -> Any:
        if (request.day, request.trunk) != (made_up.day, made_up.tokens[0]):
            return await before(request)
        await trio.lowlevel.checkpoint()
        if isinstance(request, AskKept):
            return ShownKept((made_up.id,) if request.epoch is None else (), 0)
        return ShownKeptMessages((made_up,) if is_shown else ())

    kept.answer = answer


@pytest.mark.slow
async def test_of_a_keeper_that_was_away_the_next_is_asked_and_where_all_were_that_is_told() -> None:
    async with audited_network(relays=9) as net:  # three keepers
        subscriber, *_ = net.clients
        await subscribed(subscriber)
        ear = await subscriber.listen()
        await next_day(net)
        unknown = net.calendar.day(net.now)
        trunk = (await subscriber.route().wanted.tokens(unknown)).trunk
        for keeper in keepers_of(net, message(unknown, trunk)):
            says_that_it_was_away(keeper, unknown)
        await next_day(net)
        day = net.calendar.day(net.now)
        trunk = (await subscriber.route().wanted.tokens(day)).trunk
        says_that_it_was_away(keeper_asked(net, subscriber, message(day, trunk)), day)
        host = in_use(net, subscriber)
        loses_what_it_is_to_bring(host)
        await drop_away_from(net, host, b"lost")
        await net.sleep_until(net.calendar.day_start(unknown + 3))
        assert subscriber.count("hosts_left") == 0, "of that day nobody says anything"
        assert ear.payloads == []
        assert ear.feed.lost() is None
        await net.sleep_until(net.calendar.day_start(day + 3))
        assert subscriber.count("hosts_left") == 1, "the next keeper shows it"
        assert ear.payloads == [b"lost"]
        assert ear.feed.lost() == 0


def says_that_it_was_away(keeper: Node, day: int) -> None:
    """Have a keeper show nothing of a day, and say that it was away as that ended."""
    kept: Any = kept_of(keeper)
    answer = kept.answer

    async def answered(request: Any) -> Any:
        if isinstance(request, AskKept) and request.day == day:
            await trio.lowlevel.checkpoint()
            return ShownKept((), 0, (last_epoch(day),))
        return await answer(request)

    kept.answer = answered


@pytest.mark.slow
async def test_the_other_host_brings_all_that_the_one_that_was_left_was_to_bring() -> None:
    """An audit is of one day: what a bad host lost on all the others comes by the host that is used then.

    So does what it lost on the day of the subscription, about which no audit asks.
    """
    async with kept_network(RELAYS, keeping=KeepingRule(6, 8), clients=1, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        await subscribed(subscriber)
        ear = await subscriber.listen()
        host = in_use(net, subscriber)
        loses_what_it_is_to_bring(host)
        sent: list[bytes] = []
        while not subscriber.count("hosts_left"):
            sent.append(b"%d" % len(sent))
            await drop_away_from(net, host, sent[-1])
            assert len(sent) < 8, "an audit finds it while keepers have all"
            await next_day(net)
        assert subscriber.count("messages_from_audits") == 1 < len(sent) - 1
        await ear.hears(len(sent), within=DAY_SECONDS)
        assert sorted(ear.payloads) == sorted(sent)
        assert in_use(net, subscriber) is not host


@pytest.mark.slow
async def test_the_other_host_is_judged_for_days_before_it_was_used() -> None:
    """It was asked for these, and loses all as well: when it is found nothing is published any more."""
    async with kept_network(RELAYS, keeping=KeepingRule(6, 8), clients=1, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        await subscribed(subscriber)
        await next_day(net)
        first, second = hosts_of(net, subscriber)
        for host in (first, second):
            loses_what_it_is_to_bring(host)
        for number in range(5):
            await drop_away_from(net, first, *(b"%d, %d" % (number, one) for one in range(2)))
            await next_day(net)
        within = 10 * DAY_SECONDS
        await until(lambda: subscriber.count("hosts_left") == 2, within, "both are found")
        assert hosts_of(net, subscriber) == [first, second]
