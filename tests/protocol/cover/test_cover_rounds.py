"""Lists and chains of cover, a daemon's rounds, and a porter's queue that stays the same whatever comes."""

from __future__ import annotations

import itertools
import random
import statistics
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.authorities.cover_draw import cover_draw
from hushcast_protocol.authorities.head_inside import BeaconState, HeadInside
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.cover_terms import NO_COVER, QUARTER, CoverDraw, CoverTerms
from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal, UsageError
from hushcast_protocol.base.roster import Network, Relay, Roster
from hushcast_protocol.cover.cover_chain import CHANGED_AFTER, PORTER_AWAY, CoverChain, CoverLoss
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_presence import PRESENCE_DAYS, Attendance, CoverPresence
from hushcast_protocol.cover.cover_rules import (
    DUE_A_ROUND,
    LETTERS_A_ROUND,
    PASSED_A_ROUND,
    RECEIPT_ROUNDS,
    RELEASE_ROUNDS,
    CoverRules,
)
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_release import MAX_HELD_BACK, HeldBody, LetterRelease
from hushcast_protocol.cover.letter_rounds import MAX_UNDER_COVER, LetterRounds, PlannedLetter
from hushcast_protocol.cover.letters import OpenedLetter
from hushcast_protocol.cover.loss_judge import LossRecord
from hushcast_protocol.cover.network_cover import able_relays
from hushcast_protocol.cover.porter_blocks import MAX_LISTS_WAITING, PorterBlocks
from hushcast_protocol.cover.porter_queue import MAX_LETTERS_WAITING, PorterQueue
from hushcast_protocol.cover.receipt_list import (
    BLOCK,
    DONE_A_ROUND,
    LIST,
    LISTED_A_ROUND,
    ReceiptList,
    listed_numbers,
)
from hushcast_protocol.cover.topic_rounds import TOPIC_EVERY, rounds_taken
from hushcast_protocol.cover.waybills import Waybill, WaybillKey

RULES = CoverRules(b"n" * 32, 3600)
RELAYS = [bytes([n + 1]) * 32 for n in range(40)]
NOW = 3_000_000


def drawing(seed: int = 1):
    return random.Random(seed).randbytes


def letter(due: int) -> OpenedLetter:
    return OpenedLetter(due, RELAYS[0], b"came %d" % due)


def receipt(draw: Randomness) -> LetterReceipt:
    """One of eight is a loop."""
    return LetterReceipt(draw(NUMBER), draw(1)[0] % LOOP_EVERY == 0, draw(NUMBER))


def play(rounds: LetterRounds, now: int, draw: Randomness) -> list[tuple[PlannedLetter, LetterReceipt]]:
    """Hand in the letters of a round."""
    sent = [(one, receipt(draw)) for one in rounds.plan(now)]
    for one in sent:
        rounds.note_sent(*one)
    return sent


def test_lists_are_disjoint_the_same_for_all_and_gaps_are_filled() -> None:
    lists = CoverLists.drawn(RULES, b"v" * 32, RELAYS)
    assert lists == CoverLists.drawn(RULES, b"v" * 32, reversed(RELAYS))
    assert len(lists.seconds) == len(lists.thirds) == 4
    assert not lists.seconds & lists.thirds
    assert lists != CoverLists.drawn(RULES, b"w" * 32, RELAYS)
    gone = next(iter(lists.thirds))
    later = CoverLists.drawn(RULES, b"v" * 32, set(RELAYS) - {gone})
    assert later.seconds == lists.seconds
    assert len(later.thirds & lists.thirds) == 3


def test_too_few_relays_do_not_start_cover() -> None:
    with pytest.raises(Refusal, match=r"needs 12 relays .* there are 11"):
        CoverLists.drawn(RULES, b"v" * 32, RELAYS[:11])
    for wrong in ({"width": 3}, {"width": 17}, {"round_seconds": 10}):
        with pytest.raises(UsageError):
            replace(RULES, **wrong)


