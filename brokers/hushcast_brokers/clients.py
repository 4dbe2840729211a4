"""Clients: who attaches to an edge broker, and what each has subscribed to; on disk.

Each is sent what its own filters match. What is shown outside of them is another matter (`exposing.py`).
"""

from __future__ import annotations

import msgspec

from hushcast_brokers.downstream import Downstream
from hushcast_brokers.exposing import Exposing
from hushcast_protocol.base import observed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import PublicKey, Wire, encode
from hushcast_protocol.brokers.advertised import MAX_FILTERS
from hushcast_protocol.brokers.frames import FromBelow, Join, Standing, Subscribe, Terms, Unsubscribe
from hushcast_protocol.brokers.routes import Routes, table_digest
from hushcast_protocol.brokers.words import ShownFilter, from_outside, outside, outside_asked
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.store import Change, StoreError, record_reader

MAX_CLIENTS = 4096  # of one edge broker: each has a link that stays open, some 100 kB with what its tor takes
MAX_FILTERS_EACH = 256  # of one client: a daemon has as many subscriptions at most
CLIENT_FORGOTTEN_AFTER = 7  # days in which it did not attach; messages wait for one day at most

_CLIENT, _SUBSCRIPTION = "client", "subscription"
_SCAN = 1024  # records read at once
_KEY = 32


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a subscription."""

    filter: ShownFilter
    terms: Terms


_read = record_reader(_Kept, "subscription")
_pack = msgspec.msgpack.Encoder().encode


class Clients:
    """The clients of one edge broker."""

    def __init__(
        self,
        listed: frozenset[PublicKey] | None,
        exposing: Exposing,
        downstream: Downstream,
        admission: Admission,
        calendar: Calendar,
        context: Context,
    ) -> None:
        """`listed` are the keys that are served; all, if it is `None`."""
        self._listed = listed
        self.routes = Routes()
        self._exposing = exposing
        self._downstream = downstream
        self._admission = admission
        self._calendar = calendar
        self._store = context.store
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._known: dict[PublicKey, int] = {}  # the last day on which each was attached

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
        known = await self._store.scan(_CLIENT)
        self._known.update((key, int.from_bytes(value, "big")) for key, value in known)
        after: bytes | None = None
        while batch := await self._store.scan(_SUBSCRIPTION, after=after, limit=_SCAN):
            for key, value in batch:
                kept = _read(value)
                try:
                    given = outside(kept.filter)
                except DecodeError:
                    raise StoreError(
                        "a record in the database is damaged (subscription): restore a backup with "
                        "`hushcast restore`"
                    ) from None
                self.routes.put(key[:_KEY], key[_KEY:], given)
                self._exposing.load(key[:_KEY], key[_KEY:], given, kept.terms)
            after = batch[-1][0]

    def greeting(self, client: PublicKey) -> list[Wire]:
        """Say what is routed to a client, over a link that has just opened, and how all of it stands."""
        if client in self._known:
            self._note_attached(client)
        held = self.routes.of(client)
        names = (name + from_outside(given).name for name, given in held.items())
        standing = Standing(table_digest(names), self._admission.difficulty)
        levels = (self._exposing.level(client, name) for name in held)
        return [standing, *(level for level in levels if level is not None)]

    def take(self, client: PublicKey, frame: FromBelow) -> int:
        """Take what a client asks for; return the version of it upward. Raises `Refusal`."""
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
        if client in self._known and not self.routes.of(client):
            self.forget(client)

    def expire(self, now: float) -> None:
        """Note who is attached still, and forget those who have not been here for long."""
        oldest = self._calendar.day(now) - CLIENT_FORGOTTEN_AFTER
        for client, day in list(self._known.items()):
            if self._downstream.is_linked(client):
                self._note_attached(client)
            elif day < oldest:
                self.forget(client)

    def forget(self, client: PublicKey) -> None:
        """Forget a client with all that it asked for, and that waits for it."""
        del self._known[client]
        names = self.routes.drop(client)
        changes = [Change(_SUBSCRIPTION, client + name, None) for name in names]
        self._store.write_soon(Change(_CLIENT, client, None), *changes)
        for name in names:
            self._tracer.observe(observed.Ended(client, name))
        self._exposing.forget(client, names)
        self._downstream.clear(client)
        self._counters.add("clients_forgotten")

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
        return self._exposing.version

    def _subscribe(self, client: PublicKey, frame: Subscribe) -> int:
        given = outside_asked(frame.filter)
        held = self.routes.of(client)
        if any(
            other.topic.name == given.topic.name and other.topic != given.topic for other in held.values()
        ):
            # One id, two shapes: each shape costs work with every message of that id.
            raise Refusal("form")
        is_new = frame.name not in held
        if is_new and (self._exposing.filters(client) >= MAX_FILTERS_EACH or len(self.routes) >= MAX_FILTERS):
            raise Refusal("quota")
        self._counters.add("subscriptions")
        version = self._exposing.subscribe(client, frame.name, given, frame.terms)
        if version is None:
            self._drop(client, frame.name)
            raise Refusal("level")
        kept = _pack(_Kept(frame.filter, frame.terms))
        self._store.write_soon(Change(_SUBSCRIPTION, client + frame.name, kept))
        self.routes.put(client, frame.name, given)
        terms = frame.terms
        self._tracer.observe(
            observed.Asked(
                *(client, frame.name, encode(frame.filter)), terms.k, terms.condition.value, terms.otherwise
            )
        )
        return version

    def _unsubscribe(self, client: PublicKey, name: bytes) -> int:
        self._drop(client, name)
        return self._exposing.unsubscribe(client, name)

    def _drop(self, client: PublicKey, name: bytes) -> None:
        if name in self.routes.of(client):
            self._store.write_soon(Change(_SUBSCRIPTION, client + name, None))
            self.routes.take(client, name)
            self._tracer.observe(observed.Ended(client, name))

    def _note_attached(self, client: PublicKey) -> None:
        today = self._calendar.day(self._env.now())
        if self._known.get(client) != today:
            self._known[client] = today
            self._store.write_soon(Change(_CLIENT, client, today.to_bytes(8, "big")))
