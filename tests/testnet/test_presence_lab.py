"""The lab's watcher of who is there: what it leaves of candidates, by how they are there and hold."""

from __future__ import annotations

import math
import random

from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_testnet.cover.chance_lines import LineKind, PresenceMix, drawn_line
from hushcast_testnet.cover.presence_watcher import PresenceOutcome, PresenceScene, presence_outcome

ROUNDS = 144  # a day's


def share(kind: LineKind) -> float:
    """In which share of all rounds of twenty days a hundred users of one kind are there."""
    chance = random.Random(1)
    lines = [drawn_line(chance, 20, kind, stays=True) for _ in range(100)]
    assert all(line.bit_length() <= 20 * ROUNDS for line in lines)
    return sum(line.bit_count() for line in lines) / 100 / 20 / ROUNDS


def test_users_are_there_as_their_kind_is() -> None:
    assert 0.98 < share(LineKind.ALWAYS) < 0.99, "a round of a hundred is missed, an hour in ten days"
    assert 0.5 < share(LineKind.BY_DAY) < 0.6, "15 hours on nine days of ten"
    assert 0.08 < share(LineKind.CASUAL) < 0.13
    chance = random.Random(1)
    users = [drawn_line(chance, 60, LineKind.ALWAYS) for _ in range(400)]
    assert 0.15 < sum(not one >> 50 * ROUNDS for one in users) / 400 < 0.25, "have left"
    assert 0.15 < sum(not one & (1 << 10 * ROUNDS) - 1 for one in users) / 400 < 0.25, "have not come"
    kinds = [PresenceMix(0.1, 0.7).drawn(chance) for _ in range(1000)]
    assert 600 < kinds.count(LineKind.BY_DAY) < 800
    assert 150 < kinds.count(LineKind.CASUAL) < 250


def test_who_is_always_on_is_hidden_and_who_is_not_if_messages_are_held() -> None:
    always = presence_outcome(PresenceScene(150, LineKind.ALWAYS), 40, 3)
    held = presence_outcome(PresenceScene(150, LineKind.BY_DAY), 20, 3)
    plain = presence_outcome(PresenceScene(150, LineKind.BY_DAY, HoldRule.NEVER), 40, 5)
    assert always.named_by(40) == held.named_by(20) == 0
    assert min(always.candidates, held.candidates) > 20 > 12 > plain.candidates
    assert plain.named_by(40) == 1


def test_where_all_are_alike_nobody_is_struck_off() -> None:
    """All are always on, and hours are longer than an outage of some rounds."""
    scene = PresenceScene(50, LineKind.ALWAYS, mix=PresenceMix(1.0, 0.0))
    assert presence_outcome(scene, 20, 3).candidates > 30


def test_how_many_are_named_is_counted_by_messages() -> None:
    outcome = PresenceOutcome([3, 20, 21, math.inf], 1.0)
    assert (outcome.named_by(2), outcome.named_by(20), outcome.named_by(1000)) == (0, 0.5, 0.75)
