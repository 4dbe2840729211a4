"""When a message goes around a next hop that is away, when it rests, and when it ends."""

from __future__ import annotations

import pytest

from hushcast_overlay.relay import detour_pace
from hushcast_overlay.relay.detour_pace import (
    AROUND_WITHIN,
    MAX_AT_ONCE,
    MAX_WALK,
    REST,
    DetourPace,
    DetourTurn,
)
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.trail import Trail

AWAY, OTHER = relay_hop(bytes(32)), relay_hop(bytes([1] * 32))


def message(number: int, passed: int = 0) -> Message:
    """Return a message that passed so many relays."""
    trail = Trail(bytes(TRAIL_SIZE))
    for label in range(passed):
        trail.add(bytes([label] * 16))
    return Message(number.to_bytes(32), 0, (bytes(32),), trail.to_bytes(), b"body")


def goes_at_once(pace: DetourPace, item: Message, now: float) -> None:
    assert all(pace.turn(item, AWAY, now) is DetourTurn.GOES for _ in range(MAX_AT_ONCE))


def test_a_message_goes_at_once_and_then_rests_between_its_turns() -> None:
    pace = DetourPace()
    goes_at_once(pace, message(1), 100.0)
    assert pace.turn(message(1), AWAY, 100.1) is DetourTurn.RESTS
    assert pace.turn(message(1), OTHER, 100.1) is DetourTurn.GOES, "each next hop counts apart"
    assert pace.turn(message(2), AWAY, 100.1) is DetourTurn.GOES, "and so does each message"
    assert pace.turn(message(1), AWAY, 100.0 + REST) is DetourTurn.GOES
    assert pace.turn(message(1), AWAY, 100.0 + REST + 1) is DetourTurn.RESTS


def test_it_ends_when_that_went_on_for_long_enough() -> None:
    pace, now = DetourPace(), 100.0
    goes_at_once(pace, message(1), now)
    turns = []
    while (turn := pace.turn(message(1), AWAY, now)) is not DetourTurn.ENDS:
        turns.append(turn)
        now += REST / 2
    assert now == 100.0 + AROUND_WITHIN
    assert turns.count(DetourTurn.GOES) == AROUND_WITHIN / REST - 1


def test_who_has_passed_many_relays_rests_before_each_turn() -> None:
    pace = DetourPace()
    assert pace.turn(message(1, passed=MAX_WALK), AWAY, 100.0) is DetourTurn.GOES
    far = message(2, passed=2 * MAX_WALK)
    assert pace.turn(far, AWAY, 100.0) is DetourTurn.RESTS
    assert pace.turn(far, AWAY, 100.0 + REST) is DetourTurn.GOES


def test_who_can_pass_no_other_relay_ends() -> None:
    assert DetourPace().turn(message(1, passed=52), AWAY, 100.0) is DetourTurn.ENDS


def test_what_was_evicted_before_its_turn_rests_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detour_pace, "MAX_PACED", 2)
    pace = DetourPace()
    for number in range(3):
        goes_at_once(pace, message(number), 100.0)
    assert pace.turn(message(0), AWAY, 100.1) is DetourTurn.RESTS
    assert pace.turn(message(5), AWAY, 101.0 + 3 * REST) is DetourTurn.GOES
