"""What a provider decides: which batch is answered next, and which subscriptions there are."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from msgspec.structs import replace
from spatial_world import OWNER, START, subscription

from hushcast_protocol.base.crypto.signatures import SignaturePurpose, sign
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import FIRST, Batch, BatchBody, check_batch
from hushcast_protocol.spatial.batch_arrivals import MAX_HELD, BatchArrivals
from hushcast_protocol.spatial.located_requests import MAX_DAYS, SubscribeRequest, WithdrawRequest
from hushcast_protocol.spatial.subscription_register import (
    RegisteredSubscription,
    RequestVerdict,
    SubscriptionRegister,
    WithdrawnSubscription,
    decode_record,
)

TABLE = bytes([1]) * 32
PATIENCE = 10.0
TODAY = 20_000
ASKED = subscription(Random(3))


def batch(previous: Batch | None = None, /, **changed: object) -> Batch:
    body = BatchBody(
        1 if previous is None else previous.body.number + 1,
        FIRST if previous is None else previous.digest,
        START if previous is None else previous.end,
        300,
        0,
        4,
        1,
        TABLE,
        bytes(32),
        bytes(32),
    )
    signed = sign(OWNER, SignaturePurpose.LOCATED_BATCH, replace(body, **changed))
    return check_batch(signed, OWNER.public())


def chain(count: int) -> list[Batch]:
    found = [batch()]
    while len(found) < count:
        found.append(batch(found[-1]))
    return found


def answered(arrivals: BatchArrivals, now: float = 0, tables: set[bytes] | None = None) -> list[int]:
    """Answer all that can be answered now."""
    found = []
    while (due := arrivals.next({TABLE} if tables is None else tables, now)) is not None:
        found.append(due.body.number)
        arrivals.done(due)
    return found


# --- Batches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(range(1, 5))))
def test_batches_behind_the_last_are_answered_in_order(order: tuple[int, ...]) -> None:
    batches = chain(5)
    arrivals = BatchArrivals(batches[0], PATIENCE)
    found = []
    for at in order:
        arrivals.take(batches[at], 0)
        found += answered(arrivals)
    assert found == [2, 3, 4, 5]
    assert arrivals.held == []


def test_a_gap_is_waited_for_and_then_left_behind() -> None:
    batches = chain(6)
    arrivals = BatchArrivals(batches[0], PATIENCE)
    arrivals.take(batches[3], 5)
    arrivals.take(batches[5], 7)
    assert answered(arrivals, 14.9) == []
    assert arrivals.deadline({TABLE}) == 15
    due = arrivals.next({TABLE}, 15)
    assert due == batches[3]
    assert list(arrivals.skipped(batches[3])) == [2, 3]
    assert arrivals.done(batches[3]) == [batches[3]]
    with pytest.raises(InvalidAnswer):
        arrivals.take(batches[2], 16)  # too late
    arrivals.take(batches[4], 16)
    assert answered(arrivals, 16) == [5, 6]


def test_a_batch_without_its_weights_waits_as_a_missing_one() -> None:
    first, second = chain(2)
    arrivals = BatchArrivals(None, PATIENCE)
    arrivals.take(first, 0)
    assert answered(arrivals, 99, set()) == []
    assert arrivals.deadline(set()) is None
    arrivals.take(replaced := batch(first, version=2, table=bytes(32)), 1)
    assert answered(arrivals, 5, {bytes(32)}) == []
    assert list(arrivals.skipped(replaced)) == [1]
    assert answered(arrivals, 11, {bytes(32)}) == [2]
    assert second.body.number == 2


def test_so_many_wait_and_no_more_are_waited_for() -> None:
    batches = chain(MAX_HELD + 2)
    arrivals = BatchArrivals(batches[0], PATIENCE)
    for one in batches[2:]:
        assert not arrivals.is_full
        arrivals.take(one, 0)
    assert arrivals.is_full
    assert arrivals.next({TABLE}, 0) == batches[2]  # there is no room to wait on


def test_what_does_not_follow_is_refused_by_name() -> None:
    first, second, third = chain(3)
    for last, wrong, problem in (
        (second, first, AnswerProblem.OLD_ROOT),
        (second, second, AnswerProblem.OLD_ROOT),
        (second, batch(first, root=bytes([9]) * 32), AnswerProblem.FORKED),
        (first, batch(first, previous=bytes(32)), AnswerProblem.FORKED),
        (first, batch(first, start=START), AnswerProblem.BACK_IN_TIME),
        (first, batch(second, start=START + 299), AnswerProblem.BACK_IN_TIME),
        (first, batch(first, version=0), AnswerProblem.WEIGHTS),
        (first, batch(second, version=0), AnswerProblem.WEIGHTS),
        (first, batch(second, table=bytes(32)), AnswerProblem.FORKED),
    ):
        arrivals = BatchArrivals(last, PATIENCE)
        with pytest.raises(InvalidAnswer) as caught:
            arrivals.take(wrong, 0)
        assert caught.value.problem is problem
        assert arrivals.held == []
    arrivals = BatchArrivals(first, PATIENCE)
    arrivals.take(third, 0)
    for wrong, problem in ((third, AnswerProblem.OLD_ROOT), (batch(second, count=1), AnswerProblem.FORKED)):
        with pytest.raises(InvalidAnswer) as caught:
            arrivals.take(wrong, 0)
        assert caught.value.problem is problem


# --- Subscriptions -----------------------------------------------------------------------------------------


def subscribe(name: int, number: int = 1, until: int = TODAY + 7) -> SubscribeRequest:
    return SubscribeRequest(bytes([name]) * 32, number, until, "link", ASKED)


def withdraw(name: int, number: int = 2, until: int = TODAY + 7) -> WithdrawRequest:
    return WithdrawRequest(bytes([name]) * 32, number, until)


def names(register: SubscriptionRegister) -> list[tuple[int, type]]:
    return [(name[0], type(register.get(name))) for name in sorted(register.names())]


def test_the_higher_number_holds_in_any_order() -> None:
    requests = [subscribe(1, 1), subscribe(1, 2, TODAY + 8), withdraw(1, 3), subscribe(1, 4, TODAY + 9)]
    for order in permutations(requests):
        register = SubscriptionRegister(5)
        told = [register.take(one, TODAY, 7) for one in order]
        assert register.get(bytes([1]) * 32) == RegisteredSubscription(4, TODAY + 9, "link", ASKED, 7)
        assert set(told) <= {RequestVerdict.TAKEN, RequestVerdict.OLD}
        assert register.take(requests[3], TODAY, 8) is RequestVerdict.AGAIN


def test_the_same_number_with_another_content_changes_nothing() -> None:
    register = SubscriptionRegister(5)
    register.take(subscribe(1), TODAY, 0)
    assert register.take(subscribe(1, until=TODAY + 8), TODAY, 0) is RequestVerdict.OLD
    assert register.take(withdraw(1, 1), TODAY, 0) is RequestVerdict.OLD
    assert register.take(withdraw(1, 2), TODAY, 0) is RequestVerdict.TAKEN
    assert register.take(withdraw(1, 2), TODAY, 0) is RequestVerdict.AGAIN
    assert register.take(subscribe(1, 2), TODAY, 0) is RequestVerdict.OLD


@pytest.mark.parametrize(("until", "verdict"), [(-1, "day"), (0, "taken"), (MAX_DAYS, "taken"), (31, "day")])
def test_a_request_is_for_some_days(until: int, verdict: str) -> None:
    assert SubscriptionRegister(1).take(subscribe(1, until=TODAY + until), TODAY, 0) == verdict
    assert SubscriptionRegister(1).take(withdraw(1, until=TODAY + until), TODAY, 0) == verdict


def test_nobody_makes_room_for_a_newcomer() -> None:
    register = SubscriptionRegister(2)
    assert [register.take(subscribe(name), TODAY, 0) for name in (1, 2, 3)] == ["taken", "taken", "full"]
    assert register.take(subscribe(1, 2), TODAY, 0) is RequestVerdict.TAKEN
    register.take(withdraw(2), TODAY, 0)
    assert register.take(subscribe(3), TODAY, 0) is RequestVerdict.TAKEN
    assert names(register) == [
        (1, RegisteredSubscription),
        (2, WithdrawnSubscription),
        (3, RegisteredSubscription),
    ]


def test_withdrawn_names_are_bounded_too() -> None:
    register = SubscriptionRegister(2)
    for name in (1, 2):
        assert register.take(withdraw(name, until=TODAY + name), TODAY, 0) is RequestVerdict.TAKEN
    assert register.take(withdraw(3), TODAY, 0) is RequestVerdict.FULL
    register.take(subscribe(3), TODAY, 0)
    assert register.take(withdraw(3), TODAY, 0) is RequestVerdict.TAKEN
    assert register.spare() == bytes([1]) * 32  # which ends first
    assert register.spare() is None
    assert names(register) == [(2, WithdrawnSubscription), (3, WithdrawnSubscription)]


def test_what_ended_is_forgotten() -> None:
    register = SubscriptionRegister(5)
    for name, until in ((1, 0), (2, 1)):
        register.take(subscribe(name, until=TODAY + until), TODAY, 0)
    register.take(withdraw(3, until=TODAY), TODAY, 0)
    assert register.expire(sorted(register.names()), TODAY) == []
    assert register.expire(sorted(register.names()), TODAY + 1) == [bytes([1]) * 32, bytes([3]) * 32]
    assert names(register) == [(2, RegisteredSubscription)]


def test_each_has_its_answer_once_whoever_came_meanwhile() -> None:
    register = SubscriptionRegister(5)
    register.take(subscribe(2), TODAY, 3)
    register.take(subscribe(1), TODAY, 3)
    register.take(subscribe(3), TODAY, 4)  # came while batch 4 was answered
    assert register.unanswered(sorted(register.names()), 4) == [bytes([1]) * 32, bytes([2]) * 32]
    register.answered(bytes([1]) * 32, 4)
    register.take(subscribe(1, 2), TODAY, 9)  # renewed: as before
    assert register.unanswered(sorted(register.names()), 4) == [bytes([2]) * 32]
    assert register.unanswered(sorted(register.names()), 5) == [bytes([name]) * 32 for name in (1, 2, 3)]


def test_a_record_is_read_back_as_it_was() -> None:
    for record in (RegisteredSubscription(1, 2, "link", ASKED, 3), WithdrawnSubscription(4, 5)):
        register = SubscriptionRegister(1)
        register.restore(bytes(32), decode_record(encode(record)))
        assert register.get(bytes(32)) == record
