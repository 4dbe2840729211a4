"""Upgrade: the migrations between versions of a daemon's state."""

from __future__ import annotations

import msgspec

from hushcast_local.subscription import interest_record
from hushcast_overlay.relay.lease_store import leases_without_hop
from hushcast_overlay.routes.route_records import installations_without_root
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_layout import Migration, unchanged
from hushcast_runtime.storage.store import Store, record_reader

_SUBSCRIPTION = RecordKind(
    "subscription",
    StateOwner.DAEMON,
    holds="subscriptions as version 0 has them",
    lifetime="until the next start, which makes `interest` of them",
)
_MAILBOX = RecordKind(
    "mailbox",
    StateOwner.OVERLAY_DAEMON,
    holds="onion services of subscriptions, as version 1 has them",
    lifetime="until the next start, which drops them",
)
_DAILY_MAILBOX = RecordKind(
    "daily-mailbox",
    StateOwner.OVERLAY_DAEMON,
    holds="the same for days that are cut into [shards](shards.md), as version 1 has them",
    lifetime="until the next start, which drops them",
)


class _Subscription(msgspec.Struct, frozen=True, array_like=True):
    link: str
    where: str
    seed: bytes
    created: float
    renewal: float
    address: str | None


_decode_subscription = record_reader(_Subscription, "subscription")


async def _split_subscriptions(store: Store) -> list[Change]:
    """From 0, which may hold interest and mailbox in one record, or in two as version 1 does."""
    changes: list[Change] = []
    for name, value in await store.scan(_SUBSCRIPTION):
        old = _decode_subscription(value)
        topic = parse_topic(old.link)
        interest = Interest(topic, parse_where(old.where, topic.attributes))
        changes += [interest_record(name, interest, old.created), Change(_SUBSCRIPTION, name, None)]
    return changes


async def _drop_mailboxes(store: Store) -> list[Change]:
    """From 1, whose subscriptions may have onion services of their own: each gets a box at a host instead.

    The trees and leases that lead to them go, too.
    """
    mailboxes = [(kind, key) for kind in (_MAILBOX, _DAILY_MAILBOX) for key, _ in await store.scan(kind)]
    return [
        *(Change(kind, key, None) for kind, key in mailboxes),
        *await installations_without_root(store),
        *await leases_without_hop(store),
    ]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(up=_split_subscriptions, down=unchanged),
    Migration(up=_drop_mailboxes, down=unchanged),
)
"""In order: the first is between versions 0 and 1. None is ever taken out or changed."""
