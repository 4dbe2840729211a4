"""Matching under `community`: a member compares filters as under `clear`, all else passes as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
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
        charters.follow(self._opened, self._over)

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

    def expire(self, now: float) -> Sequence[DroppedItems]:
        """Forget what was asked for under epochs that are over; return that, and what was sealed wrongly."""
        self._charters.expire(now)
        lapsed, self._lapsed = self._lapsed, _Gone([], [])
        lapsed.clients.extend(self.interests.take_wrong())
        return (DroppedItems(*lapsed),)

    def stated(self, is_edge: bool) -> Mapping[Filter, Sequence[Client]]:
        """Return nothing."""
        return {}

    async def begin(self) -> None:
        """Show what there is."""
        await self.interests.advance()
        self.advertise()
        await self._advertising.show_rest()

    async def run(self) -> None:
        """Do nothing: what is shown of each epoch has a task of its own."""
        await trio.sleep_forever()

    async def linked(self, upstream: Upstream) -> None:
        """Ask the parent for newer charters."""
        upstream.say(AskCharters(self._charters.known))

    def _read(self, child: PublicKey, item: Item) -> TableItem:
        if not isinstance(item, SealedFilter):
            raise Refusal("form")
        return self._below.table.read(item)

    def _opened(self, epoch: MemberEpoch) -> None:
        self.advertised.note_changed()
        self._gone(self._below.learn(epoch), self.interests.learn(epoch))

    def _over(self, epoch: MemberEpoch) -> None:
        self.advertised.note_changed()
        clients = self.interests.drop(epoch)
        self._gone(self._below.forget(epoch), clients)
        if self._charters.newest(epoch.community) is None:  # taken out by the root, which clients do not hear
            for client, _ in clients:
                self._downstream.disconnect(client)

    def _gone(self, below: Iterable[ChildItemName], clients: Iterable[ChildItemName]) -> None:
        """Note what is to be nowhere on disk, with the next look at the time; above it is at once."""
        self._lapsed.below.extend(below)
        self._lapsed.clients.extend(clients)
        self.advertise()
