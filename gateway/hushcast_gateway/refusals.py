"""What a gateway's operator is told of what clients were refused: how many, why, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hushcast_protocol.base.findings import Finding, good, warning
from hushcast_protocol.mqtt.refusals import LATELY, RefusalCause, Refusals, RefusedThing
from hushcast_runtime.logs import log
from hushcast_runtime.wording import counted

TOLD_EVERY = 600.0  # seconds between two lines of the log about things of one kind
TWINS = 5  # take-overs of one client in some minutes from which on two clients must have its identifier
_ADVICE = {
    RefusalCause.FORBIDDEN: "put the filter into the user's `subscribe`, or take it out of the client",
    RefusalCause.FULL: "set `limits.filters` higher, or have the client subscribe with wildcards",
    RefusalCause.FULL_USER: "set `limits.user_filters` higher, or give clients users of their own",
    RefusalCause.FULL_SHARED: "set `limits.shared_filters` higher, or have fewer members in groups",
    RefusalCause.FULL_NETWORK: "use an alias for all of them: a daemon has 256 subscriptions at most",
    RefusalCause.UNKNOWN: "look for the alias or the name, which the configuration does not have",
    RefusalCause.UNSUPPORTED: "name each open topic, or use an alias",
    RefusalCause.PURPOSES: "`hushcast gateway purpose audit` says whose",
    RefusalCause.NOT_LET_IN: "give the client the password, or make one: `hushcast gateway passwd`",
    RefusalCause.CROWDED: "set `limits.clients` higher, or give clients users of their own",
    RefusalCause.SESSIONS: "set `limits.sessions` higher, or end some: `hushcast gateway kick --forget`",
    RefusalCause.WILL: "put the will's topic into the user's `publish`, or take it out of the client",
    RefusalCause.TOO_LARGE: "set `maximum_packet` higher",
    RefusalCause.TAKEN_OVER: "two clients have one identifier: give one of them another",
    RefusalCause.OLD: "set the client to MQTT 3.1.1 or 5",
    RefusalCause.NO_MQTT: "look at the port that the client is told: 1883 is MQTT, TLS has a port of its own",
    RefusalCause.NOT_PUBLISHED: "put the topic into the user's `publish`, or take it out of the client",
    RefusalCause.NOT_RETAINED: "set `limits.retained` or `limits.retained_bytes` higher, or delete what is "
    "not needed: `hushcast gateway retained purge`",
    RefusalCause.NOT_DELAYED: "set `limits.delayed` or `limits.delayed_bytes` higher, or give clients users "
    "of their own",
    RefusalCause.QUEUE: "set `limits.queue` or `limits.queue_bytes` higher, or end sessions that nobody "
    "comes back to: `hushcast gateway kick --forget`",
    RefusalCause.HELD: "set `limits.held_bytes` higher, or end sessions that nobody comes back to: "
    "`hushcast gateway kick --forget`",
}
"""What to do where something is refused for a cause."""
_FULL = {
    *(RefusalCause.FULL, RefusalCause.FULL_USER, RefusalCause.FULL_SHARED, RefusalCause.FULL_NETWORK),
}


class RefusalLog:
    """Tells of refusals at once, and of those behind them every ten minutes at most."""

    def __init__(self) -> None:
        self._told: dict[RefusedThing, Counter[RefusalCause]] = {}
        self._next = dict.fromkeys(RefusedThing, float("-inf"))

    def look(self, totals: Mapping[RefusalCause, int], now: float) -> None:
        """Tell what came since the last line; `totals` are since the start, `now` is in seconds."""
        for thing in RefusedThing:
            known = Counter({one: count for one, count in totals.items() if one.thing is thing})
            more = known - self._told.get(thing, Counter())
            # A client that comes back before it was missed takes over from itself.
            is_usual = more.keys() <= {RefusalCause.TAKEN_OVER} and sum(more.values()) < TWINS
            if now >= self._next[thing] and not is_usual:
                _tell(thing, more)
                self._told[thing], self._next[thing] = known, now + TOLD_EVERY


def _tell(thing: RefusedThing, more: Mapping[RefusalCause, int]) -> None:
    def of(*causes: RefusalCause) -> int:
        return sum(more.get(one, 0) for one in causes)

    if thing is RefusedThing.SUBSCRIPTION:
        log.warning(
            "subscriptions were refused",
            forbidden=of(RefusalCause.FORBIDDEN),
            full=of(*_FULL),
            unknown=of(RefusalCause.UNKNOWN),
            unsupported=of(RefusalCause.UNSUPPORTED),
            purposes=of(RefusalCause.PURPOSES),
        )
    elif thing is RefusedThing.CLIENT:
        log.warning(
            "clients were refused",
            full=of(RefusalCause.CROWDED, RefusalCause.SESSIONS),
            forbidden=of(RefusalCause.NOT_LET_IN, RefusalCause.WILL),
            too_large=of(RefusalCause.TOO_LARGE),
            taken_over=of(RefusalCause.TAKEN_OVER),
            unspoken=of(RefusalCause.OLD, RefusalCause.NO_MQTT),
        )
    else:
        log.warning(
            "messages were refused",
            forbidden=of(RefusalCause.NOT_PUBLISHED),
            retained=of(RefusalCause.NOT_RETAINED),
            full=of(RefusalCause.QUEUE, RefusalCause.HELD, RefusalCause.NOT_DELAYED),
        )


def refusals_found(refusals: Refusals, now: float) -> list[Finding]:
    """Return what the doctor says of them, a finding for each kind of thing; `now` is Unix time."""
    lately = dict(refusals.lately(now))
    if not any(one.cause is RefusalCause.TAKEN_OVER and one.count >= TWINS for one in refusals.named(now)):
        lately.pop(RefusalCause.TAKEN_OVER, None)  # clients do so that come back before they were missed
    return [_found(thing, lately) for thing in RefusedThing]


def _found(thing: RefusedThing, lately: Mapping[RefusalCause, int]) -> Finding:
    check = f"refused {thing.value}s"
    causes = sorted((one for one in lately if one.thing is thing), key=lambda one: -lately[one])
    if not causes:
        return good(check, f"none in {LATELY} minutes")
    told = "; ".join(f"{lately[one]} because {one.because}" for one in causes)
    many = counted(sum(lately[one] for one in causes), thing.value)
    advice = f"{_ADVICE[causes[0]]}; `hushcast gateway refused` says whose"
    return warning(check, f"{many} refused in {LATELY} minutes: {told}", advice)
