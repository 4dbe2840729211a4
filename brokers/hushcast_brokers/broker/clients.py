"""Clients: who attaches to an edge broker, and what each has subscribed to; on disk.

Each is sent what its own filters match. What is shown outside of them is another matter (`exposure.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import trio

from hushcast_brokers.broker.downstream import Downstream
from hushcast_brokers.broker.matching import Interests
from hushcast_protocol.base import observations
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey, Wire, encode
from hushcast_protocol.brokers.child_advertisements import MAX_FILTERS
from hushcast_protocol.brokers.filter_routes import NOTHING, table_digest
from hushcast_protocol.brokers.frames import (
    AnonymityTerms,
    FromBelow,
    Join,
    ParentHello,
    Subscribe,
    Unsubscribe,
)
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors
from hushcast_protocol.brokers.items import Item
from hushcast_protocol.content.messages import Message
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import record_reader

MAX_CLIENTS = 4096  # of one edge broker: each has a link that stays open, some 100 kB with what its tor takes
CLIENT_FORGOTTEN_AFTER = 7  # days in which it did not attach; messages wait for one day at most
COUNTED_WITHIN = 1  # days since it was attached last in which it counts for others: a night is no leaving

_CLIENT = RecordKind(
    "client",
    StateOwner.BROKER,
    holds="at an edge: its clients",
    lifetime="until they end it, or were not attached for seven days",
    bound=f"{MAX_CLIENTS:,}",
)
_SUBSCRIPTION = RecordKind(
    "subscription",
    StateOwner.BROKER,
    holds="at an edge: what its clients have asked for",
    lifetime="as long as the client, or until that ends it",
)
_AT_ONCE = 8  # filters of a forgotten client that go in one step: some milliseconds each at most
_KEY = 32


class _StoredSubscription(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a subscription."""

    filter: Item
    terms: AnonymityTerms


_read = record_reader(_StoredSubscription, "subscription")
_pack = msgspec.msgpack.Encoder().encode