def test_a_chain_stays_until_it_has_to_change_and_a_month_has_passed() -> None:
    lists, none, lost = CoverLists.drawn(RULES, b"v" * 32, RELAYS), CoverLoss.NOTHING, CoverLoss.LETTERS
    chain = CoverChain.drawn(RELAYS, lists, 7, 0.0, drawing())
    assert len({chain.porter, chain.second, chain.third}) == 3
    without = CoverLists(lists.seconds - {chain.second}, lists.thirds)
    assert chain.with_lists(lists, 7, CHANGED_AFTER, none, drawing()) == chain
    assert chain.with_lists(without, 7, CHANGED_AFTER - 1, none, drawing()) == chain
    assert chain.with_lists(without, 7, CHANGED_AFTER, none, drawing()).pair_since == CHANGED_AFTER
    assert chain.with_lists(lists, 7, CHANGED_AFTER, lost, drawing()) == chain, "the porter's turn"
    assert chain.with_lists(lists, 8, 1.0, none, drawing()).quarter == 8
    assert chain.with_porter(RELAYS, 0.0, PORTER_AWAY, none, drawing()) == chain
    assert chain.with_porter(RELAYS, CHANGED_AFTER, CHANGED_AFTER + 1, none, drawing()) == chain
    other = chain.with_porter(RELAYS, 0.0, CHANGED_AFTER, none, drawing())
    assert other.porter != chain.porter
    assert (other.second, other.third) == (chain.second, chain.third)


@pytest.mark.parametrize("loss", [CoverLoss.LETTERS, CoverLoss.LISTS])
def test_porter_and_pair_are_changed_in_turn_for_a_loss_that_goes_on_each_once_a_month(
    loss: CoverLoss,
) -> None:
    """Whoever of the three loses is left with the second change, and the others were drawn anew once."""
    lists, draw = CoverLists.drawn(RULES, b"v" * 32, RELAYS), drawing()
    chain, changed = CoverChain.drawn(RELAYS, lists, 7, 0.0, draw), []
    for day in range(1, 80):
        now = day * 86_400.0
        new = chain.with_lists(lists, 7, now, loss, draw).with_porter(RELAYS, None, now, loss, draw)
        if new != chain:
            changed.append((day, "pair" if new.porter == chain.porter else "porter"))
        chain = new
    assert changed == [(day, who) for day in (1, 31, 61) for day, who in ((day, "porter"), (day + 1, "pair"))]
    assert chain.leaves_at() == 91 * 86_400


@pytest.mark.parametrize("messages", [0, 1, 50])
def test_a_round_has_three_letters_at_once_and_one_held(messages: int) -> None:
    rounds = LetterRounds(RULES, drawing())
    for number in range(messages):
        rounds.publish(b"%d" % number, NOW, is_held=number % 2 == 0)
    draw, due = drawing(2), Counter()
    for now in range(NOW, NOW + 400):
        made = [one for one, _ in play(rounds, now, draw)]
        assert len(made) == LETTERS_A_ROUND
        assert sorted(one.due - now > 0 for one in made) == [False, False, False, True]
        assert all(now <= one.due <= now + RULES.held_rounds for one in made)
        due += Counter(one.due for one in made)
    assert max(due.values()) == PASSED_A_ROUND, "no letter is over what a porter passes"
    assert DUE_A_ROUND == PASSED_A_ROUND - 3


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 9)), max_size=40), st.integers(0, 9))
def test_when_letters_are_due_says_nothing_of_what_is_published(
    moves: list[tuple[bool, bool, int]], seed: int
) -> None:
    """With messages or without, listed or lost, the same draws give letters due in the same rounds."""
    busy, idle = LetterRounds(RULES, drawing(seed)), LetterRounds(RULES, drawing(seed))
    draw = drawing(seed)
    for step, (is_held, is_listed, more) in enumerate(moves):
        now = NOW + step
        for one in range(more):
            busy.publish(b"%d-%d" % (step, one), now, is_held, last_due=now + one if more == 3 else None)
        sent = play(busy, now, draw)
        assert [one.due for one, _ in sent] == [one.due for one in idle.plan(now)]
        assert len({one.key for one, _ in sent} - {None}) == sum(one.key is not None for one, _ in sent)
        if is_listed:
            busy.note_listed({number for _, listed in sent for number in (listed.number, listed.done)})


