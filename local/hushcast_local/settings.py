"""Settings of the inbox and of probes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_runtime.processes.config import Section

MAX_INBOX_DAYS = 365  # days that a message may be kept: what is kept can be seized
MAX_PROBES_AN_EPOCH = 3600  # for a subscription: one a second of an hour
MIN_INBOX, MAX_INBOX = 1024**2, 1024**3  # bytes: room for a few of the largest messages, and a small disk's


class InboxSection(Section, frozen=True, kw_only=True):
    """How long received messages are kept for the applications that do not acknowledge them."""

    max_age_days: Annotated[int, msgspec.Meta(ge=1, le=MAX_INBOX_DAYS)] = 21
    """Days that a message is kept at most."""
    max_bytes: Annotated[int, msgspec.Meta(ge=MIN_INBOX, le=MAX_INBOX)] = 64 * 1024**2
    """Bytes kept for one subscription; the oldest messages go first."""

    @property
    def max_age(self) -> float:
        """Seconds that a message is kept at most."""
        return self.max_age_days * 24 * 3600.0


class CoverageSection(Section, frozen=True, kw_only=True):
    """How a subscriber finds out how much of the network reaches it."""

    probes_an_epoch: Annotated[int, msgspec.Meta(ge=0, le=MAX_PROBES_AN_EPOCH)] | None = None
    """Probes for each subscription; each is a message to all subscribers of its topic. 0: none.

    Unless given, as the network has it: 24; 18 a day where what was published is kept; two a day where the
    daemon runs a relay.
    """
