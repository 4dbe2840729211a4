"""The lab of cover: a network in rounds, what its watchers find, and the faults that they have to find."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hushcast_protocol.content.parts import MAX_PARTS
from hushcast_protocol.cover.topic_rounds import TopicRounds
from hushcast_testnet.cover.colluding_relays import (
    CollusionScene,
    fresh_chains,
    kept_chains,
    plain_messages,
)
from hushcast_testnet.cover.counting_second import PorterFault, presence_guessed
from hushcast_testnet.cover.covered_network import CoveredNetwork, PlantedFault
from hushcast_testnet.cover.line_watcher import told_apart
from hushcast_testnet.cover.losing_porter import (
    AuthorHabit,
    PorterLoss,
    dropping_at_once,
    losing_outcome,
    messages_needed,
    pairs_drawn,
)
from hushcast_testnet.cover.probing_porter import third_guessed

BODIES = [b"message %d" % number for number in range(10)]


def played(fault: PlantedFault, loss: float = 0.0, rounds: int = 40, seed: int = 3) -> CoveredNetwork:
    """Four daemons after their queues have begun; the first publishes on ten topics, the last leaves."""
    network = CoveredNetwork(4, 12, loss, seed, fault)
    for _ in range(24):
        network.play_round()
    for body in BODIES:
        network.daemons[0].rounds.publish(body, network.round, is_held=False, topic=body.decode())
    network.daemons[3].is_there = False
    for _ in range(rounds):
        network.play_round()
    return network


def apart(network: CoveredNetwork) -> float:
    rounds = range(network.first + 24, network.first + 28)
    busy, idle = (daemon.seen_in(rounds) for daemon in network.daemons[:2])
    return told_apart(idle, busy)


def test_ten_letters_arrive_and_neither_lines_nor_porters_tell() -> None:
    network = played(PlantedFault.NONE)
    assert dict(network.dropped) == dict.fromkeys(BODIES, 1)
    assert not network.daemons[0].rounds.messages
    assert apart(network) == 0.5
    assert {(one.at, one.size) for daemon in network.daemons for one in daemon.seen} == {(0.0, 4096)}
    before, *others = network.passed[23:]
    assert all(passed == before for passed in others)  # one daemon published, one went away
    assert before.total() == 5 * 4


@pytest.mark.parametrize("fault", [PlantedFault.LATER, PlantedFault.SHORTER])
def test_a_planted_fault_is_found(fault: PlantedFault) -> None:
    assert apart(played(fault, rounds=4)) > 0.75


def test_what_is_lost_on_the_way_goes_anew_and_what_is_lost_again_is_told() -> None:
    """Three stretches that lose four letters of a hundred lose six of fifty once, and one of them twice."""
    lost = 0
    for seed in range(4, 9):
        network = played(PlantedFault.NONE, loss=0.04, rounds=40, seed=seed)
        told = network.daemons[0].rounds.given_up()
        assert set(network.dropped) == set(BODIES) - set(told)
        lost += len(told)
    assert lost <= 2


def test_what_a_day_of_letters_does_not_bring_is_told() -> None:
    """Of some messages no try of a day arrives, each over three stretches that lose three letters in ten."""
    network = played(PlantedFault.NONE, loss=0.3, rounds=60, seed=6)
    told = network.daemons[0].rounds.given_up()
    assert told, "in this network"
    assert set(network.dropped) == set(BODIES) - set(told)


def test_a_second_learns_nothing_from_counts_and_a_porter_that_errs_is_found() -> None:
    assert presence_guessed(10, 10, PorterFault.NONE) <= 1.5
    for fault in (PorterFault.PASSES_WHAT_CAME, PorterFault.DRAWS_THIRDS):
        assert presence_guessed(10, 10, fault) > 8


def test_a_porter_that_probes_finds_no_third_and_with_the_key_of_a_waybill_each() -> None:
    assert third_guessed(4, 12, is_key_known=False) == 1
    assert third_guessed(4, 12, is_key_known=True) == 4


def test_kept_chains_name_fewer_than_fresh_ones_and_a_porter_that_is_told_leaves_fewer_candidates() -> None:
    sealed = kept_chains(CollusionScene(200, 100, 8, 0.2, 30))
    told = kept_chains(CollusionScene(200, 100, 8, 0.2, 30, is_third_told=True))
    fresh = fresh_chains(CollusionScene(200, 100, 8, 0.2, 30), 150)
    assert told.named == sealed.named < 0.03 < 0.06 < fresh
    assert told.candidates < 0.85 * sealed.candidates


def test_porters_that_lose_all_letters_but_one_daemons_strike_off_theirs_and_name_no_more() -> None:
    watching, losing = (
        kept_chains(CollusionScene(200, 100, 8, 0.2, 30, loses_others=loses)) for loses in (False, True)
    )
    assert losing.named == watching.named
    assert 0.7 * 200 < losing.candidates < 0.85 * 200 < watching.candidates


@pytest.mark.parametrize("is_told", [False, True])
def test_colluders_weigh_candidates_rightly(is_told: bool) -> None:
    """With wrong weights they would find the author more or less often than they expect to."""
    outcome = kept_chains(CollusionScene(40, 24, 4, 0.3, 300, is_third_told=is_told))
    assert outcome.on_author == pytest.approx(outcome.on_author_expected, rel=0.01)


def test_without_colluders_everybody_stays_a_candidate_and_without_cover_nobody() -> None:
    outcome = kept_chains(CollusionScene(100, 48, 4, 0.0, 1))
    assert (outcome.named, outcome.candidates) == (0.0, pytest.approx(100.0))
    assert plain_messages(1000, 20, 5) <= 3
    assert plain_messages(1000, 20, 50) <= 3, "of who reads"


@pytest.mark.parametrize("how", list(PorterLoss))
def test_a_porter_that_loses_a_fifth_of_the_rounds_is_left_before_it_names_an_author(how: PorterLoss) -> None:
    """It loses them, passes them late, is away in them, or loses two on end, as if relays restarted."""
    assert messages_needed(1000, 0.2) == 41
    outcome = losing_outcome(1000, 0.2, AuthorHabit(12), 20, how)
    assert outcome.named == 0
    assert outcome.named_waiting == 0, "nor one that knows when messages wait"
    assert outcome.heard < 41 / 2
    assert outcome.days < 2


@pytest.mark.slow
@pytest.mark.parametrize(("habit", "lost"), [(AuthorHabit(100), 0.2), (AuthorHabit(1, MAX_PARTS), 0.4)])
def test_few_authors_of_much_are_named_as_rounds_of_a_topic_are_drawn(
    habit: AuthorHabit, lost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred messages a day, and one of 64 KiB; else it names some, where thirds drop at once."""
    drawn = losing_outcome(1000, lost, habit, 60)
    assert drawn.named == 0
    assert drawn.named_waiting < 0.05
    monkeypatch.setattr(TopicRounds, "has", lambda *_: True)
    assert 0.03 < losing_outcome(1000, lost, habit, 60, rules=dropping_at_once()).named < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("how", [PorterLoss.LOSES, PorterLoss.RELEASES])
