"""Keepers that lie to hosts, and owners that have hosts ask for nothing.

A keeper says that it keeps what it does not show, or what it has made up; it answers with more than was asked
for, without end, or not at all. An owner leaves trunks of topics that it does not have.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from kept_network import has, keepers_of, kept_network, kept_of
from owner_end import OwnerEnd, drop, message
from small_network import EPOCH_SECONDS, Node, until

from hushcast_overlay.keepers import keeper_questions
from hushcast_overlay.relay.boxes import box_ids, sought_trunks
from hushcast_overlay.relay.boxes.box_ids import BoxIds
from hushcast_protocol.content.kept_shares import MAX_KEPT_IDS
from hushcast_protocol.content.messages import MAX_BODY, Message
from hushcast_protocol.overlay.box_frames import SOUGHT_DAYS
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.keeper_frames import (
    AskKept,
    ShownKept,
    ShownKeptMessages,
)

LONG = 10 * EPOCH_SECONDS
Answer = Callable[[Any], Awaitable[Any]]


def answers(keeper: Node, answer: Answer) -> None:
    kept: Any = kept_of(keeper)
    kept.answer = answer


async def made_up_ids(request: Any) -> Any:
    """All the ids that one answer holds, and none of the messages."""
    await trio.lowlevel.checkpoint()
    if isinstance(request, AskKept):
        return ShownKept(tuple(os.urandom(32) for _ in range(MAX_KEPT_IDS)), 0)
    return ShownKeptMessages(())


async def of_another_trunk(request: Any) -> Any:
    """What was not asked for."""
    await trio.lowlevel.checkpoint()
    if isinstance(request, AskKept):
        return ShownKept((bytes(32),), 0)
    return ShownKeptMessages((message(request.day, b"other trunk 16 b"),))


async def another_answer(request: Any) -> Any:
    """The answer to another question."""
    await trio.lowlevel.checkpoint()
    return ShownKeptMessages(()) if isinstance(request, AskKept) else ShownKept((), 0)


async def no_answer(request: Any) -> Any:
    """Nothing, for ever."""
    await trio.sleep_forever()


async def what_no_keeper_says(request: Any) -> Any:
    """A frame that is none of a keeper's."""
    await trio.lowlevel.checkpoint()
    return Receipt("accepted")


@pytest.mark.slow
@pytest.mark.parametrize(
    "lie", [made_up_ids, of_another_trunk, another_answer, no_answer, what_no_keeper_says]
)
async def test_where_all_but_one_keeper_lie_the_box_gets_what_that_one_keeps(lie: Answer) -> None:
    async with kept_network(clients=0, epoch=LONG) as net:
        one = message(net.calendar.day(net.now))
        honest, *hostile = keepers_of(net, one)
        host = next(relay for relay in net.relays if relay not in (honest, *hostile))
        for keeper in hostile:
            answers(keeper, lie)
        await drop(net, next(relay for relay in net.relays if relay is not host), one)
        await until(lambda: has(honest, one), 30)
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold()
        assert await owner.seek() is None
        await owner.hears(one, within=3 * keeper_questions.SHOWN_WITHIN)
        assert host.count("keepers_asked") <= 12, "a liar is asked for one body, in each of two rounds"
        assert len(owner.heard) == 1
        assert host.count("messages_handed_in") == 0, "one keeper alone has it"


def shows_one_by_one(hostile: Node, made_up: dict[bytes, Message]) -> None:
    """Have a keeper say that it has what it made up, and show each in an answer of its own."""

    async def answer(request: Any) -> Any:
        await trio.lowlevel.checkpoint()
        if isinstance(request, AskKept):
            return ShownKept(tuple(sorted(made_up)), 0)
        return ShownKeptMessages((made_up[request.ids[0]],))

    answers(hostile, answer)


