"""Coverage: what a subscriber's probes tell of the relays (threat model, row 11).

A probe enters at several relays, as a publication does, and its copies climb known ways. By which top relay a
copy comes tells which way it took; whether it came tests all relays of that way at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.tree import Tree

MIN_LOST = 2  # lost probes that name a relay: one may be bad luck
MIN_LOSS = 0.05  # share of what passes a suspect that it loses at least, of which we are sure to 97.5 %
_NEVER = 1e-12  # in the place of a probability of 0 that something is divided by
_ROUNDS = 100  # of the estimate of losses: further ones change it by less than a hundredth
_DOUBT = 0.5  # loss that the estimate begins with, the same for all
_FORGIVEN = 1.0  # lost probes of each relay that count for nothing: chance is not laid on many a little
_TRUST = 0.5  # probes that each relay is taken to have passed before any was sent


class Way(NamedTuple):
    """How what enters at one origin comes to the subscriber."""

    relays: tuple[RelayId, ...]
    """Those that a loss may be due to, the origin first."""
    tops: frozenset[RelayId]
    """Those that hand it to the subscriber: one in each tree."""


class Probe(NamedTuple):
    """One copy of a probe: the relays that it was to pass, origin first, and whether it arrived."""

    way: tuple[RelayId, ...]
    arrived: bool
    sent: float  # Unix seconds
    weight: float = 1.0
    """How many copies it stands for: see `weight`."""


def ways(trees: Sequence[Tree], origins: Iterable[RelayId], top: RelayId | None = None) -> dict[RelayId, Way]:
    """Return the way of every origin that has a seat in the trees of one subscription.

    With several trees a copy may come by any of them, and a loss names nobody but its origin. `top` is whom
    all comes from where the subscriber is a listed root, which hears one copy whoever brings it.
    """
    found = {}
    for origin in origins:
        if all(origin in tree.parents for tree in trees):
            climbed = [tree.way(origin) for tree in trees]
            tops = frozenset([top] if top is not None else [way[-1] for way in climbed])
            found[origin] = Way(climbed[0] if len(climbed) == 1 else (origin,), tops)
    return found


def stands_apart(way: Way, other: Way) -> bool:
    """Tell whether what became of one copy shows, whatever became of another copy of the same probe.

    It does where they come by different tops, so that their ways have no relay in common. Where ways join,
    one copy is passed on, and it could be either; but if the other way leads through the very origin of this
    one, then what arrives has passed all of this one.
    """
    return way.tops.isdisjoint(other.tops) or way.relays[0] in other.relays


def weight(origin: RelayId, all_ways: Mapping[RelayId, Way], origins: int) -> float:
    """Return how many copies an outcome at `origin` stands for, of probes with so many origins.

    Origins under a top with many relays stand apart from the others less often: without the weight the
    others would count for more in the share than they are. Source: Horvitz and Thompson, 1952.
    """
    own = all_ways[origin]
    apart = sum(stands_apart(own, way) for other, way in all_ways.items() if other != origin)
    others = len(all_ways) - 1
    chance = math.prod((apart - n) / (others - n) for n in range(min(origins - 1, others)))
    return 1 / chance if chance > 0 else 1.0


def judged(
    copies: Mapping[RelayId, Way], taken: Collection[RelayId], came_by: Set[RelayId]
) -> dict[RelayId, bool]:
    """Return of which origins of a probe it is certain whether their copy arrived, and whether it did.

    `copies` are the ways of all origins that it was handed to, `taken` those that gave a receipt: what an
    origin did that gave none proves nothing. `came_by` are the relays that handed it to the subscriber. One
    that stands at the top of none of the ways brought a copy around a lost relay: it counts for a copy that
    is missing, if there are as many such as are missing.
    """
    missing = sum(way.tops.isdisjoint(came_by) for way in copies.values())
    expected: set[RelayId] = set().union(*(way.tops for way in copies.values()))
    went_around = len(came_by - expected) >= missing
    found = {}
    for origin in taken:
        others = [way for other, way in copies.items() if other != origin]
        if origin in copies and all(stands_apart(copies[origin], other) for other in others):
            found[origin] = went_around or not copies[origin].tops.isdisjoint(came_by)
    return found


def share(probes: Iterable[Probe]) -> tuple[float, float, float]:
    """Return the share of origins that reach the subscriber, and its 95 % interval; there is a probe.

    Where weights differ, they are worth as many equal ones as Kish's effective size says.
    """
    held = list(probes)
    total = sum(probe.weight for probe in held)
    arrived = sum(probe.weight for probe in held if probe.arrived) / total
    size = total * total / sum(probe.weight * probe.weight for probe in held)
    return (arrived, *wilson(arrived, size))


def suspects(probes: Iterable[Probe]) -> list[RelayId]:
    """Return the relays that lose messages, as far as the probes are sure of it, the surest first.

    Losses are laid on relays as the likeliest shares explain them that each loses of what passes it
    (`_losses`). Suspect is who lost `MIN_LOST` and, at the lower end of the interval, `MIN_LOSS` of its own:
    also who loses only some, as relays that work together may. A relay under another one that loses all
    cannot be told from an honest one and is not named.
    """
    lost, passed = _losses(probes)
    named = [relay for relay, count in lost.items() if _is_suspect(count, passed[relay])]
    return sorted(named, key=lambda relay: (-lost[relay], passed[relay]))


def _is_suspect(lost: float, passed: float) -> bool:
    return round(lost) >= MIN_LOST and wilson(lost / (lost + passed), lost + passed)[0] >= MIN_LOSS


def _losses(probes: Iterable[Probe]) -> tuple[dict[RelayId, float], dict[RelayId, float]]:
    """Estimate how many probes each relay lost, and how many it passed on.

    Expectation and maximisation: a lost probe was lost by one relay of its way, each having lost it as likely
    as the shares say that each loses; these shares follow from what each lost. What each is forgiven favours
    explanations with few relays.
    Source: Coates, Hero, Nowak and Yu, "Internet Tomography", 2002.
    """
    arrived: Counter[tuple[RelayId, ...]] = Counter()
    missing: Counter[tuple[RelayId, ...]] = Counter()
    for probe in probes:
        (arrived if probe.arrived else missing)[probe.way] += 1
    sure: Counter[RelayId] = Counter()
    for way, count in arrived.items():
        for relay in way:
            sure[relay] += count
    loss = {relay: _DOUBT for way in missing for relay in way}
    lost, passed = dict.fromkeys(loss, 0.0), dict.fromkeys(loss, 0.0)
    for _ in range(_ROUNDS if missing else 0):
        lost, passed = dict.fromkeys(loss, 0.0), {relay: float(sure[relay]) for relay in loss}
        for way, count in missing.items():
            _lay(way, count, loss, lost, passed)
        for relay in loss:
            blame = max(0.0, lost[relay] - _FORGIVEN)
            loss[relay] = blame / (blame + passed[relay] + _TRUST)
    return lost, passed


def _lay(
    way: tuple[RelayId, ...],
    count: int,
    loss: Mapping[RelayId, float],
    lost: dict[RelayId, float],
    passed: dict[RelayId, float],
) -> None:
    """Lay `count` losses on the relays of one way, by what each loses of what comes to it."""
    through = math.prod(1 - loss[relay] for relay in way)
    all_lost = max(1 - through, _NEVER)
    come = 1.0
    for relay in way:
        lost[relay] += count * come * loss[relay] / all_lost
        come *= 1 - loss[relay]
        passed[relay] += count * max(0.0, come - through) / all_lost
