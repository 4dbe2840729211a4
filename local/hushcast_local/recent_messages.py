"""Recent messages: those that one subscription received lately, and messages that only others received."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.likeness import Likeness
from hushcast_protocol.content.messages import Message, padded_size
from hushcast_protocol.content.reports import ReportedMessage

MAX_RECENT = 256  # messages received lately, of which reports name some, and which probes are like
MAX_GAPS = 4096  # missed messages remembered, so that each is told once; 0.5 MB


@dataclass(frozen=True)
class _Recent:
    id: bytes
    day: int
    time: float
    values: Values


@dataclass(eq=False)
class RecentMessages:
    """The content of one subscription's reports and probes, and the gaps that others' reports reveal.

    With its day a message is forgotten but for its likeness: no report or value ties a day to the next.
    """

    whole_since: float | None = None
    """Unix seconds since which the subscription is ready without a break."""
    _recent: deque[_Recent] = field(default_factory=lambda: deque(maxlen=MAX_RECENT))
    _likenesses: deque[Likeness] = field(default_factory=lambda: deque(maxlen=MAX_RECENT))
    _bytes: int = 0
    _gaps: OrderedDict[bytes, None] = field(default_factory=OrderedDict)

    def received(self, message: Message, now: float, values: Values) -> None:
        """Note a message that came, wanted or not, to report it to other subscribers.

        If only wanted messages were reported, their attributes would reveal all conditions.
        """
        size = padded_size(message)
        self._recent.append(_Recent(message.id, message.day, now, values))
        self._likenesses.append(Likeness(size, frozenset(values)))
        self._bytes += size

    def forget(self, before_day: int) -> None:
        """Forget messages of days gone by."""
        if self._recent and self._recent[0].day < before_day:
            left = [recent for recent in self._recent if recent.day >= before_day]
            self._recent.clear()
            self._recent.extend(left)

    def heard(self, day: int, oldest: float, newest: float) -> list[ReportedMessage]:
        """Return the messages of a day that came from `oldest` to `newest` (Unix seconds)."""
        return [
            ReportedMessage(recent.id, dict(recent.values))
            for recent in self._recent
            if recent.day == day and oldest <= recent.time <= newest
        ]

    @property
    def likenesses(self) -> Sequence[Likeness]:
        """What messages were like that came lately, on whatever day."""
        return self._likenesses

    def values(self, day: int) -> list[Values]:
        """Return the attributes of messages of a day that came lately."""
        return [recent.values for recent in self._recent if recent.day == day]

    def take_bytes(self) -> int:
        """Return the bytes of all that came since this was asked last, padded."""
        taken, self._bytes = self._bytes, 0
        return taken

    def new_gaps(self, ids: list[bytes]) -> list[bytes]:
        """Return the missed messages that were not reported to applications before, and remember them."""
        new = [message for message in ids if message not in self._gaps]
        for message in new:
            self._gaps[message] = None
            if len(self._gaps) > MAX_GAPS:
                self._gaps.popitem(last=False)
        return new
