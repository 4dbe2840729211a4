"""What brokers below have advertised to one: taken whole or not at all, and within bounds."""

from __future__ import annotations

from collections.abc import Set
from itertools import islice
from typing import NamedTuple

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.frames import Advertise
from hushcast_protocol.brokers.routes import Routes, table_digest
from hushcast_protocol.brokers.words import ShownFilter, outside_asked

MAX_FILTERS_BELOW = 65_536  # filters of one broker below: 256 advertisements, all of which may be under way
MAX_FILTERS = 262_144  # filters in all, some 1 GB; one inner broker with what a hundred thousand people want


class Taken(NamedTuple):
    """What an advertisement changed."""

    added: dict[bytes, ShownFilter]
    """By name; what was there before is not in it."""
    removed: Set[bytes]


class Advertised:
    """The tables of the brokers below."""

    def __init__(self) -> None:
        self.routes = Routes()
        self._mentioned: dict[PublicKey, set[bytes]] = {}  # names of a whole table that is coming

    def begin(self, child: PublicKey) -> bytes:
        """Begin a link; return the digest of what is routed to a broker, which it compares."""
        self._mentioned.pop(child, None)
        return table_digest(self.routes.of(child))

    def take(self, child: PublicKey, frame: Advertise) -> Taken:
        """Take an advertisement. Raises `Refusal`: `form`, or `quota` where there is no room for it."""
        filters = {one.name: (one, outside_asked(one)) for one in frame.add}
        held, removed = self.routes.of(child), set(frame.remove)
        if not removed <= held.keys() or removed & filters.keys():
            raise Refusal("form")
        if frame.whole == "no":
            if child in self._mentioned:
                raise Refusal("form")
        elif removed:
            raise Refusal("form")
        else:
            mentioned = self._mentioned.setdefault(child, set())
            if frame.whole == "end":
                del self._mentioned[child]
                removed = held.keys() - mentioned - filters.keys()
            mentioned.update(filters)
        new = filters.keys() - held.keys()
        if len(held) + len(new) > MAX_FILTERS_BELOW or len(self.routes) + len(new) > MAX_FILTERS:
            raise Refusal("quota")
        for name in new:
            self.routes.put(child, name, filters[name][1])
        for name in removed:
            self.routes.take(child, name)
        return Taken({name: filters[name][0] for name in new}, removed)

    def drop(self, child: PublicKey, most: int) -> list[bytes]:
        """Route so many filters to a broker no more; return their names, none if there are none left."""
        self._mentioned.pop(child, None)
        names = list(islice(self.routes.of(child), most))
        for name in names:
            self.routes.take(child, name)
        return names
