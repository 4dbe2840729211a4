"""A relay that subscribes where messages are kept plants no tree: nobody but its hosts hears of it."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
import trio
from cut_network import cut_network
from hosted_network import box_of, drop_everywhere, hosted_elsewhere, hosts_of, in_use, lose_disk, subscribed
from kept_network import keepers_of, kept_network, next_day
from owner_end import OwnerEnd, drop, message
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Ear, Node, SmallNetwork, small_network, until

from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT, KeepingRule
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.overlay.tree_rule import TreeRule

ASKED_WITHIN = 2.2 * EPOCH_SECONDS  # seconds until a host has asked for what was just published
FEW = 7  # relays: two keepers of each trunk
TWO_DAYS = KeepingRule(6, 2)


def nobody_in_a_tree_heard(net: SmallNetwork, *, but: int = 0) -> bool:
    """Whether no relay was told of a tree, beside so many parcels before."""
    return net.count("parcels_opened") == but and not any(net.leases().values())


def reader_of(net: SmallNetwork) -> Node:
    return net.relays[0]


async def each_once(ear: Ear, *sent: bytes, within: float = ASKED_WITHIN) -> None:
    await ear.hears(len(sent), within)
    await trio.sleep(ASKED_WITHIN)
    assert sorted(ear.payloads) == sorted(sent)
    assert ear.gaps == []
    assert ear.feed.lost() == 0


@pytest.mark.slow
async def test_nobody_but_a_host_hears_of_it_and_messages_come_within_two_epochs_over_a_midnight() -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST, probes_an_epoch=None) as net:
        reader, publisher = reader_of(net), net.clients[0]
        ear = await reader.listen()
        told = reader.daemon.service.subscriptions()[0]
        assert (told["ready"], told["nodes"], told["by"]) == (True, 1, "host")
        assert "within 2 minutes" in told["outlook"]
        sent = [b"right behind"]
        await publisher.daemon.service.publish(ONE, Content(sent[0]))
        await ear.hears(1, ASKED_WITHIN)
        midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
        while net.now < midnight + 3 * EPOCH_SECONDS:
            epochs = 5 if net.now < midnight - 6 * EPOCH_SECONDS else 0.25
            await trio.sleep(epochs * EPOCH_SECONDS)
            sent.append(b"%.1f" % net.now)
            await publisher.daemon.service.publish(ONE, Content(sent[-1]))
        await each_once(ear, *sent)
        for one in ear.heard[1:]:
            assert one.received_at - float(one.payload) <= ASKED_WITHIN
        assert nobody_in_a_tree_heard(net)
        assert reader.count("probes_sent") == 0
        (covered,) = await reader.daemon.service.coverage(ONE)
        assert (covered["probes"], covered["by"]) == (0, "host")
        assert (
            box_of(reader).at[in_use(net, reader).id].sought >= net.calendar.day(net.now) + MAX_DAYS_KEPT - 1
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_lost_where_the_first_host_dies_for_good_soon_after(seed: int) -> None:
    """Nor told as lost, once nothing waits at that one any more."""
    async with kept_network(FEW + 2, TWO_DAYS, clients=1, seed=seed, root=Root.HOST) as net:
        publisher, reader = net.clients[0], await hosted_elsewhere(net)
        ear = await reader.listen()
        first, second = hosts_of(net, reader)
        sent = [b"%d" % number for number in range(8)]
        for number, payload in enumerate(sent):
            await publisher.daemon.service.publish(ONE, Content(payload))
            await trio.sleep(EPOCH_SECONDS / 2)
            if number == 3:
                await first.stop()
                lose_disk(first)
        await until(lambda: in_use(net, reader) is second, 5 * EPOCH_SECONDS, "the second is used")
        await each_once(ear, *sent, within=2 * ASKED_WITHIN)
        for _ in range(4):
            await next_day(net)
        assert ear.feed.lost() == 0
        assert nobody_in_a_tree_heard(net)


@pytest.mark.slow
async def test_who_was_away_for_longer_than_keepers_keep_is_told_so() -> None:
    async with kept_network(FEW, TWO_DAYS, clients=1, root=Root.HOST) as net:
        reader = await hosted_elsewhere(net)
        await reader.stop()
        for _ in range(5):
            await next_day(net)
        await reader.start()
        ear = await reader.listen()
        await trio.sleep(EPOCH_SECONDS)
        assert ear.feed.lost() is None
        await drop_everywhere(net, b"x")
        await ear.hears(1, ASKED_WITHIN)


@pytest.mark.slow
async def test_who_was_away_for_two_days_finds_all_of_it() -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST) as net:
        reader = reader_of(net)
        await subscribed(reader)
        await reader.stop()
        sent = [b"%d" % number for number in range(12)]
        for number in range(2):
            await next_day(net, epochs=3 + number)
            await drop_everywhere(net, *sent[number::2])
        await next_day(net)
        await reader.start()
        await each_once(await reader.listen(), *sent)
        assert nobody_in_a_tree_heard(net)


@pytest.mark.slow
async def test_on_cut_days_messages_come_and_nobody_of_the_topics_shard_is_asked_for_it_again() -> None:
    async with cut_network(14, clients=1, keeping=KeepingRule(6), later=16, root=Root.HOST) as net:
        await net.sleep_until(net.midnight() + 1.5 * EPOCH_SECONDS)
        assert net.is_cut(net.today)
        publisher, reader = net.clients[0], reader_of(net)
        ear = await reader.listen()
        trunk = (await reader.route().wanted.tokens(net.today + 1)).trunk
        await net.sleep_until(net.midnight() + 1.5 * EPOCH_SECONDS)
        assert net.is_cut(net.today)
        sent = [b"%d" % number for number in range(4)]
        for payload in sent:
            await publisher.daemon.service.publish(ONE, Content(payload))
        await each_once(ear, *sent)
        shards = reader.daemon.overlay.shards
        is_at_home = shards.own(net.today) is shards.of(net.today, trunk)
        assert is_at_home or shards.of(net.today, trunk) is None, "it does not follow the topic's shard"
        assert nobody_in_a_tree_heard(net)


@pytest.mark.slow
async def test_trees_of_before_bring_what_they_bring_and_no_others_are_planted() -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST) as net:
        reader, publisher = reader_of(net), net.clients[0]
        reader.trees = TreeRule.ALWAYS
        await reader.restart()
        await subscribed(reader)
        route, today = reader.route(), net.calendar.day(net.now)
        await until(lambda: len(route.planned) == 2, DAY_SECONDS, "tomorrow is told")
        await trio.sleep(EPOCH_SECONDS)
        told = net.count("parcels_opened")
        assert told > 0
        reader.trees = TreeRule.AUTO
        await reader.restart()
        ear, sent = await reader.listen(), [b"at once"]
        await publisher.daemon.service.publish(ONE, Content(sent[0]))
        await ear.hears(1, 5.0)
        for day in (today + 1, today + 2, today + 3):
            await net.sleep_until(net.calendar.day_start(day) - 3.0)
            for _ in range(4):
                sent.append(b"%.1f" % net.now)
                await publisher.daemon.service.publish(ONE, Content(sent[-1]))
                await trio.sleep(2.0)
        await each_once(ear, *sent)
        assert reader.route().planned == {}
        assert nobody_in_a_tree_heard(net, but=told)


@pytest.mark.slow
async def test_devices_do_not_meet_where_messages_come_later() -> None:
    async with kept_network(FEW, clients=0, root=Root.HOST) as net:
        reader = reader_of(net)
        with pytest.raises(Refusal) as caught:
            await reader.daemon.service.devices.invite("laptop")
        assert "devices meet within 10 minutes, and here messages come within 2 minutes" in str(caught.value)
        assert reader.daemon.overlay.routes.held == []


@pytest.mark.slow
async def test_a_box_that_a_bare_hold_made_lives_on_without_a_lease() -> None:
    async with kept_network(FEW, clients=0) as net:
        day = net.calendar.day(net.now)
        one = message(day)
        host = next(relay for relay in net.relays if relay not in keepers_of(net, one))
        owner = OwnerEnd(net, host)
        await owner.attach()
        assert await owner.seek(day, day + 1) == "form"  # there is no box
        hold = HostRoot(owner.seed, host.id).bare_hold(day, bytes(16))
        assert await owner.ask(msgspec.structs.replace(hold, number=len(owner.answers) + 1)) is None
        assert await owner.seek(day, day + 1) is None
        assert owner.box in host.daemon.overlay.relay.boxes  # type: ignore[union-attr]
        await owner.detach()
        await drop(net, net.relays[0], one)
        await next_day(net)
        assert owner.box in host.daemon.overlay.relay.boxes  # type: ignore[union-attr]
        await owner.attach()
        await owner.hears(one)
        assert owner.standings[-1].leases == ()


@pytest.mark.slow
async def test_ending_has_the_host_forget_the_box() -> None:
    async with kept_network(FEW, clients=0, root=Root.HOST) as net:
        reader = reader_of(net)
        await subscribed(reader)
        host, box = in_use(net, reader), box_of(reader).key
        boxes = host.daemon.overlay.relay.boxes  # type: ignore[union-attr]
        assert box in boxes
        await reader.daemon.service.unsubscribe(ONE)
        await next_day(net)
        await next_day(net)  # the hold that made it lapses with its day
        assert box not in boxes
        assert nobody_in_a_tree_heard(net)


@pytest.mark.slow
async def test_on_the_day_on_which_a_relay_goes_over_the_second_host_brings_what_the_first_lost() -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST) as net:
        for one in net.relays:
            one.trees = TreeRule.ALWAYS
            await one.restart()
        reader = await hosted_elsewhere(net)
        reader.trees = TreeRule.AUTO
        await reader.restart()
        await trio.sleep(EPOCH_SECONDS)
        ear = await reader.listen()
        assert reader.route().on(net.calendar.day(net.now)), "trees of before are there until the day is over"
        first, second = hosts_of(net, reader)
        await first.stop()
        lose_disk(first)
        sent = [b"%d" % number for number in range(8)]
        for payload in sent:
            await net.clients[0].daemon.service.publish(ONE, Content(payload))
            await trio.sleep(EPOCH_SECONDS / 2)
        await until(lambda: in_use(net, reader) is second, 5 * EPOCH_SECONDS, "the second is used")
        await next_day(net)
        assert sorted(set(ear.payloads)) == sent


@pytest.mark.slow
async def test_what_is_published_behind_subscribed_comes_where_the_hosts_clock_is_ahead() -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST, clocks_are_set=True) as net:
        reader, publisher = reader_of(net), net.clients[0]
        await subscribed(reader)
        day = net.calendar.day(net.now)
        trunk = (await reader.route().wanted.tokens(day)).trunk
        keepers = [net.relay(one) for one in reader.daemon.overlay.relay.candidates.keepers(day, trunk)]
        await reader.daemon.service.unsubscribe(ONE)
        for node in net.relays:
            if node not in keepers and node is not reader:
                node.set_clock(3.0)
        await net.sleep_until(net.calendar.epoch_start(net.calendar.epoch(net.now) + 2) - 2.5)
        ear = await reader.listen()
        assert in_use(net, reader) not in [*keepers, reader], "its clock is right in this draw"
        await publisher.daemon.service.publish(ONE, Content(b"right behind"))
        await ear.hears(1, ASKED_WITHIN)


@pytest.mark.slow
async def test_where_a_network_stops_keeping_a_tree_is_told_as_its_day_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with kept_network(FEW, clients=0, root=Root.HOST) as net:
        reader, last = reader_of(net), net.calendar.day(net.now)
        # Of tomorrow the rule of now tells; its head says at midnight that nobody keeps.
        monkeypatch.setattr(
            CandidateLists, "is_kept", lambda _, day: day <= last or net.calendar.day(net.now) <= last
        )
        await reader.restart()
        await subscribed(reader)
        await net.sleep_until(net.calendar.day_start(last + 1))
        await until(
            lambda: any(planned.nodes for planned in reader.route().on(last + 1)),
            0.2 * EPOCH_SECONDS,
            "the tree is told",
        )


@pytest.mark.slow
async def test_a_client_that_comes_back_to_a_dead_host_uses_the_second_at_once() -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST) as net:
        (reader,) = net.clients
        await subscribed(reader)
        first, second = hosts_of(net, reader)
        await reader.stop()
        await next_day(net)
        await next_day(net)  # no relay has a tree of its own; its hosts have trunks for days
        await first.stop()
        await reader.start()
        await until(lambda: in_use(net, reader) is second, 0.3 * EPOCH_SECONDS, "the second is used")


@pytest.mark.slow
async def test_a_relay_that_restarts_while_its_host_is_away_waits_for_that_as_before() -> None:
    async with kept_network(FEW, clients=0, root=Root.HOST) as net:
        reader = await hosted_elsewhere(net)
        first, second = hosts_of(net, reader)
        await reader.stop()
        await first.stop()
        await reader.start()
        await trio.sleep(0.5 * EPOCH_SECONDS)
        assert in_use(net, reader) is first
        await until(lambda: in_use(net, reader) is second, 3 * EPOCH_SECONDS, "the second is used")


async def test_where_nothing_is_kept_a_relay_has_trees() -> None:
    async with small_network(relays=4, clients=0) as net:
        await subscribed(reader_of(net))
        assert net.count("parcels_opened") > 0
        assert "by" not in reader_of(net).daemon.service.subscriptions()[0]


@pytest.mark.slow
async def test_where_there_are_too_few_relays_to_keep_one_has_trees() -> None:
    async with kept_network(2, clients=0, root=Root.HOST) as net:
        ear = await reader_of(net).listen()
        await drop_everywhere(net, b"x")
        assert await ear.hears(1, 5.0) == [b"x"]
        assert "by" not in reader_of(net).daemon.service.subscriptions()[0]


@pytest.mark.slow
async def test_a_rule_is_followed_from_day_to_day(monkeypatch: pytest.MonkeyPatch) -> None:
    async with kept_network(FEW, clients=1, root=Root.HOST) as net:
        reader, publisher = reader_of(net), net.clients[0]
        kept, first = {net.calendar.day(net.now) + 1}, net.calendar.day(net.now)
        monkeypatch.setattr(CandidateLists, "is_kept", lambda _, day: day in kept)
        await reader.restart()
        ear = await reader.listen()
        route, sent, planned = reader.route(), [], []
        for day in range(first, first + 3):
            sent += [b"day %d" % day]
            await publisher.daemon.service.publish(ONE, Content(sent[-1]))
            await ear.hears(len(sent), ASKED_WITHIN)
            planned.append(bool(route.on(day)))
            await next_day(net, 0.5)
        assert planned == [True, False, True]
        await each_once(ear, *sent)
        assert all(earlier.received_at <= later.received_at for earlier, later in pairwise(ear.heard))
