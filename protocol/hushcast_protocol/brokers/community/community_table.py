"""The table of one broker, of all communities: what it can open is compared, what it cannot is kept as it is.

A row is one filter, whichever communities it was asked for in; each message goes to those alone who asked in
its own. Of what is sealed under a label that this broker has no key for, it knows whom it came from: messages
under that label go to all of them, as one of them is a member or knows the way to one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
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
        self._closed: dict[bytes, Counter[PublicKey]] = {}  # how much of each child is under a label
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
        else:
            self._closed.setdefault(label, Counter())[child] += 1

    def take(self, child: PublicKey, name: bytes) -> None:
        """Forget what a child asked for under a name; raise `KeyError` where there is nothing."""
        held = self._held[child]
        self._remove(child, name, held.pop(name))
        self._count -= 1
        if not held:
            del self._held[child]

    def under(self, label: bytes) -> Iterator[tuple[PublicKey, bytes, TableItem]]:
        """Yield all that is asked for under a label: whose, its name, and what."""
        for child, held in self._held.items():
            for name, given in held.items():
                if given.sealed.label == label:
                    yield child, name, given

    def knows(self, label: bytes) -> bool:
        """Tell whether messages under a label lead anywhere: this broker can open them, or a child may."""
        return self._epochs.under(label) is not None or label in self._closed

    def whom(self, label: bytes, words: Sequence[bytes] | None) -> set[PublicKey]:
        """Return the children that a message is for, by its label and, if they can be read, its words.

        Raises `DecodeError` where they are none.
        """
        if words is None:
            return set(self._closed.get(label, ()))
        return {place[:_KEY] for place in self._rows.interested(words) if place[_KEY:] == label}

    def _remove(self, child: PublicKey, name: bytes, given: TableItem) -> None:
        label = given.sealed.label
        if given.filter is not None:
            self._rows.take(child + label, name)
            return
        closed = self._closed[label]
        closed[child] -= 1
        if not closed[child]:
            del closed[child]
        if not closed:
            del self._closed[label]
