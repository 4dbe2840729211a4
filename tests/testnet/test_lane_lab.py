"""The lab's readers: what hosts, seconds and porters find on the way down, and faults they have to find."""

from __future__ import annotations

from hushcast_testnet.cover.chance_lines import LineKind
from hushcast_testnet.cover.colluding_hosts import readers_named
from hushcast_testnet.cover.colluding_relays import CollusionScene
from hushcast_testnet.cover.lane_watchers import (
    ErrandRule,
    block_matched,
    blocks_until_asked,
    empty_told_apart,
    items_lost,
    owner_guessed,
    owner_told_of,
    owner_waited_for,
    shower_guessed,
)
from hushcast_testnet.cover.laned_network import LanedNetwork, LaneFault


def test_items_come_down_and_the_line_is_the_same_in_each_round() -> None:
    network = LanedNetwork(3, 2)
    bodies = [b"item %d" % number for number in range(3)]
    for body, box in zip(bodies, network.daemons[0].boxes, strict=True):
        box.put(body, (len(body),), network.round)
    network.play_round()
    network.play_round(frozenset({network.daemons[0].errands[0].lane}))
    assert [daemon.heard for daemon in network.daemons] == [set(bodies), set(), set()]
    assert {seen for daemon in network.daemons for seen in daemon.line} == {3 * 4096}


def test_a_host_that_withholds_finds_nobody_unless_only_what_came_is_passed() -> None:
    assert owner_guessed(4, 3, LaneFault.NONE) == 1
    assert owner_guessed(4, 3, LaneFault.PASSES_WHAT_CAME) == 4


def test_host_and_porter_have_nothing_in_common_unless_the_second_copies() -> None:
    assert round(block_matched(4, LaneFault.NONE), 6) == 1
    assert block_matched(4, LaneFault.COPIES) == 4


def test_a_second_tells_no_empty_box_unless_it_is_a_byte_longer() -> None:
    assert empty_told_apart(LaneFault.NONE) == 0.5
    assert empty_told_apart(LaneFault.EMPTY_LONGER) == 1


def test_what_is_lost_comes_again_without_a_word_and_a_word_would_name() -> None:
    assert items_lost(0.2, 48) == 0
    assert items_lost(0.5, 48) < 0.05
    assert blocks_until_asked(1000, 0.2) < 40


def test_what_an_owner_says_each_day_names_it_unless_it_is_always_there() -> None:
    daily = owner_waited_for(10, 60, ErrandRule.DAILY)
    always = owner_waited_for(10, 100, ErrandRule.DAILY, are_always_there=True)
    assert always < 1.7 < 8 < daily


def test_when_a_lane_begins_shows_who_was_away_as_the_quarter_did() -> None:
    """One day in ten: then a host is left with few; of those that are always on with all."""
    by_day, always = (owner_told_of(10, 400, kind) for kind in (LineKind.BY_DAY, LineKind.ALWAYS))
    assert always < 1.3 < by_day < 3


def test_bills_are_shown_whether_or_not_the_daemon_is_there() -> None:
    shown, there = (shower_guessed(10, 100, only_there) for only_there in (False, True))
    assert shown < 1.7 < 4 < there


def test_readers_are_named_as_often_as_the_model_says() -> None:
    """With a fifth that collude: f^3, f^2, more over the turn of a quarter, and f without a second."""
    named = readers_named(CollusionScene(200, 100, 8, 0.2, 30))
    assert named.host_stays < 0.025 < named.cut < 0.07
    assert named.cut <= named.cut_over_turn < 0.1 < named.without_second < 0.3
