"""Waiting parts: of messages that come in parts, those whose rest has not come; on disk.

Whoever knows the topic can send parts whose rest never comes. So there is room for so many; with one more
that message gives way which had a part longest ago. Not that with the fewest parts: whoever sent many once
would keep all later ones out. Applications are told that one was lost where more than one of its parts came.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import msgspec

from hushcast_local.inbox import Inbox
from hushcast_local.inbox_records import PART
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Counter, encode
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.parts import MAX_PART_DAYS, MAX_PARTS, Part, join
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

# Of one subscription: 40 of the largest messages, 2.8 MB on disk. In memory it is known of each that it is
# there, some 0.4 KB where all are of different messages.
MAX_WAITING_PARTS = 2_600

_WHOLE = 32  # bytes of the key that signs the parts of a message


class _StoredPart(msgspec.Struct, frozen=True, array_like=True):
    day: Counter
    count: int
    came_at: float
    piece: bytes


_decode = record_reader(_StoredPart, "part of a message")


@dataclass(eq=False, slots=True)
class _Whole:
    """A message of which parts are missing."""

    day: int
    count: int
    numbers: dict[int, float] = field(default_factory=dict)
    """When which came, in Unix seconds."""


class WaitingParts:
    """The parts that wait for one subscription."""

    def __init__(self, subscription: bytes, inbox: Inbox, env: Environment, store: Store) -> None:
        self._subscription = subscription
        self._inbox = inbox
        self._env = env
        self._store = store
        self._wholes: OrderedDict[bytes, _Whole] = OrderedDict()
        self._count = 0
        self._first_day = 0

    async def load(self) -> None:
        """Read back what waited before a restart."""
        await restore(self._store, PART, self._restore, self._subscription)
        ordered = sorted(self._wholes.items(), key=lambda item: max(item[1].numbers.values()))
        self._wholes = OrderedDict(ordered)

    def _restore(self, key: bytes, value: bytes) -> None:
        stored, place = _decode(value), sized(key[len(self._subscription) :], _WHOLE + 1)
        name, number = place[:_WHOLE], place[_WHOLE]
        whole = self._wholes.get(name) or _Whole(stored.day, stored.count)
        if number >= stored.count or (whole.day, whole.count) != (stored.day, stored.count):
            raise DecodeError("a part is none of its message")
        self._wholes[name] = whole
        self._note(whole, number, stored.came_at)

    def _note(self, whole: _Whole, number: int, came_at: float) -> None:
        whole.numbers[number] = came_at
        self._count += 1

    async def take(self, part: Part, message: Message) -> Message | None:
        """Take a part and the message that it came in; return the whole where it was the last.

        The others are on disk with the next commit. The last is not kept: whoever takes the whole calls `end`
        in the same commit; if the daemon dies before, the last part comes again, as nobody acknowledged it.
        """
        whole = self._wholes.get(part.whole) or _Whole(part.day, part.count)
        is_known = part.number in whole.numbers or self._inbox.knows(part.whole)
        if is_known or part.day < self._first_day or (whole.day, whole.count) != (part.day, part.count):
            self._inbox.pass_over(message.id, message.day)
            return None
        if len(whole.numbers) + 1 < part.count:
            self._keep(part, whole)
            self._inbox.pass_over(message.id, message.day)
            return None
        await self._store.write()
        records = await self._store.scan(PART, self._subscription + part.whole, None, MAX_PARTS)
        pieces = {key[-1]: _decode(value).piece for key, value in records} | {part.number: part.piece}
        if len(pieces) < part.count:
            return None  # another copy of the last one was quicker
        return join(part.day, [pieces[number] for number in range(part.count)], message.tokens)

    def holds(self, part: Part) -> bool:
        """Tell whether parts of the same message wait still."""
        return part.whole in self._wholes

    def end(self, name: bytes) -> None:
        """Forget the parts of a message, and take no more of them; durable with the next commit."""
        whole = self._wholes.pop(name)
        self._count -= len(whole.numbers)
        self._store.write_soon(*(Change(PART, self._key(name, number), None) for number in whole.numbers))
        self._inbox.pass_over(name, whole.day + MAX_PART_DAYS)  # the last day on which one may come

    def lapse(self, before_day: int) -> None:
        """If the time is certain, give up messages of days whose ids are forgotten: none is shown twice."""
        if not self._env.is_certain():
            return
        self._first_day = before_day
        for name in [name for name, whole in self._wholes.items() if whole.day < before_day]:
            self._lose(name)

    def _keep(self, part: Part, whole: _Whole) -> None:
        now = self._env.now()
        self._wholes[part.whole] = whole
        self._wholes.move_to_end(part.whole)
        self._note(whole, part.number, now)
        record = encode(_StoredPart(part.day, part.count, now, part.piece))
        self._store.write_soon(Change(PART, self._key(part.whole, part.number), record))
        while self._count > MAX_WAITING_PARTS:
            self._lose(next(iter(self._wholes)))

    def _lose(self, name: bytes) -> None:
        is_told = len(self._wholes[name].numbers) > 1  # a single part costs a stranger nothing
        self.end(name)
        if is_told:
            self._inbox.note_lost(1)

    def _key(self, name: bytes, number: int) -> bytes:
        return self._subscription + name + bytes([number])
