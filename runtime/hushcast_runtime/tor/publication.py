"""Publication of an onion service: followed through HS_DESC events until others can find it.

A service has two descriptors, for this time period and for the one beside it, and each client looks for one
of them (rend-spec v3 section 2.2.1). So the first upload is not enough: the client that looks for the other
descriptor would find nothing, and tor would not let it ask again for minutes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import trio

EVENTS = ("HS_DESC",)
"""What the control connection has to ask for."""


class Publication:
    """Knows which descriptors of one service exist, where they were sent and who took them."""

    def __init__(self) -> None:
        self._missing: set[str] = set()
        self._sent: defaultdict[str, set[str]] = defaultdict(set)
        self._taken: Counter[str] = Counter()
        self.done = trio.Event()
        """Set once each descriptor is held by a directory at least."""

    def handle(self, event: Any) -> None:
        """Take an HS_DESC event about this service."""
        if self.done.is_set():
            return
        if event.action == "CREATED" and event.descriptor_id:
            self._missing.add(event.descriptor_id)
        elif event.action == "UPLOAD" and event.descriptor_id:
            self._missing.add(event.descriptor_id)
            self._sent[event.directory].add(event.descriptor_id)
        elif event.action == "UPLOADED":
            self._take(event.directory)

    def _take(self, directory: str) -> None:
        self._taken[directory] += 1
        sent = self._sent[directory]
        # The answer does not say which descriptor was taken: one that was sent both has to answer twice.
        if self._taken[directory] >= len(sent):
            self._missing -= sent
        if sent and not self._missing:
            self.done.set()
