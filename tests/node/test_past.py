"""The past of a subscription: what was published before it began comes by its host, once, day by day."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import trio
from audit_scene import lists_asked
from hosted_network import box_of, drop_everywhere, in_use, subscribed
from kept_network import kept_network, next_day, questions
from small_network import EPOCH_SECONDS, ONE, Ear, Node, SmallNetwork

from hushcast_overlay.relay.keepers.inquiries import LONGEST_PAUSE
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest
from hushcast_protocol.overlay.profile import Root

DAY = EPOCHS_A_DAY * EPOCH_SECONDS
HOUR = 3600  # seconds of an epoch, as on a real network
WITHIN = 5 * LONGEST_PAUSE + 3 * EPOCH_SECONDS  # seconds for the questions of five days, and an epoch more


async def since(node: Node, days: float) -> Ear:
    """Subscribe with the past of so many days."""
    net = node.network
    return Ear(net, await node.daemon.service.subscribe(Interest(ONE), past=net.now - days * DAY))


async def publish_for(net: SmallNetwork, days: int) -> list[bytes]:
    """Drop two messages a day, and return them in the order of their days."""
    sent = []
    for day in range(days):
        both = b"%d, one" % day, b"%d, two" % day
        await drop_everywhere(net, *both)
        sent += both
        await next_day(net)
    return sent


@pytest.mark.slow
async def test_what_was_published_before_comes_once_with_its_day_the_oldest_first() -> None:
    async with kept_network(clients=1, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        first = net.calendar.day(net.now)
        sent = await publish_for(net, 5)
        await drop_everywhere(net, b"today")
        await trio.sleep(5)
        asked = questions(net)
        ear = await since(subscriber, 4.0)
        wanted = [*sent[2:], b"today"]
        await ear.hears(len(wanted), within=WITHIN)
        assert sorted(ear.payloads) == sorted(wanted)
        past = [one for one in ear.heard if one.payload != b"today"]
        days = [int(one.payload[:1]) for one in past]
        assert days == sorted(days)
        assert [one.past_day for one in past] == [net.calendar.day_start(first + day) for day in days]
        assert all(one.past_day is None for one in ear.heard if one not in past)
        whole = [(name, one) for _, name, one in asked if one.epoch is None]
        assert len({one.day for _, one in whole}) == 4, "of the running day a few epochs"
        assert len(set(whole)) == len(whole), "each keeper is asked for a whole day once"
        host = in_use(net, subscriber)
        await subscriber.restart()
        await host.restart()
        again = await since(subscriber, 4.0)
        await trio.sleep(3 * EPOCH_SECONDS)
        assert again.heard == [], "nothing is shown twice"


@pytest.mark.slow
async def test_a_subscription_that_is_held_brings_its_past_when_somebody_wants_it() -> None:
    async with kept_network(clients=1, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        sent = await publish_for(net, 2)
        await drop_everywhere(net, b"this morning")
        await trio.sleep(2 * EPOCH_SECONDS)
        await subscribed(subscriber)
        await trio.sleep(EPOCH_SECONDS)
        ear = await since(subscriber, 2.0)
        assert sorted(await ear.hears(5, within=WITHIN)) == sorted([*sent, b"this morning"])
        box = box_of(subscriber)
        assert box.whole_from == net.calendar.day(net.now) - 2
        await trio.sleep(3 * LONGEST_PAUSE)
        await subscriber.restart()
        asked = questions(net)
        await since(subscriber, 1.0)
        await trio.sleep(3 * EPOCH_SECONDS)
        assert all(question.epoch is not None for _, _, question in asked), "it was asked for already"


class Newcomer(NamedTuple):
    """What it takes to have a week's messages, by a daemon that was never there before."""

    seconds: float
    contacts: int  # links that it opened, and rosters that it took
    bytes: int  # that it sent and read
    host_contacts: int  # of the host's questions to keepers
    host_bytes: int
    lists: int  # that the host fetched

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:,.0f}" for name, value in self._asdict().items())


async def newcomer_after(days: int, relays: int, shard_size: int, messages: int) -> Newcomer:
    """Publish for some days, so many messages a day, and have a newcomer subscribe with all of it."""
    rule = KeepingRule(6, days=days + 1)
    async with kept_network(relays, rule, shard_size, clients=1, epoch=HOUR, root=Root.HOST) as net:
        publisher, *_ = net.clients
        sent = []
        for day in range(days):
            for number in range(messages):
                publication = await publisher.daemon.service.publish(ONE, Content(b"%d %d" % (day, number)))
                sent.append(publication.message.id)
            await next_day(net)
        newcomer = net.add("newcomer", False)
        began = net.now
        before = {relay: (relay.count("keepers_asked"), relay.gate.bytes) for relay in net.relays}
        fetched = {relay: lists_asked(net, relay) for relay in net.relays}
        await newcomer.start()
        ear = Ear(
            net, await newcomer.daemon.service.subscribe(Interest(ONE), past=net.now - days * 24 * HOUR)
        )
        host = in_use(net, newcomer)
        while len(ear.heard) < len(sent):
            await trio.sleep(1)
            assert net.now - began < (days + 2) * LONGEST_PAUSE
        asked, was = before[host]
        contacts = sum(newcomer.count(name) for name in ("links_opened", "links_failed", "rosters_taken"))
        questions = host.count("keepers_asked") - asked
        received, lists = host.gate.bytes - was, len(fetched[host])
        assert {one.id for one in ear.heard} == set(sent)
        return Newcomer(net.now - began, contacts, newcomer.gate.bytes, questions, received, lists)


@pytest.mark.slow
@pytest.mark.parametrize(("relays", "shard_size"), [(9, SHARD_SIZE), (20, 10)])
async def test_a_newcomer_has_days_gone_by_by_few_contacts_within_minutes(
    relays: int, shard_size: int
) -> None:
    """On whole days and on cut ones; keepers are three of a trunk, and one question brings 64 messages."""
    days = 2
    told = await newcomer_after(days, relays, shard_size, 3)
    print(told)
    assert told.seconds < (days + 1) * LONGEST_PAUSE
    assert told.contacts <= 20
    assert told.host_contacts <= 4 * days + 4 * 3, (
        "of each day ids of three, and messages; of today a few epochs"
    )
    assert told.lists <= (0 if shard_size == SHARD_SIZE else days + 2)


@pytest.mark.soak
@pytest.mark.parametrize("shard_size", [SHARD_SIZE, 125])
async def test_a_newcomer_among_five_hundred_relays(shard_size: int) -> None:
    told = await newcomer_after(7, 500, shard_size, 100)
    print(told)
    assert told.seconds < 8 * LONGEST_PAUSE


@pytest.mark.parametrize(
    ("keeping", "days", "words"),
    [(NOTHING_KEPT, 1.0, "keeps nothing"), (KeepingRule(6, days=3), 5.0, "for 3 days: ask for `3d`")],
)
async def test_what_is_not_kept_is_refused_in_words(keeping: KeepingRule, days: float, words: str) -> None:
    async with kept_network(clients=1, keeping=keeping, root=Root.HOST) as net:
        subscriber, *_ = net.clients
        with pytest.raises(Refusal, match=words):
            await since(subscriber, days)
        assert not subscriber.daemon.service.subscriptions(), "and nothing is subscribed to"
