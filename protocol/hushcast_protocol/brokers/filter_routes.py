"""Routes: which filters each child of a broker has asked for, by name, and whose a message is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence, Set
from heapq import merge
from itertools import islice

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.clear_words import point, read_words
from hushcast_protocol.brokers.covered_filters import Covered, CoveredFilters
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.poset import Poset
from hushcast_protocol.brokers.roots import ROOTS_AT_ONCE, RootChanges
from hushcast_protocol.content.topics import Topic

_SORTED_AT_ONCE = 4096  # names that are sorted, or merged, in one piece: some 5 ms
NOTHING = bytes(LABEL)
"""The digest of a table without filters."""


def table_digest(names: Iterable[bytes]) -> bytes:
    """Return 16 bytes by which both ends of a link compare a table, given names of one length."""
    return _digest(b"".join(sorted(names)))


def table_digest_in_pieces(names: Iterable[bytes]) -> Generator[None, None, bytes]:
    """Return the same of the names of now, in pieces: to sort a full table takes a tenth of a second."""
    rest, runs = iter(list(names)), []
    while run := sorted(islice(rest, _SORTED_AT_ONCE)):
        runs.append(run)
        yield
    merged, data = merge(*runs), b""
    while piece := b"".join(islice(merged, _SORTED_AT_ONCE)):
        data += piece
        yield
    return _digest(data)


def _digest(data: bytes) -> bytes:
    return digest(Domain.ROUTES, data, size=LABEL) if data else NOTHING


class FilterRoutes:
    """The filters of all children. A child is a key; names are the child's own, 16 bytes each."""

    def __init__(self) -> None:
        self._table = Poset()
        self._covered = CoveredFilters()
        self._held: dict[PublicKey, dict[bytes, Filter | Covered]] = {}
        self._more: Counter[tuple[PublicKey, Filter]] = Counter()  # names beyond the first of a filter
        # What a message is compared with: its topic's filters, of one shape unless somebody lies.
        self._shapes: dict[str, Counter[Topic]] = {}
        self._count = 0

    def __len__(self) -> int:
        """The number of names, of all children."""
        return self._count

    def of(self, child: PublicKey) -> Mapping[bytes, Filter | Covered]:
        """Return what a child has asked for, by name."""
        return self._held.get(child, {})

    @property
    def children(self) -> Set[PublicKey]:
        """Those that have asked for anything; not to be kept, as it changes."""
        return self._held.keys()

    def filters(self) -> set[Filter]:
        """Return the filters that anybody has asked for, covered ones that are to be passed on included."""
        every = (given for held in self._held.values() for given in held.values())
        return {given.filter if isinstance(given, Covered) else given for given in every}

    def put(self, child: PublicKey, name: bytes, given: Filter | Covered) -> None:
        """Route a filter to a child; under a name that it had, in place of the filter of before."""
        held = self._held.setdefault(child, {})
        if (before := held.get(name)) is not None:
            if before == given:
                return
            self._remove(child, before)
        else:
            self._count += 1
        held[name] = given
        if isinstance(given, Covered):
            self._covered.add(given.filter)
        elif child in self._table.sources(given):
            self._more[child, given] += 1
        elif self._table.insert(given, child):
            self._shapes.setdefault(given.topic.name, Counter())[given.topic] += 1

    def take(self, child: PublicKey, name: bytes) -> None:
        """Route the filter of a name no more; raise `KeyError` where there is none."""
        held = self._held[child]
        self._remove(child, held.pop(name))
        self._count -= 1
        if not held:
            del self._held[child]

    def drop(self, child: PublicKey, most: int) -> list[bytes]:
        """Route so many filters to a child no more; return their names, none if there are none left."""
        names = list(islice(self.of(child), most))
        for name in names:
            self.take(child, name)
        return names

    def take_changes(self) -> RootChanges:
        """Return what changed of what is to be passed on, as much as one step has time for."""
        return self._covered.beside(self._table.take_changes(ROOTS_AT_ONCE), ROOTS_AT_ONCE)

    def interested(self, tokens: Sequence[bytes]) -> set[PublicKey]:
        """Return the children that a message is for; raise `DecodeError` where its tokens are no words."""
        topic, found = read_words(tokens)
        whose: set[PublicKey] = set()
        for shape in self._shapes.get(topic.hex(), ()):
            whose |= self._table.interested(shape, point(shape, found))  # type: ignore[arg-type]
        return whose

    def _remove(self, child: PublicKey, given: Filter | Covered) -> None:
        if isinstance(given, Covered):
            self._covered.remove(given.filter)
            return
        if self._more[child, given] > 0:
            self._more[child, given] -= 1
            return
        del self._more[child, given]
        if self._table.remove(given, child):
            shapes = self._shapes[given.topic.name]
            shapes[given.topic] -= 1
            if not shapes[given.topic]:
                del shapes[given.topic]
            if not shapes:
                del self._shapes[given.topic.name]