def test_a_message_goes_anew_until_it_is_listed_or_given_up() -> None:
    rounds, draw = LetterRounds(RULES, drawing()), drawing(2)
    rounds.publish(b"m", NOW, is_held=False)
    went, now = dict[int, bytes](), NOW
    while len(went) < 4:
        went.update((now, one.done) for planned, one in play(rounds, now, draw) if planned.key)
        now += 1
    assert all(later - sooner > RULES.receipt_rounds for sooner, later in pairwise(went))
    assert rounds.note_listed({went[now - 1]}) == [b"m"]
    assert not rounds.messages
    rounds.publish(b"lost", NOW, is_held=False)
    for later in range(now, NOW + 160):
        play(rounds, later, draw)
    assert rounds.given_up() == [b"lost"]
    assert not rounds.given_up()


@pytest.mark.parametrize("is_held", [False, True])
def test_what_came_out_while_its_daemon_was_away_does_not_go_anew_when_it_is_back(is_held: bool) -> None:
    """It reads lists only behind the first letters: a second drop would show when it was there again."""
    rounds, draw, now = LetterRounds(RULES, drawing()), drawing(2), NOW
    message = rounds.publish(b"m", NOW, is_held)
    while message.number is None:
        play(rounds, now, draw)
        now += 1
    back = message.waits_until + 30
    assert {one.key for one in rounds.plan(back, since=now)} == {None}
    assert rounds.note_listed({message.number}) == [b"m"], "the receipt counts"
    assert not rounds.messages


def test_a_message_whose_lists_never_come_is_given_up() -> None:
    rounds, draw = LetterRounds(RULES, drawing()), drawing(2)
    message = rounds.publish(b"m", NOW, is_held=False)
    play(rounds, NOW, draw)
    for later in range(NOW + 1, message.until + RULES.receipt_rounds + 2):
        rounds.plan(later, since=NOW + 1)
    assert rounds.given_up() == [b"m"]


def test_how_long_a_days_letters_take_is_said_as_it_is_and_seldom_more_than_is_left_for_them() -> None:
    """Of a tree's 66 letters some 88 rounds; beside those of two others the last goes some thirty later."""
    took: dict[int, list[int]] = {1: [], 3: []}
    for seed, topics in itertools.product(range(12), took):
        rounds, draw, now = LetterRounds(RULES, drawing(seed)), drawing(2), NOW
        play(rounds, NOW - 1, draw)
        said = rounds.rounds_for("0", 66, 0)
        for letter, topic in itertools.product(range(66), range(topics)):
            rounds.publish(b"%d %d" % (topic, letter), NOW, False, topic=str(topic), is_errand=True)
        while any(one.number is None for one in rounds.messages):
            rounds.note_listed({one.done for _, one in play(rounds, now, draw)})
            now += 1
        took[topics].append(now - NOW)
        assert topics > 1 or now - NOW == said
    assert 75 < statistics.mean(took[1]) < 100
    assert 100 < statistics.mean(took[3]) < 135
    for topics, all_of_it in took.items():
        assert sum(one <= rounds_taken(66, topics) for one in all_of_it) >= 10


def test_a_third_lets_all_go_together_that_came_in_six_rounds() -> None:
    first = NOW - NOW % RELEASE_ROUNDS
    together = range(first, first + RELEASE_ROUNDS)
    assert {RULES.released_in(due) for due in together} == {together[-1]}
    assert RULES.released_in(together[-1] + 1) == together[-1] + RELEASE_ROUNDS
    assert RULES.released_at(first) == RULES.dealt_at(together[-1])
    assert RULES.listed_in(first) == together[-1] + RELEASE_ROUNDS - 1, "an hour's worth takes several lists"
    assert RULES.listed_in(first) + RECEIPT_ROUNDS == first + RULES.receipt_rounds
    release, draw = LetterRelease(RULES), drawing()
    for due in together:
        assert list(release.let_go(due - 1, draw)) == []
        for number in range(3):
            assert release.hold(HeldBody(RELAYS[0], b"%d" % number, b"%d" % due, due), draw)
    gone = list(release.let_go(together[-1], draw))
    assert Counter(one.round for one in gone) == dict.fromkeys(together, 3)
    assert [one.round for one in gone] != sorted(one.round for one in gone)
    assert list(release.let_go(together[-1], draw)) == [], "none waits any more"
    assert release.hold(HeldBody(RELAYS[0], b"n", b"later", together[-1] + 1), draw)
    assert len(list(release.let_go(together[-1] + 60, draw))) == 1, "though its machine slept meanwhile"


