"""What devices share: the same on all of them once all has come, in whatever order, twice, or with losses."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest
from steps import one_step

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.devices import shared_state
from hushcast_protocol.devices.shared_entries import (
    AuthorValue,
    DeviceValue,
    EntryKind,
    EntryValue,
    ReadValue,
    SharedEntry,
    SubscriptionValue,
    ended_subscription,
    write_entry,
)
from hushcast_protocol.devices.shared_state import COUNTED_A_DAY, MARKS_KEPT, SUMMARY, SharedState

SEEDS = [Seed(bytes([number]) * 32) for number in (1, 2, 3)]
TODAY = 1000
HISTORIES = 10_000


class PlainModel:
    """All that anybody ever said, and what follows: per place, what was said with the highest rank."""

    def __init__(self) -> None:
        self.said: list[SharedEntry] = []

    def holds(self) -> dict[tuple[int, bytes], bytes]:
        found: dict[tuple[int, bytes], bytes] = {}
        for entry in sorted(self.said, key=_by_plain_rules):
            found[int(entry.kind), entry.name] = entry.value
        return found


def _by_plain_rules(entry: SharedEntry) -> tuple[bool, int, bytes]:
    removal = entry.kind == EntryKind.DEVICE and msgspec.msgpack.decode(entry.value)[2] is True
    return removal, entry.counter, entry.device


def holds(state: SharedState) -> dict[tuple[int, bytes], bytes]:
    return {(int(entry.kind), entry.name): entry.value for entry in state}


def something(draw: random.Random, own: bytes) -> tuple[EntryValue, bytes]:
    """Draw what a device says, and which one it is about: the first one says of others that they are removed.

    A removal whose writer is removed is told to nobody: `test_state_after_removals.py`.
    """
    kind, first = draw.randrange(4), SEEDS[0].public()
    if kind == 0:
        about = own if own != first or draw.random() < 0.6 else draw.choice(SEEDS[1:]).public()
        is_removed = about != own or (own != first and draw.random() < 0.1)
        return DeviceValue(f"device {draw.randrange(3)}", about, is_removed), about
    if kind == 1:
        link, ended = f"hushcast:{draw.randrange(4)}", draw.random() < 0.4
        value = SubscriptionValue(link, "", draw.randbytes(16))
        return (ended_subscription(link, "") if ended else value), b""
    if kind == 2:
        marks = tuple(bytes([draw.randrange(5)]) * 16 for _ in range(draw.randrange(1, 3)))
        return ReadValue(TODAY - draw.randrange(3), marks), b""
    return AuthorValue(f"author {draw.randrange(2)}", bytes(32), draw.random() < 0.3), b""


@pytest.fixture
def unsigned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signatures hold, so that ten thousand histories take seconds; others try them."""
    monkeypatch.setattr("hushcast_protocol.devices.shared_entries.signature", lambda *_: bytes(64))
    monkeypatch.setattr("hushcast_protocol.devices.shared_entries.check", lambda *_: None)
    return


def exchange(one: SharedState, other: SharedState, draw: random.Random, lost: float) -> None:
    """Let one device tell a summary and the other what it lacks; each entry may be lost or come twice."""
    if draw.random() < lost:
        return
    for entry in other.lacking(one.summary(TODAY), TODAY):
        for _ in range(draw.choice((1, 1, 2))):
            if draw.random() >= lost:
                one.merge(entry, TODAY)


@pytest.mark.slow
@pytest.mark.usefixtures("unsigned")
def test_random_histories_of_three_devices_come_to_what_a_plain_model_says() -> None:
    for number in range(HISTORIES):
        draw = random.Random(number)
        model, states = PlainModel(), [SharedState() for _ in SEEDS]
        model.said = [write_entry(seed, 1, DeviceValue("device", seed.public())) for seed in SEEDS]
        for state in states:
            for entry in model.said:
                state.merge(entry, TODAY)
        for _ in range(draw.randrange(1, 12)):
            at = draw.randrange(3)
            value, about = something(draw, SEEDS[at].public())
            entry = states[at].write(SEEDS[at], value, about)
            model.said.append(entry)
            if draw.random() < 0.4:
                exchange(*draw.sample(states, 2), draw, lost=0.4)
        if draw.random() < 0.5:  # all that was said, in any order and some of it twice
            for state in states:
                said = model.said + draw.choices(model.said, k=3)
                draw.shuffle(said)
                for entry in said:
                    state.merge(entry, TODAY)
        else:  # summaries and answers alone: what was lost comes with the next ones
            for _ in range(3):
                for one in states:
                    for other in states:
                        exchange(one, other, draw, lost=0.0)
        assert all(holds(state) == model.holds() for state in states), number
        assert len({state.summary(TODAY) for state in states}) == 1
        assert not states[0].lacking(states[1].summary(TODAY), TODAY)


@pytest.mark.usefixtures("unsigned")
def test_a_removal_stays_whatever_the_device_says_later() -> None:
    ours, theirs = SharedState(), SharedState()
    key = SEEDS[1].public()
    for state in (ours, theirs):
        state.merge(write_entry(SEEDS[0], 1, DeviceValue("laptop", bytes(32))), TODAY)
    theirs.write(SEEDS[1], DeviceValue("phone", bytes(32)))
    removal = ours.write(SEEDS[0], DeviceValue("phone", bytes(32), True), key)
    for number in range(5):
        later = theirs.write(SEEDS[1], DeviceValue(f"phone {number}", bytes(32)))
        assert not ours.merge(later, TODAY)
    assert theirs.merge(removal, TODAY)
    assert ours.removed() == theirs.removed() == {key}
    assert ours.living() == theirs.living() != {}
    assert key not in ours.living()


