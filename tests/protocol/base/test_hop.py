"""The hop machine: each row of its table; and whatever is lost, late or restarted, all that waits arrives."""

from __future__ import annotations

import math
from random import Random

import pytest
from hop_world import Link, Parcel, play
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcast_protocol.base.link import hop, hop_link
from hushcast_protocol.base.link.hop import (
    DETOUR_AFTER,
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    MAX_LINKS_A_PEER,
    NextHop,
)
from hushcast_protocol.base.link.hop_link import ACKNOWLEDGE_WITHIN, IDLE, SLOWEST, TRIED_AFTER
from hushcast_protocol.base.link.hop_values import (
    BacklogState,
    Close,
    DialState,
    HopCommand,
    HopRules,
    ReadBack,
    Reroute,
    SendItems,
    Settle,
)

NOW = 1000.0
ONE, TWO, THREE = (Parcel(number, 100) for number in (1, 2, 3))
ANEW: ReadBack[Parcel] = ReadBack(None)


class Bytes:
    """Reads a script's choices."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)
        self.left = len(data)

    def pick(self, most: int) -> int:
        self.left -= 1
        return next(self._data, 0) % most

    def more(self) -> bool:
        return self.left > 0


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=2000), st.booleans())
def test_nothing_is_lost_sent_twice_or_stuck(script: bytes, goes_around: bool) -> None:
    moves = Bytes(script)
    play(moves.pick, moves.more, goes_around)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=2000))
def test_nor_where_the_other_end_alone_opens_links(script: bytes) -> None:
    moves = Bytes(script)
    play(moves.pick, moves.more, goes_around=False, dials=False)


@pytest.mark.parametrize("seed", range(12))
def test_nor_in_a_long_life(seed: int) -> None:
    left = iter(range(600))
    play(Random(seed).randrange, lambda: next(left, None) is not None, goes_around=seed % 3 != 0)


# The table, row by row.


def machine(goes_around: bool = True, gone: tuple[Parcel, ...] = ()) -> NextHop[Link, Parcel]:
    return NextHop(HopRules(lambda item: item not in gone, Random(1).randbytes, goes_around))


def linked(*items: Parcel, goes_around: bool = True) -> tuple[NextHop[Link, Parcel], Link]:
    """Return a machine with a link that `items` were sent on."""
    held, link = machine(goes_around), Link(NOW)
    assert held.link_up(link, False, NOW) == []
    assert held.enqueue(items, NOW) == ([SendItems(link, list(items))] if items else [])
    return held, link


def dialling(*items: Parcel, goes_around: bool = True) -> NextHop[Link, Parcel]:
    """Return a machine that is dialled for `items`."""
    held = machine(goes_around)
    assert held.enqueue(items, NOW) == [HopCommand.DIAL]
    assert held.dialling is DialState.DIALLING
    return held


def paused(*items: Parcel, away_after: float = math.inf) -> NextHop[Link, Parcel]:
    """Return a machine that was not reached."""
    held = dialling(*items)
    assert held.dial_failed(away_after, NOW) == []
    assert held.dialling is DialState.PAUSED
    return held


def away(*items: Parcel) -> NextHop[Link, Parcel]:
    """Return a machine that counts as away, and has nothing in its spool."""
    held = dialling(*items)
    assert held.dial_failed(0.0, NOW) == [HopCommand.WENT_AWAY, HopCommand.GO_AROUND]
    assert held.went_around(found=False, moved=False, now=NOW) == []
    assert held.is_away
    return held


def pause_of(held: NextHop[Link, Parcel], now: float = NOW) -> float:
    return held.deadline - now


def test_who_is_wanted_and_not_linked_is_dialled() -> None:
    held = machine()
    assert held.is_unused
    assert held.want(NOW) == [HopCommand.DIAL]
    assert held.want(NOW) == held.enqueue([ONE], NOW) == []
    assert held.needs_dial
    assert not held.is_unused


def test_a_link_that_we_dialled_ends_the_dial() -> None:
    held, link = dialling(ONE), Link(NOW)
    assert held.link_up(link, True, NOW) == [SendItems(link, [ONE])]
    assert held.dialling is DialState.IDLE


def test_a_link_from_the_other_end_does_not() -> None:
    held, theirs, ours = dialling(ONE), Link(NOW), Link(NOW)
    assert held.link_up(theirs, False, NOW) == [SendItems(theirs, [ONE])]
    assert held.dialling is DialState.DIALLING
    assert not held.needs_dial
    assert held.link_up(ours, True, NOW) == []
    assert held.enqueue([TWO], NOW) == [SendItems(ours, [TWO])]


def test_a_dial_that_is_not_needed_at_its_turn_ends() -> None:
    held, link = dialling(ONE), Link(NOW)
    held.link_up(link, False, NOW)
    assert held.dial_unneeded(NOW) == []
    assert held.dialling is DialState.IDLE
    assert held.link_ended(link, math.inf, NOW) == [ANEW]
    assert held.dialling is DialState.PAUSED, "the link was fruitless"


def test_a_dial_that_fails_beside_a_link_is_not_repeated() -> None:
    held = dialling(ONE)
    held.link_up(Link(NOW), False, NOW)
    assert held.dial_failed(math.inf, NOW) == []
    assert held.dialling is DialState.IDLE


def test_a_dial_that_fails_when_all_has_expired_is_not_repeated() -> None:
    held = machine(gone=(ONE,))
    held.enqueue([ONE], NOW)
    assert held.dial_failed(math.inf, NOW) == []
    assert held.is_unused
    assert held.deadline == math.inf


def test_a_dial_that_fails_is_repeated_after_a_pause() -> None:
    held = paused(ONE)
    assert FIRST_BACKOFF / 2 <= pause_of(held) <= FIRST_BACKOFF
    assert held.tick(held.deadline - 0.01) == []
    assert held.tick(held.deadline) == [HopCommand.DIAL]
    assert held.deadline == math.inf


def test_pauses_double_up_to_the_longest() -> None:
    held, now, longest = dialling(ONE), NOW, FIRST_BACKOFF
    for _ in range(10):
        held.dial_failed(math.inf, now)
        assert longest / 2 <= pause_of(held, now) <= longest
        now, longest = held.deadline, min(2 * longest, LONGEST_BACKOFF)
        assert held.tick(now) == [HopCommand.DIAL]


def test_a_pause_ends_for_the_first_message_and_for_no_other() -> None:
    held = machine()
    held.want(NOW)
    for _ in range(6):
        held.dial_failed(math.inf, NOW)
        held.tick(held.deadline)
    held.dial_failed(math.inf, NOW)
    assert held.enqueue([ONE], NOW) == [HopCommand.DIAL]
    held.dial_failed(math.inf, NOW)
    assert pause_of(held) <= FIRST_BACKOFF, "and the pauses begin anew"
    assert held.enqueue([TWO], NOW) == []
    assert held.want(NOW) == []
    assert held.dialling is DialState.PAUSED


def test_a_link_ends_a_pause_and_the_pauses_begin_anew() -> None:
    held, link = dialling(ONE), Link(NOW)
    for _ in range(6):
        held.dial_failed(math.inf, NOW)
        held.tick(held.deadline)
    held.dial_failed(math.inf, NOW)
    assert held.link_up(link, False, NOW) == [SendItems(link, [ONE])]
    assert held.dialling is DialState.IDLE
    assert held.deadline == math.inf
    held.link_ended(link, math.inf, NOW)
    assert pause_of(held) <= FIRST_BACKOFF


def test_nobody_is_dialled_for_nobody() -> None:
    held = machine()
    held.want(NOW)
    held.want(NOW)
    assert held.unwant() == []
    assert held.unwant() == [HopCommand.STOP_DIALLING]
    assert held.is_unused
    held.want(NOW)
    held.dial_failed(math.inf, NOW)
    assert held.unwant() == []
    assert held.is_unused
    assert held.deadline == math.inf
    assert held.want(NOW) == [HopCommand.DIAL], "who wants it next has it dialled at once"
    held.dial_failed(math.inf, NOW)
    assert pause_of(held) <= FIRST_BACKOFF


def test_a_pause_for_nothing_any_more_leads_to_no_dial() -> None:
    held = machine()
    held.resume(NOW)
    held.dial_failed(math.inf, NOW)
    held.read_back([], NOW)
    assert held.dialling is DialState.PAUSED
    assert held.tick(held.deadline) == []
    assert held.is_unused
    held.want(NOW)
    held.dial_failed(math.inf, NOW)
    assert pause_of(held) <= FIRST_BACKOFF


def test_fruitless_links_are_opened_with_growing_pauses() -> None:
    held, now, longest = dialling(ONE), NOW, FIRST_BACKOFF
    for _ in range(8):
        link = Link(now)
        held.link_up(link, True, now)
        assert link.unacknowledged == [ONE]
        held.link_ended(link, math.inf, now)
        held.read_back([ONE], now)
        held.read_back([], now)
        assert longest / 2 <= pause_of(held, now) <= longest
        now, longest = held.deadline, min(2 * longest, LONGEST_BACKOFF)
        assert held.tick(now) == [HopCommand.DIAL]
    link = Link(now)
    held.link_up(link, True, now)
    held.acknowledged(link, 1, (), now)
    held.read_back([], now)
    held.enqueue([TWO], now)
    assert held.link_ended(link, math.inf, now) == [HopCommand.DIAL, ANEW], "it took something"
    held.dial_failed(math.inf, now)
    assert pause_of(held, now) <= FIRST_BACKOFF


def test_an_acknowledgement_makes_the_pauses_begin_anew() -> None:
    held, fruitless, fruitful = dialling(ONE), Link(NOW), Link(NOW)
    for _ in range(6):
        held.dial_failed(math.inf, NOW)
        held.tick(held.deadline)
    held.link_up(fruitless, True, NOW)
    held.link_up(fruitful, False, NOW)
    held.enqueue([TWO], NOW)
    held.acknowledged(fruitful, 1, (), NOW)
    fruitful.send([THREE], THREE.size, NOW)
    held.link_ended(fruitful, math.inf, NOW)
    held.link_ended(fruitless, math.inf, NOW)
    assert pause_of(held) <= FIRST_BACKOFF


def test_a_link_that_owed_nothing_is_dialled_again_at_once_if_wanted() -> None:
    held, link = linked()
    held.want(NOW)
    assert held.link_ended(link, math.inf, NOW) == [HopCommand.DIAL]
    held, link = linked()
    assert held.link_ended(link, math.inf, NOW) == []
    assert held.is_unused


def test_what_does_not_fit_waits_in_the_spool_and_comes_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop, "MAX_QUEUE", 250)
    held, link = dialling(ONE, TWO, THREE), Link(NOW)
    assert held.queued == 200
    assert held.backlog is BacklogState.SPOOLED
    assert held.enqueue([Parcel(4, 1)], NOW) == []
    assert held.queued == 200, "none goes before one that waits in the spool"
    assert held.link_up(link, True, NOW) == [SendItems(link, [ONE, TWO])]
    assert held.acknowledged(link, 2, (), NOW) == [Settle([ONE, TWO]), ANEW]
    four, five = Parcel(4, 1), Parcel(5, 1)
    assert held.read_back([THREE, four], NOW) == [SendItems(link, [THREE, four]), ReadBack(four)]
    assert held.acknowledged(link, 4, (), NOW) == [Settle([THREE, four])]
    assert held.enqueue([five], NOW) == []
    assert held.read_back([], NOW) == [ReadBack(four)], "more was spooled meanwhile"
    assert held.read_back([five], NOW) == [SendItems(link, [five]), ReadBack(five)]
    assert held.read_back([], NOW) == []
    assert held.backlog is BacklogState.NONE
    assert held.acknowledged(link, 5, (), NOW) == [Settle([five])]


def test_a_backlog_is_read_on_ahead_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop, "MAX_UNACKNOWLEDGED", 250)
    monkeypatch.setattr(hop, "READ_AHEAD", 150)
    held, link = machine(), Link(NOW)
    held.resume(NOW)
    held.link_up(link, True, NOW)
    first = [Parcel(number, 100) for number in range(1, 5)]
    assert held.read_back(first, NOW) == [SendItems(link, first[:3]), ReadBack(first[-1])], (
        "nothing is acknowledged yet"
    )
    then = [Parcel(number, 100) for number in range(5, 7)]
    assert held.read_back(then, NOW) == [], "so much waits in memory that the window can be filled"
    assert held.queued == 300
    assert held.acknowledged(link, 1, (), NOW) == [Settle(first[:1]), SendItems(link, first[3:])]
    assert held.acknowledged(link, 2, (), NOW) == [
        Settle(first[1:2]),
        SendItems(link, then[:1]),
        ReadBack(then[-1]),
    ]


def test_a_link_that_ends_while_more_is_read_has_all_of_it_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop, "MAX_UNACKNOWLEDGED", 150)
    held, link = machine(), Link(NOW)
    held.resume(NOW)
    held.link_up(link, True, NOW)
    assert held.read_back([ONE, TWO], NOW) == [SendItems(link, [ONE, TWO]), ReadBack(TWO)]
    assert held.link_ended(link, math.inf, NOW) == []
    assert held.read_back([THREE], NOW) == [ANEW], "before it stand those that the link took with it"
    assert held.queued == 0
    held.read_back([ONE, TWO, THREE], NOW)
    assert held.queued == 300


def test_what_waited_before_a_restart_is_read_back() -> None:
    held = machine()
    assert held.resume(NOW) == [HopCommand.DIAL, ANEW]
    assert held.read_back([ONE], NOW) == []
    assert held.queued == ONE.size
    link = Link(NOW)
    assert held.link_up(link, True, NOW) == [SendItems(link, [ONE]), ReadBack(ONE)]


def test_what_a_link_took_with_it_is_read_back_in_order() -> None:
    held, link = linked(ONE, TWO)
    held.acknowledged(link, 1, (), NOW)
    assert held.link_ended(link, math.inf, NOW) == [HopCommand.DIAL, ANEW]
    assert held.read_back([TWO, THREE], NOW) == []
    assert held.queued == TWO.size + THREE.size


def test_while_another_link_is_unanswered_nothing_is_read_back() -> None:
    held, old = linked(ONE)
    new = Link(NOW)
    held.link_up(new, False, NOW)
    assert held.enqueue([TWO], NOW) == [SendItems(new, [TWO])]
    assert held.link_ended(old, math.inf, NOW) == []
    assert held.acknowledged(new, 1, (), NOW) == [Settle([TWO]), ANEW]


def test_the_window_bounds_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop, "MAX_UNACKNOWLEDGED", 150)
    held, link = linked(ONE, TWO)
    assert held.enqueue([THREE], NOW) == []
    assert held.queued == THREE.size
    assert held.acknowledged(link, 1, (), NOW) == [Settle([ONE]), SendItems(link, [THREE])]
    assert link.in_flight == 200


def test_what_expired_is_not_sent() -> None:
    held, link = machine(gone=(ONE,)), Link(NOW)
    held.enqueue([ONE, TWO], NOW)
    assert held.link_up(link, True, NOW) == [SendItems(link, [TWO])]
    assert held.queued == 0


def test_it_counts_as_away_after_silence_and_messages_go_around() -> None:
    held = paused(ONE, away_after=DETOUR_AFTER)
    soon = NOW + DETOUR_AFTER - 0.25
    held.tick(soon)
    assert held.dial_failed(DETOUR_AFTER, soon) == []
    assert held.deadline == NOW + DETOUR_AFTER, "the pause is cut short"
    assert held.tick(held.deadline) == [HopCommand.DIAL]
    assert held.dial_failed(DETOUR_AFTER, NOW + DETOUR_AFTER) == [HopCommand.WENT_AWAY, HopCommand.GO_AROUND]
    assert held.backlog is BacklogState.MOVING
    assert held.queued == 0


def test_silence_counts_from_the_last_acknowledgement_while_something_waits() -> None:
    held, link = linked(ONE, TWO)
    held.acknowledged(link, 1, (), NOW + 20)
    assert held.link_ended(link, DETOUR_AFTER, NOW + 40) == [HopCommand.DIAL, ANEW]
    held.read_back([TWO], NOW + 40)
    assert held.dial_failed(DETOUR_AFTER, NOW + 51) == [HopCommand.WENT_AWAY, HopCommand.GO_AROUND]


def test_while_nothing_waits_nothing_is_silence() -> None:
    held, link = linked(ONE)
    held.acknowledged(link, 1, (), NOW)
    held.enqueue([TWO], NOW + 500)
    assert held.link_ended(link, DETOUR_AFTER, NOW + 501) == [HopCommand.DIAL, ANEW]


def test_nor_after_the_last_of_a_backlog_is_gone() -> None:
    held, link = linked()
    held.resume(NOW)
    held.read_back([ONE], NOW)
    held.acknowledged(link, 1, (), NOW)
    held.read_back([], NOW)
    held.enqueue([TWO], NOW + 500)
    assert held.link_ended(link, DETOUR_AFTER, NOW + 501) == [HopCommand.DIAL, ANEW]
    assert not held.is_away


def test_nor_after_all_that_waited_has_expired() -> None:
    gone: list[Parcel] = []
    held = NextHop[Link, Parcel](HopRules(lambda item: item not in gone, Random(1).randbytes, True))
    held.enqueue([ONE], NOW)
    held.want(NOW)
    gone.append(ONE)
    held.dial_failed(DETOUR_AFTER, NOW + 1)
    held.tick(held.deadline)
    assert held.dial_failed(DETOUR_AFTER, NOW + 100) == []
    held.enqueue([TWO], NOW + 100)
    gone.append(TWO)
    link = Link(NOW + 101)
    held.link_up(link, True, NOW + 101)
    held.enqueue([THREE], NOW + 500)
    held.link_ended(link, DETOUR_AFTER, NOW + 501)
    assert not held.is_away


def test_without_detours_nothing_counts_as_away() -> None:
    held = dialling(ONE, goes_around=False)
    assert held.dial_failed(0.0, NOW + 1000) == []
    assert not held.is_away


def test_who_is_away_has_messages_go_around_until_none_waits() -> None:
    held = away(ONE)
    assert held.enqueue([ONE], NOW) == [HopCommand.DIAL, HopCommand.GO_AROUND]
    assert held.backlog is BacklogState.MOVING
    assert held.enqueue([TWO], NOW) == []
    assert held.went_around(found=True, moved=True, now=NOW) == [HopCommand.GO_AROUND]
    assert held.enqueue([THREE], NOW) == []
    assert held.went_around(found=False, moved=False, now=NOW) == [HopCommand.GO_AROUND]
    assert held.went_around(found=False, moved=False, now=NOW) == []
    assert held.backlog is BacklogState.NONE


def test_where_nobody_else_is_reached_detours_are_tried_again_after_growing_pauses() -> None:
    held, now, longest = away(ONE), NOW, FIRST_BACKOFF
    assert held.enqueue([ONE], now) == [HopCommand.DIAL, HopCommand.GO_AROUND]
    for _ in range(8):
        assert held.went_around(found=True, moved=False, now=now) == []
        assert longest / 2 <= pause_of(held, now) <= longest
        now, longest = held.deadline, min(2 * longest, LONGEST_BACKOFF)
        assert held.tick(now) == [HopCommand.GO_AROUND]
    held.went_around(found=True, moved=True, now=now)
    held.went_around(found=True, moved=False, now=now)
    assert pause_of(held, now) <= FIRST_BACKOFF


def test_who_comes_back_gets_what_waits() -> None:
    held, link = away(ONE), Link(NOW)
    held.resume(NOW)
    held.went_around(found=True, moved=False, now=NOW)
    assert held.link_up(link, True, NOW + 500) == [HopCommand.CAME_BACK, ANEW]
    assert not held.is_away
    assert held.deadline == math.inf
    held.read_back([ONE], NOW + 500)
    held.read_back([], NOW + 500)
    assert held.link_ended(link, DETOUR_AFTER, NOW + 501) == [ANEW], "silence counts from its return"


def test_what_is_being_moved_when_it_comes_back_is_read_afterwards() -> None:
    held, link = away(ONE), Link(NOW)
    held.resume(NOW)
    assert held.link_up(link, False, NOW) == [HopCommand.CAME_BACK]
    assert held.enqueue([TWO], NOW) == []
    assert held.went_around(found=True, moved=False, now=NOW) == [ANEW]
    assert held.deadline == math.inf
    assert held.read_back([TWO], NOW) == [SendItems(link, [TWO]), ReadBack(TWO)]


def test_what_is_being_read_when_it_goes_away_goes_around() -> None:
    held = machine()
    held.resume(NOW)
    assert held.dial_failed(0.0, NOW) == [HopCommand.WENT_AWAY]
    assert held.read_back([ONE], NOW) == [HopCommand.GO_AROUND]
    assert held.queued == 0


def test_what_leads_nowhere_there_is_rerouted_or_tried_again_later() -> None:
    held, link = linked(ONE, TWO, THREE)
    assert held.acknowledged(link, 3, (2,), NOW) == [Settle([ONE, THREE]), Reroute([TWO])]
    assert held.retry_later(NOW) == []
    assert held.deadline == NOW + LONGEST_BACKOFF
    held.retry_later(NOW + 5)
    assert held.deadline == NOW + LONGEST_BACKOFF
    held.link_ended(link, DETOUR_AFTER, NOW + 59)
    assert not held.is_unused, "it is not forgotten before that"
    assert held.tick(held.deadline) == [HopCommand.DIAL, ANEW]
    assert held.deadline == math.inf


def test_where_there_are_no_detours_what_leads_nowhere_is_settled() -> None:
    held, link = linked(ONE, TWO, goes_around=False)
    assert held.acknowledged(link, 2, (1,), NOW) == [Settle([TWO, ONE])]


def test_a_link_too_many_closes_the_oldest_which_counts_no_more() -> None:
    held, oldest = linked(ONE)
    for _ in range(MAX_LINKS_A_PEER - 1):
        assert held.link_up(Link(NOW), False, NOW) == []
    newest = Link(NOW)
    assert held.link_up(newest, False, NOW) == [Close(oldest), ANEW]
    assert len(held.links) == MAX_LINKS_A_PEER
    assert held.link_ended(oldest, 0.0, NOW) == []
    assert held.acknowledged(oldest, 1, (), NOW) == []
    assert oldest.in_flight == 0
    assert held.read_back([ONE], NOW) == [SendItems(newest, [ONE]), ReadBack(ONE)]


# One link.


@pytest.mark.slow
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=5), max_size=20), st.data())
def test_both_ends_agree_on_what_was_taken_over(batches: list[list[bool]], data: st.DataObject) -> None:
    """Acknowledgements are delayed, merged and repeated: each item is answered once, and rightly."""
    ours, theirs = Link(NOW), Link(NOW)
    known = [is_known for batch in batches for is_known in batch]
    ours.send([Parcel(number, 1) for number in range(len(known))], len(known), NOW)
    taken: list[Parcel] = []
    refused: list[Parcel] = []
    for batch in batches:
        assert theirs.take_over(len(batch), [place for place, is_known in enumerate(batch) if not is_known])
        if data.draw(st.booleans()) or batch is batches[-1]:
            theirs.owe(theirs.taken if batch is batches[-1] else data.draw(st.integers(0, theirs.taken)))
            due = theirs.due()
            assert due is not None
            assert theirs.due() is None
            for _ in range(data.draw(st.integers(1, 2))):
                more, nowhere = ours.acknowledge(*due)
                taken += more
                refused += nowhere
    assert [item.number for item in taken] == [n for n, is_known in enumerate(known) if is_known]
    assert [item.number for item in refused] == [n for n, is_known in enumerate(known) if not is_known]
    assert ours.in_flight == 0


def test_acknowledgements_come_in_time_or_the_link_is_given_up() -> None:
    link = Link(NOW)
    assert link.deadline == NOW + IDLE
    link.send([Parcel(1, SLOWEST * 10), ONE], SLOWEST * 10 + ONE.size, NOW + 1)
    assert link.deadline == NOW + 1 + ACKNOWLEDGE_WITHIN + 10
    link.send([TWO], TWO.size, NOW + 2)
    assert link.deadline == NOW + 1 + ACKNOWLEDGE_WITHIN + 10, "who sends more waits no longer"
    link.acknowledge(3, ())
    link.touch(NOW + 3)
    assert link.deadline == NOW + 3 + IDLE


def test_a_link_is_quiet_after_a_while_without_a_frame() -> None:
    link = Link(NOW)
    assert not link.is_quiet(NOW + TRIED_AFTER)
    assert link.is_quiet(NOW + TRIED_AFTER + 1)
    link.touch(NOW + TRIED_AFTER + 1)
    assert not link.is_quiet(NOW + 2 * TRIED_AFTER)


def attached(*gone: Parcel, window: int | None = None) -> NextHop[Link, Parcel]:
    """Return a machine whose links the other end alone opens."""
    return NextHop(HopRules(lambda item: item not in gone, Random(1).randbytes, False, False, window))


def test_who_is_never_dialled_is_waited_for_and_memory_holds_nothing_meanwhile() -> None:
    held, link, later = attached(), Link(NOW), Link(NOW)
    assert held.enqueue([ONE, TWO], NOW) == []
    assert held.queued == 0
    assert held.backlog is BacklogState.SPOOLED
    assert held.link_up(link, False, NOW) == [ANEW]
    assert held.read_back([ONE, TWO], NOW) == [SendItems(link, [ONE, TWO]), ReadBack(TWO)]
    assert held.read_back([], NOW) == []
    assert held.acknowledged(link, 1, (), NOW) == [Settle([ONE])]
    assert held.link_ended(link, math.inf, NOW) == []
    assert held.deadline == math.inf, "nor is there a pause before a dial"
    assert held.link_up(later, False, NOW) == [ANEW]
    assert held.link_ended(later, math.inf, NOW) == []
    assert held.read_back([TWO], NOW) == []
    assert held.queued == 0, "the link went while the spool was read"
    assert held.backlog is BacklogState.SPOOLED


def test_a_window_of_its_own_bounds_what_is_under_way() -> None:
    held, link = attached(window=150), Link(NOW)
    held.link_up(link, False, NOW)
    assert held.enqueue([ONE, TWO, THREE], NOW) == [SendItems(link, [ONE, TWO])]
    assert held.acknowledged(link, 1, (), NOW) == [Settle([ONE]), SendItems(link, [THREE])]


def test_an_acknowledgement_from_the_future_answers_what_was_sent() -> None:
    held, link = linked(ONE)
    assert held.acknowledged(link, 1000, (1000,), NOW) == [Settle([ONE])]


def test_who_sends_on_without_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_link, "MAX_UNROUTED", 3)
    link = Link(NOW)
    assert link.take_over(3, range(3))
    link.owe(3)
    assert link.due() == (3, (1, 2, 3))
    assert link.take_over(3, range(3))
    link.owe(6)
    assert link.due() == (6, (4, 5, 6))
    assert link.take_over(3, range(3))
    assert not link.take_over(1, [0])


def test_a_sign_of_life_is_answered_with_the_same_number() -> None:
    link = Link(NOW)
    link.take_over(2)
    link.owe(2)
    assert link.due() == (2, ())
    link.take_over(1)
    link.owe()
    assert link.due() == (2, ())
