"""Coverage: what a subscriber's probes tell of the relays (design §3, row 11).

A probe enters at one relay and climbs one known way; whether it arrives tests all relays of that way at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from hushcast_protocol.wire import RelayId

MIN_LOST = 2  # lost probes that name a relay: one may be bad luck
MIN_LOSS = 0.5  # share of a suspect's probes that are lost: a relay that passes most of them is none
_Z = 1.959964  # of a normal distribution, for 95 %


class Probe(NamedTuple):
    """One probe: the relays that it was to pass, origin first, and whether it arrived."""

    way: tuple[RelayId, ...]
    arrived: bool
    sent: float  # Unix seconds


def interval(arrived: int, probes: int) -> tuple[float, float]:
    """Return the 95 % interval (Wilson's), within 0 to 1, of a share: `arrived` of `probes` were seen."""
    if not probes:
        return 0.0, 1.0
    share, square = arrived / probes, _Z * _Z / probes
    middle = share + square / 2
    half = _Z * math.sqrt(share * (1 - share) / probes + square / (4 * probes))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def suspects(probes: Iterable[Probe]) -> list[RelayId]:
    """Return the relays that most simply explain the lost probes, the surest first.

    Group testing by elimination: the relay on most ways that lost a probe, among those that lose at least
    `MIN_LOSS` of what is sent by them, explains those losses; then the next for what is left. A relay under
    another one that loses all cannot be told from an honest one and is not named.
    """
    held = list(probes)
    passed = Counter(relay for probe in held if probe.arrived for relay in probe.way)
    unexplained = [probe.way for probe in held if not probe.arrived]
    named: list[RelayId] = []
    while unexplained:
        lost = Counter(relay for way in unexplained for relay in way)
        candidates = [relay for relay, count in lost.items() if _is_suspect(count, passed[relay])]
        if not candidates:
            break
        begun = Counter(way[0] for way in unexplained)  # of two that explain the same: the origin
        worst = max(candidates, key=lambda relay: (lost[relay], -passed[relay], begun[relay]))
        named.append(worst)
        unexplained = [way for way in unexplained if worst not in way]
    return named


def _is_suspect(lost: int, passed: int) -> bool:
    return lost >= MIN_LOST and lost >= MIN_LOSS * (lost + passed)
