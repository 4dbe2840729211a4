"""What devices share after one was removed: the same on all that stay, whatever that one told some."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator

import pytest
from steps import one_step

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.devices.beats import MAX_ENTRIES
from hushcast_protocol.devices.device_words import MAX_WORDS, in_order
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
from hushcast_protocol.devices.shared_state import COUNTED_A_DAY, MAX_READ, SharedState

TODAY = 1000
STAYING = [Seed(bytes([number]) * 32) for number in (1, 2, 3)]
REMOVED, MADE_UP = Seed(bytes([4]) * 32), Seed(bytes([5]) * 32)
KEYS = [seed.public() for seed in STAYING]
GONE = frozenset({REMOVED.public()})
HISTORIES = 2_000
STEP = 7

Place = tuple[EntryKind, bytes]


class Device:
    """A device that stays, as `DeviceCircle` has it: what it takes, and what it lets fall."""

    def __init__(self, seed: Seed) -> None:
        self.seed = seed
        self.state = SharedState()
        self.without: frozenset[bytes] = frozenset()
        self.write(introduced(seed))

    def write(self, value: EntryValue, about: bytes = b"") -> None:
        self.state.write(self.seed, value, about)

    def hear(self, entries: Iterable[SharedEntry], is_present: bool = True) -> None:
        for entry in entries:
            is_of_own_end = entry.name == self.seed.public() and entry.is_removal()
            if not is_of_own_end and self.state.counts(entry, self.without, is_present):
                self.state.merge(entry, TODAY)
        removed = (self.state.removed() | self.without) - {self.seed.public()}
        while self.state.part_from(removed, STEP):
            pass

    def go_on_without(self, gone: frozenset[bytes]) -> None:
        """Take a secret that is kept from some."""
        while self.state.stay_with(KEYS, gone, STEP)[0]:
            pass
        self.without = gone

    def remove(self, seed: Seed) -> SharedEntry:
        take_over(self, {seed.public()})
        removal = self.state.write(self.seed, DeviceValue("x", bytes(32), True), seed.public())
        self.without |= {seed.public()}
        return removal

    def restart(self) -> None:
        kept = SharedState()
        for entry in (*self.state, *self.state.words):
            kept.restore(entry, TODAY)
        self.state = kept
        take_over(self, (self.state.removed() | self.without) - {self.seed.public()})


def take_over(device: Device, gone: Iterable[bytes]) -> None:
    while device.state.take_over(device.seed, frozenset(gone), STEP)[0]:
        pass


def introduced(seed: Seed) -> DeviceValue:
    return DeviceValue("device", seed.public())


def something(draw: random.Random) -> EntryValue:
    kind = draw.randrange(4)
    if kind == 0:
        marks = tuple(bytes([draw.randrange(5)]) * 16 for _ in range(draw.randrange(1, 3)))
        return ReadValue(TODAY - draw.randrange(3), marks)
    if kind == 1:
        return AuthorValue(f"author {draw.randrange(2)}", draw.randbytes(32), draw.random() < 0.3)
    link, ended = f"hushcast:{draw.randrange(4)}", draw.random() < 0.4
    return ended_subscription(link, "") if ended else SubscriptionValue(link, "", draw.randbytes(16))


def anything(draw: random.Random) -> SharedEntry:
    """Draw what a removed device says, or one that it made up, about itself or another one."""
    seed, counter = draw.choice((REMOVED, MADE_UP)), draw.choice((1, 50, TODAY * COUNTED_A_DAY))
    kind = draw.randrange(4)
    if kind == 0:
        return write_entry(seed, counter, introduced(seed))
    if kind == 1:
        about = draw.choice([*KEYS, REMOVED.public(), MADE_UP.public(), bytes(32)])
        return write_entry(seed, counter, DeviceValue("x", bytes(32), True), about)
    return write_entry(seed, counter, something(draw))


def exchange(one: Device, other: Device, draw: random.Random, lost: float) -> None:
    for entry in other.state.lacking(one.state.summary(TODAY), TODAY):
        if draw.random() >= lost:
            one.hear([entry] * draw.choice((1, 1, 2)))


def until_alike(devices: list[Device], draw: random.Random) -> None:
    for _ in range(3):
        for one in devices:
            for other in draw.sample(devices, len(devices)):
                exchange(one, other, draw, 0.0)


def tops(entries: Iterable[SharedEntry]) -> dict[Place, SharedEntry]:
    """By plain rules, return what holds of all that was said."""
    found: dict[Place, SharedEntry] = {}
    for entry in entries:
        held = found.get(entry.place)
        if held is None or held.rank() < entry.rank():
            found[entry.place] = entry
    return found


def held(device: Device) -> dict[Place, SharedEntry]:
    return {entry.place: entry for entry in device.state}


@pytest.fixture
def unsigned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signatures hold, so that thousands of histories take seconds; others try them."""
    monkeypatch.setattr("hushcast_protocol.devices.shared_entries.signature", lambda *_: bytes(64))
    monkeypatch.setattr("hushcast_protocol.devices.shared_entries.check", lambda *_: None)
    return


