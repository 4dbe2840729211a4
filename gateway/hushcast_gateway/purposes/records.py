"""What the gateway keeps on disk about purposes: reservations, presubscriptions, withdrawals, audit log."""

from __future__ import annotations

from typing import Literal

import msgspec

from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.mqtt.kept.mqtt_records import decode
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.purpose_names import Purpose

RESERVATION = RecordKind(
    "purpose-reservation",
    StateOwner.GATEWAY,
    holds="reservations of owners",
    lifetime="until released, or dropped by the operator",
)
PRESUBSCRIPTION = RecordKind(
    "purpose-presubscription",
    StateOwner.GATEWAY,
    holds="presubscriptions",
    lifetime="until replaced or taken back",
)
AUDIT = RecordKind(
    "purpose-audit",
    StateOwner.GATEWAY,
    holds="what was done and refused about purposes",
    lifetime="until it is the oldest of too many",
)
WITHDRAWAL = RecordKind(
    "purpose-withdrawal",
    StateOwner.GATEWAY,
    holds="how often a user has withdrawn what they published to a topic, and what of it is still to be told",
    lifetime="for ever",
)
WITHDRAWN = RecordKind(
    "purpose-withdrawn",
    StateOwner.GATEWAY,
    holds="digests of locks whose messages are withdrawn",
    lifetime="until it is the oldest of too many",
)
"""Digests of locks, by a number that counts up."""
LOCKS_FROM = RecordKind(
    "purpose-locks",
    StateOwner.GATEWAY,
    holds="the secret that its locks are made of",
    lifetime="for ever",
    bound="1",
)

What = Literal[
    "reserve", "release", "drop", "presubscribe", "subscribe", "control", "message", "withdraw", "withdrawn"
]


class _Record(msgspec.Struct, frozen=True, array_like=True):
    pass


class ReservationRecord(_Record, frozen=True):
    """The key is the owner and the filter."""

    owner: str
    filter: str
    aip: tuple[Purpose, ...]
    pip: tuple[Purpose, ...]


class Presubscription(_Record, frozen=True):
    """That subscriptions of a user's client to a filter are for a purpose; the key is those three."""

    user: str
    client_id: str
    filter: str
    purpose: Purpose
    by: str
    """The user who made it: it holds while that one may claim the purpose."""


class AuditRecord(_Record, frozen=True):
    """What somebody did or was refused; no payload. The key is a number that counts up."""

    at: float
    """Unix time."""
    user: str
    client_id: str
    what: What
    filter: str
    aip: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    refused: str = ""
    """Why; empty for what was done."""


class WithdrawalRecord(_Record, frozen=True):
    """How often a user has withdrawn what they published to a topic; the key is both."""

    user: str
    topic: str
    generation: int
    unsent: tuple[int, ...]
    """Those of which the other gateways are still to be told."""


encode = msgspec.msgpack.Encoder().encode


def reservation_of(clause: Clause) -> tuple[bytes, bytes]:
    """Return key and value of a reservation."""
    record = ReservationRecord(
        clause.owner, clause.filter, tuple(sorted(clause.aip)), tuple(sorted(clause.pip))
    )
    return key_of(clause.owner, clause.filter), encode(record)


def read_reservation(value: bytes) -> Clause:
    """Read one back; raises `DamagedRecord`."""
    record = decode(ReservationRecord, value)
    return Clause(record.owner, record.filter, frozenset(record.aip), frozenset(record.pip))


def read_presubscription(value: bytes) -> Presubscription:
    """Read one back; raises `DamagedRecord`."""
    return decode(Presubscription, value)


def read_audit(value: bytes) -> AuditRecord:
    """Read one back; raises `DamagedRecord`."""
    return decode(AuditRecord, value)


def read_withdrawal(value: bytes) -> WithdrawalRecord:
    """Read one back; raises `DamagedRecord`."""
    return decode(WithdrawalRecord, value)


def key_of(*names: str) -> bytes:
    """Return the key of a record; names of MQTT hold no U+0000."""
    return "\0".join(names).encode()