def test_a_third_has_so_much_room_for_a_second_and_what_is_lost_is_drawn_from_all_that_came() -> None:
    release, draw, first = LetterRelease(RULES), drawing(), NOW - NOW % RELEASE_ROUNDS
    for number in range(2 * MAX_HELD_BACK):
        due = first + number * RELEASE_ROUNDS // (2 * MAX_HELD_BACK)
        held = HeldBody(RELAYS[0], b"n", b"m", due)
        assert release.hold(held, draw) == (number < MAX_HELD_BACK)
    assert release.hold(HeldBody(RELAYS[1], b"n", b"m", first), draw)
    let_go = release.let_go(first + RELEASE_ROUNDS, draw)
    gone = Counter(one.round for one in let_go if one.second == RELAYS[0])
    assert gone.total() == MAX_HELD_BACK
    assert all(abs(gone[first + one] - MAX_HELD_BACK / 6) < 80 for one in range(6)), "half of each round"
    assert release.hold(HeldBody(RELAYS[0], b"n", b"m", first + RELEASE_ROUNDS + 1), draw)


def test_where_lists_are_late_each_message_goes_before_one_goes_anew() -> None:
    """All 24 parts go in the rounds that are told, though none is listed; then each goes anew in turn."""
    rounds, draw, went, now = LetterRounds(RULES, drawing()), drawing(2), list[bytes](), NOW
    play(rounds, NOW - 1, draw)
    parts = [b"%d" % number for number in range(24)]
    for key in parts:
        rounds.publish(key, NOW, is_held=False)
    told = rounds.rounds_until(parts)
    while len(went) < 48:
        went += sorted(one.key for one, _ in play(rounds, now, draw) if one.key is not None)
        now += 1
        assert (len(went) >= 24) is (now >= NOW + told)
    assert set(went[:24]) == set(went[24:]) == set(parts)
    rounds.publish(b"new", now, is_held=False)
    rounds.publish(b"held", now, is_held=True)
    assert rounds.rounds_until([b"held"]) == 1
    for later in range(now, now + rounds.rounds_until([b"new"])):
        play(rounds, later, draw)
    assert rounds.rounds_until([b"new"]) == rounds.rounds_until([b"held"]) == 0, "they are under way"


def test_three_of_a_topic_go_in_one_of_four_rounds_and_those_of_another_in_other_rounds() -> None:
    """However long nothing went, the next round is as likely as ever."""
    rounds, draw, went = LetterRounds(RULES, drawing()), drawing(2), {"a": set[int](), "b": set[int]()}
    for now in range(NOW, NOW + 4000):
        for topic in went:
            while sum(one.topic == topic for one in rounds.messages) < 2:
                rounds.publish(topic.encode() + draw(8), now, is_held=False, topic=topic)
        sent = [(one.key, receipt.done) for one, receipt in play(rounds, now, draw) if one.key is not None]
        assert {key[:1].decode() for key, _ in sent} == {t for t in went if rounds._topic_rounds.has(t, now)}
        for topic in went:
            if any(key[:1] == topic.encode() for key, _ in sent):
                went[topic].add(now)
        rounds.note_listed({number for _, number in sent})
    first, second = went.values()
    for some in (first, second):
        assert 4000 / TOPIC_EVERY * 0.9 < len(some) < 4000 / TOPIC_EVERY * 1.1
        gaps = Counter(later - sooner for sooner, later in pairwise(sorted(some)))
        assert 0.2 < gaps[1] / gaps.total() < 0.3, "right after one that went"
        assert 0.2 < gaps[9] / sum(gaps[gap] for gap in range(9, 99)) < 0.4, "after eight that did not"
    together = len(first & second) * 4000 / len(first) / len(second)
    assert 0.8 < together < 1.2, "as by chance"
    assert rounds._topic_rounds._key != LetterRounds(RULES, draw)._topic_rounds._key


def test_a_message_of_one_day_goes_in_a_letter_that_is_due_on_it_or_is_given_up() -> None:
    rounds, draw = LetterRounds(RULES, drawing()), drawing(2)
    for number in range(30):
        rounds.publish(b"%d" % number, NOW, is_held=True, last_due=NOW + 60)
    sent = [one for now in range(NOW, NOW + 62) for one, _ in play(rounds, now, draw) if one.key is not None]
    assert sent
    assert all(one.due <= NOW + 60 for one in sent)
    play(rounds, NOW + 80, draw)
    assert len(rounds.given_up()) == 30


