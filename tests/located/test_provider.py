"""A provider beside a daemon: what it answers, what it refuses, and what a kill costs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from fake_daemon import FakeDaemon
from feeding import House, Owner, Subscriber
from msgspec.structs import replace
from spatial_world import OWNER, STRANGER, message, place

import hushcast
from hushcast_located.service.answerer import Answerer
from hushcast_located.service.doctor import own_findings
from hushcast_located.service.provider_store import MAX_TABLES
from hushcast_located.service.request_taker import MAX_TABLES_AN_HOUR
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch_arrivals import MAX_HELD
from hushcast_protocol.spatial.located_answer import LocatedAnswer
from hushcast_protocol.spatial.located_requests import AskTable, RequestConfirmation
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.weight_table import WholeTable, sign_table

ALL = LocatedSubscription(place(Random(1)), ("ba",), 0, 0)  # wants every message
NEAR = LocatedSubscription(place(Random(2)), ("ba", "da"), 500, 700)


class Network:
    """An owner, a house, and as many subscribers as a test wants, each with a daemon of its own."""

    def __init__(self, folder: Path, nursery: trio.Nursery, **settings: Any) -> None:
        self._folder, self._nursery = folder, nursery
        self.daemon = FakeDaemon(folder / "provider.sock")
        self.feed = hushcast.new_link("feed", private=True)
        self.owner = Owner(FakeDaemon(folder / "owner.sock", network=self.daemon.network), self.feed)
        self.house = House(folder / "house", self.daemon, self.feed, **settings)
        self._subscribers = 0

    async def start(self) -> None:
        await self.daemon.start(self._nursery)
        await self.owner._daemon.start(self._nursery)

    async def subscriber(self, wanted: LocatedSubscription = ALL) -> Subscriber:
        self._subscribers += 1
        daemon = FakeDaemon(self._folder / f"{self._subscribers}.sock", network=self.daemon.network)
        await daemon.start(self._nursery)
        made = Subscriber(daemon, self.house.offer, wanted)
        await self._nursery.start(made.listen)
        return made

    async def ready(self) -> None:
        """Wait until the provider's daemon holds both subscriptions."""
        with trio.fail_after(20):
            while len(found := self.daemon.service.subscriber.subscriptions) < 2:  # noqa: ASYNC110
                await trio.sleep(0.005)
            for one in found:
                await one.route.ready.wait()


Make = Callable[..., Awaitable[Network]]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    async with trio.open_nursery() as nursery:

        async def made(**settings: Any) -> Network:
            network = Network(tmp_path, nursery, **settings)
            await network.start()
            return network

        yield made
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def running(network: Network, answerer: type[Answerer] = Answerer) -> AsyncIterator[None]:
    async with network.house.running(answerer):
        await network.ready()
        yield


async def test_every_subscriber_gets_an_answer_to_every_batch_that_holds(make: Make) -> None:
    network = await make()
    async with running(network):
        await network.owner.publish_table()
        subscribers = [await network.subscriber(one) for one in (ALL, NEAR)]
        for one in subscribers:
            assert (await one.subscribed()).newest is None
        for _ in range(3):
            await network.owner.publish(network.owner.make())
        for one in subscribers:
            await one.until(LocatedAnswer, 3)
            assert [said.batch.body.number for said in one.verified()] == [1, 2, 3]
        assert [len(said.messages) for said in subscribers[0].verified()] == [20] * 3
        await network.house.until("batches_answered", 3)


@pytest.mark.slow
async def test_a_batch_of_five_megabytes_arrives_in_parts(make: Make) -> None:
    network = await make()
    async with running(network):
        await network.owner.publish_table()
        one = await network.subscriber(ALL)
        await one.subscribed()
        said = [replace(message(Random(at), 1, str(at)), payload=bytes(50_000)) for at in range(105)]
        whole = network.owner.make(said=said)
        assert len(whole) > 5_000_000
        await network.owner.publish(whole)
        await one.until(LocatedAnswer)
        assert len(one.verified()[0].messages) == 105


async def test_a_later_subscriber_hears_which_batch_was_the_newest(make: Make) -> None:
    network = await make()
    async with running(network):
        await network.owner.publish_table()
        await network.owner.publish(network.owner.make())
        await network.house.until("batches_answered")
        one = await network.subscriber()
        taken = await one.subscribed()
        assert taken.newest == network.owner.batches[0].signed
        await network.owner.publish(network.owner.make())
        await one.until(LocatedAnswer)
        assert one.answers[0].number == 2