@pytest.mark.slow
@pytest.mark.usefixtures("unsigned")
def test_whatever_a_removed_device_tells_one_that_was_away_all_that_stay_come_to_the_same() -> None:
    """One removes a device, one hears of it at once, one is told anything before it hears of it."""
    for number in range(HISTORIES):
        draw = random.Random(number)
        remover, misled, there = devices = [Device(seed) for seed in STAYING]
        stolen = Device(REMOVED)
        everybody = [*devices, stolen]
        until_alike(everybody, draw)
        for _ in range(draw.randrange(12)):
            draw.choice(everybody).write(something(draw))
            exchange(*draw.sample(everybody, 2), draw, lost=0.3)
        exchange(remover, stolen, draw, lost=0.2)
        known = {place: entry for place, entry in held(remover).items() if place[0] is not EntryKind.DEVICE}
        removal = remover.remove(REMOVED)
        vouched = held(remover)
        for place, entry in known.items():
            if entry.kind is not EntryKind.READ:
                assert vouched[place].value == entry.value, "what it had heard stays"
        assert all(remover.state.is_read(mark) for entry in known.values() for mark in marks_of(entry))
        there.hear([removal], draw.random() < 0.5)
        there.go_on_without(GONE)
        for _ in range(draw.randrange(12)):
            draw.choice(devices).write(something(draw))
            if draw.random() < 0.7:
                misled.hear([anything(draw)])
            if draw.random() < 0.2:
                draw.choice(devices).restart()
            if draw.random() < 0.3:
                exchange(*draw.sample([remover, there], 2), draw, lost=0.3)
        before = misled.state.removed()
        misled.hear([removal], is_present=draw.random() < 0.5)
        if remover.seed.public() in before:
            continue  # it is led away, and alone: it believes that the other one was removed
        misled.go_on_without(GONE)
        said = tops(entry for device in devices for entry in device.state)
        if draw.random() < 0.3:
            misled.restart()
        for _ in range(draw.randrange(6)):
            exchange(*draw.sample(devices, 2), draw, lost=0.5)
        until_alike(devices, draw)
        assert held(remover) == held(misled) == held(there) == said, number
        assert {entry.device for entry in remover.state if entry.place != removal.place} <= set(KEYS), number
        assert remover.state.removed() == GONE, number
        assert remover.state.living().keys() == set(KEYS), number


def marks_of(entry: SharedEntry) -> tuple[bytes, ...]:
    return entry.read().marks if entry.kind is EntryKind.READ else ()


@pytest.mark.usefixtures("unsigned")
def test_in_whatever_order_and_however_often_entries_come_after_a_removal_the_same_holds() -> None:
    for number in range(100):
        draw = random.Random(number)
        writers = [Device(seed) for seed in STAYING]
        said = [anything(draw) for _ in range(6)]
        for _ in range(10):
            draw.choice(writers).write(something(draw))
        said += [entry for writer in writers for entry in writer.state]
        said.append(write_entry(STAYING[0], 60, DeviceValue("x", bytes(32), True), REMOVED.public()))
        halves = [Device(STAYING[0]) for _ in range(2)]
        whole = [Device(STAYING[0]) for _ in range(2)]
        for device in (*halves, *whole):
            device.go_on_without(GONE | {MADE_UP.public()})
        for device in whole:
            device.hear(draw.sample(said, len(said)))
            device.hear(draw.choices(said, k=5))
        for device, part in zip(halves, (said[::2], said[1::2]), strict=True):
            device.hear(part)
        exchange(*halves, draw, 0.0)
        exchange(*halves[::-1], draw, 0.0)
        assert held(whole[0]) == held(whole[1]) == held(halves[0]) == held(halves[1])
        assert all(entry.device in KEYS or entry.is_removal() for entry in whole[0].state)


