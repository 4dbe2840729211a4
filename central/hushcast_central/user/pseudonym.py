"""Pseudonyms: what a user knows of each, and those that receive messages, as they lie in the store."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import trio

from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import Attach, Publish, Subscribe, WithdrawTokens
from hushcast_protocol.central.inner_message import inside_of
from hushcast_protocol.central.introduction import PseudonymSecret, PseudonymUse, pseudonym_of
from hushcast_protocol.central.rerouting import encrypted, wrap
from hushcast_protocol.content.messages import Message
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore
from hushcast_runtime.storage.store import Store, record_reader

_PSEUDONYM = RecordKind(
    "pseudonym",
    StateOwner.CENTRAL_DAEMON,
    holds="pseudonyms that receive: key, secret, proxy, tokens that the server confirmed",
    lifetime="until their day has lapsed, or the server has forgotten them",
)
_DAY_KEY = RecordKind(
    "day-key",
    StateOwner.CENTRAL_DAEMON,
    holds="keys of days, under `paper` alone",
    lifetime="until their day has lapsed",
)


@dataclass(frozen=True)
class Credentials:
    """What a user alone knows of a pseudonym, and the requests that it makes with that."""

    use: PseudonymUse
    day: int
    key: Scalar
    secret: PseudonymSecret

    @cached_property
    def pseudonym(self) -> bytes:
        """The pseudonym (32 bytes)."""
        return pseudonym_of(self.secret)

    def subscribe(self, serial: int, tokens: Iterable[bytes]) -> Subscribe:
        """Ask for what has one of these tokens; takes some 0.2 ms for each."""
        return request_proofs.subscribe(self.pseudonym, self.secret, serial, self._encrypted(tokens))

    def withdraw(self, serial: int, tokens: Iterable[bytes] = ()) -> WithdrawTokens:
        """Ask for that no more, or, without tokens, for nothing."""
        return request_proofs.withdraw(self.pseudonym, self.secret, serial, self._encrypted(tokens))

    def attach(self) -> Attach:
        """Ask for what waits."""
        return request_proofs.attach(self.pseudonym, self.secret)

    def publish(self, message: Message, randomness: Randomness) -> Publish:
        """Hand in a message; takes up to 20 ms."""
        wrapped = wrap(self.key, inside_of(message), randomness)
        return request_proofs.publish(self.pseudonym, self.secret, self._encrypted(message.tokens), wrapped)

    def _encrypted(self, tokens: Iterable[bytes]) -> tuple[bytes, ...]:
        return tuple([encrypted(self.key, token) for token in tokens])


@dataclass(eq=False)
class Pseudonym:
    """A pseudonym that messages of one day are received by, through one proxy."""

    owner: bytes
    """The name of its receiver (16 bytes)."""
    proxy: PublicKey
    credentials: Credentials
    serial: int = 0
    """Of the last request."""
    held: set[bytes] = field(default_factory=set, repr=False)
    """The tokens that the server routes to it, as far as is known."""
    is_ending: bool = False
    """Nobody wants it any more, and the server is to forget it."""
    is_known: bool = False
    """Somebody may have heard of it."""
    is_under_way: bool = False
    """The server is being told to forget it."""
    is_done: bool = False
    """There is nothing left of it."""
    leaving: set[bytes] = field(default_factory=set, repr=False)
    """The tokens that the server was told to route no more, and has not confirmed: it may, or not."""
    turn: trio.Lock = field(default_factory=trio.Lock)
    """For who changes what the server holds."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    """Cancelled to receive by it no more."""
    past: int | None = None
    """The day gone by that it asks for; `None`: it receives what is published on its own."""
    has_brought: bool = False
    """Whether anything came by it that is of a topic of its receiver."""
    left_at: float = -math.inf
    """When it was attached last (Unix time); `math.inf` while it is."""

    @property
    def id(self) -> bytes:
        """What server and proxy know it by (32 bytes)."""
        return self.credentials.pseudonym

    @property
    def day(self) -> int:
        """The day on which it is known; that of its messages, unless these are of the `past`."""
        return self.credentials.day

    @property
    def brings(self) -> int:
        """The day of its messages."""
        return self.day if self.past is None else self.past


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    owner: bytes
    proxy: bytes
    day: int
    key: bytes
    secret: bytes
    serial: int
    held: list[bytes]
    is_ending: bool


_decode = record_reader(_Stored, "pseudonym")


class PseudonymRecords:
    """Pseudonyms, and the keys of days, in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, *pseudonyms: Pseudonym) -> None:
        """Write pseudonyms in one commit; durable on return."""
        await self._store.write(*(_change(one) for one in pseudonyms))

    def keep_soon(self, pseudonym: Pseudonym) -> None:
        """Write a pseudonym."""
        self._store.write_soon(_change(pseudonym))

    def forget(self, pseudonym: Pseudonym) -> None:
        """Delete a pseudonym."""
        self._store.write_soon(Change(_PSEUDONYM, pseudonym.id, None))

    async def load(self) -> list[Pseudonym]:
        """Read all that were kept."""
        found: list[Pseudonym] = []

        def take(key: bytes, value: bytes) -> None:
            stored = _decode(value)
            credentials = Credentials(
                "subscribe", stored.day, Scalar(stored.key), PseudonymSecret(stored.secret)
            )
            pseudonym = Pseudonym(
                stored.owner,
                stored.proxy,
                credentials,
                stored.serial,
                set(stored.held),
                stored.is_ending,
                is_known=True,
            )
            if pseudonym.id != key:
                raise DecodeError("a pseudonym is kept under another's name")
            found.append(pseudonym)

        await restore(self._store, _PSEUDONYM, take)
        return found

    async def day_keys(self) -> dict[int, Scalar]:
        """Read the keys of days."""
        found: dict[int, Scalar] = {}
        await restore(self._store, _DAY_KEY, lambda day, key: found.update({number(day): Scalar(key)}))
        return found

    async def keep_day_keys(self, new: dict[int, Scalar], lapsed: Iterable[int]) -> None:
        """Write keys of days, and delete those of others; durable on return."""
        changes = [Change(_DAY_KEY, _day(day), key.reveal()) for day, key in new.items()]
        await self._store.write(*changes, *(Change(_DAY_KEY, _day(day), None) for day in lapsed))


def _change(pseudonym: Pseudonym) -> Change:
    known = pseudonym.credentials
    stored = _Stored(
        pseudonym.owner,
        pseudonym.proxy,
        known.day,
        known.key.reveal(),
        known.secret.reveal(),
        pseudonym.serial,
        sorted(pseudonym.held),
        pseudonym.is_ending,
    )
    return Change(_PSEUDONYM, pseudonym.id, encode(stored))


def _day(day: int) -> bytes:
    return day.to_bytes(8, "big")
