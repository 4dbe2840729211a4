"""When a message goes around a next hop that is away, when it rests, and when it ends."""

from __future__ import annotations

import pytest
from steps import one_step

from hushcast_overlay.relay import detour_pace
from hushcast_overlay.relay.detour_pace import (
    AROUND_WITHIN,
    MAX_AT_ONCE,
    MAX_WALK,
    REST,
    DetourPace,
    DetourTurn,
)
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.trail import label_bits, trail_of

AWAY, OTHER = relay_hop(bytes(32)), relay_hop(bytes([1] * 32))


def message(number: int, passed: int = 2) -> Message:
    """Return a message that passed so many relays."""
    trail = 0
    for label in range(passed):
        trail |= label_bits(bytes([label] * 16))
    return Message(number.to_bytes(32), 0, (bytes(32),), trail_of(trail), b"body")


def goes_at_once(pace: DetourPace, item: Message, now: float) -> None:
    assert all(pace.turn(item, AWAY, True, now) is DetourTurn.GOES for _ in range(MAX_AT_ONCE))


def test_a_message_goes_at_once_and_then_rests_between_its_turns() -> None:
    pace = DetourPace()
    goes_at_once(pace, message(1), 100.0)
    assert pace.turn(message(1), AWAY, True, 100.1) is DetourTurn.RESTS
    assert pace.turn(message(1), OTHER, True, 100.1) is DetourTurn.GOES, "each next hop counts apart"
    assert pace.turn(message(2), AWAY, True, 100.1) is DetourTurn.GOES, "and so does each message"
    assert pace.turn(message(1), AWAY, True, 100.0 + REST) is DetourTurn.GOES
    assert pace.turn(message(1), AWAY, True, 100.0 + REST + 1) is DetourTurn.RESTS


def test_it_ends_when_that_went_on_for_long_enough() -> None:
    pace, now = DetourPace(), 100.0
    goes_at_once(pace, message(1), now)
    turns = []
    while (turn := pace.turn(message(1), AWAY, True, now)) is not DetourTurn.ENDS:
        turns.append(turn)
        now += REST / 2
    assert now == 100.0 + AROUND_WITHIN
    assert turns.count(DetourTurn.GOES) == AROUND_WITHIN / REST - 1


def test_who_has_passed_many_relays_rests_before_each_turn() -> None:
    pace = DetourPace()
    assert pace.turn(message(1, passed=MAX_WALK), AWAY, True, 100.0) is DetourTurn.GOES
    far = message(2, passed=2 * MAX_WALK)
    assert pace.turn(far, AWAY, True, 100.0) is DetourTurn.RESTS
    assert pace.turn(far, AWAY, True, 100.0 + REST) is DetourTurn.GOES


def test_who_can_pass_no_other_relay_ends() -> None:
    assert DetourPace().turn(message(1, passed=52), AWAY, True, 100.0) is DetourTurn.ENDS


def rests(pace: DetourPace, number: int, hop: Hop, now: float, is_listed: bool = True) -> bool:
    return pace.turn(message(number), hop, is_listed, now) is DetourTurn.RESTS


def test_what_ended_or_is_dropped_anew_begins_anew() -> None:
    pace = DetourPace()
    goes_at_once(pace, message(1), 100.0)
    assert rests(pace, 1, AWAY, 100.1)
    assert not rests(pace, 1, AWAY, 100.0 + AROUND_WITHIN / 2)
    assert pace.turn(message(1), AWAY, True, 100.0 + AROUND_WITHIN) is DetourTurn.ENDS
    assert len(pace) == 0
    goes_at_once(pace, message(1), 100.0 + AROUND_WITHIN)
    assert rests(pace, 1, AWAY, 100.0 + AROUND_WITHIN)
    assert pace.turn(message(1, passed=1), AWAY, True, 101.0 + AROUND_WITHIN) is DetourTurn.GOES
    assert pace.turn(message(1), AWAY, True, 101.0 + 2 * AROUND_WITHIN) is DetourTurn.GOES


def test_each_next_hop_has_a_share_and_what_is_remembered_keeps_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detour_pace, "MAX_PACED", 10)
    pace = DetourPace()
    flood = [message(number, passed=2 * MAX_WALK) for number in range(20)]
    for now in (100.0, 101.0):
        assert all(pace.turn(item, AWAY, True, now) is DetourTurn.RESTS for item in flood)
        assert len(pace) == 10
    assert [pace.turn(message(number), OTHER, True, 102.0) for number in range(30, 36)] == [
        *[DetourTurn.GOES] * 5,
        DetourTurn.RESTS,
    ]
    later = [pace.turn(item, AWAY, True, 101.0 + REST) for item in flood]
    assert later == [*[DetourTurn.GOES] * 5, *[DetourTurn.RESTS] * 15], "those that waited longest"


def test_next_hops_that_no_roster_lists_have_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detour_pace, "MAX_PACED", 10)
    pace = DetourPace()
    for number in range(20):
        made_up = relay_hop(bytes([number + 2] * 32))
        assert rests(pace, number, made_up, 100.0, is_listed=False) is (number >= 10)
    assert not any(rests(pace, number, AWAY, 100.0) for number in range(5))


def test_what_went_and_did_not_come_back_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detour_pace, "MAX_PACED", 10)
    pace = DetourPace()
    for number in range(10):
        assert not rests(pace, number, AWAY, 100.0)
    assert rests(pace, 11, AWAY, 100.0 + REST)
    assert not rests(pace, 11, AWAY, 100.0 + detour_pace.GONE_AFTER)


def test_no_step_is_long_when_all_is_full() -> None:
    pace = DetourPace()
    hops = [relay_hop(number.to_bytes(32, "big")) for number in range(2000)]
    for number in range(detour_pace.MAX_PACED):
        pace.turn(message(number), hops[number % 2000], True, 100.0)
    assert len(pace) == detour_pace.MAX_PACED
    items = [message(number) for number in range(detour_pace.MAX_PACED, detour_pace.MAX_PACED + 500)]
    for now in (101.0, 100.0 + detour_pace.GONE_AFTER):
        with one_step():
            for item in items:
                pace.turn(item, AWAY, True, now)
