"""The records of a circle: this device's own keys and the circle's secrets, and each entry that is shared."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import trio

from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey, decoder, encode
from hushcast_protocol.devices.circle_secrets import CircleKeys, CircleSecret
from hushcast_protocol.devices.shared_entries import MAX_ENTRY, DeviceValue, EntryKind, SharedEntry
from hushcast_protocol.devices.shared_state import MAX_SHARED, SharedState
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

_CIRCLE = RecordKind(
    "device-circle",
    StateOwner.DAEMON,
    holds="this device's keys in its circle, and the circle's secrets",
    lifetime="until this device is removed or leaves",
)
_ENTRY = RecordKind(
    "device-entry",
    StateOwner.DAEMON,
    holds="what the devices share: subscriptions, authors' keys, what was read",
    lifetime="as long as the circle; of what was read 21 days",
    bound="2,048 subscriptions, 2,048 lists of what was read",
)
_UNSAID = RecordKind(
    "device-unsaid",
    StateOwner.DAEMON,
    holds="first halves of ids of messages that were read here since the last beat",
    lifetime="until the next beat, which makes an entry of them",
    bound="4,096",
)
_KEY = b"own"


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    seed: bytes
    agreement: bytes
    secret: bytes
    generation: int
    mark: bytes
    without: tuple[bytes, ...]
    change: Signed | None
    former: tuple[tuple[bytes, float], ...]
    invited: tuple[tuple[bytes, bytes], ...] = ()
    untold: tuple[bytes, ...] = ()
    words: tuple[SharedEntry, ...] = ()
    here: tuple[bytes, ...] = ()


@dataclass(eq=False)
class OwnCircle:
    """What one device knows of its circle besides what is shared."""

    seed: Seed
    agreement: AgreementKey
    keys: CircleKeys
    change: Signed | None = None
    """What told of the present secret, to be told again."""
    former: list[tuple[CircleSecret, float]] = field(default_factory=list)
    """Secrets of before, and until when (Unix seconds) somebody is waited for who knows only these."""
    state: SharedState = field(default_factory=SharedState)
    unsaid: list[bytes] = field(default_factory=list)
    """Marks of what was read here, which wait for the next beat."""
    invited: dict[PublicKey, bytes] = field(default_factory=dict)
    """Devices that this one let in, by the mark of the secret that they were told last."""
    here: set[PublicKey] = field(default_factory=set)
    """Devices that were heard under the present secret: what they said under one of before is old."""
    removed_by: PublicKey | None = None
    """Who says that this device was removed: it holds no entry of that, and goes by the new secret."""
    untold: frozenset[bytes] = frozenset()
    """Places of subscriptions that are here by the word of one that did not stand: others are not told."""

    @property
    def key(self) -> bytes:
        """By which the others know this device."""
        return self.seed.public()

    def removed(self) -> frozenset[PublicKey]:
        """Return who else was removed: entries may follow, of whom the secret is kept from."""
        return (self.state.removed() | self.keys.without) - {self.key}

    def removed_or_self(self) -> frozenset[PublicKey]:
        """Return who was removed, and this device if one that stands says so."""
        return self.removed() | ({self.key} if self.removed_by in self.living() else set())

    def living(self) -> dict[PublicKey, DeviceValue]:
        """Return who was not."""
        removed = self.removed()
        return {key: value for key, value in self.state.living().items() if key not in removed}

    def standing(self, others: Collection[PublicKey]) -> frozenset[PublicKey]:
        """Return these, this device, and whom one of them let in, or one of those; nobody who was removed."""
        return self.state.words.sponsored({*others, *self.invited, self.key}, self.removed())

    @property
    def leaves_out(self) -> bool:
        """Whether a device stands that the present secret was not told."""
        return any(told != self.keys.mark for told in self.invited.values())


_decode = record_reader(_Stored, "circle")
_decode_entry = decoder(SharedEntry, "shared entry", 2 * MAX_ENTRY)


def circle_change(own: OwnCircle) -> Change:
    """Return the record of all but what is shared."""
    keys = own.keys
    stored = _Stored(
        own.seed.reveal(),
        own.agreement.reveal(),
        keys.secret.reveal(),
        keys.generation,
        keys.mark,
        tuple(sorted(keys.without)),
        own.change,
        tuple((secret.reveal(), until) for secret, until in own.former),
        tuple(own.invited.items()),
        tuple(sorted(own.untold)),
        tuple(own.state.words),
        tuple(sorted(own.here)),
    )
    return Change(_CIRCLE, _KEY, encode(stored))


def entry_change(entry: SharedEntry, is_gone: bool = False) -> Change:
    """Return the record of an entry, or that it is gone."""
    kind, name = entry.place
    return Change(_ENTRY, bytes([kind]) + name, None if is_gone else encode(entry))


def fallen_changes(own: OwnCircle, gone: list[SharedEntry]) -> list[Change]:
    """Return the records that change as entries count no more; what has begun by one goes on here alone."""
    places = [entry.name for entry in gone if entry.kind is EntryKind.SUBSCRIPTION]
    own.untold = frozenset([*places, *own.untold][: 2 * MAX_SHARED])
    return [entry_change(entry, is_gone=True) for entry in gone]


def unsaid_change(mark: bytes, is_said: bool = False) -> Change:
    """Return the record of a mark that waits for the next beat, or that it waits no more."""
    return Change(_UNSAID, mark, None if is_said else b"")


async def load_circle(store: Store, today: int) -> OwnCircle | None:
    """Read back what was kept; `None` where this device is in no circle."""
    found: list[OwnCircle] = []
    words: list[SharedEntry] = []

    def take(key: bytes, value: bytes) -> None:
        kept: _Stored = _decode(value)
        words.extend(kept.words)
        secret = CircleSecret(kept.secret)
        found.append(
            OwnCircle(
                Seed(kept.seed),
                AgreementKey(kept.agreement),
                CircleKeys(secret, kept.generation, kept.mark, frozenset(kept.without)),
                kept.change,
                [(CircleSecret(former), until) for former, until in kept.former],
                invited=dict(kept.invited),
                untold=frozenset(kept.untold),
                here=set(kept.here),
            )
        )

    await restore(store, _CIRCLE, take)
    if not found:
        return None
    own = found[0]

    def take_entry(key: bytes, value: bytes) -> None:
        entry = _decode_entry(value)
        if key != bytes([entry.kind]) + entry.name:
            raise DecodeError("an entry lies in another's place")
        if entry.name != own.key or not entry.is_removal():  # a version before kept its own end
            own.state.restore(entry, today)

    await restore(store, _ENTRY, take_entry, at_once=64)
    for word in words:
        with suppress(PeerError):
            own.state.restore(word, today)
        await trio.lowlevel.checkpoint()
    await restore(store, _UNSAID, lambda key, value: own.unsaid.append(sized(key, LABEL)))
    return own


async def erase_circle(store: Store) -> None:
    """Delete all of it; durable on return."""
    for kind in (_CIRCLE, _ENTRY, _UNSAID):
        while found := await store.scan(kind, limit=1024):
            await store.write(*(Change(kind, key, None) for key, _ in found))
