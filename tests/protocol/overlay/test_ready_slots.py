"""Slots: how many are open, for how long, when they rest, and which one a message takes."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from hushcast_protocol.overlay.ready_slots import (
    LEAST_REST,
    LONGEST,
    NONE_READY,
    SHORTEST,
    ReadyRule,
    ReadySlot,
    ReadySlots,
)

RELAYS = [b"%032d" % number for number in range(20)]
RULE = ReadyRule(8, 4500.0)
SURE = 4.0  # standard deviations


def poisson(rule: ReadyRule, seconds: float, draw: random.Random) -> list[float]:
    """When slots open in so many seconds."""
    moments: list[float] = []
    moment = rule.pause(draw.random())
    while moment < seconds:
        moments.append(moment)
        moment += rule.pause(draw.random())
    return moments


def test_as_many_are_open_as_the_rule_says_and_stay_as_long() -> None:
    draw = random.Random(1)
    opened = poisson(RULE, 2000 * RULE.stays, draw)
    stays = [RULE.stay(draw.random()) for _ in opened]
    assert sum(stays) / (2000 * RULE.stays) == pytest.approx(RULE.slots, rel=0.05)
    assert min(stays) >= SHORTEST * RULE.stays
    assert max(stays) <= LONGEST * RULE.stays
    gaps = [later - earlier for earlier, later in pairwise(opened)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert spread == pytest.approx(mean, rel=0.05)  # as of an exponential time


def test_none_is_open_at_the_start_and_each_ends() -> None:
    slots: ReadySlots[ReadySlot] = ReadySlots()
    slots.rests = False
    assert slots.take(RELAYS, 0.0, lambda _: 0) is None
    slots.open(ReadySlot(RELAYS[0], 10.0))
    assert slots.take(RELAYS, 10.0, lambda _: 0) is None


def test_a_slot_serves_one_message_and_only_where_its_relay_is_allowed() -> None:
    slots: ReadySlots[ReadySlot] = ReadySlots()
    slots.rests = False
    slots.open(slot := ReadySlot(RELAYS[0], 10.0))
    assert slots.take(RELAYS[1:], 0.0, lambda _: 0) is None
    assert slots.take(RELAYS, 0.0, lambda _: 0) is slot
    assert slots.take(RELAYS, 0.0, lambda _: 0) is None


def test_none_is_taken_while_a_set_rests_as_it_does_at_first_and_one_time_of_fifty() -> None:
    slots: ReadySlots[ReadySlot] = ReadySlots()
    slots.open(ReadySlot(RELAYS[0], 10.0))
    assert slots.take(RELAYS, 0.0, lambda _: 0) is None
    slots.rests = False
    assert slots.take(RELAYS, 0.0, lambda _: 0) is not None
    draw = random.Random(3)
    rests, works = ([law(draw.random()) for _ in range(4000)] for law in (RULE.rest, RULE.work))
    assert sum(rests) / (sum(rests) + sum(works)) == pytest.approx(0.02, abs=0.002)
    assert min(rests) >= LEAST_REST * RULE.stays


def test_a_set_that_messages_take_of_at_a_known_rate_opens_as_many_more_while_it_works() -> None:
    an_hour = 2 / 3600
    assert RULE.beside(an_hour).slots == pytest.approx(8 + 2 * 1.25 * 0.98)
    assert RULE.beside(an_hour).stays == RULE.stays
    assert NONE_READY.beside(an_hour) == NONE_READY


def test_which_is_taken_does_not_depend_on_its_age() -> None:
    draw, taken = random.Random(2), Counter[int]()
    for _ in range(6000):
        slots: ReadySlots[ReadySlot] = ReadySlots()
        slots.rests = False
        held = [ReadySlot(relay, 100.0 + place) for place, relay in enumerate(RELAYS[:6])]
        for slot in held:
            slots.open(slot)
        one = slots.take(RELAYS, 0.0, draw.randrange)
        assert one is not None
        taken[held.index(one)] += 1
    assert all(abs(taken[place] - 1000) < SURE * math.sqrt(1000) for place in range(6))
