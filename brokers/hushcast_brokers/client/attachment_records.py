"""What a client keeps on disk: the edge broker that it attaches to, its key there, and what it asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import trio

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey, decoder, encode
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.items import Item
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, record_reader

_ATTACHMENT = RecordKind(
    "attachment",
    StateOwner.BROKERS_DAEMON,
    holds="its edge broker, and the key that this knows the daemon by",
    lifetime="until nothing is asked there, when the key is drawn anew; with `[brokers] edge` for ever",
)
_ASKED = RecordKind(
    "asked",
    StateOwner.BROKERS_DAEMON,
    holds="what edge brokers were asked for: filter, terms, whether it was confirmed",
    lifetime="until the edge broker has forgotten it",
)
_MAX_ITEM = 4096  # bytes; a filter of eight attributes takes some 300

_decode_item = decoder(Item, "filter", _MAX_ITEM)
_decode_terms = decoder(AnonymityTerms, "terms", 256)


@dataclass(eq=False)
class AttachedSubscription:
    """A subscription as an edge broker has it, or is to have it."""

    name: bytes
    """16 bytes, the same after a restart."""
    route: bytes
    """The name of the interest that it is for."""
    item: Item
    terms: AnonymityTerms
    is_accepted: bool = False
    """The edge broker has confirmed it."""
    was_accepted: bool = False
    """An edge broker had confirmed it, and may have lost it since, or another one is asked."""
    ending: trio.Event = field(default_factory=trio.Event)
    """Set when nobody wants it any more, and the edge broker is to forget it."""
    least_k: int | None = None
    """What the edge broker asks of each filter that it shows, as it said over the newest link."""
    is_shown: bool | None = None
    """Whether anything is shown outside that brings its messages, as was last heard."""
    gone: trio.Event = field(default_factory=trio.Event)
    """Set when the edge broker holds nothing of it."""

    @property
    def entry(self) -> bytes:
        """What both ends compare: the name, and that of the item."""
        return self.name + self.item.name

    @property
    def is_ending(self) -> bool:
        """Tell whether nobody wants it any more."""
        return self.ending.is_set()

    @property
    def k(self) -> int | None:
        """How many are to stand behind it, as it or the edge broker asks; none until that is known."""
        return None if self.least_k is None else max(self.terms.k, self.least_k)

    @property
    def is_routed(self) -> bool:
        """Tell whether its messages come: it was confirmed and, where anything is asked, is shown."""
        if not self.is_accepted or self.is_ending:
            return False
        return self.k == 1 if self.is_shown is None else self.is_shown

    def replace(self, item: Item) -> None:
        """Ask for another item in place of what was asked for."""
        self.item = item
        self.is_accepted = False

    def doubt(self) -> None:
        """Note that the edge broker may not have it; once accepted it is not refused for its level."""
        self.terms = self.lasting_terms
        self.was_accepted |= self.is_accepted
        self.is_accepted = False
        self.is_shown = None

    @property
    def lasting_terms(self) -> AnonymityTerms:
        """Its terms wherever it is asked for again."""
        if self.is_accepted and self.terms.otherwise == "refuse":
            return AnonymityTerms(self.terms.k, self.terms.condition, "wait")
        return self.terms


@dataclass(eq=False)
class AttachmentRecord:
    """An edge broker, this daemon's key there, and what was asked of it by name."""

    edge: PublicKey
    seed: Seed
    left_at: float | None = None
    """Unix seconds at which this daemon turned to another one; `None` while it is the one in use."""
    asked: dict[bytes, AttachedSubscription] = field(default_factory=dict)

    @property
    def key(self) -> PublicKey:
        """The key that the edge broker knows this daemon by."""
        return self.seed.public()


class _StoredAttachment(msgspec.Struct, frozen=True, array_like=True):
    edge: PublicKey
    seed: bytes
    left_at: float | None


class _StoredAsked(msgspec.Struct, frozen=True, array_like=True):
    filter: bytes
    terms: bytes
    is_accepted: bool
    is_ending: bool
    route: bytes = b""  # that of the name, where it is the only one for its interest


_read_attachment = record_reader(_StoredAttachment, "attachment")
_read_asked = record_reader(_StoredAsked, "asked")


class AttachmentRecords:
    """Attachments in the store; what was asked is named by the key that it was asked under."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self) -> list[AttachmentRecord]:
        """Read all that were kept."""
        found: dict[bytes, AttachmentRecord] = {}

        def take(key: bytes, value: bytes) -> None:
            stored = _read_attachment(value)
            kept = AttachmentRecord(stored.edge, Seed(stored.seed), stored.left_at)
            if kept.key != key:
                raise DecodeError("an attachment is kept under another's key")
            found[key] = kept

        def take_asked(place: bytes, value: bytes) -> None:
            asked = _read_asked(value)
            name, item, terms = place[32:], _decode_item(asked.filter), _decode_terms(asked.terms)
            one = AttachedSubscription(name, asked.route or name, item, terms, asked.is_accepted)
            if asked.is_ending:
                one.ending.set()
            if (kept := found.get(place[:32])) is not None:
                kept.asked[name] = one

        await restore(self._store, _ATTACHMENT, take)
        await restore(self._store, _ASKED, take_asked)
        return list(found.values())

    async def keep(self, *attachments: AttachmentRecord) -> None:
        """Write attachments with all that was asked there, in one commit; durable on return."""
        changes = [change for kept in attachments for change in _changes(kept)]
        await self._store.write(*changes)

    async def keep_asked(self, kept: AttachmentRecord, some: Iterable[AttachedSubscription]) -> None:
        """Write some of what was asked at an attachment; durable on return."""
        await self._store.write(*(_change(kept, one) for one in some))

    def keep_soon(self, kept: AttachmentRecord, asked: AttachedSubscription) -> None:
        """Write one of them without waiting."""
        self._store.write_soon(_change(kept, asked))

    def forget_asked(self, kept: AttachmentRecord, asked: AttachedSubscription) -> None:
        """Delete one of them."""
        self._store.write_soon(Change(_ASKED, kept.key + asked.name, None))

    def forget(self, kept: AttachmentRecord) -> None:
        """Delete an attachment and all that was asked there."""
        gone = [Change(_ASKED, kept.key + name, None) for name in kept.asked]
        self._store.write_soon(Change(_ATTACHMENT, kept.key, None), *gone)

    def renew(self, kept: AttachmentRecord, seed: Seed) -> None:
        """Give an attachment where nothing is asked any more another key, which nobody has seen."""
        gone = Change(_ATTACHMENT, kept.key, None)
        kept.seed = seed
        self._store.write_soon(gone, *_changes(kept))


def _changes(kept: AttachmentRecord) -> list[Change]:
    stored = _StoredAttachment(kept.edge, kept.seed.reveal(), kept.left_at)
    asked = [_change(kept, one) for one in kept.asked.values()]
    return [Change(_ATTACHMENT, kept.key, encode(stored)), *asked]


def _change(kept: AttachmentRecord, asked: AttachedSubscription) -> Change:
    route = b"" if asked.route == asked.name else asked.route
    item, terms = encode(asked.item), encode(asked.terms)
    stored = _StoredAsked(item, terms, asked.is_accepted, asked.is_ending, route)
    return Change(_ASKED, kept.key + asked.name, encode(stored))