async def test_batches_in_any_order_are_answered_in_theirs(make: Make) -> None:
    network = await make()
    async with running(network):
        one = await network.subscriber()
        await one.subscribed()
        wholes = [network.owner.make() for _ in range(4)]
        await network.owner.publish(wholes[0])  # waits for its weights
        await network.owner.publish_table()
        await one.until(LocatedAnswer)
        for at in (3, 2, 2, 0, 1):
            await network.owner.publish(wholes[at])
        await one.until(LocatedAnswer, 4)
        assert [said.batch.body.number for said in one.verified()] == [1, 2, 3, 4]
        assert network.house.counters["batches_repeated"] == 2


async def test_weights_of_batches_that_wait_are_kept_however_many_there_are(make: Make) -> None:
    network = await make()
    async with running(network):
        one = await network.subscriber()
        await one.subscribed()
        owner, wholes = network.owner, []
        for version in range(1, MAX_TABLES + 3):
            owner.table = sign_table(OWNER, version, {"ba": 7}, 9, chord(100))
            wholes.append((encode(owner.table.whole), owner.make()))
        first, second, *others = wholes
        for pair in (first, *others, second):
            await owner.publish(*pair)
        await one.until(LocatedAnswer, len(wholes))
        assert [said.batch.body.version for said in one.verified()] == list(range(1, MAX_TABLES + 3))


async def test_a_batch_that_never_comes_is_waited_for_and_told(make: Make) -> None:
    network = await make(patience=1)
    async with network.house.running() as provider:
        await network.ready()
        await network.owner.publish_table()
        one = await network.subscriber()
        await one.subscribed()
        first, second, third = (network.owner.make() for _ in range(3))
        await network.owner.publish(first, third)
        await one.until(LocatedAnswer, 2)
        assert [answer.number for answer in one.answers] == [1, 3]
        assert network.house.counters["batches_missing"] == 1
        with pytest.raises(InvalidAnswer) as caught:
            one.verified()
        assert caught.value.problem is AnswerProblem.MISSING_INTERVAL
        await network.owner.publish(second)
        await network.house.until("batches_repeated")
        (told,) = [
            one
            for one in own_findings(network.house.settings, provider.shelf, True)
            if one.verdict == "warning"
        ]
        assert (told.check, told.found) == ("missing batches", "2 never came")


async def test_what_the_owner_did_not_publish_is_counted_and_harms_nothing(make: Make) -> None:
    network = await make()
    async with running(network):
        await network.owner.publish_table()
        one = await network.subscriber()
        await one.subscribed()
        stranger = Owner(network.owner._daemon, network.feed, STRANGER)
        forged = stranger.make()
        await network.owner.publish(forged, author=STRANGER)
        await network.owner.put(b"anything", None)
        await network.owner.publish(forged)  # the owner signs messages with another's batch
        await network.owner.publish(encode(stranger.table.whole))
        await network.owner.put(b"no part", OWNER)
        await network.owner.publish(b"no batch")
        await network.owner.publish(network.owner.make())
        good = network.owner.batches[0]
        await network.owner.publish(encode(replace(good, messages=good.messages[1:])))
        await one.until(LocatedAnswer)
        counters = network.house.counters
        await network.house.until("batches_refused", 3)
        assert (counters["feed_foreign"], counters["feed_refused"]) == (2, 2)
        assert counters["batches_taken"] == 1
        assert len(one.verified()[0].messages) == 20


async def test_a_batch_that_goes_back_in_time_is_refused(make: Make) -> None:
    network = await make(patience=1)
    async with running(network):
        await network.owner.publish_table()
        one = await network.subscriber()
        await one.subscribed()
        await network.owner.publish(network.owner.make())
        await one.until(LocatedAnswer)
        forker = Owner(network.owner._daemon, network.feed)
        await network.owner.publish(forker.make(3))  # another first one
        await network.house.until("batches_refused")
        await network.owner.publish(network.owner.make())
        await one.until(LocatedAnswer, 2)
        assert [said.batch.body.number for said in one.verified()] == [1, 2]


