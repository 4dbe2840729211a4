"""Expulsion: which relays one authority leaves off its ballots, by what its hidden subscriptions lost.

A *trial* is one such subscription: it has a tree of its own, drawn at random, and tells of each relay how
many copies of probes it lost and passed on. Whoever stands above a relay in a tree can lose what comes from
it, and so let it look as if it had lost that. So a relay is named only if it lost something in more than half
of the trials, and no trial counts for much more than the middle one.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.base.wire import RelayId

MIN_TRIALS = 16  # that met a relay before it is judged: colluders must stand above it in nine of them
MIN_LOSS = 0.05  # least loss rate of an expelled relay, as the lower end of a 97.5 % confidence bound
MIN_LOST = 2.0  # least copies that it lost, in all that counts
OUTLIER = 2.0  # times the middle trial's loss rate that the losses of any trial count for
MAX_AT_FAULT = 0.25  # share of the relays; where more seem to lose messages, the fault is ours
MAX_EXPELLED_A_DAY = 0.05  # share of the relays, one at least: an error shows before it has done much
MAX_EXPELLED = 0.25  # share of the relays that are expelled at once: a network needs those that are left
EXPELLED_DAYS = 7  # days after which a relay may come back, to be judged by what it does then
EVIDENCE_DAYS = 2  # days that a trial counts for: what a relay did before is past

_HALF_A_COPY = 0.5  # counts are estimates: a relay with less had none
_EXPELLED_EPOCHS = EXPELLED_DAYS * EPOCHS_A_DAY

LossTrial = Mapping[RelayId, tuple[float, float]]
"""How many copies of probes each relay lost and passed on in one tree; at least 0."""


class LossyRelay(NamedTuple):
    """A relay that loses messages, as far as trials tell."""

    relay: RelayId
    lost: float
    """Copies lost, in all that counts."""
    tested: float
    """Copies lost or passed on."""
    trials: int
    """Trials that met it."""


@dataclass(frozen=True)
class ExpelledRelay:
    """A relay that one authority leaves off its ballots."""

    relay: RelayId
    since: int
    """The epoch in which that began."""
    why: str = field(default="", compare=False)
    """For people."""

    @property
    def until(self) -> int:
        """The first epoch in which it may be listed again."""
        return self.since + _EXPELLED_EPOCHS


def losers(trials: Iterable[LossTrial]) -> list[LossyRelay]:
    """Return the relays that lose messages, the worst first.

    A relay is one if `MIN_TRIALS` met it and it lost, with 97.5 % confidence, more than `MIN_LOSS` of what
    it was given. Losses of a trial beyond `OUTLIER` times the rate of the middle one do not count: so whoever
    lost nothing in half of the trials is never named, whatever the other half says.
    """
    met: dict[RelayId, list[tuple[float, float]]] = {}
    for trial in trials:
        for relay, (lost, passed) in trial.items():
            if lost + passed >= _HALF_A_COPY:
                met.setdefault(relay, []).append((lost, lost + passed))
    found = []
    for relay, counts in met.items():
        if len(counts) < MIN_TRIALS:
            continue
        rates = sorted(lost / tested for lost, tested in counts)
        most = OUTLIER * rates[(len(rates) - 1) // 2]
        all_lost = sum(min(lost, most * tested) for lost, tested in counts)
        all_tested = sum(tested for _, tested in counts)
        low, _ = wilson(all_lost / all_tested, all_tested)
        if all_lost >= MIN_LOST and low >= MIN_LOSS:
            found.append((low, LossyRelay(relay, all_lost, all_tested, len(counts))))
    return [loser for low, loser in sorted(found, key=lambda one: (-one[0], one[1].relay))]


def in_force(listed: Sequence[ExpelledRelay], epoch: int, relays: Collection[RelayId]) -> frozenset[RelayId]:
    """Return who is left out in an epoch, of those that a list names.

    `relays` are those that the network has; whether the expelled are still among them makes no difference.
    The list may be longer than is good: of each day only the first count, and of all only the oldest.
    """
    first: dict[RelayId, ExpelledRelay] = {}
    for one in sorted(listed, key=lambda one: one.since):
        if one.since <= epoch < one.until:
            first.setdefault(one.relay, one)
    chosen = list(first.values())
    while True:
        everybody = len({*relays, *(one.relay for one in chosen)})
        kept = _bounded(chosen, everybody)
        if len(kept) == len(chosen):
            return frozenset(one.relay for one in kept)
        chosen = kept


def extended(
    listed: Sequence[ExpelledRelay], found: Sequence[LossyRelay], epoch: int, relays: Collection[RelayId]
) -> tuple[ExpelledRelay, ...]:
    """Return a list without what is over, and with as many of the losers as the bounds let in.

    Where too many seem to lose messages, nobody is added.
    """
    fresh = [one for one in listed if epoch < one.until]
    if len(found) > MAX_AT_FAULT * len(relays):
        return tuple(fresh)
    known = {one.relay for one in fresh}
    for loser in found:
        if loser.relay not in known:
            longer = [*fresh, ExpelledRelay(loser.relay, epoch, _why(loser))]
            if loser.relay in in_force(longer, epoch, relays):
                fresh = longer
    return tuple(fresh)


def reason(expelled: ExpelledRelay, ends: float) -> str:
    """Return what an expelled relay is told; `ends` is when that is over (Unix seconds)."""
    when = datetime.datetime.fromtimestamp(ends, datetime.UTC)
    return (
        "this directory leaves the relay out until"
        f" {when:%Y-%m-%d %H:%M} UTC, epoch {expelled.until}: by its probes, the relay loses messages"
    )


def _bounded(chosen: Sequence[ExpelledRelay], everybody: int) -> list[ExpelledRelay]:
    a_day = max(1, int(everybody * MAX_EXPELLED_A_DAY))
    days: Counter[int] = Counter()
    kept = []
    for one in chosen:
        day = one.since // EPOCHS_A_DAY
        days[day] += 1
        if days[day] <= a_day:
            kept.append(one)
    return kept[: int(everybody * MAX_EXPELLED)]


def _why(loser: LossyRelay) -> str:
    return f"lost {loser.lost:.0f} of {loser.tested:.0f} probes, in {loser.trials} trials"
