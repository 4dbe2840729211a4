"""One day's rows at one broker.

Items whose layers are left under one path are compared as they are. Those under several paths are compared
under a common key, to which a factor turns each path (`aggregation.py`); until it is learned, a path's items
have rows of their own. A row goes up as one item, which stays as long as the row, whoever of its members
goes. While the day is unsettled, as brokers have left the tree, a row that somebody joins goes up once more:
what was handed up for it (`hand_up.py`) comes down again for whoever is new.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.brokers.full.comparable_item import ComparableItem
from hushcast_protocol.brokers.full.layer_keys import Keyring, LayerKeys
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import AnyLayer, LayerPath, in_order, layer_of, onward_target
from hushcast_protocol.brokers.full.published_names import element_name

MAX_FACTORS = (
    4096  # paths of a child's items a day for which factors are asked; others have rows of their own
)
_COMPARED_AT_ONCE = 64  # rows of a path that are compared in one piece: a multiplication each, some 10 ms
_FREED_AT_ONCE = 2048  # rows of a day gone by whose memory is given back in one piece: some 5 ms

_Place = tuple[LayerPath | None, bytes]  # a row's: under one path, or (`None`) under the common key


class _Above(NamedTuple):
    """What is on an item on its way up from here, and on what comes for it."""

    path: LayerPath
    own: AnyLayer | None
    """This broker's; the root has none."""


class Row:
    """Items of one word, as far as the broker can tell."""

    __slots__ = ("element", "members", "names", "path", "place", "said")

    def __init__(self, place: _Place, path: LayerPath, element: bytes) -> None:
        self.place = place
        self.path, self.element = path, element
        """What goes up for the row, before the broker's own layer is on it."""
        self.members: dict[tuple[PublicKey, bytes], ComparableItem] = {}
        """By child and name."""
        self.said: bytes | None = None
        """The name under which the parent has it."""
        self.names: dict[bytes, _Above] = {}
        """All under which messages for it may come, and what is on what opens them."""


class OnwardRoute(NamedTuple):
    """Where a message goes that came under one name."""

    child: PublicKey
    name: bytes
    """What it goes under: that of the child's item."""
    key: Secret
    """Turns what opens the message for this broker into what opens it for the child."""


class ItemOrigin(NamedTuple):
    """Under what a child's item comes from above."""

    name: bytes
    """That of the item that the parent has of it, or, at the root, of the word."""
    key: Secret
    """Turned what opens a message for this broker into what opens it for the child."""


