"""The register: whatever requests come, in any order, twice, and over restarts, a simple model agrees."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from register_world import (
    CALENDAR,
    NAMES,
    NOW,
    PROXIES,
    SECRETS,
    TODAY,
    TOKENS,
    introduced,
    new,
    play,
    subscribe,
    withdraw,
)

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.central import pseudonym_register, publishing_pseudonyms, request_proofs
from hushcast_protocol.central.frames import Subscribe, UserAnswer
from hushcast_protocol.central.pseudonym_register import hop_of, waits_for
from hushcast_protocol.central.publishing_pseudonyms import PublishingPseudonyms


def verdict(refusal: pytest.ExceptionInfo[Refusal]) -> str:
    return refusal.value.reason


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_order_of_requests_replays_and_restarts(script: bytes) -> None:
    left = list(script)
    play(lambda most: left.pop() % most if left else 0, lambda: bool(left))


@pytest.mark.parametrize("seed", range(4))
def test_and_many_of_them(seed: int) -> None:
    left = iter(range(400))
    play(Random(seed).randrange, lambda: next(left, None) is not None)


def test_a_request_by_somebody_else_is_refused() -> None:
    held = new()
    held.introduce(PROXIES[0], introduced(0), NOW)
    forged = request_proofs.subscribe(NAMES[0], SECRETS[1], 1, (TOKENS[0],))
    with pytest.raises(Refusal) as refusal:
        held.subscribe(PROXIES[0], forged, NOW)
    assert verdict(refusal) == "proof"
    with pytest.raises(Refusal) as refusal:
        held.withdraw(PROXIES[0], request_proofs.withdraw(NAMES[0], SECRETS[1], 1, ()))
    assert verdict(refusal) == "proof"
    with pytest.raises(Refusal) as refusal:
        held.attach(PROXIES[0], request_proofs.attach(NAMES[0], SECRETS[1]), NOW)
    assert verdict(refusal) == "proof"


def test_a_replayed_request_with_other_tokens_changes_nothing() -> None:
    held = new()
    held.introduce(PROXIES[0], introduced(0), NOW)
    request = subscribe(0, 1, TOKENS[0])
    answer = held.subscribe(PROXIES[0], request, NOW)
    swapped = Subscribe(request.pseudonym, request.serial, (TOKENS[1],), request.proof)
    assert held.subscribe(PROXIES[0], swapped, NOW) == answer
    assert held.wanting(held.match(TOKENS), [TOKENS[1]]) == []
    held.withdraw(PROXIES[0], withdraw(0, 2, TOKENS[0]))
    with pytest.raises(Refusal) as refusal:
        held.subscribe(PROXIES[0], request, NOW)
    assert verdict(refusal) == "form"


def test_who_withdrew_is_not_brought_back() -> None:
    held = new()
    held.introduce(PROXIES[0], introduced(0), NOW)
    held.subscribe(PROXIES[0], subscribe(0, 1, TOKENS[0]), NOW)
    over = withdraw(0, 2)
    answer = held.withdraw(PROXIES[0], over)
    assert isinstance(answer, UserAnswer)
    assert held.withdraw(PROXIES[0], over) == answer
    assert held.match(TOKENS) == []
    assert NAMES[0] not in held
    for again in (subscribe(0, 1, TOKENS[0]), subscribe(0, 3, TOKENS[0])):
        with pytest.raises(Refusal):
            held.subscribe(PROXIES[0], again, NOW)
    with pytest.raises(Refusal) as refusal:
        held.introduce(PROXIES[0], introduced(0), NOW)
    assert verdict(refusal) == "form"
    with pytest.raises(Refusal) as refusal:
        held.attach(PROXIES[0], request_proofs.attach(NAMES[0], SECRETS[0]), NOW)
    assert verdict(refusal) == "unknown"


def test_pseudonyms_without_tokens_give_way_and_the_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudonym_register, "MAX_PSEUDONYMS", 2)
    held = new()
    held.introduce(PROXIES[0], introduced(0), NOW)
    held.introduce(PROXIES[0], introduced(1), NOW)
    held.subscribe(PROXIES[0], subscribe(1, 1, TOKENS[0]), NOW)
    held.introduce(PROXIES[0], introduced(2), NOW)
    with pytest.raises(Refusal) as refusal:
        held.subscribe(PROXIES[0], subscribe(0, 1, TOKENS[0]), NOW)
    assert verdict(refusal) == "unknown"
    held.subscribe(PROXIES[0], subscribe(2, 1, TOKENS[0]), NOW)
    with pytest.raises(Refusal) as refusal:
        held.introduce(PROXIES[0], introduced(3), NOW)
    assert verdict(refusal) == "quota"
    wanting = held.wanting(held.match([TOKENS[0]]), [TOKENS[0]])
    assert set(wanting) == {hop_of(NAMES[1]), hop_of(NAMES[2])}


def test_a_pseudonym_attaches_until_its_day_has_lapsed() -> None:
    held = new()
    held.introduce(PROXIES[0], introduced(0), NOW)
    request = request_proofs.attach(NAMES[0], SECRETS[0])
    assert held.attach(PROXIES[0], request, NOW) == SECRETS[0]
    with pytest.raises(Refusal) as refusal:
        held.attach(PROXIES[0], request, CALENDAR.lapse(TODAY))
    assert verdict(refusal) == "day"


def test_what_waits_for_a_pseudonym_waits_under_its_name() -> None:
    assert waits_for(hop_of(NAMES[0])) == NAMES[0]
    assert len(hop_of(NAMES[0])) == 33


def test_publishers_are_the_last_that_came_and_each_its_proxys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing_pseudonyms, "MAX_PUBLISHERS", 2)
    held = PublishingPseudonyms(CALENDAR)
    for number in (0, 1):
        held.introduce(PROXIES[0], introduced(number, use="publish"), NOW)
    held.introduce(PROXIES[0], introduced(0, use="publish"), NOW)
    with pytest.raises(Refusal) as refusal:
        held.introduce(PROXIES[1], introduced(0, use="publish"), NOW)
    assert verdict(refusal) == "taken"
    held.introduce(PROXIES[0], introduced(2, use="publish"), NOW)
    assert held.find(PROXIES[0], NAMES[0], NOW).secret == SECRETS[0]
    for proxy, number, now, expected in (
        (PROXIES[0], 1, NOW, "unknown"),
        (PROXIES[1], 0, NOW, "taken"),
        (PROXIES[0], 0, CALENDAR.lapse(TODAY), "day"),
        (PROXIES[0], 0, NOW, "unknown"),
    ):
        with pytest.raises(Refusal) as refusal:
            held.find(proxy, NAMES[number], now)
        assert verdict(refusal) == expected
    for day in (TODAY - 1, TODAY + 2):
        with pytest.raises(Refusal) as refusal:
            held.introduce(PROXIES[0], introduced(3, day, "publish"), NOW)
        assert verdict(refusal) == "day"
    assert len(held) == 1
