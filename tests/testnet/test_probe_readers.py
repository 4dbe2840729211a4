"""What relays that read probes find of conditions: their estimates, and a small network."""

from __future__ import annotations

import pytest

from hushcast_protocol.content.attributes import Label, Number, parse_attribute
from hushcast_protocol.content.predicates import Between, Equals
from hushcast_protocol.content.tokens import entry_condition
from hushcast_runtime.environment import simulated_environment
from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate
from hushcast_testnet.simulations.probe_readers import (
    WIDTHS,
    conditions_named,
    draw_interest,
    draw_values,
    share_found,
)

KIND, PLACE = Label("kind"), parse_attribute("place:0..999")
assert isinstance(PLACE, Number)
CONDITIONS = [Between(PLACE, low, low + 99) for low in (0, 300, 600, 900)]


def at(*places: int) -> list[dict[str, str | int]]:
    return [{"place": place, "kind": "other"} for place in places]


def test_conditions_that_probes_meet_are_named() -> None:
    seen = [at(3, 80), at(310, 390), at(601), at(900, 999)]
    assert conditions_named(seen, CONDITIONS) == 1.0
    assert conditions_named([seen[1], seen[2], seen[3], seen[0]], CONDITIONS) == 0.0


def test_a_condition_met_more_often_than_others_is_named_though_most_probes_are_anywhere() -> None:
    seen = [at(3, 80, 310, 650, 901), at(310, 311, 5), at(601), at(900)]
    assert conditions_named(seen, CONDITIONS) == 1.0


def test_without_a_probe_in_any_condition_chance_is_what_is_named() -> None:
    assert conditions_named([[], at(150), at(150), []], CONDITIONS) == pytest.approx(1 / 4)


def test_the_more_probes_of_a_range_the_more_of_it_is_found() -> None:
    condition = CONDITIONS[1]
    assert share_found([], condition) == share_found([{}], condition) == 0.0
    assert share_found(at(300), condition) == pytest.approx(0.01)
    assert share_found(at(310, 389), condition) == pytest.approx(0.8)
    assert share_found(at(399, 300), condition) == 1.0


def test_probes_from_anywhere_find_no_more_than_the_whole_range_does() -> None:
    assert share_found(at(0, 999), CONDITIONS[1]) == pytest.approx(0.1)
    assert share_found(at(0, 200), CONDITIONS[1]) == 0.0


def test_a_label_is_found_if_it_is_the_one_seen_most() -> None:
    wanted = Equals(KIND, "fire")
    seen = [{"kind": kind} for kind in ("fire", "flood", "fire")]
    assert share_found(seen, wanted) == 1.0
    assert share_found(seen[:2], wanted) == 0.5
    assert share_found(seen[1:2], wanted) == 0.0


def test_interests_are_drawn_with_conditions_that_their_publications_meet() -> None:
    env = simulated_environment("interests")
    for number in range(20):
        interest = draw_interest(f"topic {number}", env)
        for condition in interest.predicate.conditions:
            if isinstance(condition, Between):
                number_of = condition.attribute
                assert 0 <= condition.low < condition.high <= number_of.last
                width = (condition.high - condition.low) / number_of.last
                assert width == pytest.approx(WIDTHS[number_of.name], rel=0.01)
        assert interest.predicate.matches(draw_values(interest, env))
        entry = entry_condition(interest.predicate)
        assert entry is not None
        assert entry.attribute.name == "lon"


@pytest.mark.slow
def test_probes_show_the_condition_by_which_they_enter_and_no_other() -> None:
    result = simulate(Scenario(8, 1, 4, topics=4, minutes=60, origins=2, read_probes=0.5))
    assert result.delivered == result.pairs == 4
    assert result.companions == {}
    found = result.conditions
    assert found["trials"] == 4
    assert found["probes"] > 10
    assert found["named"]["lon"] == 1.0  # relays hold it, too
    assert found["found"]["lon"] > 0.7
    assert found["found"]["kind"] == 0.0
    assert found["found"]["lat"] < 0.2
    assert found["named"]["kind"] == found["by_chance"] == 0.25
