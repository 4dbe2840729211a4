"""The records of inboxes: messages and positions; and how those of a subscription are deleted."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import set_aside, tell
from hushcast_runtime.storage.store import Records, Store, record_reader

NAME_SIZE = 16  # bytes of a subscription's name, with which its keys begin
MESSAGE = RecordKind(
    "inbox",
    StateOwner.DAEMON,
    holds="messages that came for a subscription",
    lifetime="until acknowledged, or over the age and size that are [set](configuration.md)",
)
SEEN = RecordKind(
    "inbox-seen",
    StateOwner.DAEMON,
    holds="ids of messages that came",
    lifetime="until their day has lapsed",
)
PROGRESS = RecordKind(
    "inbox-progress",
    StateOwner.DAEMON,
    holds="up to where messages were shown, acknowledged, removed",
    lifetime="until unsubscribed",
)
PART = RecordKind(
    "inbox-part",
    StateOwner.DAEMON,
    holds="parts of messages, sealed, whose rest has not come",
    lifetime="until the rest has, or the message's day is 14 days over",
    bound="2,600 of a subscription",
)
KINDS = MESSAGE, SEEN, PROGRESS, PART
SCAN = 15  # messages read at once; the largest have 256 KiB
STEP = 1024  # other records read or deleted at once, some 3 ms: others go on in between
_BEHIND = b"\xff" * 64  # after a subscription's name: behind all its keys, whose ends have 32 bytes at most


class Progress(msgspec.Struct, array_like=True):
    """Positions of applications and retention; a cursor is the number of a message, 0 is before all."""

    shown: int = 0
    """An application has shown all up to here: a plain `subscribe` goes on behind it."""
    acknowledged: int = 0
    """An application is done with all up to here: nobody who begins to listen gets them again."""
    gone: int = 0
    """Nothing up to here is kept."""
    dropped: int = 0
    """How many messages retention removed that nobody had acknowledged."""
    lost: int = 0
    """How many were lost before they came, of which no application has been told."""
    is_more_lost: bool = False
    """Whether more were than anybody could count, of which none has been told either."""


class InboxMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message as an application gets it."""

    id: bytes
    payload: bytes
    received_at: float  # Unix seconds
    values: dict[str, str | int] = {}
    """Attributes, numbers as places on their grids."""
    author: bytes | None = None
    """The Ed25519 key whose signature holds."""
    past_day: float | None = None
    """Unix seconds at which its day began, if that was before the subscription's."""


class HeldMessage(NamedTuple):
    """The in-memory index entry of one message on disk."""

    number: int
    size: int
    received_at: float
    id: bytes


class ReportedGap(NamedTuple):
    """A message that another subscriber of the topic reports, and that did not come here."""

    id: bytes


class UnknownCursor(Refusal):
    """No message of the subscription had this cursor yet."""


decode_progress = record_reader(Progress, "progress")
decode_message = record_reader(InboxMessage, "message")


async def erase_others(store: Store, subscriptions: Collection[bytes]) -> None:
    """Delete what is kept for any but these: a daemon that died while one ended has left it."""
    for kind in KINDS:
        after: bytes | None = None
        while found := await store.scan(kind, after=after, limit=1):
            after = found[0][0]
            subscription = after[:NAME_SIZE]
            if len(subscription) < NAME_SIZE:  # what begins like it may be another's
                await set_aside(store, kind, found)
                tell(kind, 1)
                continue
            if subscription not in subscriptions:
                await erase(store, subscription)
            after = subscription + _BEHIND


async def erase(store: Store, subscription: bytes) -> None:
    """Delete all that is kept for a subscription; durable on return."""
    for kind in KINDS:
        async for key, _ in Records(store, kind, subscription, SCAN if kind == MESSAGE else STEP):
            store.write_soon(Change(kind, key, None))
    await store.write()
