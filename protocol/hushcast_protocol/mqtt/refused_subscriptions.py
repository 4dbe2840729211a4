"""Subscriptions that were refused: how many, why, and how many of them lately; never whose and which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum

from hushcast_protocol.mqtt.reason_codes import Reason

LATELY = 10  # minutes for which it is known when subscriptions were refused


class RefusalCause(Enum):
    """Why a subscription was refused; the value is what its operator reads."""

    FORBIDDEN = "their user may not read what they match"
    FULL = "there were as many as the client, its user or the daemon may have"
    UNKNOWN = "they are too long or too deep, or below an alias or name that there is not"
    UNSUPPORTED = "open topics of the network have no wildcards"
    PURPOSES = "of what messages may be used for"

    @property
    def count(self) -> str:
        """The name of its counter."""
        return f"subscriptions_{self.name.lower()}"


_CAUSES = {
    Reason.NOT_AUTHORIZED: RefusalCause.FORBIDDEN,
    Reason.QUOTA_EXCEEDED: RefusalCause.FULL,
    Reason.TOPIC_FILTER_INVALID: RefusalCause.UNKNOWN,
    Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: RefusalCause.UNSUPPORTED,
}


class RefusedSubscriptions:
    """Counts them; `now` is Unix time in seconds and may jump."""

    def __init__(self, counts: Counter[str]) -> None:
        """`counts` are events by name, of which each cause has one."""
        self._counts = counts
        self._by_minute: dict[int, Counter[RefusalCause]] = {}

    def note(self, reason: int, now: float, by_rules: bool = False) -> int:
        """Count one that is answered with a reason, and return that; `by_rules`: it is for its purpose."""
        cause = RefusalCause.PURPOSES if by_rules else _CAUSES[Reason(reason)]
        self._counts[cause.count] += 1
        minute = int(now // 60)
        self._by_minute.setdefault(minute, Counter())[cause] += 1
        for one in [one for one in self._by_minute if abs(one - minute) >= LATELY]:
            del self._by_minute[one]
        return reason

    @property
    def totals(self) -> Mapping[RefusalCause, int]:
        """How many were refused, by cause."""
        return {one: self._counts[one.count] for one in RefusalCause if one.count in self._counts}

    def lately(self, now: float) -> Mapping[RefusalCause, int]:
        """Return how many were refused in the last `LATELY` minutes, by cause."""
        minute, found = int(now // 60), Counter[RefusalCause]()
        for one, counts in self._by_minute.items():
            if abs(one - minute) < LATELY:
                found.update(counts)
        return found
