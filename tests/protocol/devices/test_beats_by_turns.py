"""What one device lacks of another comes over in beats, however much it is."""

from __future__ import annotations

import random

import pytest

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.devices.beats import by_turns, fitting
from hushcast_protocol.devices.shared_entries import DeviceValue, EntryValue, ReadValue, SubscriptionValue
from hushcast_protocol.devices.shared_state import SharedState

TODAY = 1_000
OLD, NEW = (Seed(bytes([number]) * 32) for number in (1, 2))


def two(values: list[EntryValue]) -> tuple[SharedState, SharedState]:
    """Return the states of a device that has written all of this, and of one that lacks it."""
    states = SharedState(), SharedState()
    for state, seed in zip(states, (OLD, NEW), strict=True):
        state.write(seed, DeviceValue("a device", seed.public()))
    for value in values:
        states[0].write(OLD, value)
    return states


def hear(told: SharedState, hearing: SharedState, last: bytes) -> bytes:
    entries = by_turns({entry.stamp: entry for entry in told.lacking(hearing.summary(TODAY), TODAY)}, last)
    assert entries == fitting(entries)
    for entry in entries:
        hearing.merge(entry, TODAY)
    return entries[-1].stamp if entries else b""


@pytest.mark.parametrize(
    ("subscriptions", "lists", "beats"), [(200, 20, 3), (1_000, 500, 20), (1_000, 0, 10)]
)
def test_a_new_device_gets_all_of_it(subscriptions: int, lists: int, beats: int) -> None:
    draw = random.Random(1).randbytes
    old, new = two(
        [
            *(SubscriptionValue(f"hushcast:{number:0>60}", "", draw(16)) for number in range(subscriptions)),
            *(ReadValue(TODAY, tuple(draw(16) for _ in range(20))) for _ in range(lists)),
        ]
    )
    there = back = b""
    for _ in range(beats):
        there, back = hear(old, new, there), hear(new, old, back)
        if old.summary(TODAY) == new.summary(TODAY):
            break
    assert old.summary(TODAY) == new.summary(TODAY)


def test_what_is_new_goes_first() -> None:
    draw = random.Random(1).randbytes
    old, new = two([ReadValue(TODAY, tuple(draw(16) for _ in range(20))) for _ in range(200)])
    subscribed = old.write(OLD, SubscriptionValue("hushcast:topic", "", draw(16)))
    hear(old, new, b"")
    assert subscribed in list(new)