@pytest.mark.slow
async def test_what_a_keeper_makes_up_comes_last_takes_bounded_room_and_goes_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It makes up true messages, as large as there are, and shows each in an answer of its own."""
    monkeypatch.setattr(keeper_questions, "MAX_BROUGHT", 4 * MAX_BODY)
    async with kept_network(clients=0, epoch=LONG) as net:
        day = net.calendar.day(net.now)
        one = message(day)
        hostile, *honest = keepers_of(net, one)
        made_up = {each.id: each for each in (message(day, size=MAX_BODY) for _ in range(30))}

        shows_one_by_one(hostile, made_up)
        host = next(relay for relay in net.relays if relay not in (hostile, *honest))
        await drop(net, honest[0], one)
        await until(lambda: all(has(keeper, one) for keeper in honest), 30)
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold()
        assert await owner.seek() is None
        await owner.hears(one, within=5)
        assert owner.heard[0] == one, "what two keepers show goes first"
        await trio.sleep(30)
        assert host.count("messages_from_keepers") <= 1 + 5
        assert not any(has(keeper, each) for keeper in honest for each in made_up.values())


@pytest.mark.slow
async def test_small_answers_one_by_one_end_after_so_many_questions() -> None:
    async with kept_network(clients=0, epoch=LONG) as net:
        day = net.calendar.day(net.now)
        hostile, *honest = keepers_of(net, message(day))
        made_up = {each.id: each for each in (message(day) for _ in range(200))}

        shows_one_by_one(hostile, made_up)
        host = next(relay for relay in net.relays if relay not in (hostile, *honest))
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold()
        assert await owner.seek() is None
        await trio.sleep(55)
        assert host.count("messages_from_keepers") == keeper_questions.MAX_QUESTIONS


async def test_a_box_has_one_trunk_a_day_no_far_days_and_none_before_it_is_made() -> None:
    async with kept_network(clients=0, epoch=LONG) as net:
        day = net.calendar.day(net.now)
        owner = OwnerEnd(net, net.relays[0])
        await owner.attach()
        assert await owner.seek() == "form"
        await owner.hold()
        assert await owner.seek(day, day) == "form"
        assert await owner.seek(day + SOUGHT_DAYS + 1) == "day"
        assert await owner.seek(day - SOUGHT_DAYS - 1) == "day"
        assert await owner.seek(*range(day - SOUGHT_DAYS, day + SOUGHT_DAYS + 1)) is None
        assert await owner.seek(trunk=b"another trunk 16") == "form"
        asked = net.relays[0].count("keepers_asked")
        for _ in range(20):
            assert await owner.seek(*range(day - SOUGHT_DAYS, day + SOUGHT_DAYS + 1)) is None
        await trio.sleep(5)
        assert net.relays[0].count("keepers_asked") == asked, "what is sought already asks nothing more"
        await owner.forget()
        assert await owner.seek() == "withdrawn"


async def test_invented_trunks_cost_a_host_so_many_questions_and_leave_room_for_who_pays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sought_trunks, "MAX_SEEKING", 8)
    async with kept_network(clients=0, epoch=LONG) as net:
        host = net.relays[0]
        answers_of: list[Any] = []
        for number in range(8):
            owner = OwnerEnd(net, host)
            await owner.attach()
            await owner.hold()
            answers_of.append(await owner.seek(trunk=bytes([number]) * 16))
        assert answers_of == [None] * 4 + ["quota"] * 4, "half is for what was paid for"
        await trio.sleep(2 * 60 + 5)
        assert host.count("keepers_asked") <= 4 * 3 * 2
        await trio.sleep(3 * LONG)
        assert host.count("keepers_asked") <= 4 * 3 * 6


async def test_ids_of_the_fullest_box_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_ids, "MAX_BOX_IDS", 100)
    await trio.lowlevel.checkpoint()
    ids = BoxIds()
    for number in range(10):
        assert ids.note(b"small", 1, bytes([number]))
    for number in range(1000):
        ids.note(b"large", 1, number.to_bytes(2, "big"))
        assert len(ids) <= 100
    assert all(ids.has(b"small", 1, bytes([number])) for number in range(10))
    assert not ids.note(b"small", 1, bytes([0]))
    for box in b"small", b"large":
        ids.forget(box, 1)
    assert len(ids) == 0