def test_what_waits_for_the_first_letter_that_is_passed_has_its_day_from_then() -> None:
    rounds, begins, day = LetterRounds(RULES, drawing()), NOW + 100, RULES.held_rounds
    before = rounds.publish(b"m", NOW, is_held=False)
    assert before.until == NOW + day
    assert rounds.begin_at(begins) == [before]
    assert before.until == begins + day
    assert rounds.publish(b"n", NOW, is_held=True).until == begins + 2 * day
    assert rounds.publish(b"o", begins + 9, is_held=False, topic="another").until == begins + 9 + day
    for number in range(3):
        later = rounds.publish(b"%d" % number, begins + 9, is_held=False, topic="another")
    assert later.until == begins + 9 + TOPIC_EVERY + day, "behind three others of its topic"
    assert not rounds.begin_at(begins)


def test_a_letter_that_the_porter_throws_away_has_no_message() -> None:
    rounds = LetterRounds(RULES, drawing())
    rounds.publish(b"m", NOW, is_held=False)
    now = NOW
    while not rounds._topic_rounds.has("", now):
        now += 1
    assert all(one.key is None for one in rounds.plan(now, is_passed=False))
    assert sum(one.key is not None for one in rounds.plan(now)) == 1


def test_what_was_under_way_by_another_chain_goes_anew_and_what_is_taken_back_does_not() -> None:
    rounds, draw = LetterRounds(RULES, drawing()), drawing(2)
    for key in (b"m", b"n"):
        rounds.publish(key, NOW, is_held=False)
    now = NOW
    while rounds.rounds_until([b"n"]):
        play(rounds, now, draw)
        now += 1
    rounds.begin_anew(LossRecord())
    assert rounds.rounds_until([b"n"]) > 0
    rounds.forget(b"n")
    assert {one.key for later in range(now, now + 40) for one in rounds.plan(later)} == {b"m", None}


def test_a_daemon_has_so_many_messages_under_cover_and_no_more() -> None:
    rounds = LetterRounds(RULES, drawing())
    for _ in range(MAX_UNDER_COVER):
        rounds.publish(b"m", NOW, is_held=True)
    with pytest.raises(Refusal, match="too many"):
        rounds.publish(b"m", NOW, is_held=True)


def test_who_was_there_in_nearly_all_rounds_of_two_weeks_is_always_there() -> None:
    for missed, is_there in ((0, True), (2, True), (3, False)):
        presence = CoverPresence(RULES)
        for day in range(100, 100 + PRESENCE_DAYS):
            for _ in range(RULES.rounds_in(1) - missed):
                presence.note(day)
        assert presence.is_always_there(100 + PRESENCE_DAYS) is is_there
        assert presence.lapse(101 + PRESENCE_DAYS) == [100]
        assert not presence.is_always_there(101 + PRESENCE_DAYS)


@pytest.mark.parametrize(
    ("rounds", "attendance"),
    [
        ([144] * 15, Attendance.ALWAYS),
        ([70] + [144] * 14, Attendance.ALWAYS),  # on a day that is too old
        ([144, 72] + [144] * 13, Attendance.NOT_YET_ALWAYS),  # it may have begun on that
        ([144, 144, 72] + [144] * 12, Attendance.AT_TIMES),
        ([144, 0] + [144] * 13, Attendance.NOT_YET_ALWAYS),
        ([72] * 15, Attendance.AT_TIMES),
        ([], Attendance.NOT_YET_ALWAYS),
        ([1], Attendance.NOT_YET_ALWAYS),
        ([1, 110], Attendance.NOT_YET_ALWAYS),
        ([1, 100], Attendance.AT_TIMES),  # whatever the next days bring, it is away in 3 % of two weeks
    ],
)
def test_a_daemon_is_there_always_or_at_times_or_too_short_to_tell(
    rounds: list[int], attendance: Attendance
) -> None:
    presence = CoverPresence(RULES)
    for ago, there in enumerate(reversed(rounds), 1):
        if there:
            presence.restore(1_000 - ago, there)
    assert presence.attendance(1_000) is attendance


def begun() -> PorterQueue:
    queue = PorterQueue(RULES, NOW - RULES.held_rounds, drawing())
    assert NOW - RULES.held_rounds <= queue.begins < NOW
    return queue


