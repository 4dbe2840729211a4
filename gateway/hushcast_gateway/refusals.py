"""What a gateway's operator is told of subscriptions that were refused: how many, and why."""

from __future__ import annotations

from collections.abc import Mapping

from hushcast_protocol.base.findings import Finding, good, warning
from hushcast_protocol.mqtt.refused_subscriptions import LATELY, RefusalCause, RefusedSubscriptions
from hushcast_runtime.logs import log
from hushcast_runtime.wording import counted

TOLD_EVERY = 600.0  # seconds between two lines of the log
_ADVICE = {
    RefusalCause.FORBIDDEN: "put the filter into the user's `subscribe`, or take it out of the client",
    RefusalCause.FULL: "have clients subscribe with wildcards, or end what they do not need",
    RefusalCause.UNKNOWN: "look for the alias or the name, which the configuration does not have",
    RefusalCause.UNSUPPORTED: "name each open topic, or use an alias",
    RefusalCause.PURPOSES: "`hushcast gateway purpose audit` says whose",
}


class RefusalLog:
    """Tells of refusals at once, and of those behind them every ten minutes at most."""

    def __init__(self) -> None:
        self._told: Mapping[RefusalCause, int] = {}
        self._next = float("-inf")

    def look(self, totals: Mapping[RefusalCause, int], now: float) -> None:
        """Tell what came since the last line; `totals` are since the start, `now` is in seconds."""
        if now < self._next or totals == self._told:
            return
        more = {one: count - self._told.get(one, 0) for one, count in totals.items()}
        log.warning(
            "subscriptions were refused",
            forbidden=more.get(RefusalCause.FORBIDDEN, 0),
            full=more.get(RefusalCause.FULL, 0),
            unknown=more.get(RefusalCause.UNKNOWN, 0),
            unsupported=more.get(RefusalCause.UNSUPPORTED, 0),
            purposes=more.get(RefusalCause.PURPOSES, 0),
        )
        self._told, self._next = totals, now + TOLD_EVERY


def refusals_found(refused: RefusedSubscriptions, now: float) -> Finding:
    """Return what the doctor says of them; `now` is Unix time."""
    lately = refused.lately(now)
    if not lately:
        return good("subscriptions", f"none refused in {LATELY} minutes")
    causes = sorted(lately, key=lambda one: -lately[one])
    told = "; ".join(f"{lately[one]} because {one.value}" for one in causes)
    many = counted(sum(lately.values()), "subscription")
    return warning("subscriptions", f"{many} refused in {LATELY} minutes: {told}", _ADVICE[causes[0]])
