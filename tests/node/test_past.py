"""The past of a subscription: what was published before it began comes by its host, once, day by day."""

from __future__ import annotations

import pytest
import trio
from hosted_network import box_of, drop_everywhere, in_use, subscribed
from kept_network import kept_network, next_day, questions
from small_network import EPOCH_SECONDS, ONE, Ear, Node, SmallNetwork

from hushcast_overlay.relay.keepers.inquiries import LONGEST_PAUSE
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.content.topics import Interest
from hushcast_protocol.overlay.profile import Root

DAY = EPOCHS_A_DAY * EPOCH_SECONDS
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