@pytest.mark.parametrize("there", [0, 1, 4])
def test_five_letters_leave_a_round_whatever_comes(there: int) -> None:
    queue = begun()
    for now in range(NOW, NOW + 40):
        for _ in range(there):
            queue.take(letter(now), now)
        passed = Counter(queue.end_round(now, lambda: b"made"))
        assert passed.total() == PASSED_A_ROUND
        assert passed[b"made"] == PASSED_A_ROUND - there


def test_a_held_letter_leaves_when_it_is_due_and_what_is_over_is_lost() -> None:
    queue = begun()
    for now in (NOW, NOW + 1):
        for _ in range(LETTERS_A_ROUND):
            queue.take(letter(NOW + 3), now)
    made = [queue.end_round(now, lambda: b"made").count(b"made") for now in range(NOW, NOW + 6)]
    assert made == [5, 5, 5, 0, 5, 5]


def test_no_letter_passes_later_than_it_is_due() -> None:
    queue = begun()
    queue.take(letter(NOW), NOW)
    assert queue.end_round(NOW + 1, lambda: b"made") == [b"made"] * PASSED_A_ROUND
    assert len(queue) == 0


def test_a_queue_refuses_more_than_a_round_holds_and_what_is_not_due() -> None:
    queue = begun()
    for due in (NOW - 1, NOW + RULES.held_rounds + 1):
        with pytest.raises(Refusal, match="day"):
            queue.take(letter(due), NOW)
    queue.take(letter(NOW), NOW)
    queue.take(letter(NOW), NOW)
    with pytest.raises(Refusal, match="rate"):
        queue.take(letter(NOW), NOW)
    now = NOW
    while len(queue) < MAX_LETTERS_WAITING:
        now += 1
        for _ in range(min(LETTERS_A_ROUND, MAX_LETTERS_WAITING - len(queue))):
            queue.take(letter(now + RULES.held_rounds), now)
    with pytest.raises(Refusal, match="quota"):
        queue.take(letter(now + 1), now + 1)


def test_letters_begin_after_a_while_and_end_days_after_the_daemon_went() -> None:
    begins, ends = set(), set()
    for seed in range(60):
        queue = PorterQueue(RULES, NOW, drawing(seed))
        queue.take(letter(NOW), NOW)
        passed = [len(queue.end_round(now, lambda: b"made")) for now in range(NOW, NOW + 800)]
        assert set(passed) == {0, PASSED_A_ROUND}
        first = passed.index(PASSED_A_ROUND)
        begins.add(first)
        ends.add(first + passed[first:].index(0) - 1)
    assert min(begins) < 20 < 120 < max(begins) < 144
    assert 2 * 144 <= min(ends) < 310 < 550 < max(ends) <= 4 * 144


def test_a_list_of_receipts_has_one_size_and_what_is_done_comes_behind_what_came() -> None:
    receipts, draw = ReceiptList(drawing()), drawing(2)
    came, done = ({draw(NUMBER) for _ in range(700)} for _ in range(2))
    for number in came:
        receipts.note(RELAYS[0], number)
    for number in done:
        receipts.note_done(RELAYS[0], number)
    blocks = [receipts.end_round(RELAYS[0]) for _ in range(3)]
    assert {len(block) for block in blocks} == {LIST}
    listed = [listed_numbers(block) for block in blocks]
    assert (len(came & listed[0]), len(done & listed[0])) == (LISTED_A_ROUND - DONE_A_ROUND, DONE_A_ROUND)
    assert (len(came & listed[1]), len(done & listed[1])) == (0, 200), "late, it would count as lost"
    assert not (came | done) & listed[2]
    for number in came:
        receipts.note(RELAYS[0], number)
    assert came <= listed_numbers(receipts.end_round(RELAYS[0])), "it has all the room where nothing is done"
    with pytest.raises(DecodeError):
        listed_numbers(blocks[0][1:])