def test_what_a_removed_device_wrote_stands_where_it_stood_and_is_signed_by_who_removed_it() -> None:
    one, stolen = Device(STAYING[0]), Device(REMOVED)
    stolen.state.counter = 40
    stolen.write(SubscriptionValue("hushcast:x", "", bytes(16)))
    stolen.write(ReadValue(TODAY, (bytes(16),)))
    one.hear(stolen.state)
    end = write_entry(STAYING[1], 42, ended_subscription("hushcast:x", ""))
    one.remove(REMOVED)
    for entry in one.state:
        entry.check()
        assert entry.device == KEYS[0]
    assert one.state.is_read(bytes(16))
    one.hear([end])
    shared = one.state.subscription("hushcast:x", "")
    assert shared is not None
    assert shared.is_ended, "what another one changed meanwhile is not undone"


@pytest.mark.usefixtures("unsigned")
def test_all_that_a_removed_device_can_write_falls_and_is_taken_over_in_short_steps() -> None:
    one, marks = Device(STAYING[0]), random.Random(1)
    for number in range(1024):
        one.state.restore(
            write_entry(REMOVED, 1, SubscriptionValue(f"hushcast:{number}", "", bytes(16))), TODAY
        )
    for number in range(MAX_READ):
        value = ReadValue(TODAY, tuple(marks.randbytes(16) for _ in range(256)))
        one.state.restore(write_entry(REMOVED, 2 + number, value), TODAY)
    with one_step():
        assert len(one.state.take_over(STAYING[0], GONE, 32)[0]) == 32
    with one_step():
        assert len(one.state.part_from(GONE, 32)) == 32
    with one_step():
        assert len(one.state.stay_with(KEYS, GONE, 32)[0]) == 32


@pytest.mark.usefixtures("unsigned")
def test_of_words_on_a_device_the_first_are_kept_and_hold_again_when_others_fall() -> None:
    one = Device(STAYING[0])
    writers = [Seed(bytes([number]) * 32) for number in range(20, 20 + 2 * MAX_WORDS)]
    one.hear(write_entry(seed, 1, introduced(seed)) for seed in (*STAYING[1:], *writers))
    about = KEYS[1]
    removal = DeviceValue("x", bytes(32), True)
    one.hear(write_entry(seed, 900, removal, about) for seed in writers)
    assert about in one.state.removed()
    assert sum(word.name == about for word in one.state.words) == MAX_WORDS
    one.go_on_without(frozenset())
    assert one.state.devices()[about] == introduced(STAYING[1]), "what it said of itself holds again"
    one.hear(write_entry(seed, 1, introduced(seed)) for seed in writers)
    one.hear(write_entry(seed, 900, removal, about) for seed in writers)
    one.write(removal, about)
    one.go_on_without(frozenset({about}))
    assert {entry.device for entry in one.state if entry.name == about} == {KEYS[0]}, "one's own is kept"


def test_a_removal_by_one_that_was_removed_since_is_taken_before_that_one_s() -> None:
    first, second, third = STAYING
    removal = DeviceValue("x", bytes(32), True)
    said = [
        write_entry(second, 3, AuthorValue("pen", bytes(32))),
        write_entry(second, 2, removal, first.public()),
        write_entry(first, 2, removal, REMOVED.public()),
        write_entry(REMOVED, 2, removal, MADE_UP.public()),
        write_entry(second, 1, introduced(second)),
    ]
    assert in_order(said) == [said[4], said[3], said[2], said[1], said[0]]
    mutual = [write_entry(first, 2, removal, KEYS[1]), write_entry(second, 2, removal, KEYS[0])]
    assert in_order(mutual) == mutual
    one = Device(third)
    one.hear(write_entry(seed, 1, introduced(seed)) for seed in (first, second, REMOVED, MADE_UP))
    one.hear(in_order(said))
    assert one.state.removed() == {KEYS[0], REMOVED.public(), MADE_UP.public()}


@pytest.mark.usefixtures("unsigned")
def test_a_beat_full_of_removals_is_ordered_in_one_short_step() -> None:
    keys = [number.to_bytes(32, "big") for number in range(MAX_ENTRIES + 1)]
    value = encode(DeviceValue("x", bytes(32), True))
    chain = [
        SharedEntry(EntryKind.DEVICE, removed, 1, by, value, bytes(64))
        for by, removed in itertools.pairwise(keys)
    ]
    with one_step():
        assert len(in_order(chain)) == MAX_ENTRIES


def test_an_entry_of_no_kind_counts_for_nothing() -> None:
    device = Device(STAYING[0])
    broken = SharedEntry(EntryKind.DEVICE, KEYS[1], 1, KEYS[1], b"\xc1", bytes(64))
    with pytest.raises(PeerError):
        device.state.merge(broken, TODAY)
