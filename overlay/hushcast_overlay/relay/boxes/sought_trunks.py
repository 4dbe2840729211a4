"""Sought trunks: what owners left with this relay, their host, so that it asks keepers for what a box lacks.

A box has one trunk a day, and keeps what it has of such a day for as long as keepers do: so its owner finds
all of it after two weeks.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.relay.boxes.box_ids import BoxIds
from hushcast_protocol.base.crypto.proof_of_work import NEEDED_FROM
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Bytes16, Counter, encode
from hushcast_protocol.overlay.box_frames import MAX_SOUGHT, SoughtTrunk
from hushcast_protocol.overlay.kept_answers import windows
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import record_reader

# Boxes of one host that seek: each may have a trunk of its own, which costs six first contacts an epoch. Of
# 1,000 subscriptions among 500 relays two are at each.
MAX_SEEKING = 256
CLOCKS_DIFFER = 0.05  # share of an epoch: of owner, host and keepers one may be in the epoch before

_KIND = RecordKind(
    "sought",
    StateOwner.RELAY,
    holds="of each box that it keeps, for which trunks it asks keepers, and for which epochs it has",
    lifetime="as long as what is published on the day is kept, or until the owner is done with the box",
    bound=f"{MAX_SEEKING * MAX_SOUGHT:,}",
)
_BOX = 32  # bytes of its key


class _Sought(msgspec.Struct, array_like=True):
    """A trunk of one box and day, as it lies in the store."""

    trunk: Bytes16
    next: Counter
    """The epoch whose window is asked for next."""
    is_whole: bool = False
    """Whether the whole day is wanted, and not from some epoch on alone."""


_decode = record_reader(_Sought, "sought")


class SoughtTrunks:
    """The sought trunks of one host, and which messages of these its boxes have had."""

    def __init__(self, lists: CandidateLists, calendar: Calendar, context: Context) -> None:
        self._lists = lists
        self.calendar = calendar
        self._env = context.env
        self._store = context.store
        self._by_box: dict[bytes, dict[int, _Sought]] = {}
        self._ids = BoxIds()

    def __len__(self) -> int:
        """Return how many boxes seek."""
        return len(self._by_box)

    def fullness(self) -> float:
        """Return the share (0 to 1) of the room for boxes that seek that is taken."""
        return len(self) / MAX_SEEKING

    async def load(self) -> None:
        """Read back what was left before a restart."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, key: bytes, value: bytes) -> None:
        sized(key, _BOX + 8)
        self._by_box.setdefault(key[:_BOX], {})[number(key[_BOX:])] = _decode(value)

    def take(self, box: bytes, trunks: Iterable[SoughtTrunk], paid: bool) -> list[SoughtTrunk]:
        """Seek these trunks for a box; return those that are new, or are wanted whole from now on.

        Durable with the next commit. A day that was not wanted whole may be, once: then keepers are asked for
        all of it. Raises `Refusal` ("quota") where the network keeps nothing, or too many boxes seek;
        `DecodeError` where the box has another trunk on one of these days.
        """
        kept = self._by_box.get(box, {})
        has_room = len(self._by_box) < MAX_SEEKING * (1.0 if paid else NEEDED_FROM)
        if not self._lists.keeping.keepers or not (kept or has_room):
            raise Refusal("quota")
        if any(one.day in kept and kept[one.day].trunk != one.trunk for one in trunks):
            raise DecodeError("a box has another trunk on one of these days")
        taken = [
            one
            for one in trunks
            if (known := kept.get(one.day)) is None or (one.is_whole and not known.is_whole)
        ]
        self._by_box[box] = kept
        epoch = self.calendar.epoch(self._env.now() - CLOCKS_DIFFER * self.calendar.epoch_seconds)
        for one in taken:
            first = windows(one.day).start
            kept[one.day] = _Sought(one.trunk, first if one.is_whole else max(first, epoch), one.is_whole)
            self._keep(box, one.day)
        return taken

    def last_day(self, box: bytes) -> int | None:
        """Return the last day for which a box seeks, `None` without any."""
        return max(self._by_box.get(box, ()), default=None)

    def seeks(self, box: bytes, day: int) -> bool:
        """Tell whether a box seeks on a day."""
        return day in self._by_box.get(box, ())

    def is_kept(self, box: bytes) -> bool:
        """Tell whether a box is to be there for a day that is not over."""
        last, today = self.last_day(box), self.calendar.open_days(self._env.now()).start
        return last is not None and last >= today

    def keeps(self, box: bytes, day: int) -> bool:
        """Tell whether a box still keeps what is of a day, as keepers do."""
        first = self.calendar.open_days(self._env.now()).start - self._lists.keeping.days
        return day >= first and self.seeks(box, day)

    def came(self, box: bytes, day: int, message: bytes) -> bool:
        """Note what came for a box; return whether it is not known to have come before."""
        return not self.seeks(box, day) or self._ids.note(box, day, message)

    def lacking(self, boxes: Iterable[bytes], day: int, message: bytes) -> list[bytes]:
        """Return which of some boxes have not had a message, as far as is known."""
        return [box for box in boxes if self.seeks(box, day) and not self._ids.has(box, day, message)]

    def wanted(self, until: int) -> set[tuple[int, bytes]]:
        """Return the days (up to `until`) and trunks for which keepers are to be asked still."""
        return {
            (day, sought.trunk)
            for days in self._by_box.values()
            for day, sought in days.items()
            if day <= until and sought.next in windows(day)
        }

    def boxes(self, day: int, trunk: bytes) -> dict[bytes, int]:
        """Return the boxes for which keepers are to be asked for a trunk of a day, with the epoch of each."""
        return {
            box: sought.next
            for box, days in self._by_box.items()
            if (sought := days.get(day)) is not None and sought.trunk == trunk and sought.next in windows(day)
        }

    def asked(self, boxes: Iterable[bytes], day: int, before: int) -> None:
        """Note that keepers were asked for what came on a day before an epoch."""
        for box in boxes:
            if self.seeks(box, day):
                self._by_box[box][day].next = before
                self._keep(box, day)
                if before not in windows(day):
                    self._ids.forget(box, day)

    def forget(self, box: bytes) -> None:
        """Seek nothing more for a box."""
        for day in self._by_box.pop(box, ()):
            self._ids.forget(box, day)
            self._store.write_soon(Change(_KIND, _key(box, day), None))

    def lapse(self) -> None:
        """Forget days of which nothing is kept any more; whoever calls is certain of the time."""
        for box, days in list(self._by_box.items()):
            for day in [day for day in days if not self.keeps(box, day)]:
                del days[day]
                self._ids.forget(box, day)
                self._store.write_soon(Change(_KIND, _key(box, day), None))
            if not days:
                del self._by_box[box]

    def _keep(self, box: bytes, day: int) -> None:
        self._store.write_soon(Change(_KIND, _key(box, day), encode(self._by_box[box][day])))


def _key(box: bytes, day: int) -> bytes:
    return box + day.to_bytes(8, "big")
