"""Withdrawals: by which locks this gateway's users can withdraw what they published, and what was withdrawn.

A withdrawn message is kept from everybody at once, also one that comes late, and deleted some seconds later.
What this gateway withdraws stays on disk until the daemon has the message that says so to the others.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from hushcast_gateway.purposes.records import (
    LOCKS_FROM,
    WITHDRAWAL,
    WITHDRAWN,
    WithdrawalRecord,
    encode,
    key_of,
    read_withdrawal,
)
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.kept.mqtt_records import DamagedRecord
from hushcast_protocol.mqtt.wire.packets import Properties
from hushcast_protocol.purposes.inner_content import LOCK, LockSecret, digest_of, lock_of
from hushcast_protocol.purposes.message_purposes import digest_in, marked
from hushcast_runtime.storage.recovery import number, sized
from hushcast_runtime.storage.store import Records, Store, damaged

MAX_WITHDRAWALS = 1_000  # topics that one user withdrew from; each is a number on disk
MAX_WITHDRAWN = 10_000  # digests that are remembered, for what comes late; 1 MB. Then the oldest goes
MAX_UNSENT = 64  # withdrawals of one topic that wait for the daemon: as a rule one
LOOK_EVERY = 10.0  # seconds between two looks for what is to be deleted; of a million messages one takes 0.9

_PAGE = 256  # records read at once


class UnsentWithdrawals(NamedTuple):
    """What the other gateways are still to be told."""

    user: str
    topic: str
    generation: int
    """Which of the user's withdrawals of the topic it is, from 0 on."""
    lock: bytes

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "UnsentWithdrawals(...)"


class PurposeWithdrawals:
    """What was withdrawn, here and elsewhere."""

    def __init__(self) -> None:
        self._secret: LockSecret | None = None
        self._made: dict[tuple[str, str], WithdrawalRecord] = {}
        self._withdrawn: OrderedDict[bytes, None] = OrderedDict()
        self._next = 1
        self._numbers: dict[bytes, int] = {}
        self._ledger: Ledger | None = None
        self._is_new = False  # whether something was withdrawn that may still be kept
        self._next_look = 0.0

    async def load(self, store: Store) -> None:
        """Take up what an earlier run left; raises `StoreError`.

        So it does for a damaged record of these, without which what was withdrawn would not stay so.
        """
        try:
            async for _, value in Records(store, LOCKS_FROM, at_once=_PAGE):
                self._secret = LockSecret(value)
            async for _, value in Records(store, WITHDRAWAL, at_once=_PAGE):
                record = read_withdrawal(value)
                self._made[record.user, record.topic] = record
            async for key, value in Records(store, WITHDRAWN, at_once=_PAGE):
                self._note(sized(value, LOCK), number(key))
        except (DamagedRecord, DecodeError, ValueError):
            raise damaged("withdrawal", "without it a message that was withdrawn may come again; ") from None
        self._is_new = bool(self._withdrawn)

    def attach(self, ledger: Ledger, randomness: Randomness) -> None:
        """Write changes into a ledger from now on."""
        self._ledger = ledger
        if self._secret is None:
            self._secret = LockSecret(randomness(LockSecret.LENGTH))
            ledger.put(LOCKS_FROM, b"", self._secret.reveal())

    def owned(self, user: str, topic: str, properties: Properties) -> Properties:
        """Return the properties of a user's message with the digest of the lock that withdraws it."""
        assert self._secret is not None, "nothing is published before there is a broker"
        made = self._made.get((user, topic))
        lock = lock_of(self._secret, user, topic, 0 if made is None else made.generation)
        given = marked(properties.get("user_property", ()), digest_of(lock))
        return {**properties, "user_property": given}

    def make(self, user: str, topic: str) -> None:
        """Withdraw what a user has published to a topic; raises `UsageError` at a bound."""
        made = self._made.get((user, topic)) or WithdrawalRecord(user, topic, 0, ())
        if not made.generation and sum(one.user == user for one in self._made.values()) >= MAX_WITHDRAWALS:
            raise UsageError(f"{MAX_WITHDRAWALS} topics are the most that one user withdraws from")
        if len(made.unsent) >= MAX_UNSENT:
            raise UsageError("the daemon has not taken the earlier withdrawals of this topic yet")
        assert self._secret is not None
        self.take(digest_of(lock_of(self._secret, user, topic, made.generation)))
        unsent = (*made.unsent, made.generation)
        self._write(WithdrawalRecord(user, topic, made.generation + 1, unsent))

    def take(self, digest: bytes) -> None:
        """Keep from now on from everybody what has this digest."""
        if digest in self._withdrawn:
            return
        assert self._ledger is not None
        self._ledger.put(WITHDRAWN, self._next.to_bytes(8, "big"), digest)
        self._note(digest, self._next)
        self._is_new = True
        if len(self._withdrawn) > MAX_WITHDRAWN:
            oldest, _ = self._withdrawn.popitem(last=False)
            self._ledger.delete(WITHDRAWN, self._numbers.pop(oldest).to_bytes(8, "big"))

    def is_withdrawn(self, properties: Properties) -> bool:
        """Tell whether a message with these properties was withdrawn."""
        given = properties.get("user_property", ()) if self._withdrawn else ()
        return digest_in(given) in self._withdrawn

    def is_due(self, now: float) -> bool:
        """Tell whether it is time to delete what was withdrawn; whoever asks does so."""
        if not self._is_new or now < self._next_look:
            return False
        self._is_new, self._next_look = False, now + LOOK_EVERY
        return True

    def unsent(self) -> list[UnsentWithdrawals]:
        """Return what the other gateways are still to be told."""
        assert self._secret is not None
        return [
            UnsentWithdrawals(*key, generation, lock_of(self._secret, *key, generation))
            for key, made in self._made.items()
            for generation in made.unsent
        ]

    def sent(self, unsent: UnsentWithdrawals) -> None:
        """Note that the daemon has it."""
        made = self._made[unsent.user, unsent.topic]
        left = tuple(one for one in made.unsent if one != unsent.generation)
        self._write(WithdrawalRecord(made.user, made.topic, made.generation, left))

    def _write(self, record: WithdrawalRecord) -> None:
        assert self._ledger is not None
        self._made[record.user, record.topic] = record
        self._ledger.put(WITHDRAWAL, key_of(record.user, record.topic), encode(record))

    def _note(self, digest: bytes, number: int) -> None:
        self._withdrawn[digest] = None
        self._numbers[digest] = number
        self._next = number + 1