def test_a_second_that_has_letters_listed_without_end_has_a_list_of_its_own() -> None:
    draw, receipts = drawing(), ReceiptList(drawing())
    for _ in range(2_000):
        receipts.note(RELAYS[0], draw(NUMBER))
        receipts.note_done(RELAYS[0], draw(NUMBER))
    own = {draw(NUMBER) for _ in range(78)}
    for number in own:
        receipts.note(RELAYS[1], number)
    assert not own & listed_numbers(receipts.end_round(RELAYS[0]))
    assert own <= listed_numbers(receipts.end_round(RELAYS[1]))
    receipts.note_done(RELAYS[1], b"last")
    receipts.end_hour()
    assert not receipts._done, "of an hour that is over nothing waits"
    assert b"last" not in listed_numbers(receipts.end_round(RELAYS[1]))


def test_each_round_has_one_list_at_most_and_three_days_are_kept() -> None:
    blocks = PorterBlocks(RULES, NOW)
    blocks.take(NOW - 2, b"one")
    with pytest.raises(DecodeError):
        blocks.take(NOW - 2, b"again")
    blocks.take(NOW - 3, b"one that a later went past")
    blocks.take(NOW - 1, b"two")
    closed = [blocks.close(now) for now in (NOW, NOW + 1, NOW + 2)]
    assert closed == [(NOW - 2, b"one"), (NOW - 1, b"two"), None]
    assert list(blocks.asked_for(NOW, NOW + 9)) == [NOW, NOW + 1, NOW + 2]
    assert len(blocks.asked_for(0, NOW + 9)) == 432 == RULES.rounds_in(3)
    for number in range(MAX_LISTS_WAITING + 2):
        blocks.take(NOW + number, b"%d" % number)
    assert blocks.close(NOW + 3) == (NOW + 2, b"2"), "the oldest give way"


def test_a_list_goes_down_sealed_for_one_daemon_and_round() -> None:
    own, other = (Waybill(b"", RELAYS[0], WaybillKey.draw(drawing(seed))) for seed in (1, 2))
    listed = ReceiptList(drawing()).end_round(RELAYS[0])
    sealed = own.sealed_list(NOW, listed)
    assert len(sealed) == BLOCK
    assert own.opened_list(NOW, sealed) == listed
    assert other.sealed_list(NOW, listed) != sealed
    for waybill, now in ((other, NOW), (own, NOW + 1)):
        with pytest.raises(AuthenticationError):
            waybill.opened_list(now, sealed)


def test_the_value_of_a_quarter_stays_and_nobody_has_cover_without_the_rule() -> None:
    terms = CoverTerms(600, 4, 30)
    epoch = 40 * QUARTER * 24
    listing = Listing(epoch, (), ())
    draw = cover_draw(None, b"p" * 32, listing, terms, None)
    assert draw is not None
    assert draw.quarter == 40
    assert cover_draw(None, b"q" * 32, listing, terms, None) != draw
    assert cover_draw(None, b"p" * 32, listing, terms, b"b" * 32) != draw
    assert cover_draw(None, b"p" * 32, listing, NO_COVER, None) is None
    state = BeaconState(None, None, (), (), ())
    last = epoch, HeadInside(listing.root, 0, state, (), cover=draw)
    for later, stays in ((1, True), (QUARTER * 24 - 1, True), (QUARTER * 24, False)):
        found = cover_draw(last, b"q" * 32, Listing(epoch + later, (), ()), terms, b"b" * 32)
        assert (found == draw) == stays


def test_who_was_listed_since_a_value_was_drawn_is_on_no_list_of_its_quarter() -> None:
    """He may have made his name for it; and the value is known for as long as the quarter lasts."""
    drawn, month = 40 * QUARTER * 24, 30 * 24
    draw = CoverDraw(40, drawn, b"v" * 32)
    address, key = parse_address("127.0.0.1:9"), ParcelKey.draw(drawing()).public()
    since = {bytes([n]) * 32: drawn - month + n - 3 for n in range(6)}
    relays = {one: Relay(one, address, key, at) for one, at in since.items()}
    for epoch in (drawn, drawn + QUARTER * 24 - 1):
        terms = CoverTerms(600, 4, 30)
        network = Network("small", "hardened", 3600)
        roster = Roster(network, epoch, b"p" * 32, b"d" * 32, relays, cover=terms, cover_draw=draw)
        assert able_relays(roster, draw) == {one for one, at in since.items() if at <= drawn - month}
    free = replace(roster, cover=CoverTerms(20, 4, 0))
    assert able_relays(free, draw) == relays.keys(), "testnets have no month to wait"
