"""The model of ready connections says what is known: of nothing to see, and of what is plain to see."""

from __future__ import annotations

import random

import pytest

from benchmarks.models.ready import TAKEN, accuracy, age, contacts, holders, probe, survivors
from hushcast_protocol.overlay.ready_slots import ReadyRule


def test_accuracy_is_a_half_by_chance_and_one_where_all_is_plain() -> None:
    assert accuracy([1.0, 2.0], [1.0, 2.0]) == 0.5
    assert accuracy([3.0, 4.0], [1.0, 2.0]) == 1.0


def test_ages_tell_who_subscribes_only_where_probes_share_the_slots() -> None:
    draw = random.Random(1)
    assert age(ReadyRule(3), shared=True, hours=3000, draw=draw) > 0.8
    assert age(ReadyRule(3), shared=False, hours=3000, draw=draw) < 0.7


def test_drops_of_probes_are_more_like_others_where_their_set_opens_more() -> None:
    draw, rule = random.Random(3), ReadyRule(8, 7200.0)
    more = rule.beside(TAKEN)
    assert probe(rule, more, 3000, draw) + 0.01 < probe(rule, rule, 3000, draw)
    assert 150 < contacts(rule, rule, 1500, draw) < contacts(rule, more, 1500, draw) < 200


def test_who_holds_slots_where_others_hold_none_is_known_by_them() -> None:
    draw, rule = random.Random(4), ReadyRule(8, 7200.0)
    assert holders(rule, 1, 1000, draw) > 0.8
    assert holders(rule, 100, 2000, draw) == 1.0


def test_a_flood_chooses_origins_only_where_what_lives_is_taken_first() -> None:
    draw = random.Random(2)
    drawn, live = (survivors(ReadyRule(8), 0.2, 10.0, live_first, draw, 2000) for live_first in (False, True))
    assert drawn == pytest.approx(0.04, abs=0.02)
    assert live > 0.2
