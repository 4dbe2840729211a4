"""Shared state: the entries that one device holds of all that its person's devices told.

Merging is commutative, associative and idempotent: devices that have heard the same entries hold the same,
in whatever order and however often they came. What one lacks another finds by a summary of 512 bytes, whose
64 parts each stand for the places that fall there: only parts that differ are sent. The marks of what was
read are kept for `MARKS_KEPT` days, and of them the highest `MAX_READ`: a maximum, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, NamedTuple

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.devices.device_words import DeviceWords
from hushcast_protocol.devices.shared_entries import (
    AuthorValue,
    DeviceValue,
    EntryKind,
    EntryValue,
    Place,
    ReadValue,
    SharedEntry,
    SubscriptionValue,
    subscription_place,
    write_entry,
)

MAX_DEVICES = 32  # ever in one circle, removed ones included: a removal is never forgotten
MAX_SHARED = 1_024  # subscriptions, ended ones included: an end that is forgotten would be undone
MAX_AUTHORS = 64  # keys of authors, taken back ones included
MAX_READ = 2_048  # entries of what was read, of 256 messages at most: 9 MB where all are full
MARKS_KEPT = 21  # days: as long as a message waits in an inbox unless it is set
COUNTED_A_DAY = 2**16  # by which counters of a circle may grow; a person's devices write some hundred
_BOUNDS = {
    EntryKind.DEVICE: MAX_DEVICES,
    EntryKind.SUBSCRIPTION: MAX_SHARED,
    EntryKind.AUTHOR: MAX_AUTHORS,
}
# Devices that have not heard of each other may write at the same moment; what they take together must not
# depend on the order, so others take twice as much as anybody may write.
_ALL_BOUNDS = {kind: 2 * most for kind, most in _BOUNDS.items()}
_PARTS = 64
_PART = 8  # bytes
SUMMARY = _PARTS * _PART

Summary = Annotated[bytes, msgspec.Meta(min_length=SUMMARY, max_length=SUMMARY)]


class _Held(NamedTuple):
    """An entry, with what is asked of it again and again."""

    entry: SharedEntry
    rank: tuple[int, int, bytes, bytes]
    value: Any
    part: int

    @property
    def is_removal(self) -> bool:
        """Whether it says that a device was removed."""
        return self.rank[0] > 0

    @property
    def age(self) -> tuple[int, tuple[int, int, bytes, bytes]]:
        """What orders marks of what was read; the lowest goes first."""
        return self.value.day, self.rank


class SharedState:
    """What one device holds."""

    def __init__(self) -> None:
        self._held: dict[EntryKind, dict[bytes, _Held]] = {kind: {} for kind in EntryKind}
        self.words = DeviceWords()
        self._marks: dict[bytes, int] = {}
        """How many entries have a mark."""
        self.counter = 0
        """The highest that was seen."""

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def __iter__(self) -> Iterator[SharedEntry]:
        return (held.entry for held in self._all())

    def write(self, seed: Seed, value: EntryValue, about: bytes = b"") -> SharedEntry:
        """Write what a device says and return it; raise `Refusal` where there is no room.

        It holds from now on, unless it is of a device that was removed.
        """
        entry = write_entry(seed, self.counter + 1, value, about)
        if not self._has_room(entry, _BOUNDS):
            raise Refusal("the devices share too much already: begin a new circle (docs/devices.md)")
        held = self._held[entry.kind].get(entry.name)
        if held is not None and held.entry.counter > self.counter:
            entry = write_entry(seed, held.entry.counter + 1, value, about)
        if held is None or held.rank < entry.rank():
            self._take(entry, self.counter + 1)
        if entry.kind is EntryKind.DEVICE:
            self.words.note(entry, is_own=True)
        return entry

    def counts(self, entry: SharedEntry, without: Collection[PublicKey], is_present: bool = True) -> bool:
        """Tell whether an entry may be taken, under the secret of now or under one of before.

        Of a device that was removed nothing is: what it had written by then who removed it has written anew.
        Words on other devices are of those that this one has been told of, and so is all that is taken under
        a secret of before, which removed ones know: words on devices, and nothing else.
        """
        writer = self._held[EntryKind.DEVICE].get(entry.device)
        if entry.device in without or (writer is not None and writer.is_removal):
            return False
        if entry.kind is not EntryKind.DEVICE:
            return is_present
        return writer is not None or (is_present and entry.device == entry.name)

    def take_over(
        self, seed: Seed, gone: Collection[PublicKey], most: int
    ) -> tuple[list[SharedEntry], list[SharedEntry]]:
        """Write anew, as a device's own, some of what removed devices wrote; call it until all is.

        Returns what was written, and what of theirs is in no place any more. A subscription stands where it
        stood, so that who has changed it meanwhile is not undone.
        """
        theirs = list(islice(self._said_by(gone), most))
        written: list[SharedEntry] = []
        for held in theirs:
            self._drop(held)
            if held.entry.kind is EntryKind.READ:
                written.append(self.write(seed, held.value))
            else:
                entry = write_entry(seed, held.entry.counter, held.value)
                self._take(entry, 0)
                written.append(entry)
        return written, [held.entry for held in theirs if held.entry.kind is EntryKind.READ]

    def part_from(self, gone: Collection[PublicKey], most: int) -> list[SharedEntry]:
        """Forget some of what removed devices wrote but of devices; return that. Call it until all is."""
        return self._forget(list(islice(self._said_by(gone), most)))

    def stay_with(
        self, staying: Collection[PublicKey], without: Collection[PublicKey], most: int
    ) -> tuple[list[SharedEntry], list[SharedEntry]]:
        """Forget some of what others than these wrote; return that, and which words hold again instead.

        Whom a secret is `without` stays removed where nobody else says so: whoever let it in gives no other
        word on that. Call it until nothing is left.
        """
        self.words.keep_those_of(staying)
        theirs = (
            held
            for held in self._all()
            if held.entry.device not in staying
            and not (
                held.is_removal and held.entry.name in without and not self.words.removes(held.entry.name)
            )
        )
        gone = self._forget(list(islice(theirs, most)))
        about = {entry.name for entry in gone if entry.kind is EntryKind.DEVICE}
        again = [word for name in about if (word := self.words.on(name)) is not None]
        for word in again:
            self._take(word, 0)
        return gone, again

    def merge(self, entry: SharedEntry, today: int) -> bool:
        """Take an entry from another device; return whether that changed anything.

        Raises `AuthenticationError` or `DecodeError`, and has changed nothing, where it does not hold. One
        for which there is no room, or that is too old or of days to come, is passed over.
        """
        return not _is_ahead(entry, today) and self.restore(entry, today)

    def restore(self, entry: SharedEntry, today: int) -> bool:
        """Take one that lay on this device's own disk: as `merge`, but that it is not of days to come."""
        held = self._held[entry.kind].get(entry.name)
        is_lower = held is not None and held.rank >= entry.rank()
        if held is not None and entry.rank()[0] == held.rank[0] and self._has_fallen(held):
            is_lower = False
        if is_lower and (entry.kind is not EntryKind.DEVICE or not self.words.wants(entry)):
            return False
        if not self._has_room(entry, _ALL_BOUNDS) or _is_old(entry.read(), today):
            return False
        entry.check()
        if is_lower:
            self.words.note(entry)
            return False
        self._take(entry, today * COUNTED_A_DAY)
        return entry.name in self._held[entry.kind]

    def lapse(self, today: int) -> list[SharedEntry]:
        """Forget marks of days long gone; return their entries."""
        return self._forget(
            [held for held in self._held[EntryKind.READ].values() if _is_old(held.value, today)]
        )

    def summary(self, today: int) -> bytes:
        """Return 512 bytes that tell of what is held on a day, and nothing of it to who does not hold it."""
        parts: dict[int, list[bytes]] = {}
        for held in self._all():
            if not _is_old(held.value, today) and not self._has_fallen(held):
                parts.setdefault(held.part, []).append(held.rank[-1])
        summary = bytearray(SUMMARY)
        for part, stamps in parts.items():
            place = slice(part * _PART, (part + 1) * _PART)
            summary[place] = digest(Domain.DEVICE_SUMMARY, *sorted(stamps), size=_PART)
        return bytes(summary)

    def lacking(self, summary: bytes, today: int) -> list[SharedEntry]:
        """Return the entries of all parts in which another's summary of a day differs; marks come last."""
        own = self.summary(today)
        if own == summary:
            return []
        differing = {
            part
            for part in range(_PARTS)
            if own[part * _PART : (part + 1) * _PART] != summary[part * _PART : (part + 1) * _PART]
        }
        found = [
            held.entry
            for held in self._all()
            if held.part in differing and not _is_old(held.value, today) and not self._has_fallen(held)
        ]
        return sorted(found, key=lambda entry: (entry.kind is EntryKind.READ, -entry.counter))

    def devices(self) -> dict[PublicKey, DeviceValue]:
        """Return all devices by their keys, removed ones included."""
        return {name: held.value for name, held in self._held[EntryKind.DEVICE].items()}

    def living(self) -> dict[PublicKey, DeviceValue]:
        """Return the devices that were not removed."""
        return {key: value for key, value in self.devices().items() if not value.is_removed}

    def removed(self) -> frozenset[PublicKey]:
        """Return the devices that were removed."""
        return frozenset(key for key, value in self.devices().items() if value.is_removed)

    def subscriptions(self) -> list[SubscriptionValue]:
        """Return all subscriptions, ended ones included."""
        return [held.value for held in self._held[EntryKind.SUBSCRIPTION].values()]

    def subscription(self, link: str, where: str) -> SubscriptionValue | None:
        """Return what is shared of one subscription."""
        held = self._held[EntryKind.SUBSCRIPTION].get(subscription_place(link, where))
        return None if held is None else held.value

    def authors(self) -> list[AuthorValue]:
        """Return the authors' keys that were not taken back."""
        return [held.value for held in self._held[EntryKind.AUTHOR].values() if not held.value.is_removed]

    def is_read(self, mark: bytes) -> bool:
        """Tell whether a message, by the first 16 bytes of its id, was read on any device."""
        return mark in self._marks

    def _all(self) -> Iterator[_Held]:
        return (held for kind in self._held.values() for held in kind.values())

    def _said_by(self, devices: Collection[PublicKey]) -> Iterator[_Held]:
        """Return what devices wrote but of devices."""
        return (
            held
            for held in self._all()
            if held.entry.device in devices and held.entry.kind is not EntryKind.DEVICE
        )

    def _forget(self, gone: list[_Held]) -> list[SharedEntry]:
        for held in gone:
            self._drop(held)
        return [held.entry for held in gone]

    def _has_fallen(self, held: _Held) -> bool:
        """Tell whether it is a word of one that does not stand: it holds here, and nobody is told."""
        if held.entry.kind is not EntryKind.DEVICE or held.entry.device == held.entry.name:
            return False
        writer = self._held[EntryKind.DEVICE].get(held.entry.device)
        return writer is None or writer.is_removal

    def _has_room(self, entry: SharedEntry, bounds: Mapping[EntryKind, int]) -> bool:
        held, most = self._held[entry.kind], bounds.get(entry.kind)
        return most is None or entry.name in held or len(held) < most

    def _take(self, entry: SharedEntry, most: int) -> None:
        """Hold an entry; what is written next stands behind it if its counter is `most` or less.

        Else it is so in its own place alone: who writes as high as is taken keeps nobody from other places.
        """
        places = self._held[entry.kind]
        if (before := places.get(entry.name)) is not None:
            self._drop(before)
        places[entry.name] = _Held(entry, entry.rank(), entry.read(), _part(entry.place))
        if entry.kind is EntryKind.DEVICE:
            self.words.note(entry)
        self.counter = max(self.counter, min(entry.counter, most))
        if entry.kind is EntryKind.READ:
            for mark in places[entry.name].value.marks:
                self._marks[mark] = self._marks.get(mark, 0) + 1
            if len(places) > MAX_READ:
                self._drop(min(places.values(), key=lambda held: held.age))

    def _drop(self, held: _Held) -> None:
        del self._held[held.entry.kind][held.entry.name]
        if held.entry.kind is EntryKind.READ:
            for mark in held.value.marks:
                if (left := self._marks[mark] - 1) > 0:
                    self._marks[mark] = left
                else:
                    del self._marks[mark]


def _is_old(value: EntryValue, today: int) -> bool:
    return isinstance(value, ReadValue) and value.day < today - MARKS_KEPT


def _is_ahead(entry: SharedEntry, today: int) -> bool:
    """Tell whether an entry is of days to come: behind the highest counter nobody could write any more.

    Marks of such a day would never lapse, and be kept in place of all others. A removal is final, whatever
    its counter.
    """
    tomorrow, value = today + 1, entry.read()  # clocks differ
    is_marked_ahead = isinstance(value, ReadValue) and value.day > tomorrow
    return is_marked_ahead or (entry.counter > tomorrow * COUNTED_A_DAY and not entry.is_removal())


def _part(place: Place) -> int:
    kind, name = place
    return digest(Domain.DEVICE_SUMMARY, bytes([kind]), name, size=1)[0] % _PARTS