class Clients:
    """The clients of one edge broker."""

    def __init__(
        self,
        listed: frozenset[PublicKey] | None,
        interests: Interests,
        downstream: Downstream,
        admission: Admission,
        calendar: Calendar,
        context: Context,
    ) -> None:
        """`listed` are those that are served (`serve_only`)."""
        self._listed = listed
        self._interests = interests
        self._downstream = downstream
        self._admission = admission
        self._calendar = calendar
        self._store = context.store
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._known: dict[PublicKey, int] = {}  # the last day on which each was attached
        self._leaving: dict[PublicKey, trio.Event] = {}  # forgotten ones, until all of theirs is gone

    def __len__(self) -> int:
        """The number of clients known."""
        return len(self._known)

    def __contains__(self, client: PublicKey) -> bool:
        return client in self._known

    def fullness(self) -> float:
        """Return the share of the places that is taken, 0 to 1."""
        return len(self._known) / MAX_CLIENTS

    async def load(self) -> None:
        """Know who was here before a restart, and what for."""
        await restore(
            self._store, _CLIENT, lambda key, value: self._known.update({sized(key, _KEY): number(value)})
        )
        await restore(self._store, _SUBSCRIPTION, self._take_up)
        self.serve_only(self._listed)
        for left in list(self._leaving.values()):
            await left.wait()
        await self._note_away()

    def _take_up(self, key: bytes, value: bytes) -> None:
        kept, client = _read(value), key[:_KEY]
        if client not in self._known:
            raise DecodeError("a subscription is nobody's")
        self._interests.load(client, key[_KEY:], kept.filter, kept.terms)

    def serve_only(self, listed: frozenset[PublicKey] | None) -> set[PublicKey]:
        """Serve those with these keys from now on, all if it is `None`; return whom that leaves out.

        They are forgotten: nothing is sent to them any more.
        """
        self._listed = listed
        left_out = set[PublicKey]() if listed is None else self._known.keys() - listed
        for client in left_out:
            self.forget(client)
        return left_out

    async def greeting(self, client: PublicKey) -> list[Wire]:
        """Say what is routed to a client, over a link that has just opened, and how all of it stands.

        Raises `DecodeError` for one that is being forgotten: it would be sent what still waits for it.
        """
        if client in self._leaving:
            raise DecodeError("a client is back before all of it is forgotten")
        if is_known := client in self._known:
            self._note_attached(client)
        digest = table_digest(self._interests.entries(client)) if is_known else NOTHING
        standing = ParentHello(digest, self._admission.difficulty, self._interests.least_k)
        return [standing, *(self._interests.exposed(client) if is_known else ())]

    async def take(self, client: PublicKey, frame: FromBelow) -> int:
        """Take what a client asks for; return the version of it upward. Raises `Refusal`."""
        while (left := self._leaving.get(client)) is not None:
            await left.wait()
        if self._listed is not None and client not in self._listed:
            raise Refusal("unknown")
        if isinstance(frame, Join):
            return self._join(client, frame)
        if client not in self._known:
            raise Refusal("unknown")
        if isinstance(frame, Subscribe):
            return self._subscribe(client, frame)
        if isinstance(frame, Unsubscribe):
            return self._unsubscribe(client, frame.name)
        raise Refusal("form")

    def left(self, client: PublicKey) -> None:
        """Hear that a client's link has ended; one that wants nothing is forgotten."""
        if self._downstream.is_linked(client):
            return  # it is back over another link already
        if client in self._known and not self._interests.of(client):
            self.forget(client)

    async def factors(self, client: PublicKey, ask: AskFactors) -> Factors:
        """Raise `Refusal`: clients compare nothing."""
        raise Refusal("form")

    async def hand_up(self, client: PublicKey, message: Message) -> None:
        """Raise `Refusal`: nobody is below a client."""
        raise Refusal("form")

    def forget_items(self, lapsed: Iterable[tuple[PublicKey, bytes]]) -> None:
        """Delete what was dropped as its day has lapsed."""
        for client, name in lapsed:
            self._note_ended(client, name)

    async def expire(self) -> None:
        """Note who is attached still, and who is away; forget those who have not been here for long."""
        oldest = self._calendar.day(self._env.now()) - CLIENT_FORGOTTEN_AFTER
        for client in list(self._known):
            if client in self._known and self._downstream.is_linked(client):
                self._note_attached(client)
            elif self._known.get(client, oldest) < oldest:
                self.forget(client)
            await trio.lowlevel.checkpoint()  # all may have left on one day, each with many filters
        await self._note_away()

    async def _note_away(self) -> None:
        """Do not count those who have been away for long, until they are back."""
        oldest = self._calendar.day(self._env.now()) - COUNTED_WITHIN
        for client in list(self._known):
            if self._known.get(client, oldest) < oldest and not self._downstream.is_linked(client):
                self._interests.note_there(client, False)
                await trio.lowlevel.checkpoint()

    def forget(self, client: PublicKey) -> None:
        """Forget a client with all that it asked for, and that waits for it.

        It is unknown at once; what it asked for goes in the next steps, one client's after the other.
        """
        del self._known[client]
        self._counters.add("clients_forgotten")
        self._leaving[client] = trio.Event()
        if len(self._leaving) == 1:
            self._spawn(self._let_go)

    async def _let_go(self) -> None:
        while self._leaving:
            client = next(iter(self._leaving))
            self._interests.forget(client)
            while names := self._interests.forget_some(client, _AT_ONCE):
                for name in names:
                    self._note_ended(client, name)
                await trio.lowlevel.checkpoint()
            self._store.write_soon(Change(_CLIENT, client, None))
            await self._downstream.cleared(client)  # also of what came meanwhile
            await trio.lowlevel.checkpoint()
            # Nothing is waited for between this and the end: whoever leaves next finds this task or none.
            self._leaving.pop(client).set()

    def forget_all(self) -> None:
        """Forget all clients: this is no edge broker any more."""
        for client in list(self._known):
            self.forget(client)

    def _join(self, client: PublicKey, frame: Join) -> int:
        if client not in self._known:
            if len(self._known) >= MAX_CLIENTS:
                raise Refusal("quota")
            if (refused := self._admission.refusal(frame.stamp, client)) is not None:
                raise Refusal(refused)
            self._counters.add("clients_joined")
            self._note_attached(client)
        return self._interests.version

    def _subscribe(self, client: PublicKey, frame: Subscribe) -> int:
        interests = self._interests
        given = interests.read(client, frame.filter)
        is_new = frame.name not in interests.of(client)
        if is_new and (interests.count(client) >= interests.most_each or len(interests) >= MAX_FILTERS):
            raise Refusal("quota")
        self._counters.add("subscriptions")
        version = interests.subscribe(client, frame.name, given, frame.terms)
        if version is None:
            if not is_new:
                self._note_ended(client, frame.name)
            raise Refusal("level")
        kept = _pack(_StoredSubscription(frame.filter, frame.terms))
        self._store.write_soon(Change(_SUBSCRIPTION, client + frame.name, kept))
        terms = frame.terms
        self._tracer.observe(
            observations.Asked(
                *(client, frame.name, encode(frame.filter)), terms.k, terms.condition.value, terms.otherwise
            )
        )
        return version

    def _unsubscribe(self, client: PublicKey, name: bytes) -> int:
        if name in self._interests.of(client):
            self._note_ended(client, name)
        return self._interests.unsubscribe(client, name)

    def _note_ended(self, client: PublicKey, name: bytes) -> None:
        self._store.write_soon(Change(_SUBSCRIPTION, client + name, None))
        self._tracer.observe(observations.Ended(client, name))

    def _note_attached(self, client: PublicKey) -> None:
        today = self._calendar.day(self._env.now())
        if self._known.get(client) != today:
            self._interests.note_there(client, True)
            self._known[client] = today
            self._store.write_soon(Change(_CLIENT, client, today.to_bytes(8, "big")))
