"""Time passing: subscriptions cover day after day, newcomers get seats, absent relays are told later."""

from __future__ import annotations

import pytest
import trio
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, TWO, Ear, Node, SmallNetwork, small_network, until

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, make_topic
from hushcast_protocol.overlay.late_routes import WAIT

NOON = 9  # epochs later than other networks begin: half of the day is over after half an epoch
EVENING = 16  # epochs later than other networks begin: it is midnight after five and a half


async def publish_until(net: SmallNetwork, moment: float, every: float, by: Node) -> list[bytes]:
    sent = []
    while net.now < moment:
        sent.append(b"at %d" % net.now)
        await by.daemon.service.publish(ONE, Content(sent[-1]))
        await trio.sleep(every)
    return sent


async def assert_each_once(ear: Ear, sent: list[bytes]) -> None:
    await ear.hears(len(sent))
    await trio.sleep(EPOCH_SECONDS)
    assert sorted(ear.payloads) == sorted(sent)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_nothing_is_lost_or_doubled_over_a_change_of_day(seed: int) -> None:
    async with small_network(relays=4, seed=seed, later=EVENING) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        first = net.calendar.day(net.now)
        sent = await publish_until(net, net.calendar.day_start(first + 1) + 3 * EPOCH_SECONDS, 20, publisher)
        await assert_each_once(ear, sent)
        assert net.calendar.day(net.now) == first + 1
        assert list(subscriber.route().planned) == [(first + 1, 0)]
        assert net.each_seat_holds(1)
        assert net.count("messages_expired") == 0
        assert net.count("refused_day") == 0


@pytest.mark.slow
async def test_messages_around_midnight_arrive() -> None:
    """Every quarter of a second from ten seconds before to ten after, around midnight every 10 ms."""
    async with small_network(relays=4, later=EVENING) as net:
        ear = await net.clients[0].listen()
        midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
        await net.sleep_until(midnight - 10)
        sent = await publish_until(net, midnight - 0.1, 0.25, net.clients[1])
        async with trio.open_nursery() as nursery:  # whatever was drawn, some of these are under way
            for number in range(20):
                sent.append(b"near %d" % number)
                nursery.start_soon(net.clients[1].daemon.service.publish, ONE, Content(sent[-1]))
                await trio.sleep(0.01)
        sent += await publish_until(net, midnight + 10, 0.25, net.clients[1])
        await assert_each_once(ear, sent)
        assert net.count("refused_day") == 0


@pytest.mark.slow
async def test_the_next_day_is_installed_before_it_begins() -> None:
    async with small_network(relays=4, later=NOON) as net:
        await net.clients[0].listen()
        held = net.clients[0].route()
        today = net.calendar.day(net.now)
        midnight = net.calendar.day_start(today + 1)
        await net.sleep_until(midnight - 0.5 * DAY_SECONDS - 1)
        assert list(held.planned) == [(today, 0)]
        await net.sleep_until(midnight - 0.25 * DAY_SECONDS + EPOCH_SECONDS)
        assert list(held.planned) == [(today, 0), (today + 1, 0)]
        assert not held.planned[today + 1, 0].unconfirmed
        assert net.each_seat_holds(2)
        one, two = (held.planned[day, 0].installation for day in (today, today + 1))
        assert one.secret != two.secret
        assert one.trunk != two.trunk
        assert set(one.entries).isdisjoint(two.entries)


@pytest.mark.slow
async def test_a_day_changes_while_everybody_but_the_relays_is_away() -> None:
    """Leases of the next day are there; the spools keep what the subscriber misses."""
    async with small_network(relays=4, later=EVENING) as net:
        subscriber, publisher = net.clients
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
        await net.sleep_until(midnight - EPOCH_SECONDS)
        await subscriber.stop()
        await net.sleep_until(midnight + 60)
        await publisher.daemon.service.publish(ONE, Content(b"while away"))
        await trio.sleep(10 * EPOCH_SECONDS)
        await subscriber.start()
        ear = await subscriber.listen()
        assert await ear.hears(1) == [b"while away"]


