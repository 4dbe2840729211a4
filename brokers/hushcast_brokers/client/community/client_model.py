"""A client under `community`: one filter for each interest and open epoch, sealed to the community."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec
import trio

from hushcast_brokers.client.attachment_records import AttachedSubscription, AttachmentRecord
from hushcast_brokers.client.clear_client_model import ClearClientModel
from hushcast_brokers.client.client_model import FilterRequest
from hushcast_brokers.client.community.membership import Membership
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.brokers.clear_words import ShownFilter
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.brokers.community.sealed_filter import (
    SealedFilter,
    open_filter,
    open_words,
    seal_filter,
)
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import RoutedInterest, Tokens
from hushcast_runtime.environment import Environment


class CommunityClientModel:
    """The sealed filters of one daemon's interests (`ClientModel`)."""

    def __init__(self, membership: Membership, calendar: Calendar, env: Environment) -> None:
        self._membership = membership
        self._epochs = membership.charters.epochs
        self._calendar = calendar
        self._env = env
        self._clear = ClearClientModel(lambda: calendar.day(env.now()))

    def check(self, terms: AnonymityTerms) -> None:
        """Raise `Refusal` while this daemon is not in its community."""
        if (missing := self._membership.missing()) is not None:
            raise Refusal(missing)

    async def load(self) -> None:
        """Do nothing: keys of epochs outlast a restart, and tell all."""

    def resume(
        self, wanted: RoutedInterest, terms: AnonymityTerms, asked: Sequence[AttachedSubscription]
    ) -> bool:
        """Take up a filter that was asked for; return whether there is one that can be opened still."""
        for one in asked:
            filter_ = self._filter(one)
            if filter_ is not None:
                self._clear.note(wanted, terms, filter_)
                return True
        return False

    async def learn(self, wanted: RoutedInterest, terms: AnonymityTerms) -> None:
        """Make the filter of an interest."""
        await self._clear.learn(wanted, terms)

    def forget(self, route: bytes) -> None:
        """Ask no more for an interest."""
        self._clear.forget(route)

    def wishes(self) -> Mapping[bytes, FilterRequest]:
        """Return the filters, sealed under each epoch that is open."""
        return {
            _name(route, epoch): FilterRequest(route, terms, _sealing(epoch, filter_))
            for route, (terms, filter_) in self._clear.filters.items()
            for epoch in self._membership.epochs()
        }

    def opened(self, message: Message) -> Iterable[tuple[bytes, Message]]:
        """Return the interests whose filter a message meets, and the message with its words.

        Raises `PeerError` where it is of no epoch that is open, or its words are sealed wrongly.
        """
        epoch = self._epochs.under(message.tokens[0])
        if epoch is None:
            raise AuthenticationError("a message is of no epoch of this daemon's community")
        words = open_words(epoch, message.id, message.tokens)
        return self._clear.opened(msgspec.structs.replace(message, tokens=words))

    def kept_word(self, tokens: Tokens) -> bytes:
        """Return the topic's id, which nobody outside of the community can read: nothing is kept by it."""
        return tokens.trunk

    def is_routed(self, asked: Sequence[AttachedSubscription]) -> bool:
        """Tell whether messages of the epoch that is published under come."""
        current = self._membership.current()
        return any(
            one.is_routed
            for one in asked
            if isinstance(one.item, SealedFilter) and current is not None and one.item.label == current.label
        )

    def may_lack(self, asked: AttachedSubscription) -> bool:
        """Tell whether it is of an epoch gone by, in which the edge broker may not have been a member."""
        assert isinstance(asked.item, SealedFilter), "a daemon's state is of one network, and so of one model"
        epoch, current = self._epochs.under(asked.item.label), self._membership.current()
        return epoch is None or (current is not None and epoch.number < current.number)

    def is_over(self, asked: AttachedSubscription) -> bool:
        """Return that nobody forgets by itself: a broker outside does not know when an epoch is over."""
        return False

    async def run(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Ask under each epoch that opens, and no more under those that are over; until cancelled."""
        charters = self._membership.charters
        while True:
            now = self._env.now()
            if self._env.is_certain():
                charters.expire(now)
            epochs = self._membership.epochs()
            await settle()
            if epochs == self._membership.epochs():
                with trio.move_on_after(max(1.0, self._calendar.next_middle(now) - now)):
                    await charters.changed()

    def _filter(self, asked: AttachedSubscription) -> ShownFilter | None:
        assert isinstance(asked.item, SealedFilter), "a daemon's state is of one network, and so of one model"
        epoch = self._epochs.under(asked.item.label)
        try:
            return None if epoch is None else open_filter(epoch, asked.item)
        except PeerError:
            return None


def _name(route: bytes, epoch: MemberEpoch) -> bytes:
    return digest(Domain.COMMUNITY, b"name", route, epoch.label, size=LABEL)


def _sealing(epoch: MemberEpoch, filter_: ShownFilter) -> Callable[[AttachmentRecord], SealedFilter]:
    return lambda kept: seal_filter(epoch, kept.key, filter_)