class DayRows:
    """The rows of one day."""

    def __init__(self, keys: Keyring, above: Sequence[PublicKey], layers: int, day: int) -> None:
        self._keys = keys
        self._action = keys.action
        self._day = day
        self._target = onward_target(above, layers) if above else None
        self._factors: dict[LayerPath, LayerKeys] = {}
        self._paths: dict[LayerPath, int] = {}  # items under each
        self._brought: dict[PublicKey, int] = {}  # paths that a child was the first to bring, today
        self._beyond: set[LayerPath] = set()  # those over the bound
        self._rows: dict[LayerPath | None, dict[bytes, Row]] = {}
        self._of: dict[tuple[PublicKey, bytes], Row] = {}
        self._names: dict[bytes, Row] = {}
        self._unsaid: dict[Row, None] = {}
        self._gone: dict[bytes, None] = {}
        self._again: dict[Row, None] = {}  # to be said once more; at the root, those that somebody joined
        self.is_unsettled = False

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows."""
        return tuple(row for rows in self._rows.values() for row in rows.values())

    def put(self, child: PublicKey, read: ComparableItem) -> None:
        """Add an item to its row, which may be new."""
        self._note_path(child, read.path)
        place = self._place(read.path, read.element)
        row = self._at(place) or self._new(place, read)
        row.members[child, read.name] = read
        self._of[child, read.name] = row
        self._joined(row)

    def again(self, child: PublicKey, name: bytes) -> None:
        """Hear that a child says an item once more: somebody has joined its row there."""
        if (row := self._of.get((child, name))) is not None:
            self._joined(row)

    def take(self, child: PublicKey, read: ComparableItem) -> None:
        """Take an item from its row, which goes with its last."""
        self._paths[read.path] -= 1
        if not self._paths[read.path]:
            del self._paths[read.path]
            self._beyond.discard(read.path)
        row = self._of.pop((child, read.name))
        del row.members[child, read.name]
        if not row.members:
            self._remove(row)

    def take_changes(self) -> tuple[list[LayeredWord], list[bytes]]:
        """Return the items that the parent is to have now, and the names of those no more."""
        shown = []
        if self._target is not None:
            for row in self._unsaid:
                item, own = self._upward(row, self._target)
                row.said = item.name
                self._know(row, row.said, row.path, own)
                if row.said in self._gone:
                    del self._gone[row.said]
                else:
                    shown.append(item)
            shown += [self._upward(row, self._target)[0] for row in self._again]
            self._again.clear()
        withdrawn = list(self._gone)
        self._unsaid.clear()
        self._gone.clear()
        return shown, withdrawn

    def take_joined(self) -> list[bytes]:
        """Return, at the root, the names of words that somebody has asked for since the last time."""
        joined = [name for row in self._again for name in row.names]
        self._again.clear()
        return joined

    def recall(self, item: LayeredWord) -> None:
        """Hear that the parent has this item of ours."""
        ends = self._keys.public, self._target
        owned = [layer for layer in item.layers if (layer.owner, layer.target) == ends]
        path = tuple(layer for layer in item.layers if layer not in owned)
        self._keys.check(item.layers)
        if len(owned) != 1:
            raise Refusal("form")
        own, name = owned[0], item.name
        element = self._action.strip(self._keys.on(own, self._day).route, item.element)
        row = self._at(self._place(path, element))
        if row is not None:
            self._know(row, name, path, own)
            if row.said == name:
                return
        if row is None or row.said is not None:
            self._gone[name] = None
        else:
            row.said, row.path, row.element = name, path, element
            del self._unsaid[row]

    def shrink(self) -> bool:
        """Give back some of the memory of a day that nobody asks any more; tell whether there is more."""
        if self._rows:
            self._rows.popitem()
            return True
        held: dict[Any, Row]
        for held in (self._of, self._names):
            for _ in range(min(len(held), _FREED_AT_ONCE)):
                held.popitem()
        return bool(self._of or self._names)

    def missing(self) -> list[LayerPath]:
        """Return paths that need a factor."""
        if len(self._paths) < 2 and not self._factors:
            return []
        return [
            path
            for path in self._paths
            if (path not in self._factors or path in self._rows) and path not in self._beyond
        ]

    def learn(self, path: LayerPath, factors: LayerKeys) -> Generator[None, None, None]:
        """Compare a path's items with those of others from now on: new ones at once, its rows in pieces.

        Where it is not gone through to the end, the path is missing still.
        """
        route = self._factors.setdefault(path, factors).route
        while rows := self._rows.get(path):
            for element in list(islice(rows, _COMPARED_AT_ONCE)):
                row, key = rows.pop(element), self._action.wrap(route, element)
                other = self._rows.setdefault(None, {}).setdefault(key, row)
                if other is row:
                    row.place = None, key
                else:
                    self._merge(row, other)
            if not rows:
                del self._rows[path]
            yield

    def matching(self, name: bytes) -> list[OnwardRoute]:
        """Return whom what comes under a name goes to."""
        row = self._names.get(name)
        if row is None:
            return []
        above = row.names[name]
        return [
            OnwardRoute(child, read.name, self._turning(above, read))
            for (child, _), read in row.members.items()
        ]

    def origin(self, child: PublicKey, name: bytes) -> ItemOrigin | None:
        """Return under what a child's item comes; nothing where the parent has nothing of it."""
        row = self._of.get((child, name))
        if row is None:
            return None
        came = row.said if self._target is not None else next(iter(row.names))
        if came is None:
            return None
        return ItemOrigin(came, self._turning(row.names[came], row.members[child, name]))

    def _turning(self, above: _Above, read: ComparableItem) -> Secret:
        path, own = above
        keys = [self._keys.on(one, self._day).content for one in read.own]
        if own is not None:
            keys.append(self._action.inverse(self._keys.on(own, self._day).content))
        if path != read.path:
            keys += [self._factors[path].content, self._action.inverse(self._factors[read.path].content)]
        return self._action.product(keys)

    def _upward(self, row: Row, target: PublicKey) -> tuple[LayeredWord, AnyLayer]:
        own = layer_of(self._keys.public, target, self._number(row))
        element = self._action.wrap(self._keys.on(own, self._day).route, row.element)
        return LayeredWord(self._day, element, in_order((*row.path, own))), own

    def _number(self, row: Row) -> int | None:
        """Return the number of a row's item: the same for the same, also after a restart."""
        return self._keys.number(self._day.to_bytes(8, "big"), row.element, encode(row.path))

    def _note_path(self, child: PublicKey, path: LayerPath) -> None:
        if path not in self._paths and path not in self._factors:
            self._brought[child] = self._brought.get(child, 0) + 1
            if self._brought[child] > MAX_FACTORS:
                self._beyond.add(path)
        self._paths[path] = self._paths.get(path, 0) + 1

    def _place(self, path: LayerPath, element: bytes) -> _Place:
        factors = self._factors.get(path)
        return (path, element) if factors is None else (None, self._action.wrap(factors.route, element))

    def _at(self, place: _Place) -> Row | None:
        under, key = place
        return self._rows.get(under, {}).get(key)

    def _new(self, place: _Place, read: ComparableItem) -> Row:
        under, key = place
        row = self._rows.setdefault(under, {})[key] = Row(place, read.path, read.element)
        if self._target is None:
            self._know(row, element_name(read.element), read.path, None)
        else:
            self._unsaid[row] = None
        return row

    def _know(self, row: Row, name: bytes, path: LayerPath, own: AnyLayer | None) -> None:
        self._names[name] = row
        row.names[name] = _Above(path, own)

    def _joined(self, row: Row) -> None:
        if self._target is None or (self.is_unsettled and row.said is not None):
            self._again[row] = None

    def _merge(self, row: Row, into: Row) -> None:
        self._joined(into)
        into.members.update(row.members)
        for member in row.members:
            self._of[member] = into
        for name, above in row.names.items():
            self._know(into, name, *above)
        self._unsay(row)

    def _remove(self, row: Row) -> None:
        under, key = row.place
        del self._rows[under][key]
        if not self._rows[under]:
            del self._rows[under]
        for name in row.names:
            del self._names[name]
        self._unsay(row)

    def _unsay(self, row: Row) -> None:
        self._unsaid.pop(row, None)
        self._again.pop(row, None)
        if row.said is not None:
            self._gone[row.said] = None