@pytest.mark.slow
async def test_two_days_of_absence_end_in_a_new_installation() -> None:
    async with small_network(relays=4, later=EVENING) as net:
        subscriber, publisher = net.clients
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        away_from = net.calendar.day(net.now)
        await subscriber.stop()
        # Early on a day: nobody installs the next one yet.
        await net.sleep_until(net.calendar.day_start(away_from + 3) + EPOCH_SECONDS)
        assert set(net.leases().values()) == {0}
        await subscriber.start()
        ear = await subscriber.listen()
        await until(lambda: net.each_seat_holds(1), EPOCH_SECONDS)
        await publisher.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]


# Clocks that are apart

SHORT_EPOCH = 20  # seconds
DAY = 24 * SHORT_EPOCH
NAMES = [*(f"relay-{number}" for number in range(6)), "client-0", "client-1", "directory"]
CLOCKS = {
    "none": {},
    "spread over 5 s": {name: -2.5 + 5 * at / (len(NAMES) - 1) for at, name in enumerate(NAMES)},
    "spread the other way": {name: 2.5 - 5 * at / (len(NAMES) - 1) for at, name in enumerate(NAMES)},
    "every other one 5 s late": {name: -5.0 * (at % 2) for at, name in enumerate(NAMES)},
    "the others 5 s late": {name: -5.0 * (1 - at % 2) for at, name in enumerate(NAMES)},
    "the subscriber 5 s late": {"client-0": -5.0},
    "the publisher 5 s late": {"client-1": -5.0},
    "all but the publisher 5 s late": {name: -5.0 for name in NAMES if name != "client-1"},
    "all but the subscriber 5 s late": {name: -5.0 for name in NAMES if name != "client-0"},
}
IN_SUITE = ("spread over 5 s", "the subscriber 5 s late", "all but the publisher 5 s late")
READINGS = make_topic("readings", ["level:0..65535"], TopicSecret(bytes(range(32))))


@pytest.mark.slow
@pytest.mark.parametrize(
    "clocks", [one if one in IN_SUITE else pytest.param(one, marks=pytest.mark.soak) for one in CLOCKS]
)
async def test_nothing_is_lost_or_doubled_over_two_changes_of_day_with_clocks_apart(clocks: str) -> None:
    """Messages on a label and on a private range topic, every other of them inside the range.

    One a second around midnight, where clocks that are apart matter, else four a minute.
    """
    async with small_network(relays=6, epoch=SHORT_EPOCH, skews=CLOCKS[clocks], later=EVENING) as net:
        subscriber, publisher = net.clients
        label = await subscriber.listen()
        inside = await subscriber.listen(READINGS, "level in [1000, 2001]")
        first = net.calendar.day(net.now)
        end = net.calendar.day_start(first + 2) + 2 * SHORT_EPOCH
        sent, wanted = [], []
        async with trio.open_nursery() as publishing:
            while net.now < end:
                payload = b"%d" % len(sent)
                sent.append(payload)
                level = (1000, 999, 2001, 2002, 1500, 60_000)[len(sent) % 6]
                if 1000 <= level <= 2001:
                    wanted.append(payload)
                publishing.start_soon(publisher.daemon.service.publish, ONE, Content(payload))
                content = Content(payload, {"level": level})
                publishing.start_soon(publisher.daemon.service.publish, READINGS, content)
                to_midnight = abs(net.now - net.calendar.day_start(net.calendar.day(net.now + DAY / 2)))
                await trio.sleep(1 if to_midnight < SHORT_EPOCH else 15)
        await label.hears(len(sent))
        await inside.hears(len(wanted))
        await trio.sleep(2 * SHORT_EPOCH)
        assert len(sent) > 2 * 2 * SHORT_EPOCH + DAY / 15 - 20
        assert sorted(label.payloads) == sorted(sent)
        assert sorted(inside.payloads) == sorted(wanted)
        assert {received.values["level"] for received in inside.heard} == {1000, 1500, 2001}
        assert net.count("messages_expired") == 0
        assert net.count("refused_day") == 0


