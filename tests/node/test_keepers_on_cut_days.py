"""On a day that is cut a trunk has its keepers among the relays of its shard; over all changes of days."""

from __future__ import annotations

import pytest
import trio
from cut_network import CutNetwork, cut_network
from kept_network import all_kept, ask, has, keepers_of
from owner_end import OwnerEnd, drop, message
from small_network import EPOCH_SECONDS, Node, until

from hushcast_overlay.keepers import candidate_lists
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.keeper_frames import AskKeptMessages

EVENING = 16  # epochs later than other networks begin: it is midnight after five and a half


def origins(net: CutNetwork, day: int, trunk: bytes) -> list[Node]:
    """The relays of a trunk's shard."""
    shown = [
        relay
        for relay in net.relays
        if relay.is_up
        and (near := relay.daemon.overlay.shards.of(day, trunk)) is not None
        and relay.daemon.overlay.shards.own(day) is near
    ]
    assert shown
    return shown


async def kept_at_its_own(net: CutNetwork, one: Message) -> list[Node]:
    """Drop a message at an origin of its shard; return its keepers, all of whom have it."""
    near = origins(net, one.day, one.tokens[0])
    await until(lambda: keepers_of(net, one, near[0]), 3 * EPOCH_SECONDS, "who keeps is known")
    keepers = keepers_of(net, one, near[0])
    assert all(keepers_of(net, one, relay) == keepers for relay in near)
    assert {keeper.name for keeper in keepers} <= {relay.name for relay in near}
    await drop(net, near[-1], one)
    await until(lambda: all(has(keeper, one) for keeper in keepers), 60)
    assert (await ask(net, keepers[0], AskKeptMessages(one.day, one.tokens[0], (one.id,)))).messages == (one,)
    return keepers


@pytest.mark.slow
async def test_each_shard_keeps_its_own_over_a_midnight_and_a_restart() -> None:
    async with cut_network(clients=1, keeping=KeepingRule(6), later=EVENING) as net:
        assert net.is_cut(net.today)
        await until(lambda: all(relay.daemon.overlay.shards.own(net.today) for relay in net.relays), 60)
        kept: list[tuple[Message, list[Node]]] = []
        for _ in range(2):
            day = net.today
            shards = set()
            for number in range(8):
                one = message(day, bytes([number + 1]) * 16)
                keepers = await kept_at_its_own(net, one)
                assert len(keepers) == len(origins(net, day, one.tokens[0])) // 3
                shards.add(frozenset(relay.name for relay in origins(net, day, one.tokens[0])))
                kept.append((one, keepers))
            assert len(shards) == 2
            await net.sleep_until(net.midnight() + 1.5 * EPOCH_SECONDS)
        await kept[0][1][0].restart()
        for one, keepers in kept:
            assert all(has(keeper, one) for keeper in keepers)


@pytest.mark.slow
async def test_whoever_has_a_relay_look_into_many_shards_does_not_take_its_own_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidate_lists, "MAX_LISTS", 1)
    async with cut_network(clients=1, keeping=KeepingRule(6)) as net:
        assert net.is_cut(net.today)
        one = message(net.today)
        await until(lambda: all(keepers_of(net, one, relay) for relay in net.relays), 60, "all know")
        for relay in net.relays:
            assert relay.daemon.overlay.relay is not None
            lists, drawn = relay.daemon.overlay.relay.candidates, keepers_of(net, one, relay)
            for number in range(8):
                assert await lists.places(net.today, bytes([number]) * 16)
            assert keepers_of(net, one, relay) == drawn
            assert len(lists._held) <= 2, "its own, and the last one"


@pytest.mark.slow
async def test_a_day_that_is_whole_after_one_that_was_cut_has_keepers_again() -> None:
    async with cut_network(clients=1, keeping=KeepingRule(6), later=EVENING) as net:
        assert net.is_cut(net.today)
        for relay in net.relays[6:]:
            await relay.stop()
        net.relays = net.relays[:6]
        while net.is_cut(net.today):
            await net.sleep_until(net.midnight() + 1.5 * EPOCH_SECONDS)
        one = message(net.today)
        assert len(keepers_of(net, one)) == 2
        await drop(net, net.relays[0], one)
        await all_kept(net, one)
        await trio.sleep(EPOCH_SECONDS)
        assert net.count("hand_ins_refused") == 0


@pytest.mark.slow
async def test_on_a_cut_day_a_host_asks_keepers_whatever_shard_it_is_in_also_for_days_before() -> None:
    """A host that stays is in another shard than its trunks as often as not."""
    async with cut_network(clients=1, keeping=KeepingRule(6), later=EVENING) as net:
        await net.sleep_until(net.midnight() + 1.5 * EPOCH_SECONDS)
        assert net.is_cut(net.today)
        one = message(net.today)
        near = origins(net, one.day, one.tokens[0])
        keepers = await kept_at_its_own(net, one)
        at_home = next(relay for relay in near if relay not in keepers)
        elsewhere = next(relay for relay in net.relays if relay not in near)
        owners = [OwnerEnd(net, host) for host in (at_home, elsewhere)]
        for owner in owners:
            await owner.attach()
            await owner.hold()
            assert await owner.seek() is None
        for owner in owners:
            await owner.hears(one, within=3 * EPOCH_SECONDS)
        await trio.sleep(EPOCH_SECONDS)
        assert net.count("hand_ins_refused") == 0
        await net.sleep_until(net.midnight() + 2.5 * EPOCH_SECONDS)
        assert net.is_cut(net.today)
        later = OwnerEnd(net, elsewhere)
        await later.attach()
        await later.hold()
        assert await later.seek(one.day, is_whole=True) is None
        await later.hears(one, within=3 * EPOCH_SECONDS)
        assert net.count("keepers_silent") == 0
