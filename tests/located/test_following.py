"""Subscribers over a daemon: what is told, kept, acknowledged, renewed and withdrawn."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio
from msgspec.structs import replace
from providing import HERE, OWNER, Town

import hushcast
import hushcast_located
from hushcast_local import outbox
from hushcast_located import (
    Event,
    Feed,
    FeedTrouble,
    Interval,
    Lapsed,
    RequestAccepted,
    Unanswered,
    Uncovered,
    WeightsChange,
)
from hushcast_located.subscriber import request_schedule as requests_module
from hushcast_located.subscriber.environment import DAYS, SubscriberEnvironment
from hushcast_located.subscriber.request_schedule import RequestSchedule
from hushcast_located.subscriber.subscription_files import FeedRecord, SubscriptionFiles, look, names
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem
from hushcast_protocol.spatial.located_requests import DAY

AT = HERE["lat"], HERE["lon"]
SOON = SubscriberEnvironment(spread=0.02, patience=0.2)


@asynccontextmanager
async def following(town: Town, **how: Any) -> AsyncIterator[Feed]:
    """A new feed, or the one that is kept by a name."""
    if how.get("name") not in names(town.folder):
        how = {"offer": town.offer, "at": AT, "keywords": ["shoe", "discount"], **how}
    options = {"folder": town.folder, "world": SOON, **how}
    async with (
        hushcast.connect(town.socket) as daemon,
        hushcast_located.subscribe(daemon, options.pop("offer", None), **options) as feed,
    ):
        yield feed


async def take(feed: Feed, *kinds: type) -> Event:
    """Return the next event of these kinds."""
    with anyio.fail_after(20):
        while True:
            event = await anext(feed)
            if isinstance(event, kinds):
                return event


async def interval(feed: Feed) -> Interval:
    event = await take(feed, Interval)
    assert isinstance(event, Interval)
    return event


async def test_intervals_come_with_what_is_wanted(town: Town) -> None:
    async def program() -> None:
        async with following(town) as feed:
            await take(feed, RequestAccepted)
            await town.interval()
            first = await interval(feed)
            assert [one.text for one in first.messages] == [
                "shoe discount today",
                "shoe sale",
            ] or first.messages
            assert "shoe discount today" in [one.text for one in first.messages]
            assert (first.number, first.seconds, first.is_late, first.is_complete) == (1, 300, False, True)
            await town.interval(said=[])
            assert (await interval(feed)).messages == ()
        await town.do(town.provider.until, lambda: len(town.provider.withdrawn) == 1)
        async with hushcast.connect(town.socket) as daemon:
            held = await daemon.subscriptions()
            assert [one.topic for one in held] == ["requests"], "without a name it ends with its block"

    await town.run(program)


async def test_what_is_wrong_is_named_and_what_is_told_is_true(town: Town) -> None:
    async def program() -> None:
        async with following(town) as feed:
            await take(feed, RequestAccepted)
            await town.interval()
            assert (await interval(feed)).number == 1
            await town.interval(lambda one: replace(one, number=one.number + 1))
            trouble = await take(feed, FeedTrouble, Interval)
            assert trouble == FeedTrouble(AnswerProblem.OTHER_INTERVAL, 2, 2)
            await town.interval(lambda _: None)
            await town.interval()
            assert await take(feed, FeedTrouble, Interval) == FeedTrouble(
                AnswerProblem.MISSING_INTERVAL, 3, 3
            )
            assert (await interval(feed)).number == 4
            await town.interval(weigh=["shoe", "discount discount"])
            assert await take(feed, WeightsChange, Interval) == WeightsChange(5, 2)

    await town.run(program)


async def test_a_name_goes_on_and_nothing_is_lost_or_shown_twice(town: Town) -> None:
    async def program() -> None:
        async with following(town, name="shoes") as feed:
            await take(feed, RequestAccepted)
            await town.interval()
            assert (await interval(feed)).number == 1
        await town.interval()  # while nobody listens
        async with following(town, name="shoes") as feed:
            assert (await interval(feed)).number == 2
            feed.undone()
        async with following(town, name="shoes") as feed:
            assert (await interval(feed)).number == 2, "it was not done with"
            await town.interval()
            assert (await interval(feed)).number == 3
        async with following(town, name="shoes") as feed:
            await town.interval()
            assert (await interval(feed)).number == 4
        kept = look(town.folder, "shoes")
        assert kept is not None
        assert town.provider.numbers == [1], "nothing was asked again"
        for file in town.folder.iterdir():
            assert file.stat().st_mode & 0o077 == 0
        assert town.folder.stat().st_mode & 0o077 == 0
        async with hushcast.connect(town.socket) as daemon:
            await hushcast_located.unsubscribe(daemon, "shoes", folder=town.folder)
            assert list(names(town.folder)) == []
            assert [one.topic for one in await daemon.subscriptions()] == ["requests"]
            with pytest.raises(UsageError, match="no subscription 'shoes'"):
                await hushcast_located.unsubscribe(daemon, "shoes", folder=town.folder)
        await town.do(town.provider.until, lambda: town.provider.withdrawn == [kept.name])

    await town.run(program)


async def test_an_interval_that_does_not_hold_is_passed_in_the_next_life_too(town: Town) -> None:
    async def program() -> None:
        async with following(town, name="lied") as feed:
            await take(feed, RequestAccepted)
            await town.interval(lambda one: replace(one, number=one.number + 1))
            assert await take(feed, FeedTrouble) == FeedTrouble(AnswerProblem.OTHER_INTERVAL, 1, 1)
            with pytest.raises(TimeoutError), anyio.fail_after(0.1):
                await anext(feed)  # the bad answer is done with, and acknowledged
        async with following(town, name="lied", world=SubscriberEnvironment(patience=30)) as feed:
            await town.interval()
            assert (await interval(feed)).number == 2, "at once"

    await town.run(program)


async def test_an_answer_in_many_parts_is_acknowledged_when_it_is_told(town: Town) -> None:
    """More parts than the daemon sends ahead, of one answer."""

    async def program() -> None:
        async with following(town, name="big") as feed:
            await take(feed, RequestAccepted)
            kept = look(town.folder, "big")
            assert kept is not None
            acknowledged: list[int] = []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("providing.cut", _cut_fine)
                await town.interval(said=[f"shoe discount {at}" for at in range(90)])

            async def progress() -> int:
                held = await town.do(town.daemon.hold, kept.answers)
                return int(held.inbox.progress.acknowledged)

            acknowledged.append(await progress())
            assert len((await interval(feed)).messages) == 90
            acknowledged.append(await progress())
            await town.interval()
            assert (await interval(feed)).number == 2
            acknowledged.append(await progress())
            assert max(acknowledged[:2]) <= 1, "nothing of it before it was done with"
            assert acknowledged[2] > 64

    await town.run(program)


def _cut_fine(whole: bytes) -> list[bytes]:
    from hushcast_protocol.base.crypto.hashes import Domain, digest
    from hushcast_protocol.spatial.message_parts import MessagePart, cut

    size = max(len(whole) // 66, 1)
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    if len(pieces) > 68:
        return cut(whole)
    name = digest(Domain.LOCATED_PART, whole)
    return [encode(MessagePart(name, at, len(pieces), piece)) for at, piece in enumerate(pieces)]


async def test_a_provider_that_says_nothing_is_told_of_and_asked_again(town: Town) -> None:
    async def program() -> None:
        town.provider.is_deaf = True
        hasty = SubscriberEnvironment(spread=0.02, patience=0.2, unanswered=0.05, retry=0.2)
        async with following(town, name="slow", world=hasty) as feed:
            told = await take(feed, Unanswered)
            assert isinstance(told, Unanswered)
            assert told.seconds >= 0.05
            await town.do(town.provider.until, lambda: town.provider.ignored > 0)
            town.provider.is_deaf = False
            await take(feed, RequestAccepted)
            assert town.provider.numbers[-1] > 1

    await town.run(program)


@pytest.mark.parametrize(("name", "left"), [("", []), ("kept", ["answers"])])
async def test_one_without_a_name_that_is_cancelled_while_it_opens_leaves_nothing(
    town: Town, name: str, left: list[str]
) -> None:
    async def program() -> None:
        async with hushcast.connect(town.socket) as daemon:

            async def topics(count: int) -> list[str]:
                while len(held := await daemon.subscriptions()) != count:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
                return [one.topic for one in held]

            async def follow() -> None:
                async with following(town, name=name):
                    raise AssertionError("nothing is routed to it")

            town.daemon.network.installed = trio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                assert await topics(2) == ["requests", "answers"]
                tasks.cancel_scope.cancel()
            assert [one.topic for one in await daemon.subscriptions()] == ["requests", *left]

    await town.run(program)


async def test_one_without_a_name_ends_in_the_daemon_though_the_provider_cannot_be_told(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> None:
        async def follow() -> None:
            async with following(town) as feed:
                await take(feed, RequestAccepted)
                monkeypatch.setattr(outbox, "MAX_PUBLICATIONS", 0)

        with pytest.raises(hushcast.Refusal, match="outbox is full"):
            await follow()
        async with hushcast.connect(town.socket) as daemon:
            assert [one.topic for one in await daemon.subscriptions()] == ["requests"]

    await town.run(program)


async def test_two_subscriptions_have_nothing_in_common(town: Town) -> None:
    async def program() -> None:
        async with following(town, name="one") as one, following(town, name="two") as two:
            for feed in (one, two):
                await take(feed, RequestAccepted)
            first, second = town.provider.held.values()
            assert first.name != second.name
            assert first.answers != second.answers
            with pytest.raises(UsageError, match="followed already"):
                async with following(town, name="one"):
                    pass

    await town.run(program)


@pytest.mark.parametrize("seed", range(2))
async def test_lives_that_end_at_any_moment_lose_nothing(town: Town, seed: int) -> None:
    """What was done with never comes again, all else does, whole and in order."""
    chance = random.Random(seed)

    async def program() -> None:
        done: list[int] = []
        made = 0
        while len(done) < 8:
            lives = chance.randrange(1, 4)
            async with following(town, name="lives", world=SubscriberEnvironment(patience=30)) as feed:
                if not town.provider.numbers:
                    await take(feed, RequestAccepted)
                with anyio.CancelScope() as scope:
                    while lives:
                        lives -= 1
                        for _ in range(chance.randrange(3) if made < 8 else 0):
                            made += 1
                            await town.interval()
                        if made == len(done):
                            break
                        event = await interval(feed)
                        if chance.random() < 0.3:
                            feed.undone()
                            scope.cancel()
                            await anyio.sleep(1)
                        done.append(event.number)
        assert done == list(range(1, len(done) + 1))

    await town.run(program)


async def test_a_request_that_ended_is_asked_anew_behind_what_waits(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests_module, "SETTLING", 0.3)

    async def program() -> None:
        async with following(town, name="away") as feed:
            await take(feed, RequestAccepted)
        await town.interval()
        keeping = SubscriptionFiles(town.folder, "away")
        kept = keeping.load()
        assert kept is not None
        keeping.save(replace(kept, until=SOON.day - 1))
        keeping.close()
        for _ in range(3):  # which nobody asked the provider for any more
            await town.interval(lambda _: None)
        async with following(town, name="away") as feed:
            assert (await interval(feed)).number == 1
            assert isinstance(await take(feed, Lapsed, FeedTrouble, Interval), Lapsed)
            await take(feed, RequestAccepted)
            await town.interval()
            event = await take(feed, Interval, FeedTrouble)
            assert isinstance(event, Interval)
            assert event.number == 5
        assert town.provider.numbers == [1, 2]

    await town.run(program)


async def test_a_daemon_that_is_restarted_is_waited_for(town: Town) -> None:
    async def program() -> None:
        async with following(town) as feed:
            await take(feed, RequestAccepted)
            await town.interval()
            assert (await interval(feed)).number == 1
            await town.stop()
            await town.start_again()
            await take(feed, hushcast.Disconnected)
            await take(feed, hushcast.Reconnected)
            await town.interval()
            assert (await interval(feed)).number == 2

    await town.run(program)


async def test_blur_tells_less_and_shows_the_same(town: Town) -> None:
    async def program() -> None:
        town.provider.batch()
        async with following(town, name="blurred", blur=5, blur_keywords=1) as feed:
            await take(feed, RequestAccepted)
            (request,) = town.provider.held.values()
            assert len(request.subscription.words) == 1
            assert request.subscription.place != look(town.folder, "blurred").wanted.place  # type: ignore[union-attr]
            assert request.subscription.threshold < 700
            async with following(town) as exact:
                await take(exact, RequestAccepted)
                for _ in range(2):
                    await town.interval()
                    shown = await interval(feed)
                    assert {one.id for one in shown.messages} == {
                        one.id for one in (await interval(exact)).messages
                    }
                    assert shown.is_complete
        assert town.provider.tables_asked == 1
        async with following(town, name="blurred") as feed:
            # Of two words the light one becomes the heavy one: what was told does not cover any more.
            await town.interval(weigh=["discount"] * 30 + ["discount shoe"])
            assert isinstance(await take(feed, WeightsChange, Interval), WeightsChange)
            shown = await interval(feed)
            assert town.provider.tables_asked == 2
            assert not shown.is_complete
            assert await take(feed, Uncovered) == Uncovered(shown.number, is_mended=True)
            await take(feed, RequestAccepted)
            (request,) = town.provider.held.values()
            assert request.subscription.words == ("shoe",)
            await town.interval()
            assert (await interval(feed)).is_complete

    await town.run(program)


async def test_what_covers_everything_is_refused_before_anything_is_asked(town: Town) -> None:
    async def program() -> None:
        town.provider.batch()
        with pytest.raises(UsageError, match="fewer kilometres"):
            async with following(town, name="wide", blur=5000, threshold=0.3):
                pass
        assert town.provider.held == {}

    await town.run(program)


@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        ({"at": (91, 0)}, "no place"),
        ({"at": (float("nan"), 0)}, "no place"),
        ({"keywords": []}, "no word"),
        ({"keywords": [f"w{at}" for at in range(65)]}, "above 64"),
        ({"alpha": 1.5}, "'alpha' is 1.5"),
        ({"threshold": float("nan")}, "'threshold' is nan"),
        ({"at": None}, "no place is named"),
        ({"offer": "?"}, "no provider's offer"),
        ({"owner": "00" * 32}, "another owner"),
        ({"blur": -1}, "kilometres"),
        ({"blur_keywords": 3}, "3 of 2 keywords"),
        ({"name": "../x"}, "cannot be a name"),
    ],
)
def test_what_cannot_be_used(tmp_path: Any, how: dict[str, Any], wrong: str) -> None:
    options = {"offer": OFFER, "at": AT, "keywords": "shoe discount", "folder": tmp_path / "state", **how}
    with pytest.raises(UsageError, match=wrong):
        hushcast_located.subscribe(None, options.pop("offer"), **options)  # type: ignore[arg-type]


def _offer() -> str:
    from hushcast_protocol.spatial.offer import Offer, write_offer

    return write_offer(Offer(bytes(32), "hushcast-topic:x", OWNER.public(), 1))


OFFER = _offer()


def test_names_and_what_is_kept(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="no subscription 'nobody'"):
        hushcast_located.subscribe(None, name="nobody", folder=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no provider is named"):
        hushcast_located.subscribe(None, at=AT, folder=tmp_path)  # type: ignore[arg-type]
    keeping = SubscriptionFiles(tmp_path, "x")
    (tmp_path / "x.subscription").write_bytes(b"?")
    with pytest.raises(UsageError, match="damaged"):
        keeping.load()
    assert look(tmp_path, "x") is None
    keeping.close()


class Clock:
    def __init__(self) -> None:
        self.now = 20_000.5 * DAY

    def __call__(self) -> float:
        return self.now


def kept_one(tmp_path: Any) -> FeedRecord:
    feed = hushcast_located.subscribe(None, OFFER, at=AT, keywords="a", folder=tmp_path, name="k")  # type: ignore[arg-type]
    kept = feed._requests.kept
    return replace(kept, told=kept.wanted)


def test_renewals_come_at_random_moments_in_the_middle_of_their_time(tmp_path: Any) -> None:
    clock = Clock()
    world = SubscriberEnvironment(now=clock)
    moments = set()
    kept = kept_one(tmp_path)
    for _ in range(50):
        requests = RequestSchedule.begin(world, kept)
        assert requests.ask_at == clock.now
        request = requests.next()
        assert (request.number, request.until) == (1, world.day + DAYS)
        assert requests.taken(1)
        assert not requests.taken(1)
        away = (requests.ask_at - clock.now) / DAY
        assert (DAYS - 1) / 3 <= away <= DAYS * 2 / 3
        moments.add(requests.ask_at)
        again = RequestSchedule.begin(world, requests.kept)
        assert int(again.ask_at) == int(requests.ask_at), "also in another life"
    assert len(moments) == 50
    overdue = RequestSchedule.begin(replace_clock(world, requests.ask_at + DAY), requests.kept)
    assert not overdue.is_lapsed
    late = RequestSchedule.begin(replace_clock(world, clock.now + 20 * DAY), requests.kept)
    assert late.is_lapsed
    request = late.next()
    assert (request.number, late.kept.first, late.kept.followed) == (2, 2, None)


def test_what_is_to_be_told_anew_is_told_in_the_next_life(tmp_path: Any) -> None:
    clock = Clock()
    world = SubscriberEnvironment(now=clock)
    requests = RequestSchedule.begin(world, kept_one(tmp_path))
    requests.next()
    requests.taken(1)
    wider = replace(requests.kept.wanted, threshold=500)
    requests.ask_anew(wider)
    assert clock.now <= requests.ask_at <= clock.now + world.spread
    again = RequestSchedule.begin(world, requests.kept)
    assert again.ask_at <= clock.now + world.retry
    assert again.next().subscription == wider
    assert again.kept.told_before == requests.kept.wanted


def replace_clock(world: SubscriberEnvironment, now: float) -> SubscriberEnvironment:
    return SubscriberEnvironment(now=lambda: now, randomness=world.randomness)


def test_who_hears_nothing_asks_less_and_less_often(tmp_path: Any) -> None:
    clock = Clock()
    requests = RequestSchedule.begin(SubscriberEnvironment(now=clock), kept_one(tmp_path))
    waits = []
    for _ in range(12):
        clock.now = requests.ask_at
        requests.next()
        waits.append(requests.ask_at - clock.now)
    assert waits[0] <= 300
    assert waits[-1] >= 3 * 3600
    assert max(waits) <= 6 * 3600
    assert requests.silence() is not None
    assert requests.silence() is None, "said once a try"


def test_time_is_the_machine_s_unless_told() -> None:
    assert abs(SubscriberEnvironment().now() - time.time()) < 5
