"""Targets: what a keeper keeps, moved by relays that hand in, by who asks, by time and by restarts."""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest import mock

import core_examples as examples
import trio
import trio.testing
from core_examples import NETWORK, NOW, relay_id, stream
from fuzzing import Script, Target, scripts

from hushcast_node.counters import COUNTERS
from hushcast_overlay.relay.keepers import kept_messages
from hushcast_overlay.relay.keepers.kept_messages import KeptMessages
from hushcast_overlay.relay.times_there import TimesThere
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.content import kept_shares
from hushcast_protocol.content.kept_shares import trunk_day
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.keeper_frames import AskKept, AskKeptMessages, ShownKept, ShownKeptMessages
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, run_here
from hushcast_runtime.logs import LEVELS, log
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer

_US = relay_id(0)
_TRUNKS = [bytes([number]) * 16 for number in range(5)]
_ROOM = 8 * 1167  # bytes of a half; its messages have 1,167 each
_DAYS = 3


@cache
def _sealed(number: int, day: int, trunk: int) -> Message:
    one = examples.small_message(number=number, day=day)
    return Message(one.id, day, (_TRUNKS[trunk],), one.trail, one.body)


class _Lists:
    """Candidate lists by which the relay keeps all trunks but the last."""

    keeping = KeepingRule(1, _DAYS)

    def keepers(self, day: int, trunk: bytes) -> tuple[bytes, ...]:
        return () if trunk == _TRUNKS[-1] else (_US,)


class _Keeper:
    """One keeper over its lives, and what has to hold of it."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.now = NOW
        self.store = MemoryStore()
        self._nursery = nursery
        self._told: dict[bytes, int] = {}

    async def start(self) -> None:
        async def compute(function: Any, *args: Any) -> Any:
            return run_here(function, *args)

        env = Environment(lambda: self.now, stream(), compute)
        context = Context(env, self.store, Counters(COUNTERS), NoTracer(), self._nursery.start_soon)
        lists: Any = _Lists()
        there = TimesThere(NETWORK.calendar, context)
        self.kept = KeptMessages(_US, lists, NETWORK.calendar, there, context)
        await there.load()
        await self.kept.load()

    def day(self) -> int:
        return NETWORK.calendar.day(self.now)

    def first(self) -> int:
        """The first day that may be kept of."""
        return NETWORK.calendar.open_days(self.now).start - _DAYS

    async def check(self) -> None:
        shares = self.kept._shares
        bodies = {key for key, _ in await self.store.scan(kept_messages._BODY)}
        held = {name + message for name in shares.before(2**47) for message in shares.ids(name)}
        assert bodies == held
        for half in (shares._small, shares._large):
            assert sum(half._of_giver.values()) == sum(half._trunks.values()) == half.size <= _ROOM
            assert all(taken <= _ROOM // 2 for taken in half._trunks.values())
        for trunk in _TRUNKS:
            name = trunk_day(self.day(), trunk)
            shown = await self.kept.answer(AskKept(self.day(), trunk, None))
            assert isinstance(shown, ShownKept)
            assert shown.ids == shares.ids(name)
            assert trunk != _TRUNKS[-1] or not shown.ids
            assert shown.gave_way >= self._told.get(name, 0), "what gave way was told, and is no more"
            self._told[name] = shown.gave_way
            for message in shown.ids[:2]:
                found = await self.kept.answer(AskKeptMessages(self.day(), trunk, (message,)))
                assert isinstance(found, ShownKeptMessages)
                assert [one.id for one in found.messages] == [message]


async def _keepers(data: bytes) -> None:
    script = Script(data)
    async with trio.open_nursery() as nursery:
        keeper = _Keeper(nursery)
        await keeper.start()
        while script:
            await _move(script, keeper)
            if script.number() % 4 == 0:
                await keeper.check()
        await keeper.check()


async def _move(script: Script, keeper: _Keeper) -> None:
    move = script.number() % 12
    if move == 0:
        keeper.now += NETWORK.calendar.epoch_seconds * (script.number() ** 2 / 1024)  # up to 64 epochs
        await keeper.kept.lapse()
        assert not keeper.kept._shares.before(keeper.first())
    elif move == 1:
        await keeper.start()
    elif move == 2:
        day, trunk = keeper.day() - script.number() % 3, script.choose(_TRUNKS)
        await keeper.kept.answer(AskKept(day, trunk, NETWORK.calendar.epoch(keeper.now)))
    else:
        days = (keeper.day(), keeper.day(), keeper.day() - 1, keeper.day() + 1)
        sent = [
            _sealed(script.number() % 40, script.choose(days), script.number() % len(_TRUNKS))
            for _ in range(script.number() % 4)
        ]
        declined = await keeper.kept.take(sent, relay_id(1 + script.number() % 4))
        open_days = NETWORK.calendar.open_days(keeper.now)
        expected = [
            place
            for place, one in enumerate(sent)
            if one.day not in open_days or one.tokens[0] == _TRUNKS[-1]
        ]
        assert declined == expected


def _run(data: bytes) -> None:
    log._silent = LEVELS
    with (
        mock.patch.multiple(kept_shares, MAX_KEPT=2 * _ROOM, MAX_KEPT_OF_TRUNK=_ROOM, KEPT_BESIDE=0),
        mock.patch.object(kept_messages, "MAX_GAVE_WAY", 3),
    ):
        trio.run(_keepers, data, clock=trio.testing.MockClock(autojump_threshold=0))


TARGETS = [Target("keepers", _run, lambda: scripts(size=300), weight=2)]
