"""A client's model: what a daemon asks of its edge broker for an interest, and how it knows what arrives.

Each privacy model has its own; `clear_client_model.py` is the one of `clear`. All else of a daemon is the
same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from hushcast_brokers.client.attachment_records import AttachedSubscription, AttachmentRecord
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.items import Item
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import RoutedInterest, Tokens


class FilterRequest(NamedTuple):
    """What an edge broker is to route to this daemon, under a name of 16 bytes."""

    route: bytes
    """The name of the interest that it is for."""
    terms: AnonymityTerms
    item: Callable[[AttachmentRecord], Item | None]
    """The item, as it is asked for at an attachment; nothing where it cannot be asked for there."""


class ClientModel(Protocol):
    """One daemon's part in a privacy model."""

    def check(self, terms: AnonymityTerms, /) -> None:
        """Raise `Refusal`, which says what to do, for terms that the model cannot keep."""

    async def load(self) -> None:
        """Know what may still come of what was asked for before a restart."""

    def resume(
        self, wanted: RoutedInterest, terms: AnonymityTerms, asked: Sequence[AttachedSubscription], /
    ) -> bool:
        """Take up what was asked for an interest before a restart; return whether nothing is to be learnt."""

    async def learn(self, wanted: RoutedInterest, terms: AnonymityTerms, /) -> None:
        """Learn what is to be asked for an interest, which takes tens of milliseconds."""

    def forget(self, route: bytes, /) -> None:
        """Ask no more for an interest."""

    def wishes(self) -> Mapping[bytes, FilterRequest]:
        """Return what is to be asked now, by name."""

    def opened(self, message: Message, /) -> Iterable[tuple[bytes, Message]]:
        """Return for which interests a message came, and as it was handed over; raise `PeerError`."""

    def kept_word(self, tokens: Tokens, /) -> bytes:
        """Return the word (16 bytes) by which the root keeps an interest's topic on the day of its tokens."""

    def is_routed(self, asked: Sequence[AttachedSubscription], /) -> bool:
        """Tell whether an interest's messages come now, given what is asked for it at an edge broker."""

    def may_lack(self, asked: AttachedSubscription, /) -> bool:
        """Tell whether an interest does without what was asked for, if an edge broker does not take it."""

    def is_over(self, asked: AttachedSubscription, /) -> bool:
        """Tell whether all forget what was asked for by themselves, as its day has lapsed."""

    async def run(self, settle: Callable[[], Awaitable[None]], /) -> None:
        """Learn what days to come ask for, and have it settled; until cancelled."""
