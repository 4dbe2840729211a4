"""Which relays keep a trunk of a day: the same for all, and each as often as any other."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from core_examples import NETWORK, relay_id
from steps import one_step

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.base.roster import GENESIS, MAX_RELAYS, Relay, Roster
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.overlay import keepers
from hushcast_protocol.overlay.keepers import KeeperDraws, of_shard, of_whole_day

DAY = 100
SIX = KeepingRule(6)
IDS = [relay_id(number) for number in range(12)]


def roster(epoch: int, previous: bytes, relays: list[bytes], keeping: KeepingRule = SIX) -> Roster:
    listed = {one: Relay(one, None, bytes(32), 0) for one in relays}  # type: ignore[arg-type]
    return Roster(NETWORK, epoch, previous, b"%032d" % epoch, listed, keeping=keeping)


def chain(*epochs: int, relays: list[bytes] = IDS) -> list[Roster]:
    rosters: list[Roster] = []
    for epoch in epochs:
        rosters.append(roster(epoch, rosters[-1].digest if rosters else GENESIS, relays))
    return rosters


BEGINS = DAY * EPOCHS_A_DAY


def test_the_candidates_are_the_relays_of_the_last_roster_before_the_day() -> None:
    before, last = chain(BEGINS - 2, BEGINS - 1)
    first = roster(BEGINS, last.digest, IDS[:3])
    found = of_whole_day(DAY, [before, last, first])
    assert found is not None
    assert found.relays == tuple(sorted(IDS))
    later = roster(BEGINS + 1, first.digest, IDS[:5])
    assert of_whole_day(DAY, [last, first, later]) == found
    assert of_whole_day(DAY + 1, [before, last, first, later]) is None


def test_an_epoch_without_a_roster_changes_nothing_for_those_who_follow_the_chain() -> None:
    last, first = chain(BEGINS - 3, BEGINS + 2)
    found = of_whole_day(DAY, [last, first])
    assert found is not None
    assert found.relays == tuple(sorted(IDS))


@pytest.mark.parametrize("held", [[0], [1], [1, 2], []])
def test_who_lacks_one_of_the_two_rosters_knows_nobody(held: list[int]) -> None:
    rosters = chain(BEGINS - 1, BEGINS, BEGINS + 1)
    assert of_whole_day(DAY, [rosters[place] for place in held]) is None


def test_a_roster_that_does_not_follow_is_not_taken_for_the_last() -> None:
    older, missing, first = chain(BEGINS - 2, BEGINS - 1, BEGINS)
    assert missing.digest == first.previous
    assert of_whole_day(DAY, [older, first]) is None


def test_after_a_day_that_was_cut_the_first_roster_counts_itself() -> None:
    last, first = chain(BEGINS - 1, BEGINS)
    cut = roster(last.epoch, last.previous, [])
    found = of_whole_day(DAY, [cut, first])
    assert found is not None
    assert found.relays == tuple(sorted(IDS))


def test_the_rule_of_the_day_itself_counts() -> None:
    last, _ = chain(BEGINS - 1, BEGINS)
    found = of_whole_day(DAY, [last, roster(BEGINS, last.digest, IDS, KeepingRule(2, 3))])
    assert found is not None
    assert found.keeping == KeepingRule(2, 3)
    assert len(found.draw(bytes(16))) == 2


@pytest.mark.parametrize(("relays", "drawn"), [(0, 0), (2, 0), (3, 1), (9, 3), (17, 5), (18, 6), (50, 6)])
def test_a_third_of_the_relays_keep_at_most(relays: int, drawn: int) -> None:
    last, first = chain(BEGINS - 1, BEGINS, relays=[relay_id(number) for number in range(relays)])
    found = of_whole_day(DAY, [last, first])
    if found is None:
        assert not relays
        return
    keepers_of = found.draw(bytes(16))
    assert len(keepers_of) == len(set(keepers_of)) == drawn
    assert set(keepers_of) <= set(found.relays)


def test_each_relay_keeps_as_often_as_any_other_and_days_are_drawn_apart() -> None:
    relays = [os.urandom(32) for _ in range(60)]
    last, first = chain(BEGINS - 1, BEGINS, relays=relays)
    found = of_whole_day(DAY, [last, first])
    assert found is not None
    trunks = [number.to_bytes(16, "big") for number in range(3000)]
    drawn = Counter(one for trunk in trunks for one in found.draw(trunk))
    mean = 3000 * 6 / 60
    chi = sum((drawn[one] - mean) ** 2 / mean for one in relays)
    assert chi < 110, "of 59 degrees of freedom one in 10,000 has more"
    other = of_whole_day(DAY, [last, roster(BEGINS, last.digest, relays)])
    assert other == found
    shards = [
        of_shard(DAY, Sharding(DAY, bytes(32), 1, *[bytes(32)] * 2, 60), n, relays, SIX) for n in (0, 1)
    ]
    tomorrow = of_shard(DAY + 1, Sharding(DAY, bytes(32), 1, *[bytes(32)] * 2, 60), 0, relays, SIX)
    assert len({one.value for one in (found, *shards, tomorrow)}) == 4
    assert len({one.draw(trunks[0]) for one in (found, *shards, tomorrow)}) == 4


def test_a_draw_of_a_full_roster_is_a_short_step_and_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    last, first = chain(BEGINS - 1, BEGINS, relays=[os.urandom(32) for _ in range(MAX_RELAYS)])
    found = of_whole_day(DAY, [last, first])
    assert found is not None
    draws = KeeperDraws(found)
    with one_step():
        drawn = draws.of(bytes(16))
    assert draws.of(bytes(16)) is drawn
    monkeypatch.setattr(keepers, "MAX_DRAWS", 3)
    for number in range(1, 6):
        draws.of(number.to_bytes(16, "big"))
        draws.of(number.to_bytes(16, "big"))
    assert len(draws._drawn) == 3
    assert draws.of(bytes(16)) == drawn
