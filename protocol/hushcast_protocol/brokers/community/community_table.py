"""The table of one broker, of all communities: what it can open is compared, what it cannot is kept as it is.

A row is one filter, whichever communities it was asked for in; each message goes to those alone who asked in
its own. Of what is sealed under a label that this broker has no key for, it knows whom it came from: messages
under that label go to all of them, as one of them is a member or knows the way to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.clear_words import outside
from hushcast_protocol.brokers.community.community_epochs import CommunityEpochs
from hushcast_protocol.brokers.community.sealed_filter import SealedFilter, open_filter, open_words
from hushcast_protocol.brokers.filter_routes import FilterRoutes
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.content.messages import Message

_KEY = 32  # bytes of a child's key


_Names = dict[bytes, dict[PublicKey, dict[bytes, None]]]
"""By label and child, the names of what it asks for."""


class TableItem(NamedTuple):
    """What a child asks for, as a broker knows it."""

    sealed: SealedFilter
    filter: Filter | None
    """`None` where it is sealed under a label that this broker has no key for."""


def words_of(epochs: CommunityEpochs, message: Message) -> Sequence[bytes] | None:
    """Return a message's words; `None` where they are sealed under a label that there is no key for.

    Raises `PeerError` where they are sealed wrongly.
    """
    epoch = epochs.under(message.tokens[0])
    return None if epoch is None else open_words(epoch, message.id, message.tokens)


class CommunityTable:
    """What the children of one broker asked for. A child is a key; names are 16 bytes."""

    def __init__(self, epochs: CommunityEpochs) -> None:
        self._epochs = epochs
        self._held: dict[PublicKey, dict[bytes, TableItem]] = {}
        self._rows = FilterRoutes()  # a child's filters under one label are one child's there
        self._opened: _Names = {}
        self._closed: _Names = {}
        self._count = 0

    def __len__(self) -> int:
        """The number of names, of all children."""
        return self._count

    @property
    def children(self) -> Set[PublicKey]:
        """Those that have asked for anything; not to be kept, as it changes."""
        return self._held.keys()

    def of(self, child: PublicKey) -> Mapping[bytes, TableItem]:
        """Return what a child has asked for, by name."""
        return self._held.get(child, {})

    def filters(self) -> set[Filter]:
        """Return the filters that this broker could open: its rows."""
        return self._rows.filters()

    def read(self, sealed: SealedFilter) -> TableItem:
        """Return what is to be put; raise `Refusal` (`form`) where it is sealed wrongly, or is no filter."""
        epoch = self._epochs.under(sealed.label)
        if epoch is None:
            return TableItem(sealed, None)
        try:
            return TableItem(sealed, outside(open_filter(epoch, sealed)))
        except PeerError:
            raise Refusal("form") from None

    def put(self, child: PublicKey, name: bytes, given: TableItem) -> None:
        """Take what was `read`; under a name that the child had, in place of what was there."""
        held = self._held.setdefault(child, {})
        if (before := held.get(name)) is not None:
            self._remove(child, name, before)
        else:
            self._count += 1
        held[name] = given
        label = given.sealed.label
        if given.filter is not None:
            self._rows.put(child + label, name, given.filter)
        self._like(given).setdefault(label, {}).setdefault(child, {})[name] = None

    def take(self, child: PublicKey, name: bytes) -> None:
        """Forget what a child asked for under a name; raise `KeyError` where there is nothing."""
        held = self._held[child]
        self._remove(child, name, held.pop(name))
        self._count -= 1
        if not held:
            del self._held[child]

    def stale(self, label: bytes, most: int) -> list[tuple[PublicKey, bytes, TableItem]]:
        """Return so much of what is under a label and was `read` otherwise than it is now: whose, name, what.

        That is what came before the key of its epoch, or was opened with one that is gone; all of one child
        comes before what is another's.
        """
        found = ((child, name) for child, names in self._stale(label).items() for name in names)
        return [(child, name, self._held[child][name]) for child, name in islice(found, most)]

    def is_stale(self, label: bytes, child: PublicKey | None = None) -> bool:
        """Tell whether there is any such, of one child or of all."""
        stale = self._stale(label)
        return bool(stale) if child is None else child in stale

    def knows(self, label: bytes) -> bool:
        """Tell whether messages under a label lead anywhere: this broker can open them, or a child may."""
        return self._epochs.under(label) is not None or label in self._closed

    def whom(self, label: bytes, words: Sequence[bytes] | None) -> set[PublicKey]:
        """Return the children that a message is for, by its label and, if they can be read, its words.

        Raises `DecodeError` where they are none.
        """
        found = set(self._closed.get(label, ()))  # where there is a key, those of whom not all is opened yet
        if words is not None:
            found |= {place[:_KEY] for place in self._rows.interested(words) if place[_KEY:] == label}
        return found

    def _remove(self, child: PublicKey, name: bytes, given: TableItem) -> None:
        label = given.sealed.label
        if given.filter is not None:
            self._rows.take(child + label, name)
        alike = self._like(given)
        del alike[label][child][name]
        if not alike[label][child]:
            del alike[label][child]
        if not alike[label]:
            del alike[label]

    def _like(self, given: TableItem) -> _Names:
        return self._closed if given.filter is None else self._opened

    def _stale(self, label: bytes) -> Mapping[PublicKey, Mapping[bytes, None]]:
        is_open = self._epochs.under(label) is not None
        return (self._closed if is_open else self._opened).get(label, {})
