"""The bounds that an operator may set: how much of each thing a gateway's clients may have."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from hushcast_protocol.mqtt.limits import (
    KEEP_ALIVE,
    MAX_CONNECTIONS,
    MAX_DELAYED_BYTES,
    MAX_FILTERS,
    MAX_FILTERS_A_USER,
    MAX_HELD_BYTES,
    MAX_HISTORY,
    MAX_HISTORY_BYTES,
    MAX_QUEUE,
    MAX_QUEUE_BYTES,
    MAX_RETAINED,
    MAX_RETAINED_BYTES,
    MAX_SESSIONS,
    MAX_SHARED,
    MAX_WINDOW,
    MqttLimits,
)
from hushcast_runtime.processes.config import Section

Many = Annotated[int, Meta(ge=1, le=1_000_000)]
"""Things: a larger number is a mistake, or takes more memory than one gateway has."""
Size = Annotated[int, Meta(ge=1_048_576, le=68_719_476_736)]
"""Bytes: 1 MiB to 64 GiB."""


class LimitsSection(Section, frozen=True, kw_only=True):
    """How much of each thing clients may have; what all have in common is shared among their users."""

    clients: Annotated[int, Meta(ge=1, le=100_000)] = MAX_CONNECTIONS
    """Clients that are connected at once."""
    sessions: Annotated[int, Meta(ge=1, le=100_000)] = MAX_SESSIONS
    """Sessions that outlive their connection."""
    filters: Annotated[int, Meta(ge=1, le=100_000)] = MAX_FILTERS
    """Subscriptions of one client."""
    user_filters: Many = MAX_FILTERS_A_USER
    """Subscriptions of all clients of one user."""
    shared_filters: Annotated[int, Meta(ge=1, le=100_000)] = MAX_SHARED
    """Shared subscriptions of all clients."""
    retained: Many = MAX_RETAINED
    """Retained messages."""
    retained_bytes: Size = MAX_RETAINED_BYTES
    """Bytes of these."""
    queue: Annotated[int, Meta(ge=1, le=100_000)] = MAX_QUEUE
    """Messages that wait in one session."""
    queue_bytes: Size = MAX_QUEUE_BYTES
    """Bytes of these."""
    held_bytes: Size = MAX_HELD_BYTES
    """Bytes that wait in all sessions."""
    inflight: Annotated[int, Meta(ge=1, le=10_000)] = MAX_WINDOW
    """Messages of QoS 1 and 2 under way to one client."""
    delayed: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Messages that wait to be published to `$delayed/SECONDS/TOPIC`; 0: nobody may."""
    delayed_bytes: Size = MAX_DELAYED_BYTES
    """Bytes of these."""
    history: Many = MAX_HISTORY
    """Messages of all histories."""
    history_bytes: Size = MAX_HISTORY_BYTES
    """Bytes of these."""
    keep_alive: Annotated[int, Meta(ge=10, le=65_535)] = KEEP_ALIVE
    """Seconds: the longest that a client of version 5 may be silent."""

    def as_protocol(self) -> MqttLimits:
        """Return them as the broker has them."""
        return MqttLimits(**msgspec.structs.asdict(self))
