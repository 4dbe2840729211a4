"""A client under `clear`: one filter for each interest, the same on every day."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import trio

from hushcast_brokers.client.attachment_records import AttachedSubscription, AttachmentRecord
from hushcast_brokers.client.client_model import FilterRequest
from hushcast_protocol.brokers.clear_words import ShownFilter, outside, point, read_words, shown_by
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import RoutedInterest, Tokens


class ClearClientModel:
    """The filters of one daemon's interests (`ClientModel`)."""

    def __init__(self, today: Callable[[], int]) -> None:
        self._today = today
        self.filters: dict[bytes, tuple[AnonymityTerms, ShownFilter]] = {}
        """By the name of the interest."""
        self._seen: dict[bytes, Filter] = {}  # as brokers compare them

    def check(self, terms: AnonymityTerms) -> None:
        """Do nothing: edge brokers keep all terms."""

    async def load(self) -> None:
        """Do nothing: what was asked for tells all."""

    def resume(
        self, wanted: RoutedInterest, terms: AnonymityTerms, asked: Sequence[AttachedSubscription]
    ) -> bool:
        """Take up a filter that was asked for; return whether there is one."""
        for one in asked:
            if isinstance(one.item, ShownFilter):
                self.note(wanted, terms, one.item)
        return wanted.name in self.filters

    async def learn(self, wanted: RoutedInterest, terms: AnonymityTerms) -> None:
        """Make the filter of an interest."""
        tokens = await wanted.tokens(self._today())
        self.note(wanted, terms, shown_by(tokens.entries, Filter.of(wanted.interest)))

    def forget(self, route: bytes) -> None:
        """Ask no more for an interest."""
        self.filters.pop(route, None)
        self._seen.pop(route, None)

    def wishes(self) -> Mapping[bytes, FilterRequest]:
        """Return the filters, each under its interest's name."""
        return {
            route: FilterRequest(route, terms, _always(filter_))
            for route, (terms, filter_) in self.filters.items()
        }

    def opened(self, message: Message) -> Iterable[tuple[bytes, Message]]:
        """Return the interests whose filter a message meets; raise `DecodeError` where it has no words."""
        topic, found = read_words(message.tokens)
        name = topic.hex()
        for route, seen in self._seen.items():
            if seen.topic.name == name and covers(seen, Filter(seen.topic, point(seen.topic, found))):
                yield route, message

    def kept_word(self, tokens: Tokens) -> bytes:
        """Return the topic's id."""
        return tokens.trunk

    def is_routed(self, asked: Sequence[AttachedSubscription]) -> bool:
        """Tell whether the filter is routed."""
        return any(one.is_routed for one in asked)

    def may_lack(self, asked: AttachedSubscription) -> bool:
        """Return that the filter is all there is."""
        return False

    def is_over(self, asked: AttachedSubscription) -> bool:
        """Return that filters are of no day."""
        return False

    async def run(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Do nothing: filters are of no day."""
        await trio.sleep_forever()

    def note(self, wanted: RoutedInterest, terms: AnonymityTerms, item: ShownFilter) -> None:
        """Know the filter of an interest."""
        self.filters[wanted.name] = terms, item
        self._seen[wanted.name] = outside(item)


def _always(item: ShownFilter) -> Callable[[AttachmentRecord], ShownFilter]:
    return lambda kept: item
