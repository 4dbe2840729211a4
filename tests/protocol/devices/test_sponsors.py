"""Who let in whom: by that a device knows others that it has not met; but none that a removed one let in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.devices.device_words import in_order
from hushcast_protocol.devices.shared_entries import DeviceValue, SharedEntry, write_entry
from hushcast_protocol.devices.shared_state import SharedState

TODAY = 1000
OWN, ONE, THIEF, OLD, SOLD = (Seed(bytes([number]) * 32) for number in range(1, 6))
NEW, NEWER, MADE_UP = (Seed(bytes([number]) * 32) for number in range(6, 9))
BASE = [OWN, ONE, THIEF, OLD, SOLD]
KEYS = frozenset(seed.public() for seed in BASE)


def introduced(seed: Seed) -> SharedEntry:
    return write_entry(seed, 1, DeviceValue("device", seed.public()))


def sponsorship(by: Seed, of: Seed, agreement: bytes = b"") -> SharedEntry:
    return write_entry(by, 2, DeviceValue("device", agreement or of.public()), of.public())


def removal(by: Seed, of: Seed) -> SharedEntry:
    return write_entry(by, 3, DeviceValue("device", bytes(32), True), of.public())


@pytest.fixture(autouse=True)
def unsigned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signatures hold, so that thousands of orders take seconds; others try them."""
    monkeypatch.setattr("hushcast_protocol.devices.shared_entries.signature", lambda *_: bytes(64))
    monkeypatch.setattr("hushcast_protocol.devices.shared_entries.check", lambda *_: None)
    return


def met() -> SharedState:
    """Return the state of a device that has met those of `BASE` and nobody else."""
    state = SharedState()
    for seed in BASE:
        state.merge(introduced(seed), TODAY)
    return state


def hear(state: SharedState, *entries: SharedEntry) -> None:
    """Hear what is told under a secret of before."""
    for entry in in_order(entries):
        if state.counts(entry, frozenset(), is_present=False):
            state.merge(entry, TODAY)


def outcome(
    state: SharedState, said: tuple[SharedEntry, ...], gone: frozenset[bytes]
) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """Return who stands and who was removed, once all has been told again and again, one by one.

    Each time a secret is taken that is without those that are `gone`.
    """
    for _ in range(4):
        for entry in said:
            hear(state, entry)
        sealed_to = KEYS - gone
        staying = sealed_to | state.words.sponsored(sealed_to, state.removed())
        while state.stay_with(staying, gone, 32)[0]:
            pass
    return state.words.sponsored(KEYS, state.removed()), state.removed()


@pytest.mark.slow
def test_in_all_orders_the_same_devices_stand() -> None:
    """Of six devices two are let in, one by the other, and remove two; the third removal is of a thief."""
    said = [
        sponsorship(ONE, NEW),
        sponsorship(NEW, NEWER),
        removal(NEW, OLD),
        removal(NEWER, SOLD),
        removal(ONE, THIEF),
        introduced(NEW),
    ]
    gone = frozenset({OLD.public(), SOLD.public(), THIEF.public()})
    standing = frozenset({OWN.public(), ONE.public(), NEW.public(), NEWER.public()})
    for order in itertools.permutations(said):
        assert outcome(met(), order, gone) == (standing, gone)


@pytest.mark.slow
def test_in_all_orders_a_removed_device_lets_in_and_removes_nobody() -> None:
    """Whether it says that afterwards, or that it had done so before: no order makes a difference."""
    said = [
        removal(ONE, THIEF),
        sponsorship(THIEF, MADE_UP),
        removal(THIEF, OLD),
        removal(MADE_UP, SOLD),
        sponsorship(ONE, NEW),
        sponsorship(THIEF, NEW, b"a key of the thief's own" + bytes(8)),
    ]
    gone = frozenset({THIEF.public()})
    standing = (KEYS | {NEW.public()}) - gone
    for order in itertools.permutations(said):
        state = met()
        assert outcome(state, order, gone) == (standing, gone)
        assert state.devices()[NEW.public()].agreement == NEW.public()
        assert MADE_UP.public() not in state.devices()


def test_all_at_once_counts_inviters_first() -> None:
    state = met()
    hear(state, removal(NEWER, SOLD), sponsorship(NEW, NEWER), sponsorship(ONE, NEW))
    assert state.removed() == {SOLD.public()}


def test_nobody_says_for_another_what_is_sealed_to_it() -> None:
    """A device knows that of itself: who let it in says less of it, however late it says so."""
    for order in itertools.permutations(
        [introduced(NEW), sponsorship(ONE, NEW, bytes(32)), sponsorship(ONE, OLD)]
    ):
        state = met()
        for entry in order:
            state.merge(entry, TODAY)
        assert state.devices()[NEW.public()].agreement == NEW.public()
        assert state.devices()[OLD.public()].agreement == OLD.public()


def test_who_let_in_whom_is_told_by_one_word_on_each_that_lives() -> None:
    state = met()
    said = [
        sponsorship(THIEF, NEW),
        sponsorship(ONE, NEW),
        sponsorship(NEW, NEWER),
        sponsorship(ONE, MADE_UP),
    ]
    for entry in (*said, removal(ONE, MADE_UP)):
        state.merge(entry, TODAY)
    living = state.living().keys() - {THIEF.public()}
    assert set(state.words.sponsorships(living)) == {said[1], said[2]}
    assert set(state.words.sponsorships(living - {ONE.public()})) >= {said[2]}, (
        "also of who was removed since"
    )
