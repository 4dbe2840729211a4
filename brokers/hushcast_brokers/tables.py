"""Tables: what brokers below have asked for, on disk, and shown to the parent as far as covering asks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import trio

from hushcast_brokers.advertising import Advertising
from hushcast_protocol.base import observed
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import PublicKey, Wire, decoder, encode
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import MAX_BROKER_FRAME, MAX_IN_ONE, Advertise, FromBelow, Standing
from hushcast_protocol.brokers.routes import Routes, table_digest
from hushcast_protocol.brokers.words import ShownFilter, outside
from hushcast_runtime.context import Context
from hushcast_runtime.store import Change, StoreError

MAX_FILTERS_BELOW = 65_536  # filters of one broker below: 256 advertisements, all of which may be under way
MAX_FILTERS = 262_144  # filters in all, some 1 GB; one inner broker with what a hundred thousand people want

_KIND = "route"
_SCAN = 1024  # records read at once, of some 100 bytes
_KEY = 32
_decode: Callable[[bytes], ShownFilter] = decoder(ShownFilter, "filter", MAX_BROKER_FRAME)


class Tables:
    """The tables of one broker's brokers below."""

    def __init__(self, advertising: Advertising, context: Context) -> None:
        self.routes = Routes()
        self._advertising = advertising
        self._store = context.store
        self._counters = context.counters
        self._tracer = context.tracer
        self._now = context.env.elapsed
        self._children: set[PublicKey] = set()  # that have asked for anything
        self._heard: dict[PublicKey, float] = {}  # when each asked for anything last
        self._mentioned: dict[PublicKey, set[bytes]] = {}  # names of a whole table that is coming

    def children(self) -> set[PublicKey]:
        """Return the brokers that have asked for anything."""
        return set(self._children)

    def heard(self, child: PublicKey) -> float:
        """Return when a broker last asked for anything, by a clock that nobody sets; 0.0 if it never did."""
        return self._heard.get(child, 0.0)

    async def load(self) -> None:
        """Know what was asked for before a restart."""
        after: bytes | None = None
        while batch := await self._store.scan(_KIND, after=after, limit=_SCAN):
            for key, value in batch:
                try:
                    given = outside(_decode(value))
                except DecodeError:
                    raise StoreError(
                        "a record in the database is damaged (filter): "
                        "restore a backup with `hushcast restore`"
                    ) from None
                self._children.add(key[:_KEY])
                self.routes.put(key[:_KEY], key[_KEY:], given)
            after = batch[-1][0]

    def greeting(self, child: PublicKey) -> list[Wire]:
        """Say what is routed to a broker below, over a link that has just opened."""
        self._mentioned.pop(child, None)
        return [Standing(table_digest(self.routes.of(child)), 0)]

    def take(self, child: PublicKey, frame: FromBelow) -> int:
        """Take what a broker below advertises; return the version of it upward. Raises `Refusal`."""
        if not isinstance(frame, Advertise):
            raise Refusal("form")
        self._counters.add("advertisements_received")
        self._heard[child] = self._now()
        added = {one.name: one for one in frame.add}
        filters = {name: _outside(one) for name, one in added.items()}
        held = self.routes.of(child)
        removed = set(frame.remove)
        if not removed <= held.keys() or removed & added.keys():
            raise Refusal("form")
        if (removed and frame.whole != "no") or (child in self._mentioned and frame.whole == "no"):
            raise Refusal("form")
        if frame.whole != "no":
            self._mentioned.setdefault(child, set())
        new = len(added.keys() - held.keys())
        if len(held) + new > MAX_FILTERS_BELOW or len(self.routes) + new > MAX_FILTERS:
            if frame.whole == "end":
                del self._mentioned[child]  # all of it is to come again
            raise Refusal("quota")
        if frame.whole != "no":
            self._mentioned[child].update(added)
            if frame.whole == "end":
                removed = held.keys() - self._mentioned.pop(child)
        if self._tracer.is_on:
            shown = tuple(map(encode, frame.add))
            self._tracer.observe(observed.Advertised(child, shown, tuple(removed)))
        return self._change(child, added, filters, removed)

    async def drop(self, child: PublicKey) -> None:
        """Route nothing to a broker any more."""
        self._mentioned.pop(child, None)
        self._children.discard(child)
        self._heard.pop(child, None)
        while names := list(islice(self.routes.of(child), MAX_IN_ONE)):
            self._change(child, {}, {}, set(names))
            await trio.lowlevel.checkpoint()  # each takes up to a millisecond

    def _change(
        self,
        child: PublicKey,
        added: dict[bytes, ShownFilter],
        filters: dict[bytes, Filter],
        removed: set[bytes],
    ) -> int:
        changes = []
        if added:
            self._children.add(child)
        held = self.routes.of(child)
        for name, one in added.items():
            if name not in held:
                changes.append(Change(_KIND, child + name, encode(one)))
                self.routes.put(child, name, filters[name])
                held = self.routes.of(child)
        for name in removed:
            changes.append(Change(_KIND, child + name, None))
            self.routes.take(child, name)
        self._store.write_soon(*changes)
        return self._advertising.change(self.routes.take_changes())


def _outside(shown: ShownFilter) -> Filter:
    try:
        return outside(shown)
    except DecodeError:
        raise Refusal("form") from None