async def test_requests_that_do_not_hold_are_counted_and_nobody_hears(make: Make) -> None:
    network = await make(most=2)
    async with running(network):
        one, other, third = [await network.subscriber() for _ in range(3)]
        counters = network.house.counters
        sealed = await one.ask(one.subscribe(2))
        await one.until(RequestConfirmation)
        await one._daemon.put(one.offer.requests, sealed)  # the same stamp again
        await one._daemon.put(one.offer.requests, b"anything")
        await one.ask(one.subscribe(3, answers=hushcast.new_link("open to all")))
        await one.ask(one.subscribe(3, answers="nothing"))
        await one.ask(one.subscribe(3, answers=hushcast.new_link("answers", private=True, width=4)))
        await network.house.until("requests_refused", 5)
        await one.ask(one.subscribe(1))
        await network.house.until("requests_old")
        await one.ask(one.subscribe(3, until=one.today - 1))
        await one.ask(one.subscribe(3, until=one.today + 31))
        await network.house.until("requests_late", 2)
        await other.subscribed()
        await third.ask(third.subscribe())
        await network.house.until("requests_full")
        await other.ask(other.withdraw(2))
        await third.ask(third.subscribe())
        await third.until(RequestConfirmation)
        assert counters["requests_taken"] == 4
        assert [len(each.replies) for each in (one, other, third)] == [1, 1, 1]


async def test_who_asks_the_same_again_hears_the_same_again(make: Make) -> None:
    network = await make()
    async with running(network):
        one = await network.subscriber()
        request = one.subscribe()
        await one.ask(request)
        await one.ask(request)
        await one.until(RequestConfirmation, 2)
        assert one.replies[0] == one.replies[1]


async def test_the_table_is_sent_to_whoever_asks_but_not_for_ever(make: Make) -> None:
    network = await make()
    async with running(network):
        one = await network.subscriber()
        await one.ask(AskTable(one.link))
        await network.house.until("requests_full")  # there is none yet
        await network.owner.publish_table()
        await network.owner.publish(network.owner.make())
        await network.house.until("batches_answered")
        await one.ask(AskTable(one.link))
        await one.until(WholeTable)
        assert one.replies == [network.owner.table.whole]
        assert MAX_TABLES_AN_HOUR < 100


async def test_withdrawn_and_ended_subscriptions_leave_the_disk(make: Make) -> None:
    network = await make()
    async with network.house.running() as provider:
        await network.ready()
        one, other = [await network.subscriber() for _ in range(2)]
        await one.subscribed()
        await other.ask(other.subscribe(until=other.today))
        await other.until(RequestConfirmation)
        await one.ask(one.withdraw(2))
        await network.house.until("requests_taken", 3)
        found = dict(await network.house.store.scan("subscription"))
        assert found.keys() == {one.name, other.name}
        assert one.link.encode() not in found[one.name]
        assert len(found[one.name]) < 30  # a number and a day
        provider.shelf.register.expire(provider.shelf.register.names(), one.today + 1)
        assert len(provider.shelf.register) == 0


async def test_a_kill_in_the_middle_loses_nothing_and_answers_nothing_differently(make: Make) -> None:
    network = await make()
    subscribers = [await network.subscriber(one) for one in (ALL, NEAR, ALL)]
    async with running(network):
        await network.owner.publish_table()
        for one in subscribers:
            await one.subscribed()
    for _ in range(4):
        whole = network.owner.make()
        killed = trio.CancelScope()

        class Killed(Answerer):
            async def publish(self, daemon: hushcast.Daemon, link: str, number: int, answer: bytes) -> None:
                await super().publish(daemon, link, number, answer)
                killed.cancel()  # noqa: B023

        with trio.fail_after(20), killed:
            async with running(network, Killed):
                await network.owner.publish(whole)
                await trio.sleep_forever()
    async with running(network):
        for one in subscribers:
            await one.until(LocatedAnswer, 4)
        await network.house.until("batches_answered", 4)
    for one in subscribers:
        told = {answer.number: encode(answer) for answer in one.answers}
        assert all(told[answer.number] == encode(answer) for answer in one.answers)
        assert sorted(told) == [1, 2, 3, 4]


async def test_a_daemon_that_comes_and_goes_is_waited_for(make: Make) -> None:
    network = await make()
    one = await network.subscriber()
    async with running(network):
        await one.subscribed()
        await network.owner.publish_table()
        network.daemon.stop()
        async with trio.open_nursery() as nursery:
            await network.daemon.start(nursery)
            await network.owner.publish(network.owner.make())
            await one.until(LocatedAnswer)
            network.daemon.stop()
            nursery.cancel_scope.cancel()


async def test_batches_without_weights_make_room_in_the_end(make: Make) -> None:
    network = await make()
    async with running(network):
        wholes = [network.owner.make(1) for _ in range(MAX_HELD + 2)]
        await network.owner.publish(*wholes)
        await network.house.until("batches_missing", 2)
        await network.owner.publish_table()
        await network.house.until("batches_answered", MAX_HELD)
