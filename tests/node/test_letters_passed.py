"""Letters go through porter, second and third of a whole network, whoever is killed or away meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from damage import set_aside
from late_disk import LateDisk
from lettered_network import ROUND, LetterDaemon, desks_of, kill, lettered_network, role_of
from small_network import small_network, until

from hushcast_overlay.relay.cover.errand_desk import ErrandDesk
from hushcast_overlay.relay.cover.waybill_desk import WaybillDesk
from hushcast_protocol.base.wire import encode
from hushcast_protocol.cover import porter_queue
from hushcast_protocol.cover.cover_frames import CoverMarked, CoverPassed, CoverWaybill
from hushcast_protocol.cover.cover_rules import PASSED_A_ROUND
from hushcast_protocol.cover.receipt_list import ReceiptList
from hushcast_runtime.storage.changes import Change

EVENING = 17  # epochs later than other networks begin: a new day comes after nine rounds


def passed_by_porters(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[bytes, int]]:
    """Letters that seconds are handed from now on, by waybill and round."""
    seen: Counter[tuple[bytes, int]] = Counter()
    take = WaybillDesk.take

    def taken(desk: Any, frame: CoverPassed, porter: bytes) -> None:
        seen[frame.waybill, frame.round] += len(frame.letters)
        take(desk, frame, porter)

    monkeypatch.setattr(WaybillDesk, "take", taken)
    return seen


def marked_at_thirds(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """What thirds are handed from now on, and how often."""
    seen: Counter[bytes] = Counter()
    take = ErrandDesk.take

    def taken(desk: Any, frame: CoverMarked, second: bytes) -> None:
        seen.update(one.content for one in frame.letters)
        take(desk, frame, second)

    monkeypatch.setattr(ErrandDesk, "take", taken)
    return seen


def noted_by_thirds(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """The numbers that thirds have for their lists from now on, and how often each."""
    seen: Counter[bytes] = Counter()
    note, note_done = ReceiptList.note, ReceiptList.note_done

    def noted(receipts: ReceiptList, second: bytes, number: bytes) -> None:
        seen[number] += 1
        note(receipts, second, number)

    def noted_done(receipts: ReceiptList, second: bytes, number: bytes) -> None:
        seen[number] += 1
        note_done(receipts, second, number)

    monkeypatch.setattr(ReceiptList, "note", noted)
    monkeypatch.setattr(ReceiptList, "note_done", noted_done)
    return seen


@pytest.mark.slow
async def test_messages_in_letters_are_heard_and_listed_and_loops_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(porter_queue, "below", lambda *_: 1)  # letters pass from the next round on
    noted = noted_by_thirds(monkeypatch)
    async with lettered_network(later=EVENING) as net:
        ear = await net.clients[0].listen()
        daemon = LetterDaemon(net)
        await daemon.begun_on_a_new_day()
        for number in range(4):
            daemon.publish(b"%d" % number, is_held=number == 3)
        assert sorted(await ear.hears(3, 6 * ROUND)) == [b"0", b"1", b"2"]
        await until(lambda: len(daemon.letters.messages) == 1, 4 * ROUND, "three are listed")
        assert sorted(await ear.hears(4, 52 * ROUND)) == [b"0", b"1", b"2", b"3"]
        await until(lambda: len(daemon.letters.messages) == 0, 6 * ROUND, "the held one is listed")
        losses = daemon.letters.judge.record
        assert (losses.score, losses.lost) == (0.0, 0), "each number that was to be listed was"
        assert net.count("letters_refused") == 0
        assert set(noted.values()) == {1}, (
            "a number that is twice on a list is of a letter, and of which kind"
        )
        assert {len(one.blocks) for one in daemon.blocks} == {4}
        assert len({block for one in daemon.blocks for block in one.blocks}) == 4 * len(daemon.blocks)


@pytest.mark.slow
async def test_what_came_in_several_rounds_comes_out_together_and_what_a_restart_loses_goes_anew() -> None:
    async with lettered_network(together=6) as net:
        ear = await net.clients[0].listen()
        daemon = LetterDaemon(net)
        await daemon.begun_on_a_new_day()
        for is_lost in (False, True):
            first = daemon.rules.released_in(daemon.now) + 1
            await net.sleep_until((first + 0.2) * ROUND)
            for number in range(4):
                daemon.publish(b"%d %d" % (is_lost, number))
                await trio.sleep(ROUND)
            if is_lost:
                await daemon.third.restart()
            before = list(ear.payloads)
            assert len(before) == 4 * is_lost, "none of those that came"
            await net.sleep_until(daemon.rules.released_at(first))
            assert ear.payloads == before
            if not is_lost:
                await ear.hears(4, ROUND / 2)
                await until(lambda: not daemon.letters.messages, 4 * ROUND, "all are listed")
        assert len(set(await ear.hears(8, 24 * ROUND))) == 8
        await until(lambda: not daemon.letters.messages, 4 * ROUND, "all are listed")
        assert not daemon.letters.judge.is_alarmed


@pytest.mark.slow
async def test_five_letters_pass_a_round_whether_the_daemon_is_there_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(porter_queue, "SERVED_DAYS", 1)
    monkeypatch.setattr(porter_queue, "SERVED_MORE_DAYS", 1)
    async with lettered_network() as net:
        seen = passed_by_porters(monkeypatch)
        daemon = LetterDaemon(net)
        await daemon.begun()
        first = daemon.now
        await trio.sleep(10 * ROUND)
        daemon.go()
        await trio.sleep(30 * ROUND)
        last = daemon.now - 1
        heard = len(daemon.blocks)
        assert set(seen.values()) == {PASSED_A_ROUND}
        assert {round_ for _, round_ in seen} >= set(range(first, last))
        daemon.come()
        await until(lambda: len(daemon.blocks) >= heard + last - first - 12, 3 * ROUND, "all blocks at once")
        assert [one.round for one in daemon.blocks] == list(range(daemon.blocks[0].round, daemon.said))
        lists = [one for one in daemon.blocks if one.listed != one.round]
        assert len(lists) > 0.9 * (last - first)
        daemon.go()
        porter = desks_of(daemon.porter).porter
        (place,) = porter.places
        await trio.sleep((place.queue.patience + 2) * ROUND)
        assert not len(porter.places)
        for kind in ("cover-place", "cover-letter", "cover-block"):
            assert not await daemon.porter.store.scan(kind)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 50))])
async def test_nothing_passes_twice_and_nothing_is_lost_whoever_is_killed_when(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve kills each; of porter, second and third two hundred in all seeds."""
    monkeypatch.setattr(porter_queue, "below", lambda *_: 1)
    async with lettered_network(seed=seed, later=EVENING) as net:
        ear = await net.clients[0].listen()
        daemon = LetterDaemon(net)
        await daemon.begun_on_a_new_day()
        passed, marked = passed_by_porters(monkeypatch), marked_at_thirds(monkeypatch)
        ways = [daemon.porter, daemon.second, daemon.third]
        for node in ways:
            await node.stop()
            node.store = LateDisk(node.store, net.env)
            await node.start()
        sent = []
        for number in range(12):
            for _ in range(2):
                sent.append(b"%d" % len(sent))
                daemon.publish(sent[-1])
            await trio.sleep(net.env.uniform(0.0, 3 * ROUND))
            await kill(net, ways[number % 3])
        assert sorted(await ear.hears(len(sent), 40 * ROUND)) == sorted(sent)
        await until(lambda: len(daemon.letters.messages) == 0, 12 * ROUND, "all are listed")
        await trio.sleep(6 * ROUND)
        assert sorted(ear.payloads) == sorted(sent)
        assert max(passed.values()) == PASSED_A_ROUND
        assert max(marked.values()) == 1


