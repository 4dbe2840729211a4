"""Recent: messages that one subscription received lately, and messages that only others received."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.reports import Heard

MAX_RECENT = 256  # messages received lately, of which reports name some
MAX_GAPS = 4096  # missed messages remembered, so that each is told once; 0.5 MB


@dataclass(frozen=True)
class _Recent:
    id: bytes
    time: float
    values: Values


@dataclass(eq=False)
class Recent:
    """The content of one subscription's reports, and the gaps that others' reports reveal."""

    whole_since: float | None = None
    """Unix seconds since which the subscription is ready without a break."""
    _recent: deque[_Recent] = field(default_factory=lambda: deque(maxlen=MAX_RECENT))
    _gaps: OrderedDict[bytes, None] = field(default_factory=OrderedDict)

    def received(self, message: bytes, now: float, values: Values) -> None:
        """Note a message that the mailbox got, wanted or not, to report it to other subscribers.

        If only wanted messages were reported, their attributes would reveal all conditions.
        """
        self._recent.append(_Recent(message, now, values))

    def heard(self, now: float, settled: float) -> list[Heard]:
        """Return the messages received at least `settled` seconds ago."""
        return [
            Heard(recent.id, int(now - recent.time), dict(recent.values))
            for recent in self._recent
            if now - recent.time >= settled
        ]

    def new_gaps(self, ids: list[bytes]) -> list[bytes]:
        """Return the missed messages that were not reported to applications before, and remember them."""
        new = [message for message in ids if message not in self._gaps]
        for message in new:
            self._gaps[message] = None
            if len(self._gaps) > MAX_GAPS:
                self._gaps.popitem(last=False)
        return new
