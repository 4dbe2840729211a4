"""Upgrade: the migrations between versions of a daemon's state."""

from __future__ import annotations

import msgspec

from hushcast_local.subscription import interest_record
from hushcast_overlay.routes.route_records import mailbox_record
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.storage.state_layout import Migration, unchanged
from hushcast_runtime.storage.store import Change, Store, record_reader

_SUBSCRIPTION = RecordKind(
    "subscription",
    StateOwner.DAEMON,
    holds="subscriptions as version 0 has them",
    lifetime="until the next start, which makes `interest` and `mailbox` of them",
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
        address = Address(old.address) if old.address is not None else None
        changes += [
            interest_record(name, interest, old.created),
            mailbox_record(name, Seed(old.seed), old.renewal, address),
            Change(_SUBSCRIPTION, name, None),
        ]
    return changes


MIGRATIONS: tuple[Migration, ...] = (Migration(up=_split_subscriptions, down=unchanged),)
"""In order: the first is between versions 0 and 1. None is ever taken out or changed."""
