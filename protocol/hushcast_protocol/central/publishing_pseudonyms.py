"""The pseudonyms that messages are published with, which live for minutes and in memory alone."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.central.introduction import OpenedIntroduction, PseudonymSecret

MAX_PUBLISHERS = 16_384  # pseudonyms, some 8 MB; whose was forgotten introduces it again


class PublishingPseudonym(NamedTuple):
    """Who may publish."""

    proxy: PublicKey
    day: int
    secret: PseudonymSecret


class PublishingPseudonyms:
    """The most recent pseudonyms; raises `Refusal` with a verdict (`CentralVerdict`) for the others."""

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar
        self._known: OrderedDict[bytes, PublishingPseudonym] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def introduce(self, proxy: PublicKey, introduced: OpenedIntroduction, now: float) -> None:
        """Know a pseudonym from now on; a known one stays as it is."""
        if introduced.day not in self._calendar.installable_days(now):
            raise Refusal("day")
        if introduced.pseudonym in self._known:
            self._own(proxy, introduced.pseudonym)
            return
        self._known[introduced.pseudonym] = PublishingPseudonym(proxy, introduced.day, introduced.secret)
        if len(self._known) > MAX_PUBLISHERS:
            self._known.popitem(last=False)

    def find(self, proxy: PublicKey, pseudonym: bytes, now: float) -> PublishingPseudonym:
        """Return whom a proxy introduced."""
        publisher = self._own(proxy, pseudonym)
        if self._calendar.lapse(publisher.day) <= now:
            del self._known[pseudonym]
            raise Refusal("day")
        return publisher

    def _own(self, proxy: PublicKey, pseudonym: bytes) -> PublishingPseudonym:
        publisher = self._known.get(pseudonym)
        if publisher is None:
            raise Refusal("unknown")
        if publisher.proxy != proxy:
            raise Refusal("taken")
        self._known.move_to_end(pseudonym)
        return publisher
