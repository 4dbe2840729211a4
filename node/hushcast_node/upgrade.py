"""Upgrade: brings records of earlier versions into the form of today, before anything reads them."""

from __future__ import annotations

import msgspec

from hushcast_local.subscription import interest_record
from hushcast_overlay.route import mailbox_record
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.store import Change, Store, record_reader

_SUBSCRIPTION = "subscription"  # until 0.1: interest and mailbox in one record


class _Subscription(msgspec.Struct, frozen=True, array_like=True):
    link: str
    where: str
    seed: bytes
    created: float
    renewal: float
    address: str | None


_decode_subscription = record_reader(_Subscription, "subscription")


async def upgrade(store: Store) -> None:
    """Rewrite what an earlier version left, in one commit a record; does nothing where there is none."""
    for name, value in await store.scan(_SUBSCRIPTION):
        old = _decode_subscription(value)
        topic = parse_topic(old.link)
        interest = Interest(topic, parse_where(old.where, topic.attributes))
        address = Address(old.address) if old.address is not None else None
        await store.write(
            interest_record(name, interest, old.created),
            mailbox_record(name, Seed(old.seed), old.renewal, address),
            Change(_SUBSCRIPTION, name, None),
        )