# Newcomers


@pytest.mark.slow
async def test_a_newcomer_becomes_an_origin_and_has_a_seat_the_next_day() -> None:
    """Until then it has no lease, and hands on what is dropped at it."""
    async with small_network(relays=4, origins=5) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        newcomer = net.add("newcomer", True)
        net.relays.append(newcomer)
        await newcomer.start()
        rosters = publisher.daemon.overlay.rosters
        await until(lambda: rosters.newest and newcomer.id in rosters.newest.relays, 2 * EPOCH_SECONDS)
        listed = rosters.newest
        assert listed is not None
        assert newcomer.id not in listed.origins
        await net.sleep_until(net.calendar.epoch_start(listed.epoch) + 5)
        assert newcomer.id not in rosters.whole.current().origins
        await net.sleep_until(net.calendar.epoch_start(listed.epoch + 1) + 1)
        assert newcomer.id in rosters.whole.current().origins
        for number in range(5):
            publication = await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
            await until(lambda p=publication: len(p.origins) == 5)
            assert newcomer.id in publication.origins
        await assert_each_once(ear, [b"%d" % number for number in range(5)])
        assert newcomer.count("drops_handed_on") == newcomer.count("messages_unrouted") == 5
        await until(lambda: net.leases()["newcomer"] == 1, DAY_SECONDS, "it has a seat in tomorrow's tree")


@pytest.mark.slow
async def test_in_a_network_that_grows_fast_no_newcomer_loses_what_is_dropped_at_it_alone() -> None:
    """Of ten relays four have no lease: handed on to one of all, a message in three met another of them."""
    async with small_network(relays=6) as net:
        ear = await net.clients[0].listen()
        newcomers = [net.add(f"newcomer-{number}", True) for number in range(4)]
        for newcomer in newcomers:
            net.relays.append(newcomer)
            await newcomer.start()
        await trio.sleep(3 * EPOCH_SECONDS)
        assert all(net.leases()[newcomer.name] == 0 for newcomer in newcomers)
        payloads = [b"%d" % number for number in range(16)]
        for number, payload in enumerate(payloads):
            await net.drop_at(newcomers[number % 4], ONE, Content(payload))
        await assert_each_once(ear, payloads)
        assert net.count("drops_handed_on") == len(payloads)
        # A lease of another's says nothing of the first one's, and nobody is told again.
        await trio.sleep(WAIT)
        other = await net.clients[1].listen()
        ear.heard.clear()
        payloads = [b"%d, for both" % number for number in range(16)]
        for number, payload in enumerate(payloads):
            await net.drop_at(newcomers[number % 4], ONE, Content(payload))
        for one in (ear, other):
            await assert_each_once(one, payloads)


@pytest.mark.slow
async def test_who_was_away_when_one_was_told_of_has_other_leases_and_loses_nothing() -> None:
    async with small_network(relays=6) as net:
        away = net.relays[0]
        await away.stop()
        ear = await net.clients[0].listen()
        await trio.sleep(2 * EPOCH_SECONDS)
        await away.start()
        other = await net.clients[1].listen()
        assert net.leases()[away.name] == 1
        payloads = [b"%d" % number for number in range(8)]
        for payload in payloads:
            await net.drop_at(away, ONE, Content(payload))
        for one in (ear, other):
            await assert_each_once(one, payloads)
        assert away.count("drops_handed_on") == len(payloads)
        there = net.relays[1]
        await net.drop_at(there, ONE, Content(b"last"))
        for one in (ear, other):
            await assert_each_once(one, [*payloads, b"last"])
        assert there.count("drops_handed_on") == 0


