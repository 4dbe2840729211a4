"""What every carrier promises (`hushcast_runtime.carriers.carrier`), held against each of them.

A new carrier joins with a `World` around it in `worlds.py` and an entry in `CARRIERS`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
import trio
from readers import SILENCE, UNWANTED_WITHIN, Reader, Receipts, hand_over, shows, shows_no_more
from small_network import EPOCH_SECONDS, ONE, READY_WITHIN, TWO, until
from worlds import (
    Member,
    World,
    brokers_as_published,
    brokers_in_a_community,
    brokers_over_memory,
    brokers_over_tcp,
    brokers_under_full,
    central_as_published,
    central_over_memory,
    central_over_tcp,
    fake,
    keeping_fake,
    keeping_poor_fake,
    overlay_over_memory,
    overlay_over_tcp,
    overlay_with_keepers,
    poor_fake,
)

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.topics import make_topic
from hushcast_runtime.carriers.carrier import Route

CARRIERS = [
    pytest.param(fake, id="fake"),
    pytest.param(poor_fake, id="poor fake"),
    pytest.param(overlay_over_memory, id="overlay over memory"),
    pytest.param(overlay_over_tcp, id="overlay over tcp", marks=pytest.mark.slow),
    pytest.param(central_over_memory, id="central over memory"),
    pytest.param(central_as_published, id="central as published"),
    pytest.param(central_over_tcp, id="central over tcp", marks=pytest.mark.slow),
    pytest.param(brokers_over_memory, id="brokers over memory"),
    pytest.param(brokers_under_full, id="brokers under full"),
    pytest.param(brokers_as_published, id="brokers under full as published"),
    pytest.param(brokers_in_a_community, id="brokers in a community"),
    pytest.param(brokers_over_tcp, id="brokers over tcp", marks=pytest.mark.slow),
]
KEEPERS = [
    pytest.param(keeping_fake, id="fake"),
    pytest.param(keeping_poor_fake, id="poor fake"),
    pytest.param(overlay_with_keepers, id="overlay with keepers"),
    pytest.param(central_over_memory, id="central over memory"),
    pytest.param(brokers_over_memory, id="brokers over memory"),
    pytest.param(brokers_under_full, id="brokers under full"),
]
KEEP_NOTHING = [
    pytest.param(fake, id="fake"),
    pytest.param(overlay_over_memory, id="overlay without keepers"),
    pytest.param(central_as_published, id="central as published"),
    pytest.param(brokers_as_published, id="brokers under full as published"),
    pytest.param(brokers_in_a_community, id="brokers in a community"),
]
OVER_DAYS = pytest.mark.parametrize(
    "opened",
    [
        pytest.param(*one.values, id=one.id, marks=[*one.marks, *[pytest.mark.soak] * ("tcp" in str(one.id))])
        for one in CARRIERS
    ],
    indirect=True,
)
"""For what only waits for days to end: what real sockets add shows in all else."""
PAST_WITHIN = 6 * 3600.0  # seconds for the questions of some days, their pauses, and an epoch more
KINDS = make_topic("kinds of news", ["kind"], TopicSecret(bytes(range(32))))

Opened = Callable[[], AbstractAsyncContextManager[World]]


@pytest.fixture(params=CARRIERS)
def opened(request: pytest.FixtureRequest) -> Opened:
    chosen: Opened = request.param
    return chosen


@pytest.fixture
async def world(opened: Opened) -> AsyncIterator[World]:
    async with opened() as world:
        yield world


async def ready(route: Route) -> Route:
    with trio.fail_after(READY_WITHIN):
        await route.ready.wait()
    return route


async def keep(member: Member, reader: Reader) -> Route:
    """Keep an interest routed, and return once messages reach it."""
    return await ready(member.carrier.keep(reader))


async def restart(member: Member, *readers: Reader) -> None:
    """Restart a member, and return once all that is wanted is routed again."""
    await member.stop()
    await member.start(readers)
    for route in member.routes.values():
        await ready(route)


# What has a receipt arrives


@pytest.mark.slow
async def test_what_has_a_receipt_arrives_at_every_ready_route(world: World) -> None:
    readers = [world.reader() for _ in range(3)]
    for member, reader in zip((world.here, world.there, world.there), readers, strict=True):
        await keep(member, reader)
    sent = [b"message %d" % number for number in range(20)]
    async with trio.open_nursery() as nursery:
        for payload in sent:
            nursery.start_soon(hand_over, world.here.carrier, world.seal(Content(payload)))
    for reader in readers:
        await shows_no_more(reader, *sent)
    assert (await world.held()).messages == 0


@pytest.mark.parametrize("size", [0, MAX_PAYLOAD])
async def test_messages_of_every_size_arrive_whole(world: World, size: int) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    await hand_over(world.there.carrier, world.seal(Content(b"x" * size)))
    await shows(reader, b"x" * size)


@pytest.mark.slow
async def test_topics_and_conditions_are_kept_apart(world: World) -> None:
    one, two = world.reader(ONE), world.reader(TWO)
    fires, all_kinds = world.reader(KINDS, "kind = fire"), world.reader(KINDS)
    for reader in (one, two, fires, all_kinds):
        await keep(world.here, reader)
    for topic in (ONE, TWO):
        await hand_over(world.there.carrier, world.seal(Content(topic.name.encode()), topic))
    for kind in ("fire", "flood"):
        await hand_over(world.there.carrier, world.seal(Content(kind.encode(), {"kind": kind}), KINDS))
    await shows_no_more(one, ONE.name.encode())
    await shows_no_more(two, TWO.name.encode())
    await shows_no_more(all_kinds, b"fire", b"flood")
    assert b"fire" in fires.payloads  # and perhaps more: a carrier may hand in what the condition keeps out


@pytest.mark.slow
@OVER_DAYS
async def test_routes_outlast_their_days(world: World) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    sent: list[bytes] = []
    for days in (0, 1, 1):
        await trio.sleep(days * world.calendar.day_seconds)
        sent.append(b"on day %d" % world.today)
        await hand_over(world.there.carrier, world.seal(Content(sent[-1])))
        await shows(reader, *sent)


async def test_a_message_of_a_day_gone_by_gets_no_receipt(world: World) -> None:
    reader, receipts = world.reader(), Receipts()
    await keep(world.here, reader)
    await world.there.carrier.hand_over(world.seal(Content(b"old"), day=world.today - 2), receipts)
    assert receipts.takers == []
    assert_for_people(*receipts.failures)
    await shows_no_more(reader)


# Nothing is shown twice, and nothing is lost that was not durable


async def test_a_message_handed_over_again_is_shown_once(world: World) -> None:
    reader, message = world.reader(), world.seal(Content(b"x"))
    await keep(world.here, reader)
    for patience in (0.1, 0.3):
        with trio.move_on_after(patience):  # whoever hands it over crashes meanwhile
            await world.there.carrier.hand_over(message, Receipts())
    await hand_over(world.there.carrier, message)
    await hand_over(world.here.carrier, message)
    await shows_no_more(reader, b"x")


async def test_who_has_taken_it_is_not_asked_again(world: World) -> None:
    message = world.seal(Content(b"x"))
    before = await hand_over(world.there.carrier, message)
    after = Receipts()
    await world.there.carrier.hand_over(message, after, before.takers)
    assert set(after.tried).isdisjoint(before.takers)
    assert set(before.takers) <= set(before.tried)
    assert len(before.takers) == len(set(before.takers))


async def test_what_a_disk_did_not_take_is_handed_in_again(world: World) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    reader.failures = 5  # more than there are copies of a message on their ways
    message = world.seal(Content(b"x"))
    await hand_over(world.there.carrier, message)
    await shows_no_more(reader, b"x")
    assert reader.failed == 5
    assert reader.handed[message.id] >= 6


@pytest.mark.slow
async def test_what_a_crash_kept_from_the_disk_is_handed_in_again(world: World) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    reader.hangs = True
    messages = [world.seal(Content(b"%d" % number)) for number in range(5)]
    for message in messages:
        await hand_over(world.there.carrier, message)
    await until(lambda: reader.handed)
    await trio.sleep(SILENCE)
    assert reader.disk == {}
    await world.here.stop()
    reader.hangs = False
    await world.here.start([reader])
    await shows_no_more(reader, *(b"%d" % number for number in range(5)))


# Unsubscribed means silent


@pytest.mark.slow
async def test_an_ended_route_is_silent_and_forgotten(world: World) -> None:
    reader, other = world.reader(), world.reader()
    route = await keep(world.here, reader)
    await keep(world.there, other)
    await hand_over(world.there.carrier, world.seal(Content(b"before")))
    await shows(reader, b"before")
    await route.end()
    await hand_over(world.there.carrier, world.seal(Content(b"after")))
    await shows_no_more(reader, b"before")
    await route.forgotten()
    await restart(world.here)
    await hand_over(world.there.carrier, world.seal(Content(b"later")))
    await shows_no_more(reader, b"before")
    await shows(other, b"before", b"after", b"later")


async def test_a_route_that_ends_while_messages_come_is_silent_at_once(world: World) -> None:
    reader = world.reader()
    route = await keep(world.here, reader)
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(hand_over, world.there.carrier, world.seal(Content(b"%d" % number)))
        await until(lambda: len(reader.handed) >= 3)
        await route.end()
        handed = reader.handed.total()
    await trio.sleep(SILENCE)
    assert reader.handed.total() == handed


async def test_a_route_may_end_before_it_is_ready(world: World) -> None:
    reader = world.reader()
    route = world.here.carrier.keep(reader)
    await route.end()
    with trio.fail_after(1):
        await route.ready.wait()  # nobody waits for it any more
    await trio.sleep(SILENCE)
    await route.forgotten()
    await hand_over(world.there.carrier, world.seal(Content(b"x")))
    await shows_no_more(reader)


async def test_the_same_interest_again_is_another_route(world: World) -> None:
    first, second = world.reader(), world.reader()
    await (await keep(world.here, first)).end()
    await keep(world.here, second)
    await hand_over(world.there.carrier, world.seal(Content(b"x")))
    await shows_no_more(second, b"x")
    assert first.disk == {}


# Restarts


@pytest.mark.slow
async def test_a_restart_keeps_what_is_wanted_and_ends_the_rest(world: World) -> None:
    one, two = world.reader(ONE), world.reader(TWO)
    for reader in (one, two):
        await keep(world.here, reader)
    for number in range(3):
        await restart(world.here, one)
        assert world.here.routes.keys() == {one.name}
        for topic in (ONE, TWO):
            await hand_over(world.there.carrier, world.seal(Content(b"%d" % number), topic))
    await shows_no_more(one, b"0", b"1", b"2")
    assert two.disk == {}
    await restart(world.here)
    assert world.here.routes == {}
    await trio.sleep(UNWANTED_WITHIN)
    assert await world.held() == (0, 0)


@pytest.mark.slow
async def test_what_comes_while_a_subscriber_is_away_arrives_after(world: World) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    sent = []
    for number in range(3):
        await world.here.stop()
        sent.append(b"%d" % number)
        await hand_over(world.there.carrier, world.seal(Content(sent[-1])))
        await trio.sleep(EPOCH_SECONDS)
        await world.here.start([reader])
        await shows(reader, *sent)
    await shows_no_more(reader, *sent)


async def test_a_crash_while_subscribing_does_no_harm(world: World) -> None:
    reader = world.reader()
    for moment in (0.0, 0.1, 0.3, 0.6):
        if reader.name not in world.here.routes:
            world.here.carrier.keep(reader)
        await trio.sleep(moment)
        await world.here.stop()
        await world.here.start([reader])
    await ready(world.here.routes[reader.name])
    await hand_over(world.there.carrier, world.seal(Content(b"x")))
    await shows_no_more(reader, b"x")


# What is kept: of a time away, of days before, and of what was lost on the way


async def publish_for(world: World, days: int, begin: int = 0) -> list[bytes]:
    """Hand over a message a day, until so many days have begun; return them."""
    sent = []
    for number in range(begin, begin + days):
        sent.append(b"on day %d" % number)
        await hand_over(world.there.carrier, world.seal(Content(sent[-1])))
        await trio.sleep(world.calendar.day_seconds)
    return sent


async def brings(reader: Reader, *payloads: bytes) -> None:
    """Wait until a reader has taken just these, some of them of days gone by, and nothing else comes."""
    await until(lambda: len(reader.disk) >= len(payloads), PAST_WITHIN, f"{len(payloads)} were taken")
    await trio.sleep(SILENCE)
    assert reader.payloads == sorted(payloads)


@pytest.mark.slow
@pytest.mark.parametrize("opened", KEEPERS, indirect=True)
async def test_who_was_away_for_days_hears_what_it_missed(world: World) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    await world.here.stop()
    sent = await publish_for(world, 2)
    await world.here.start([reader])
    await brings(reader, *sent)
    handed = dict(reader.handed)
    await restart(world.here, reader)
    await trio.sleep(world.calendar.day_seconds / 4)
    assert reader.handed == handed, "what came is not asked for again"
    assert not reader.lost


@pytest.mark.slow
@pytest.mark.parametrize("opened", KEEPERS, indirect=True)
async def test_the_past_comes_to_who_wants_it(world: World) -> None:
    sent = await publish_for(world, 3)
    first = world.today - 2
    world.here.carrier.check_past(first)
    with pytest.raises(Refusal) as unkept:
        world.here.carrier.check_past(world.today - MAX_DAYS_KEPT - 1)
    assert_for_people(unkept.value.reason)
    reader, later, other = world.reader(), world.reader(), world.reader(TWO)
    reader.since = other.since = first
    for one in (reader, later, other):
        await keep(world.here, one)
    await brings(reader, *sent[1:])
    assert not later.disk
    later.since = first
    await restart(world.here, reader, later, other)
    world.here.routes[later.name].look_back()
    await brings(later, *sent[1:])
    assert not other.disk


@pytest.mark.slow
@pytest.mark.parametrize("opened", KEEPERS, indirect=True)
async def test_what_was_lost_where_it_waited_comes_all_the_same(world: World) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    await world.here.stop()
    await hand_over(world.there.carrier, world.seal(Content(b"lost")))
    await trio.sleep(SILENCE)
    await world.lose_what_waits()
    await world.here.start([reader])
    await brings(reader, b"lost")


# Refusals, with a reason for people


def assert_for_people(*reasons: str) -> None:
    assert reasons
    for reason in reasons:
        assert len(reason) > 10
        assert ONE.name not in reason, "reasons are logged"


async def test_whom_nobody_answers_is_told_why(world: World) -> None:
    stranger, reader = await world.stranger(), world.reader()
    message = world.seal(Content(b"x"))
    with pytest.raises(Refusal) as closed:
        stranger.carrier.check_open()
    with pytest.raises(Refusal) as untaken:
        await stranger.carrier.hand_over(message, Receipts())
    with pytest.raises(Refusal) as unkept:
        stranger.carrier.keep(reader)
    assert_for_people(closed.value.reason, untaken.value.reason, unkept.value.reason)
    await stranger.stop()
    await stranger.start()
    assert stranger.routes == {}, "nothing is left of what was refused"


async def test_terms_are_taken_or_refused_with_a_reason(world: World) -> None:
    reader = world.reader()
    reader.terms = {"what": "nobody ever heard of"}
    with pytest.raises(Refusal) as unkept:
        world.here.carrier.keep(reader)
    assert_for_people(unkept.value.reason)
    await restart(world.here)
    assert await world.held() == (0, 0)


@pytest.mark.parametrize("opened", KEEP_NOTHING, indirect=True)
async def test_who_keeps_nothing_of_the_past_says_so(world: World) -> None:
    with pytest.raises(Refusal) as unkept:
        world.here.carrier.check_past(world.today - 1)
    assert_for_people(unkept.value.reason)
    assert "from now on" in unkept.value.reason, "the way out"
    route = await keep(world.here, world.reader())
    route.look_back()
    assert not world.readers[0].disk


async def test_routes_outlast_a_network_that_is_away(world: World) -> None:
    reader, receipts = world.reader(), Receipts()
    await keep(world.here, reader)
    message = world.seal(Content(b"x"))
    await world.go_dark()
    try:
        await world.there.carrier.hand_over(message, receipts)
    except Refusal as refusal:
        receipts.note_failure(refusal.reason)
    assert receipts.takers == []
    assert_for_people(*receipts.failures)
    await world.come_back()
    await hand_over(world.there.carrier, message)
    await shows_no_more(reader, b"x")


# Bounded state


@pytest.mark.slow
async def test_what_nobody_wants_is_not_kept(world: World) -> None:
    for number in range(10):
        await hand_over(world.there.carrier, world.seal(Content(b"%d" % number)))
    await trio.sleep(UNWANTED_WITHIN)
    assert await world.held() == (0, 0)


@pytest.mark.slow
async def test_routes_that_come_and_go_leave_nothing(world: World) -> None:
    for _ in range(5):
        routes = [world.here.carrier.keep(world.reader()) for _ in range(3)]
        for route in routes:
            await ready(route)
        assert (await world.held()).routes > 0
        for route in routes:
            await route.end()
            await route.forgotten()
    await trio.sleep(SILENCE)
    assert await world.held() == (0, 0)


@pytest.mark.slow
@OVER_DAYS
async def test_what_waits_for_whoever_stays_away_goes_with_its_day(world: World) -> None:
    reader = world.reader()
    await keep(world.here, reader)
    await world.here.stop()
    for number in range(10):
        await hand_over(world.there.carrier, world.seal(Content(b"%d" % number)))
    await trio.sleep(SILENCE)
    assert (await world.held()).messages >= 10
    await trio.sleep(world.calendar.lapse(world.today + world.days_kept) - world.env.now() + SILENCE)
    assert (await world.held()).messages == 0


# Data about routes, and probes


async def test_a_route_describes_itself_as_plain_data(world: World) -> None:
    route = world.here.carrier.keep(world.reader())

    async def described() -> list[dict[str, object]]:
        told = [route.describe(), await route.coverage()]
        assert json.loads(json.dumps(told)) == told
        return told

    await described()
    await ready(route)
    assert isinstance(nodes := (await described())[0]["nodes"], int)
    assert nodes > 0
    await route.probe(probe(world))
    await described()
    await route.end()
    await described()


def probe(world: World) -> Message:
    return world.seal(Content(b"report", probe=True))


async def test_a_probe_goes_the_way_of_publications(world: World) -> None:
    reader, other = world.reader(), world.reader()
    route = await keep(world.here, reader)
    await keep(world.there, other)
    for _ in range(20):  # lost receipts are the fake's business
        if await route.probe(probe(world)):
            break
    await until(lambda: reader.disk and other.disk)
    assert set(reader.disk.values()) == set(other.disk.values()) == {b"report"}


async def test_a_probe_that_nobody_takes_says_so(world: World) -> None:
    route = await keep(world.here, world.reader())
    await world.go_dark()
    try:
        assert not await route.probe(probe(world))
    except Refusal as refusal:
        assert_for_people(refusal.reason)
