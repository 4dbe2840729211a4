"""Refusals: what clients did not get, by a bound, a list or a rule: how many, why, and lately whose.

How many and why is for everybody who looks after a broker. Names are in memory alone, for some minutes, and
for whoever may ask the broker itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum

from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.limits import MAX_CLIENT_ID, MAX_TOPIC

LATELY = 10  # minutes for which it is known when something was refused, and to whom
MAX_NAMED = 256  # refusals that are known by name, 3 KB each at worst; the user with most loses its oldest


class RefusedThing(Enum):
    """What was refused; the value is its word."""

    SUBSCRIPTION = "subscription"
    CLIENT = "client"
    MESSAGE = "message"


class RefusalCause(Enum):
    """Why something was refused: what it was, its counter, and what its operator reads behind "because".

    Without a counter it is counted elsewhere.
    """

    FORBIDDEN = (
        RefusedThing.SUBSCRIPTION,
        "subscriptions_forbidden",
        "their user may not read what they match",
    )
    FULL = RefusedThing.SUBSCRIPTION, "subscriptions_full", "their client has as many as it may"
    FULL_USER = (
        RefusedThing.SUBSCRIPTION,
        "subscriptions_full_user",
        "all clients of their user have as many as they may",
    )
    FULL_SHARED = (
        RefusedThing.SUBSCRIPTION,
        "subscriptions_full_shared",
        "their user has its share of the shared ones",
    )
    FULL_NETWORK = (
        RefusedThing.SUBSCRIPTION,
        "subscriptions_full_network",
        "their user has its share of those that the daemon may have",
    )
    UNKNOWN = (
        RefusedThing.SUBSCRIPTION,
        "subscriptions_unknown",
        "they are too long or too deep, or below an alias or name that there is not",
    )
    UNSUPPORTED = (
        RefusedThing.SUBSCRIPTION,
        "subscriptions_unsupported",
        "open topics of the network have no wildcards",
    )
    PURPOSES = RefusedThing.SUBSCRIPTION, "subscriptions_purposes", "of what messages may be used for"
    NOT_LET_IN = RefusedThing.CLIENT, "", "their name or password is not right, or too many came at once"
    CROWDED = RefusedThing.CLIENT, "clients_full", "their user has its share of the places for clients"
    SESSIONS = RefusedThing.CLIENT, "clients_sessions_full", "their user has its share of the sessions"
    WILL = RefusedThing.CLIENT, "clients_will", "they may not publish what they leave as a will"
    TOO_LARGE = RefusedThing.CLIENT, "clients_packet_too_large", "they sent a packet larger than is taken"
    TAKEN_OVER = (
        RefusedThing.CLIENT,
        "clients_taken_over",
        "another came with the same identifier and user",
    )
    OLD = (
        RefusedThing.CLIENT,
        "clients_old",
        "they speak MQTT 3.1, or another version than is spoken",
    )
    NO_MQTT = (
        RefusedThing.CLIENT,
        "clients_no_mqtt",
        "what they speak is no MQTT: HTTP, or TLS at a port without it",
    )
    NOT_PUBLISHED = RefusedThing.MESSAGE, "", "their user may not publish to their topic"
    NOT_RETAINED = (
        RefusedThing.MESSAGE,
        "not_retained",
        "their publisher's user has its share of what is retained",
    )
    NOT_DELAYED = (
        RefusedThing.MESSAGE,
        "not_delayed",
        "their user has its share of what may wait to be published",
    )
    QUEUE = RefusedThing.MESSAGE, "dropped_queue_full", "a session's queue was full"
    HELD = (
        RefusedThing.MESSAGE,
        "dropped_all_full",
        "the sessions of their reader's user hold its share of all",
    )

    def __init__(self, thing: RefusedThing, count: str, because: str) -> None:
        self.thing = thing
        self.count = count
        self.because = because


class NamedRefusal:
    """What one client was refused lately for one cause; `began` and `last` are Unix times."""

    __slots__ = ("began", "cause", "client_id", "count", "last", "subject", "user")

    def __init__(self, cause: RefusalCause, user: User, client_id: str, now: float) -> None:
        """`user` is `None` for somebody who is none."""
        self.cause = cause
        self.user = user
        self.client_id = client_id
        self.subject = ""
        """The filter, topic or name of the last time."""
        self.count = 0
        self.began = self.last = now

    def __repr__(self) -> str:
        """Show nobody's name."""
        return f"NamedRefusal({self.cause.name}, {self.count})"


class Refusals:
    """Counts and remembers them; `now` is Unix time in seconds and may jump."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """The broker's events by name, of which each cause has one."""
        self.totals: Counter[RefusalCause] = Counter()
        """How many there were, by cause."""
        self._by_minute: dict[int, Counter[RefusalCause]] = {}
        self._named: dict[User, dict[tuple[RefusalCause, str], NamedRefusal]] = {}  # the oldest first
        self._names = 0

    def note(
        self, cause: RefusalCause, now: float, user: User = None, client_id: str = "", subject: str = ""
    ) -> None:
        """Count one, and remember to whom it happened; `subject` is its filter, topic or name."""
        if cause.count:
            self.counts[cause.count] += 1
        self.totals[cause] += 1
        minute = int(now // 60)
        self._by_minute.setdefault(minute, Counter())[cause] += 1
        for one in [one for one in self._by_minute if abs(one - minute) >= LATELY]:
            del self._by_minute[one]
        self._remember(cause, now, user, client_id[:MAX_CLIENT_ID]).subject = subject[:MAX_TOPIC]

    def lately(self, now: float) -> Mapping[RefusalCause, int]:
        """Return how many there were in the last `LATELY` minutes, by cause."""
        minute, found = int(now // 60), Counter[RefusalCause]()
        for one, counts in self._by_minute.items():
            if abs(one - minute) < LATELY:
                found.update(counts)
        return found

    def named(self, now: float) -> list[NamedRefusal]:
        """Return those of the last `LATELY` minutes, the newest first, and forget the others."""
        for user, known in list(self._named.items()):
            for key in [key for key, one in known.items() if _is_over(one, now)]:
                self._forget(user, key)
        return sorted(
            (one for known in self._named.values() for one in known.values()), key=lambda one: -one.last
        )

    def _remember(self, cause: RefusalCause, now: float, user: User, client_id: str) -> NamedRefusal:
        known, key = self._named.setdefault(user, {}), (cause, client_id)
        found = known.pop(key, None)
        if found is None:
            self._names += 1
        if found is None or _is_over(found, now):
            found = NamedRefusal(cause, user, client_id, now)
        known[key] = found
        found.count += 1
        found.last = now
        if self._names > MAX_NAMED:
            most = max(self._named, key=lambda one: len(self._named[one]))
            self._forget(most, next(iter(self._named[most])))
        return found

    def _forget(self, user: User, key: tuple[RefusalCause, str]) -> None:
        self._names -= 1
        del self._named[user][key]
        if not self._named[user]:
            del self._named[user]


def _is_over(one: NamedRefusal, now: float) -> bool:
    return abs(now - one.last) >= LATELY * 60