def test_held_letters_name_few_though_they_come_out_of_a_porter_that_was_left(how: PorterLoss) -> None:
    """A hundred a day; where thirds drop at once most of their authors are named."""
    held = AuthorHabit(100, is_held=True)
    assert losing_outcome(1000, 0.2, held, 20, how).named <= 0.15
    if how == PorterLoss.LOSES:
        assert losing_outcome(1000, 0.2, held, 12, rules=dropping_at_once()).named > 0.4


TREE = AuthorHabit(1, 66, is_errand=True)


def test_relays_of_a_tree_learn_little_of_when_a_readers_letters_passed_and_its_judge_counts_them() -> None:
    judged = losing_outcome(1000, 0.2, TREE, 12)
    assert judged.named == judged.named_waiting == 0
    assert judged.days < 1.5
    some = losing_outcome(1000, 0.2, replace(TREE, seen=0.1), 12)
    assert some.named == 0
    assert some.heard < judged.heard


@pytest.mark.slow
@pytest.mark.parametrize("how", [PorterLoss.LOSES, PorterLoss.RELEASES])
def test_a_porter_that_loses_little_names_few_readers(how: PorterLoss) -> None:
    """By hours it is found within a week; else each hour says little. Where thirds drop at once it names."""
    named = losing_outcome(1000, 0.04, TREE, 6, how)
    assert named.named == 0
    if how == PorterLoss.RELEASES:
        assert named.named_waiting == 0, "nor where relays of the tree know when letters wait"
    if how == PorterLoss.LOSES:
        assert losing_outcome(1000, 0.04, TREE, 6, rules=dropping_at_once()).named > 0.3


@pytest.mark.slow
def test_a_porter_that_loses_little_names_few_authors() -> None:
    assert messages_needed(1000, 0.059) == 150
    assert losing_outcome(1000, 0.059, AuthorHabit(12), 12).named == 0
    assert losing_outcome(1000, 0.04, AuthorHabit(12), 12, PorterLoss.RELEASES).named <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a_day", "lost", "how", "most"),
    [
        (100, 0.04, PorterLoss.RELEASES, 5.5),
        (100, 0.02, PorterLoss.RELEASES, 11),
        (12, 0.04, PorterLoss.HALVES, 9),
    ],
)
def test_a_porter_that_loses_hours_is_left_in_time_by_authors_of_much_and_who_knows_when_one_waits(
    a_day: int, lost: float, how: PorterLoss, most: float
) -> None:
    """Of a hundred a day one of ten was named while messages of the hour before hid what was lost."""
    outcome = losing_outcome(1000, lost, AuthorHabit(a_day), 40, how)
    assert outcome.named <= 0.05
    assert outcome.named_waiting <= 0.1
    assert outcome.days < most


def test_a_porter_that_loses_all_letters_has_no_pair_drawn_anew() -> None:
    assert pairs_drawn() == 1
