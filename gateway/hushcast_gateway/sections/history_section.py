"""Which topics have a history, and how long it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from hushcast_gateway.sections.access_sections import Filters
from hushcast_protocol.mqtt.topics.topic_filters import is_filter
from hushcast_runtime.processes.config import Section


class HistorySection(Section, frozen=True, kw_only=True):
    """Topics whose messages are kept, for who asks for what it missed."""

    topics: Filters = ()
    """Topics that have a history, as filters; none unless given."""
    hours: Annotated[int, Meta(ge=1, le=504)] = 12
    """How long it goes back; no longer than sessions wait for their clients."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each key with what is wrong with it."""
        for number, one in enumerate(self.topics, 1):
            if not is_filter(one) or one.startswith("$"):
                yield f"history.topics #{number}", "write a topic filter, which does not begin with $"