@pytest.mark.slow
async def test_records_are_judged_as_when_they_came_and_what_is_damaged_is_set_aside() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        await (await daemon.knock()).aclose()
        waybill = daemon.relays.waybill
        desks_of(daemon.second).second.show(CoverWaybill(waybill.sealed, None), daemon.chain.porter)
        store = daemon.porter.store
        ((place, record),) = await store.scan("cover-place")
        due = daemon.now.to_bytes(8, "big")
        store.write_soon(Change("cover-letter", place + due + b"\0", bytes(4096)))
        store.write_soon(Change("cover-block", place + due, b"x"))
        await daemon.porter.restart()
        await until(lambda: role_of(daemon.porter).desks, what="it has a part")
        assert set_aside(store) == {"cover-letter", "cover-block"}
        assert [encode(one.record) for one in desks_of(daemon.porter).porter.places] == [record]
        store.write_soon(Change("cover-place", place, record[:-1]))
        daemon.second.store.write_soon(Change("cover-waybill", waybill.name[:-1] + b"x", b"x"))
        for node in (daemon.porter, daemon.second):
            await node.restart()
            await until(lambda node=node: role_of(node).desks, what="they have parts")
        assert set_aside(store) == {"cover-letter", "cover-block", "cover-place"}
        assert not len(desks_of(daemon.porter).porter.places)
        assert set_aside(daemon.second.store) == {"cover-waybill"}
        assert desks_of(daemon.second).second._machine.is_shown(waybill.name, daemon.chain.porter)


async def test_a_relay_of_a_network_without_cover_has_no_part_in_it() -> None:
    async with small_network(relays=3, clients=0) as net:
        assert [role_of(node).desks for node in net.relays] == [None] * 3
