"""Matching under `community`: a member compares filters as under `clear`, all else passes as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import trio

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.community.interests import CommunityInterests
from hushcast_brokers.broker.downstream import Downstream
from hushcast_brokers.broker.matching import DroppedItems, Place, UnlayeredMatching
from hushcast_brokers.community.held_charters import HeldCharters
from hushcast_brokers.upstream import Upstream
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements
from hushcast_protocol.brokers.clear_words import read_words
from hushcast_protocol.brokers.community.child_tables import ChildItemName, ChildTables
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.brokers.community.community_table import TableItem, words_of
from hushcast_protocol.brokers.community.parent_view import ParentView
from hushcast_protocol.brokers.community.sealed_filter import SealedFilter
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms, AskCharters
from hushcast_protocol.brokers.items import Item, ItemChanges
from hushcast_protocol.brokers.tomography.broker_statements import Client
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context

_DELETED_AT_ONCE = 256  # items of one kind that leave the disk in one step: a millisecond


class _Gone(NamedTuple):
    """What was dropped."""

    below: list[ChildItemName]
    clients: list[ChildItemName]


class CommunityMatching(UnlayeredMatching):
    """What a broker knows under `community` (`matching.Matching`)."""

    changes = 0
    """Nothing is stated to a tomography service, which would read filters."""

    def __init__(
        self,
        own: PublicKey,
        minimum: AnonymityTerms,
        charters: HeldCharters,
        advertising: Advertising,
        downstream: Downstream,
        context: Context,
    ) -> None:
        """`own` is this broker's key; `minimum` is what an edge broker asks of each filter that it shows."""
        above, epochs = ParentView(own), charters.epochs
        self._charters = charters
        self._epochs = epochs
        self._above = above
        self._below = ChildTables(epochs, above)
        self._advertising = advertising
        self._downstream = downstream
        self._context = context
        self.advertised = ChildAdvertisements(self._below, self._read, lambda name: True)
        self.interests = CommunityInterests(minimum, epochs, above, advertising, downstream, context)
        self._lapsed = _Gone([], [])
        self._unsettled: dict[bytes, MemberEpoch] = {}  # by label, what has opened or is over
        self._more = trio.Event()
        charters.follow(self._changed, self._changed)

    def load(self, child: PublicKey, name: bytes, item: Item) -> None:
        """Take what was advertised before a restart; drop what a key of since shows to be sealed wrongly."""
        try:
            self._below.put(child, name, self._read(child, item))
        except Refusal:
            self._lapsed.below.append((child, name))

    def advertise(self) -> int:
        """Show what changed; return the version upward."""
        return self._advertising.change(self._taken(), self._taken)

    def _taken(self) -> ItemChanges:
        return ItemChanges(*self._above.take_changes())

    def entering(self, message: Message) -> Message:
        """Return a publication as it is; raise `PeerError` where what is sealed in it is wrong.

        Raises `Refusal` (`community`) where nobody here knows whom it might be for, or its epoch is gone by.
        """
        label = message.tokens[0]
        epoch = self._epochs.under(label)
        if epoch is not None and not self._epochs.may_publish(epoch, self._context.env.now()):
            raise Refusal("community")
        words = words_of(self._epochs, message)
        if words is not None:
            read_words(words)
        elif not self._below.table.knows(label):
            raise Refusal("community")
        return message

    def whom(self, message: Message) -> Set[Place]:
        """Return the children who asked for it, or may have; raise `PeerError` where its words are none."""
        label, words = message.tokens[0], words_of(self._epochs, message)
        found: set[Place] = self._below.table.whom(label, words)
        return found | self.interests.table.whom(label, words)

    def leaving(self, child: PublicKey) -> Callable[[Message], Mapping[PublicKey, Sequence[Message]]]:
        """Return what matches messages again."""

        def others(message: Message) -> Mapping[PublicKey, Sequence[Message]]:
            words = words_of(self._epochs, message)
            return dict.fromkeys(self._below.table.whom(message.tokens[0], words), (message,))

        return others

    def expire(self, now: float) -> Iterator[DroppedItems]:
        """Forget, in pieces, what was asked for under epochs that are over; yield it, and what was wrong."""
        self._charters.expire(now)
        self._lapsed.clients.extend(self.interests.take_wrong())
        while self._unsettled or any(self._lapsed):
            self._settle()
            yield DroppedItems(*map(_cut, self._lapsed))

    def stated(self, is_edge: bool) -> Mapping[Filter, Sequence[Client]]:
        """Return nothing."""
        return {}

    async def begin(self) -> None:
        """Show what there is."""
        await self.interests.advance()
        self.advertise()
        await self._advertising.show_rest()

    async def run(self) -> None:
        """Read anew what is under epochs that have opened, or are over, until cancelled.

        What is shown of each epoch has a task of its own.
        """
        while True:
            self._more = trio.Event()
            while self._unsettled:
                self._settle()
                await trio.lowlevel.checkpoint()
            await self._more.wait()

    async def linked(self, upstream: Upstream) -> None:
        """Ask the parent for newer charters."""
        upstream.say(AskCharters(self._charters.known))

    def _read(self, child: PublicKey, item: Item) -> TableItem:
        if not isinstance(item, SealedFilter):
            raise Refusal("form")
        return self._below.table.read(item)

    def _changed(self, epoch: MemberEpoch) -> None:
        """Hear that an epoch has opened, or is over; what is under it is read anew step by step.

        Until then nobody misses anything: messages under an epoch go to all of whom not all is opened.
        """
        self.advertised.note_changed()
        self._unsettled[epoch.label] = epoch
        self._more.set()

    def _settle(self) -> None:
        """Read anew some of what is under one of the epochs, if there is one; above it is shown at once.

        What is gone is to be nowhere on disk, with the next look at the time.
        """
        if not self._unsettled:
            return
        label, epoch = next(iter(self._unsettled.items()))
        clients = self.interests.settle(label)
        self._lapsed.clients.extend(clients)
        self._lapsed.below.extend(self._below.settle(label))
        self.advertise()
        table = self.interests.table
        if self._charters.newest(epoch.community) is None:  # taken out by the root, which clients do not hear
            for client in {client for client, _ in clients}:
                if not table.is_stale(label, client):
                    self._downstream.disconnect(client)
        if not table.is_stale(label) and not self._below.table.is_stale(label):
            del self._unsettled[label]


def _cut(names: list[ChildItemName]) -> list[ChildItemName]:
    """Take the last of them, as many as are deleted in one step."""
    taken = names[-_DELETED_AT_ONCE:]
    del names[-_DELETED_AT_ONCE:]
    return taken
