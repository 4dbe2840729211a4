"""Coverage of one route: the share of its probes that came back."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import Handover
from hushcast_runtime.carriers.takers import Takers

MAX_PROBES = 8192  # outcomes remembered for one route, a bit each
PROBE_WITHIN = 300.0  # seconds after which a probe is lost: time for a restart

HandOver = Callable[[Message, Handover], Awaitable[None]]
"""Hands a message to whoever takes it, as `Carrier.hand_over` does."""


class RouteCoverage:
    """What a daemon knows of how reliably one of its routes is served."""

    def __init__(self) -> None:
        self._sent: dict[bytes, float] = {}  # of probes that are under way, by id
        self._outcomes: deque[bool] = deque(maxlen=MAX_PROBES)

    def begin(self, message: bytes, now: float) -> None:
        """Note a probe that is about to be handed over: it may arrive before its receipt."""
        for lost in [one for one, sent in self._sent.items() if sent < now - PROBE_WITHIN]:
            del self._sent[lost]
            self._outcomes.append(False)
        self._sent[message] = now

    async def probe(self, message: Message, hand_over: HandOver, now: float) -> bool:
        """Hand over a probe; return whether it was taken. Raises what `hand_over` raises."""
        takers = Takers()
        self.begin(message.id, now)
        try:
            await hand_over(message, takers)
        finally:
            if not takers.names:
                self._untaken(message.id)
        return bool(takers.names)

    def _untaken(self, message: bytes) -> None:
        """Note that nobody gave a receipt for a probe, which is lost unless it came all the same."""
        if self._sent.pop(message, None) is not None:
            self._outcomes.append(False)

    def arrived(self, message: bytes) -> None:
        """Note that a message arrived, which may be a probe."""
        if self._sent.pop(message, None) is not None:
            self._outcomes.append(True)

    def describe(self) -> dict[str, Any]:
        """Return the share that arrived, and its 95 % interval; nobody is to suspect but who serves it."""
        count = len(self._outcomes)
        share = sum(self._outcomes) / count if count else 0.0
        low, high = wilson(share, count)
        told = round(share, 4) if count else None
        return {
            "probes": count,
            "share": told,
            "low": round(low, 4),
            "high": round(high, 4),
            "delivered": told,
            "suspects": [],
        }
