"""Shared entries: what one device of a person tells the others, each signed by the device that wrote it.

An entry has a place (its kind and its name), and of all entries for one place the one of highest rank holds.
Ranks of different entries are never equal, so whoever has heard the same entries holds the same, in whatever
order they came: a last-writer-wins map by Lamport counters (Lamport 1978; Shapiro and others 2011, §3.2).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any

import msgspec

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Bytes16, Bytes32, Bytes64, Counter, PublicKey, Wire, decoder, encode
from hushcast_protocol.content.predicates import MAX_WHERE
from hushcast_protocol.content.topics import LINK_SCHEME, MAX_LINK

MAX_TITLE = 64  # characters of a device's name
MAX_ENTRY = 8 * 1024  # bytes; the longest link and condition take 5.2 KB, a full list of marks 4.4 KB
MAX_MARKS = 256  # messages in one entry of what was read
_LONGEST_NAME = 40  # bytes of a place's name
_KEY = 32  # bytes of a device's, which name the place of what is said of it


class EntryKind(IntEnum):
    """What an entry is about."""

    DEVICE = 1
    SUBSCRIPTION = 2
    READ = 3
    AUTHOR = 4


Title = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TITLE)]


class DeviceValue(Wire, frozen=True):
    """A device: what people call it, the X25519 key that secrets are sealed to, whether it was removed.

    A removal stays, whatever the device writes later.
    """

    title: Title
    agreement: Bytes32
    is_removed: bool = False


class SubscriptionValue(Wire, frozen=True):
    """A subscription: link, condition, terms, and the name that its handle comes from.

    Of one that was ended nothing is kept but its `subscription_place`, as `name`: disks forget the link.
    """

    link: Annotated[str, msgspec.Meta(max_length=len(LINK_SCHEME) + MAX_LINK)]
    where: Annotated[str, msgspec.Meta(max_length=MAX_WHERE)]
    name: Bytes16
    terms: dict[str, Any] | None = None
    is_ended: bool = False

    def __repr__(self) -> str:
        return "<SubscriptionValue>"  # a link is a secret


class ReadValue(Wire, frozen=True):
    """Messages that were shown or acknowledged on a device: the first halves of their ids."""

    day: Counter
    marks: Annotated[tuple[Bytes16, ...], msgspec.Meta(max_length=MAX_MARKS)]


class AuthorValue(Wire, frozen=True):
    """An author's key that a person wants on all devices, under a title; whether it was taken back."""

    title: Title
    seed: Bytes32
    is_removed: bool = False

    def __repr__(self) -> str:
        return "<AuthorValue>"


EntryValue = DeviceValue | SubscriptionValue | ReadValue | AuthorValue
_VALUES: dict[EntryKind, type[EntryValue]] = {
    EntryKind.DEVICE: DeviceValue,
    EntryKind.SUBSCRIPTION: SubscriptionValue,
    EntryKind.READ: ReadValue,
    EntryKind.AUTHOR: AuthorValue,
}

Place = tuple[EntryKind, bytes]
"""Where an entry belongs: its kind, and a name among those of the kind."""


class SharedEntry(Wire, frozen=True):
    """One entry; the value is kept as it was signed."""

    kind: EntryKind
    name: Annotated[bytes, msgspec.Meta(min_length=1, max_length=_LONGEST_NAME)]
    counter: Counter
    device: PublicKey
    value: Annotated[bytes, msgspec.Meta(max_length=MAX_ENTRY)]
    signature: Bytes64

    def __repr__(self) -> str:
        return f"<SharedEntry {self.kind.name}>"

    @property
    def place(self) -> Place:
        """Where it belongs."""
        return self.kind, self.name

    @property
    def stamp(self) -> bytes:
        """What tells it from all others (16 bytes)."""
        return digest(Domain.DEVICE_ENTRY, self._signed(), size=LABEL)

    def _signed(self) -> bytes:
        return encode((int(self.kind), self.name, self.counter, self.device, self.value))

    def read(self) -> Any:
        """Return the value, of the type that the kind has; raise `DecodeError`."""
        return _DECODERS[self.kind](self.value)

    def is_removal(self) -> bool:
        """Tell whether it says that a device was removed; raise `DecodeError`."""
        return self.kind is EntryKind.DEVICE and bool(self.read().is_removed)

    def is_sponsorship(self) -> bool:
        """Tell whether it says that its device let in another one; raise `DecodeError`."""
        return self.kind is EntryKind.DEVICE and self.device != self.name and not self.is_removal()

    def rank(self) -> tuple[int, int, bytes, bytes]:
        """Return what decides between two entries for one place: the higher one holds.

        The removal of a device is above all else, and who let it in says less of it than it does itself. The
        stamp decides where a device that was restored from a backup has used a counter twice.
        """
        weight = int(self.is_removal()) - int(self.is_sponsorship())
        return weight, self.counter, self.device, self.stamp

    def check(self) -> None:
        """Raise `AuthenticationError` unless its device signed it, `DecodeError` if its value is none."""
        value = self.read()
        if self.name != place_of(value, self.device, self.counter, self.name)[1]:
            raise DecodeError("an entry lies in another's place")
        if isinstance(value, DeviceValue) and len(self.name) != _KEY:
            raise DecodeError("an entry is about no device")
        check(self.device, SignaturePurpose.DEVICE_ENTRY, self._signed(), self.signature)


_DECODERS: dict[EntryKind, Callable[[bytes], Any]] = {
    kind: decoder(value, "shared entry", MAX_ENTRY) for kind, value in _VALUES.items()
}


def place_of(value: EntryValue, device: PublicKey, counter: int, about: bytes = b"") -> Place:
    """Return where a value of a device belongs; `about` is the device that a `DeviceValue` is about."""
    if isinstance(value, DeviceValue):
        return EntryKind.DEVICE, about or device
    if isinstance(value, SubscriptionValue):
        place = value.name if value.is_ended else subscription_place(value.link, value.where)
        return EntryKind.SUBSCRIPTION, place
    if isinstance(value, ReadValue):
        return EntryKind.READ, device + counter.to_bytes(8, "big")
    return EntryKind.AUTHOR, digest(Domain.DEVICE_ENTRY, value.title.encode(), size=LABEL)


def subscription_place(link: str, where: str) -> bytes:
    """Return what names a subscription among all (16 bytes): a hash of its link and condition."""
    return digest(Domain.DEVICE_ENTRY, link.encode(), where.encode(), size=LABEL)


def ended_subscription(link: str, where: str) -> SubscriptionValue:
    """Return what is said of a subscription that was ended."""
    return SubscriptionValue("", "", subscription_place(link, where), None, True)


def write_entry(seed: Seed, counter: int, value: EntryValue, about: bytes = b"") -> SharedEntry:
    """Sign an entry with a device's seed; `about` is the device that a `DeviceValue` is about."""
    device = seed.public()
    kind, name = place_of(value, device, counter, about)
    unsigned = SharedEntry(kind, name, counter, device, encode(value), bytes(64))
    return msgspec.structs.replace(
        unsigned, signature=signature(seed, SignaturePurpose.DEVICE_ENTRY, unsigned._signed())
    )