def test_what_a_device_did_not_sign_is_refused_and_changes_nothing() -> None:
    state = SharedState()
    entry = write_entry(SEEDS[0], 1, SubscriptionValue("hushcast:x", "", bytes(16)))
    other = write_entry(SEEDS[0], 2, SubscriptionValue("hushcast:y", "", bytes(16)))
    for changed in (
        {"counter": 9},
        {"device": SEEDS[1].public()},
        {"value": other.value},
        {"name": other.name},
        {"signature": bytes(64)},
        {"value": b"\xc1"},
        {"kind": EntryKind.AUTHOR},
    ):
        with pytest.raises((AuthenticationError, DecodeError)):
            state.merge(msgspec.structs.replace(entry, **changed), TODAY)
        assert len(state) == 0
    assert state.merge(entry, TODAY)
    assert not state.merge(entry, TODAY)


@pytest.mark.usefixtures("unsigned")
def test_a_counter_used_twice_by_a_restored_device_still_comes_to_one() -> None:
    first = write_entry(SEEDS[0], 7, AuthorValue("a", bytes(32)))
    second = write_entry(SEEDS[0], 7, AuthorValue("a", bytes([1]) * 32))
    states = [SharedState(), SharedState()]
    for state, entries in zip(states, ((first, second), (second, first)), strict=True):
        for entry in entries:
            state.merge(entry, TODAY)
    assert states[0].authors() == states[1].authors()


@pytest.mark.usefixtures("unsigned")
def test_marks_are_forgotten_with_time_and_the_oldest_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_state, "MAX_READ", 10)
    state, other = SharedState(), SharedState()
    marks = [bytes([number]) * 16 for number in range(20)]
    first = TODAY - 19
    entries = [write_entry(SEEDS[0], n + 1, ReadValue(first + n, (mark,))) for n, mark in enumerate(marks)]
    for entry in entries:
        state.merge(entry, TODAY)
    for entry in reversed(entries):
        other.merge(entry, TODAY)
    assert [state.is_read(mark) for mark in marks] == [False] * 10 + [True] * 10
    assert state.summary(TODAY) == other.summary(TODAY)
    later = first + 15 + MARKS_KEPT
    before = other.summary(later)
    assert len(state.lapse(later)) == 5
    assert state.summary(later) == before, "one that has not forgotten yet tells the same"
    assert not state.is_read(marks[14])
    assert state.is_read(marks[15])
    assert not state.merge(entries[14], later)


@pytest.mark.usefixtures("unsigned")
def test_nothing_of_days_to_come_is_taken_until_they_have_come() -> None:
    state = SharedState()
    ahead = write_entry(SEEDS[0], (TODAY + 2) * COUNTED_A_DAY, AuthorValue("a", bytes(32)))
    for entry in (ahead, write_entry(SEEDS[0], 1, ReadValue(TODAY + 2, (bytes(16),)))):
        before = state.counter
        assert not state.merge(entry, TODAY)
        assert state.counter == before
        assert state.merge(entry, TODAY + 1)
    assert state.write(SEEDS[1], AuthorValue("a", bytes(32))).counter == ahead.counter + 1


@pytest.mark.usefixtures("unsigned")
def test_there_is_room_for_so_much_and_the_rest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_state, "_BOUNDS", {EntryKind.SUBSCRIPTION: 3})
    state = SharedState()
    for number in range(3):
        state.write(SEEDS[0], SubscriptionValue(f"hushcast:{number}", "", bytes(16)))
    with pytest.raises(Refusal, match="new circle"):
        state.write(SEEDS[0], SubscriptionValue("hushcast:3", "", bytes(16)))
    ended = state.write(SEEDS[0], ended_subscription("hushcast:2", ""))
    assert state.subscription("hushcast:2", "").is_ended
    assert b"hushcast:" not in ended.value, "disks forget the link"
    assert state.subscription("hushcast:3", "") is None


@pytest.mark.usefixtures("unsigned")
def test_a_full_state_is_summed_up_and_compared_in_one_step() -> None:
    state = SharedState()
    draw = random.Random(1)
    for number in range(1024):
        state.write(SEEDS[0], SubscriptionValue(f"hushcast:{number}", "", bytes(16)))
    for _ in range(2048):
        state.write(SEEDS[0], ReadValue(TODAY, tuple(draw.randbytes(16) for _ in range(8))))
    with one_step():
        assert len(state.summary(TODAY)) == SUMMARY
    with one_step():
        assert len(state.lacking(bytes(SUMMARY), TODAY)) == len(state)


def test_secrets_do_not_show() -> None:
    value = SubscriptionValue("hushcast:secret", "kind = secret", bytes(16))
    entry = write_entry(SEEDS[0], 1, value)
    for shown in (repr(value), repr(entry), repr(AuthorValue("secret", bytes(32)))):
        assert "secret" not in shown
