"""Keepers: what is dropped anywhere is kept by relays drawn for its trunk and day, for whoever asks."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hosted_network import lose_disk
from kept_network import SIX, all_kept, ask, has, ids_at, keepers_of, kept_network, kept_of, next_day
from owner_end import TRUNK, drop, message
from several_directories import Directories
from small_network import EPOCH_SECONDS, Node, SmallNetwork, small_network, until

from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.keeper_frames import AskKept, AskKeptMessages, ShownKept
from hushcast_protocol.overlay.kept_answers import MAX_AWAY
from hushcast_protocol.shards.shard_requests import ShardUnavailable, ShownCandidates


def others_of(net: SmallNetwork, one: Message) -> list[Node]:
    """The relays that do not keep a message."""
    keepers = keepers_of(net, one)
    return [relay for relay in net.relays if relay not in keepers]


def directory_lists(net: SmallNetwork) -> dict[bytes, bytes]:
    """The candidate lists that the first directory has on disk."""
    assert isinstance(net.directory, Directories)
    return net.directory.all[0]._store._records.get("candidate-lists", {})  # type: ignore[call-overload, no-any-return]


async def records(node: Node, kind: str) -> int:
    """How many records of a kind a daemon has on disk."""
    return len(await node.store.scan(kind))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("directories", [(1, 1), (3, 2)])
async def test_what_is_dropped_anywhere_is_with_all_keepers(directories: tuple[int, int]) -> None:
    async with kept_network(clients=0, directories=directories) as net:
        day = net.calendar.day(net.now)
        sent = [message(day) for _ in range(9)]
        for origin, one in zip(net.relays, sent, strict=True):
            await drop(net, origin, one)
        await all_kept(net, *sent)
        keepers = keepers_of(net, sent[0])
        assert len(keepers) == 3, "six are asked for, and of nine relays three keep"
        assert all(keepers_of(net, sent[0], relay) == keepers for relay in net.relays)
        assert sum(len(kept_of(relay)._shares) for relay in net.relays) == 3
        answers = [await ask(net, keeper, AskKept(day, TRUNK, None)) for keeper in keepers]
        assert answers == [ShownKept(tuple(sorted(one.id for one in sent)), 0)] * 3
        for one in sent:
            assert (await ask(net, keepers[1], AskKeptMessages(day, TRUNK, (one.id,)))).messages == (one,)
        assert (await ask(net, keepers[0], AskKeptMessages(day, TRUNK, (bytes(32),)))).messages == ()
        assert await ask(net, others_of(net, sent[0])[0], AskKept(day, TRUNK, None)) == ShownKept((), 0)
        assert net.count("hand_ins_refused") == net.count("messages_not_handed_in") == 0
        assert net.count("messages_kept") == 27


@pytest.mark.slow
async def test_a_directory_that_shows_other_candidates_is_passed_over_and_one_that_shows_none_too() -> None:
    async with kept_network(clients=0, directories=(3, 2)) as net:
        assert isinstance(net.directory, Directories)
        one = message(net.calendar.day(net.now))
        asked = []
        for directory, lie in zip(
            net.directory.all, (ShardUnavailable(), ShownCandidates(b"", ())), strict=False
        ):
            assert directory.server is not None
            agreeing: Any = directory.server.agreeing
            agreeing.part = lambda request, lie=lie: asked.append(request) or lie
        for relay in net.relays[:4]:
            await relay.stop()
            relay.store._records.pop("candidates")  # type: ignore[attr-defined]
            await relay.start()
        await until(
            lambda: all(keepers_of(net, one, relay) for relay in net.relays), 60, "all know who keeps"
        )
        assert all(keepers_of(net, one, relay) == keepers_of(net, one, net.relays[8]) for relay in net.relays)
        assert asked
        await drop(net, net.relays[0], one)
        await all_kept(net, one)


async def test_a_network_keeps_from_its_first_head_on() -> None:
    def directory(network: SmallNetwork, first_roster: int) -> Directories:
        return Directories(network, first_roster, 1, 1, keeping=SIX)

    async with small_network(4, 0, directory=directory) as net:
        one = message(net.calendar.day(net.now))
        await until(
            lambda: all(keepers_of(net, one, relay) for relay in net.relays), 30, "all know who keeps"
        )
        await drop(net, net.relays[0], one)
        await all_kept(net, one)
        assert net.count("messages_kept") == 1


@pytest.mark.slow
async def test_a_message_waits_at_its_origin_for_a_keeper_that_is_away_over_restarts_of_both() -> None:
    async with kept_network(clients=0) as net:
        one, two = (message(net.calendar.day(net.now)) for _ in range(2))
        away, *_ = keepers_of(net, one)
        origin = others_of(net, one)[0]
        await away.stop()
        await drop(net, origin, one)
        await trio.sleep(EPOCH_SECONDS)
        await origin.restart()
        await trio.sleep(EPOCH_SECONDS)
        await away.start()
        await all_kept(net, one, within=120.0)
        await until(lambda: len(origin.daemon.overlay.relay.peers._spool) == 0, 60)  # type: ignore[union-attr]
        await away.restart()
        assert has(away, one)
        assert (await ask(net, away, AskKeptMessages(one.day, TRUNK, (one.id,)))).messages == (one,)
        await drop(net, others_of(net, one)[1], one, two)
        await drop(net, origin, two, two)
        await all_kept(net, two)
        assert net.count("messages_kept") == 6, "of each message each keeper has one"
        await until(lambda: net.count("hand_ins_again") == 6, 60, "a copy from each other origin")


@pytest.mark.slow
async def test_a_keeper_says_in_which_epochs_it_was_away_over_restarts() -> None:
    async with kept_network(clients=0) as net:
        one = message(net.calendar.day(net.now))
        keeper, *_ = keepers_of(net, one)
        gone = net.calendar.epoch(net.now)

        async def away(epoch: int | None = None, day: int = one.day) -> tuple[int, ...]:
            shown = await ask(net, keeper, AskKept(day, TRUNK, epoch))
            assert isinstance(shown, ShownKept)
            return shown.away

        await keeper.restart()
        assert await away() == ()
        await trio.sleep(EPOCH_SECONDS)
        assert await away() == (), "it was back before the next began"
        await keeper.stop()
        await trio.sleep(2 * EPOCH_SECONDS)
        await keeper.start()
        missed = (gone + 1, gone + 2, gone + 3)
        assert await away() == missed
        assert await away(gone + 2) == (gone + 2,)
        assert await away(gone) == await away(gone + 9) == (), "nor in what is to come"
        await next_day(net)
        assert await away() == missed
        assert await away(day=one.day + 1) == ()
        await keeper.stop()
        lose_disk(keeper)
        await keeper.start()
        assert len(await away(day=one.day)) == MAX_AWAY, "it cannot know any more"


@pytest.mark.slow
async def test_all_draw_the_same_over_restarts_late_in_a_day_and_who_came_later_hands_in_at_once() -> None:
    async with kept_network(clients=0) as net:
        one = message(net.calendar.day(net.now))
        keepers = keepers_of(net, one)
        late = net.add("late", True)
        net.relays.append(late)
        await late.start()
        await trio.sleep(12 * EPOCH_SECONDS)
        assert len(net.relays[0].daemon.overlay.rosters.newest.relays) == 10  # type: ignore[union-attr]
        for relay in net.relays[:4]:
            await relay.restart()
        for relay in net.relays:
            assert keepers_of(net, one, relay) == keepers
        await drop(net, late, one)
        await all_kept(net, one)
        assert net.count("messages_kept") == 3
        assert net.count("messages_not_handed_in") == net.count("hand_ins_refused") == 0
        await next_day(net)
        two = message(one.day + 1)
        assert all(keepers_of(net, two, relay) == keepers_of(net, two) for relay in net.relays)
        await drop(net, late, two)
        await all_kept(net, two)


@pytest.mark.slow
async def test_a_window_is_of_one_epoch_and_shows_the_same_after_a_restart() -> None:
    async with kept_network(clients=0) as net:
        day, origin = net.calendar.day(net.now), net.relays[0]
        sent = [message(day) for _ in range(4)]
        epochs = []
        for one in sent[::2], sent[1::2]:
            epochs.append(net.calendar.epoch(net.now))
            await drop(net, origin, *one)
            await all_kept(net, *one)
            await trio.sleep(2 * EPOCH_SECONDS)
        keeper = next(relay for relay in keepers_of(net, sent[0]) if relay is not origin)
        for _ in range(2):
            windows = [
                await ask(net, keeper, AskKept(day, TRUNK, epoch)) for epoch in (*epochs, epochs[0] + 1)
            ]
            assert [window.ids for window in windows] == [
                tuple(sorted(one.id for one in sent[::2])),
                tuple(sorted(one.id for one in sent[1::2])),
                (),
            ]
            await keeper.restart()


@pytest.mark.slow
async def test_days_are_kept_as_the_rule_says_and_then_nothing_is_left() -> None:
    async with kept_network(clients=0, keeping=KeepingRule(6, days=2)) as net:
        one = message(net.calendar.day(net.now))
        await drop(net, net.relays[0], one)
        await all_kept(net, one)
        keeper, *_ = keepers_of(net, one)
        for _ in range(2):
            await next_day(net)
            assert ids_at(keeper, one.day, TRUNK) == (one.id,)
        await keeper.restart()
        assert (await ask(net, keeper, AskKeptMessages(one.day, TRUNK, (one.id,)))).messages == (one,)
        await next_day(net)
        assert await ask(net, keeper, AskKept(one.day, TRUNK, None)) == ShownKept((), 0)
        for kind in ("kept", "kept-body", "kept-gave-way"):
            assert await records(keeper, kind) == 0
        assert await records(keeper, "candidates") == 3, "of the days that are kept, and today"
        assert len(directory_lists(net)) == 3


@pytest.mark.slow
async def test_a_body_that_the_disk_damaged_is_shown_to_nobody_and_goes_with_its_day() -> None:
    async with kept_network(clients=0, keeping=KeepingRule(6, days=1)) as net:
        one, two = (message(net.calendar.day(net.now)) for _ in range(2))
        await drop(net, net.relays[0], one, two)
        await all_kept(net, one, two)
        keeper, *_ = keepers_of(net, one)
        await keeper.stop()
        records: dict[bytes, bytes] = keeper.store._records["kept-body"]  # type: ignore[attr-defined]
        entries: dict[bytes, bytes] = keeper.store._records["kept"]  # type: ignore[attr-defined]
        for key in records:
            if key.endswith(one.id):
                records[key] = records[key][:-1] + bytes([records[key][-1] ^ 1])
            else:
                entries[key] = b"no entry"
        await keeper.start()
        assert (await ask(net, keeper, AskKeptMessages(one.day, TRUNK, (one.id,)))).messages == ()
        assert (await ask(net, keeper, AskKeptMessages(two.day, TRUNK, (two.id,)))).messages == ()
        assert ids_at(keeper, one.day, TRUNK) == (one.id,)
        other = keepers_of(net, one)[1]
        assert (await ask(net, other, AskKeptMessages(one.day, TRUNK, (one.id,)))).messages == (one,)
        for _ in range(2):
            await next_day(net)
        assert records == {}, "also that of which nothing else was left"


@pytest.mark.slow
async def test_around_midnight_each_message_is_with_the_keepers_of_its_own_day() -> None:
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        midnight = net.calendar.day_start(day + 1)
        await net.sleep_until(midnight - 1.0)
        last = message(day)
        await drop(net, net.relays[0], last)
        await net.sleep_until(midnight + 1.0)
        first, straggler = message(day + 1), message(day)
        await drop(net, net.relays[1], first, straggler)
        await all_kept(net, last, first, straggler)
        assert set(keepers_of(net, last)) != set(keepers_of(net, first)) or len(net.relays) < 9


async def test_where_the_rule_says_so_nothing_is_kept_or_told() -> None:
    async with kept_network(relays=4, clients=0, keeping=NOTHING_KEPT) as net:
        one = message(net.calendar.day(net.now))
        for relay in net.relays:
            await drop(net, relay, one)
        await trio.sleep(EPOCH_SECONDS)
        assert net.count("messages_handed_in") == net.count("messages_kept") == 0
        for relay in net.relays:
            assert keepers_of(net, one, relay) == []
            assert await ask(net, relay, AskKept(one.day, TRUNK, None)) == ShownKept((), 0)
            for kind in ("kept", "kept-body", "candidates"):
                assert await records(relay, kind) == 0
        assert directory_lists(net) == {}


@pytest.mark.slow
async def test_a_keeper_that_lost_its_disk_takes_part_again_at_once() -> None:
    async with kept_network(clients=0) as net:
        one, two = (message(net.calendar.day(net.now)) for _ in range(2))
        origin = others_of(net, one)[0]
        await drop(net, origin, one)
        await all_kept(net, one)
        keeper, *_ = keepers_of(net, one)
        await keeper.stop()
        lose_disk(keeper)
        await keeper.start()
        await until(lambda: bool(keepers_of(net, one, keeper)), 30, "it has the list of the day")
        await drop(net, origin, two)
        await all_kept(net, two)
        assert net.count("hand_ins_refused") == 0
        assert not has(keeper, one), "what it had is with the others"


assert SIX.keepers == 6