@pytest.mark.slow
async def test_who_restarted_while_one_was_told_of_has_other_leases_and_loses_nothing() -> None:
    """The owner does not tell again, and the epoch counts as one in which the relay was there."""
    # By this seed's draws the next day's trees are told after the restarts.
    async with small_network(relays=6, seed=3, epoch=10 * EPOCH_SECONDS, later=EVENING) as net:
        restarts = net.relays[0]
        await trio.sleep(11 * EPOCH_SECONDS)  # it has seen the beginning of the epoch
        epoch = net.calendar.epoch(net.now)
        await restarts.stop()
        ear = await net.clients[0].listen()
        await trio.sleep(30)
        await restarts.start()
        other = await net.clients[1].listen()
        assert net.calendar.epoch(net.now) == epoch
        assert net.leases()[restarts.name] == 1
        payloads = [b"%d" % number for number in range(8)]
        for payload in payloads[:4]:
            await net.drop_at(restarts, ONE, Content(payload))
        await restarts.restart()
        await trio.sleep(12 * EPOCH_SECONDS)
        for payload in payloads[4:]:
            await net.drop_at(restarts, ONE, Content(payload))
        for one in (ear, other):
            await one.hears(len(payloads))
            assert sorted(one.payloads) == sorted(payloads)
        assert restarts.count("drops_handed_on") == len(payloads)
        assert net.relays[1].count("drops_handed_on") == 0
        await net.sleep_until(net.calendar.day_start(net.calendar.day(net.now) + 3))
        assert await restarts.store.scan("restarted") == []  # type: ignore[arg-type]


@pytest.mark.slow
async def test_a_newcomer_carries_messages_the_next_day() -> None:
    """What it takes as the only origin must reach the box."""
    async with small_network(relays=1, origins=1, depth=2, later=EVENING) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        newcomer = net.add("newcomer", True)
        net.relays.append(newcomer)
        await newcomer.start()
        await net.sleep_until(net.calendar.day_start(net.calendar.day(net.now) + 1) + EPOCH_SECONDS)
        for number in range(8):
            await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
        await assert_each_once(ear, [b"%d" % number for number in range(8)])
        assert newcomer.count("messages_dropped_here") > 0


@pytest.mark.slow
async def test_a_relay_that_leaves_for_good_is_lived_without() -> None:
    async with small_network(relays=6) as net:
        subscriber, publisher = net.clients
        await subscriber.listen(TWO)
        gone = net.relays[0]
        await gone.stop()
        rosters = publisher.daemon.overlay.rosters
        await until(
            lambda: rosters.newest and gone.id not in rosters.newest.relays, 5 * EPOCH_SECONDS, "unlisted"
        )
        await net.sleep_until(net.calendar.epoch_start(rosters.newest.epoch) + 1)
        ear = await subscriber.listen()
        assert ear.feed.nodes == net.seats - 1
        for number in range(10):
            await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
        await assert_each_once(ear, [b"%d" % number for number in range(10)])


# Relays that are away


@pytest.mark.parametrize("number", range(6))
async def test_a_relay_down_while_subscribing_is_told_when_it_is_back(number: int) -> None:
    async with small_network(relays=6, origins=6) as net:
        subscriber, publisher = net.clients
        away = net.relays[number]
        await away.stop()
        ear = await subscriber.listen()

        def nodes() -> int:
            return int(subscriber.daemon.service.subscriptions()[0]["nodes"])

        assert nodes() == net.seats - 1
        assert net.each_seat_holds(1)
        await away.start()
        await until(lambda: nodes() == net.seats, 3 * EPOCH_SECONDS)
        leases = sorted(net.leases().values())
        left = 1  # of a host that another one was used for meanwhile
        assert leases[len(net.relays) - net.seats] == 1
        assert sum(leases) <= len(net.relays) + left
        publication = await publisher.daemon.service.publish(ONE, Content(b"x"))
        await until(lambda: len(publication.origins) == 6)
        await assert_each_once(ear, [b"x"])
        assert net.count("messages_unrouted") == 0
