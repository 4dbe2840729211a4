"""Publication of an onion service: followed through HS_DESC events until others can find it.

A service has two descriptors, for this time period and for the one beside it, each on several directories,
and a client looks for one of them at a directory it picks (rend-spec v3 section 2.2). The first upload is
not enough: a client whose first directory has nothing yet fails ("service not found"), and its tor does not
ask that directory again for minutes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import trio

EVENTS = ("HS_DESC",)
"""What the control connection has to ask for."""

_UPLOADS = "UNKNOWN"  # written in place of the client's authorization, which events about fetches have


class DescriptorPublication:
    """Tracks which descriptors of one service exist, where they were sent and who took them."""

    def __init__(self) -> None:
        self._missing: set[str] = set()
        self._sent: defaultdict[str, set[str]] = defaultdict(set)
        self._taken: Counter[str] = Counter()
        self._open = 0  # uploads without an answer
        self.held = trio.Event()
        """Set once each descriptor is held by one directory at least."""
        self.complete = trio.Event()
        """Set once, besides, every directory that was sent one has answered."""

    def handle(self, event: Any) -> None:
        """Take an HS_DESC event about this service; those about fetches are passed over."""
        if event.authentication != _UPLOADS or self.complete.is_set():
            return
        if event.action == "CREATED" and event.descriptor_id:
            self._missing.add(event.descriptor_id)
        elif event.action == "UPLOAD" and event.descriptor_id:
            self._missing.add(event.descriptor_id)
            self._sent[event.directory].add(event.descriptor_id)
            self._open += 1
        elif event.directory not in self._sent:
            return  # of an upload before the service was opened anew
        elif event.action == "UPLOADED":
            self._take(event.directory)
        elif event.action == "FAILED":
            self._open -= 1
        if self.held.is_set() and self._open <= 0:
            self.complete.set()

    def _take(self, directory: str) -> None:
        self._open -= 1
        self._taken[directory] += 1
        sent = self._sent[directory]
        # The answer does not say which descriptor was taken: one that was sent both has to answer twice.
        if self._taken[directory] >= len(sent):
            self._missing -= sent
        if not self._missing:
            self.held.set()

    def end(self) -> None:
        """Release all waiting tasks: the service is closed."""
        self.held.set()
        self.complete.set()
