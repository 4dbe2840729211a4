"""Figures: shares of what was named, with intervals, as rows for the summary and the report."""

from __future__ import annotations

from typing import Any, NamedTuple

from hushcast_analytics.brokers.observers import LINKS, OBSERVERS
from hushcast_analytics.trial_summary import variance_of_mean
from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.brokers.privacy import Privacy

GUESSES = ("traffic-shares", "link-shares")
"""Attacks that guess, so that chance is not 0."""
LEARNT = ("interests", "contents", "subscribers", "shares")
"""What a row of an observer may have: shares of honest clients' interests; `contents`, of messages."""


class Figure(NamedTuple):
    """Sums over draws: of trials n and of hits, and of their squares and products."""

    draws: int
    n: float
    nn: float
    hits: float = 0.0
    hh: float = 0.0
    hn: float = 0.0

    @property
    def share(self) -> float:
        """Which share was named."""
        return self.hits / self.n

    def interval(self) -> tuple[float, float]:
        """Return Wilson's interval, 95 %, for as many trials as draws that differ are worth."""
        share, effective = self.share, self.n
        if self.draws > 1 and 0 < share < 1:
            between = variance_of_mean(self.draws, int(self.n), share, self.hh, self.hn, self.nn)
            effective = self.n / max(1.0, between * self.n / (share * (1 - share)))
        return wilson(share, effective)


def told(attack: str, sums: dict[str, Figure], privacy: Privacy, share: float) -> dict[str, Any]:
    """Return the row of an attack (`BrokersExamination`)."""
    nothing = sums[""]
    figure = sums.get(attack, nothing)
    low, high = figure.interval()
    return {
        "attack": attack,
        "target": "interest",
        **_of(privacy, share),
        "draws": figure.draws,
        "trials": int(figure.n),
        "accuracy": figure.share,
        "accuracy_low": low,
        "accuracy_high": high,
        "bound": sums.get("blind", nothing).share if attack in GUESSES else 0.0,
    }


def observed(
    sums: dict[str, Figure], contents: dict[str, Figure], privacy: Privacy, share: float
) -> list[dict[str, Any]]:
    """Return a row for each observer, with `LEARNT` and `…_low`, `…_high`, `chance` of shares.

    A figure is absent where there is nothing that the observer could go by.
    """
    rows, nothing = [], sums[""]
    for name, observer in OBSERVERS.items():
        figures = {} if name == LINKS else {"contents": contents.get(name, contents[""])}
        if observer.interests:
            figures["interests"] = sums.get(f"by {name}", nothing)
        if observer.subscribers is not None:
            figures["subscribers"] = sums.get(observer.subscribers, nothing)
        row: dict[str, Any] = {"observer": name, **_of(privacy, share)}
        if observer.shares is not None:
            figures["shares"] = sums.get(observer.shares, nothing)
            row["chance"] = sums.get("blind", nothing).share
        for what in LEARNT:
            if what in figures:
                low, high = figures[what].interval()
                row |= {what: figures[what].share, f"{what}_low": low, f"{what}_high": high}
        rows.append(row)
    return rows


def _of(privacy: Privacy, share: float) -> dict[str, Any]:
    return {
        "profile": privacy.text,
        "model": privacy.model,
        "layers": privacy.layers if privacy.model == "full" else None,
        "aggregates": privacy.aggregates,
        "colluding": share,
    }
