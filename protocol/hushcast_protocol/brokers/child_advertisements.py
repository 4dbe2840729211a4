"""What brokers below have advertised to one: taken whole or not at all, piece by piece, and within bounds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any, NamedTuple, Protocol

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.clear_words import CoveredFilter, ShownFilter, outside_asked
from hushcast_protocol.brokers.covered_filters import Covered
from hushcast_protocol.brokers.filter_routes import FilterRoutes, table_digest_in_pieces
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import Advertise
from hushcast_protocol.brokers.items import Item

MAX_FILTERS_BELOW = 65_536  # filters of one broker below: 256 advertisements, all of which may be under way
MAX_FILTERS = 262_144  # filters in all, some 1 GB; one inner broker with what a hundred thousand people want

_AT_ONCE = 16  # filters taken in or out in one piece: a millisecond each at most


class AdvertisementChange(NamedTuple):
    """What a piece of an advertisement changed."""

    added: dict[bytes, Item]
    """By name; what was there before is not in it."""
    removed: Set[bytes]
    again: Set[bytes]
    """Names of what was there, and was said once more by itself."""


class ChildItems(Protocol):
    """Where a privacy model keeps what children ask for, by child and name."""

    def __len__(self) -> int: ...

    @property
    def children(self) -> Set[PublicKey]:
        """Those that have asked for anything; not to be kept, as it changes."""

    def of(self, child: PublicKey, /) -> Mapping[bytes, Any]:
        """Return what a child has asked for, by name."""

    def put(self, child: PublicKey, name: bytes, given: Any, /) -> None:
        """Take what was `read`; under a name that the child had, in place of what was there."""

    def take(self, child: PublicKey, name: bytes, /) -> None:
        """Forget what a child asked for under a name; raise `KeyError` where there is nothing."""


class ItemReader(Protocol):
    """How a privacy model reads an item."""

    def __call__(self, child: PublicKey, item: Item, /) -> Any:
        """Return what is to be put of a child's item; raise `Refusal` where it is none."""


class ChildAdvertisements:
    """The tables of the brokers below."""

    def __init__(
        self,
        held: ChildItems | None = None,
        read: ItemReader | None = None,
        is_late: Callable[[bytes], bool] = lambda name: False,
    ) -> None:
        """As under `clear` unless given; `is_late` tells of names that were dropped without being asked."""
        self._is_late = is_late
        self.routes: Any = FilterRoutes() if held is None else held
        self._read: ItemReader = read or _read_shown
        self._mentioned: dict[PublicKey, set[bytes]] = {}  # names of a whole table that is coming
        self._coming: dict[PublicKey, dict[bytes, None]] = {}  # names of what is being taken, and not put yet
        self._readings = 0  # how often items were to be read anew

    def begin(self, child: PublicKey) -> Generator[None, None, bytes]:
        """Begin a link; return, in pieces, the digest of what is routed to a broker, which it compares."""
        self._mentioned.pop(child, None)
        self._coming.pop(child, None)
        return table_digest_in_pieces(self.routes.of(child))

    def load(self, child: PublicKey, name: bytes, item: Item) -> None:
        """Take what was taken before a restart; raise `Refusal` where it is none."""
        self.routes.put(child, name, self._read(child, item))

    def take(self, child: PublicKey, frame: Advertise) -> Generator[AdvertisementChange, None, None]:
        """Take an advertisement, in pieces between which others have their turn: what is added comes first.

        Yields what each changed. Raises `Refusal` before anything has: `form`, or `quota` where there is no
        room for it; later, `tree` where the child is dropped meanwhile, and what `read` raises where items
        have to be read anew.
        """
        items = {one.name: one for one in frame.add}
        given = {name: self._read(child, one) for name, one in items.items()}
        readings, held = self._readings, self.routes.of(child)
        removed = {name for name in frame.remove if name in held or not self._is_late(name)}
        if not removed <= held.keys() or removed & items.keys():
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
                removed = held.keys() - mentioned - items.keys()
            mentioned.update(items)
        new = [name for name in items if name not in held]
        coming = sum(map(len, self._coming.values())) + len(new)
        if len(held) + len(new) > MAX_FILTERS_BELOW or len(self.routes) + coming > MAX_FILTERS:
            raise Refusal("quota")
        rest = self._coming[child] = dict.fromkeys(new)
        try:
            if frame.whole == "no" and (again := items.keys() - rest.keys()):
                yield AdvertisementChange({}, frozenset(), again)
            for piece in _pieces(new):
                self._check(child, rest)
                if readings != self._readings:
                    given = {name: self._read(child, items[name]) for name in rest}
                    readings = self._readings
                for name in piece:
                    self.routes.put(child, name, given[name])
                    del rest[name]
                yield AdvertisementChange({name: items[name] for name in piece}, frozenset(), frozenset())
            for piece in _pieces(removed):
                self._check(child, rest)
                for name in piece:
                    if name in self.routes.of(child):  # its day may have lapsed meanwhile
                        self.routes.take(child, name)
                yield AdvertisementChange({}, frozenset(piece), frozenset())
        finally:
            if self._coming.get(child) is rest:
                del self._coming[child]

    def note_changed(self) -> None:
        """Hear that items are to be read anew, as the tree or what opens them has changed."""
        self._readings += 1

    def drop(self, child: PublicKey, most: int) -> list[bytes]:
        """Route so many items to a broker no more; return their names, none if there are none left."""
        self._mentioned.pop(child, None)
        self._coming.pop(child, None)
        names = list(islice(self.routes.of(child), most))
        for name in names:
            self.routes.take(child, name)
        return names

    def _check(self, child: PublicKey, rest: dict[bytes, None]) -> None:
        """Raise `Refusal` where another link of a child has begun, or it was dropped."""
        if self._coming.get(child) is not rest:
            raise Refusal("tree")


def read_filter(child: PublicKey, item: Item) -> Filter:
    """Return the filter of an item of `clear`; raise `Refusal` where it is none."""
    if not isinstance(item, ShownFilter):
        raise Refusal("form")
    return outside_asked(item)


def _read_shown(child: PublicKey, item: Item) -> Filter | Covered:
    if isinstance(item, CoveredFilter):
        return Covered(outside_asked(item.filter))
    return read_filter(child, item)


def _pieces(names: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
    rest = iter(names)
    return iter(lambda: tuple(islice(rest, _AT_ONCE)), ())
