"""A tree's instructions in letters: each relay is told once, by who stands above it; every parcel fits."""

from __future__ import annotations

from collections import Counter

import pytest
from core_examples import (
    BOX,
    DAY,
    EPOCH,
    LEASE_SECRET,
    NETWORK,
    descriptor_of,
    parcel_key,
    properties,
    relay_id,
    stream,
)
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import GENESIS, Relay, Roster
from hushcast_protocol.overlay.installations import HostRoot, Installation
from hushcast_protocol.overlay.leases import Install, ToListedHost
from hushcast_protocol.overlay.letter_errands import GiveErrand, errand_body
from hushcast_protocol.overlay.letter_parcels import PARCEL_ROOM, LetterParcel, letter_parcels, letters_of
from hushcast_protocol.overlay.parcels import open_parcel
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_protocol.overlay.tree import plan

HOST = relay_id(999)


def installation(count: int, depth: int, entries: int = 2) -> Installation:
    """A tree over so many relays, whose root is the host of a lane."""
    tree = plan([relay_id(number) for number in range(count)], depth, bytes(32))
    words = tuple(bytes([number]) * 16 for number in range(entries))
    return Installation(DAY, HostRoot(BOX, HOST), tree, b"t" * 16, words, LEASE_SECRET)


def roster(count: int, difficulty: int = 0) -> Roster:
    """The relays of the tree, as if checked."""
    listed = [descriptor_of(number) for number in range(count)]
    relays = {one.relay: Relay(one.relay, one.address, one.parcel_key, EPOCH, difficulty) for one in listed}
    return Roster(NETWORK, EPOCH, GENESIS, bytes(32), relays)


def cut(made: Installation) -> tuple[list[LetterParcel], dict[bytes, Install]]:
    instructions = {relay: made.install(HARDENED, relay) for relay in made.tree.parents}
    return letter_parcels(made.tree, set(instructions), instructions), instructions


@properties(12)
@given(st.integers(1, 60), st.integers(1, 4))
def test_each_relay_is_told_once_and_passes_on_to_those_below_it_alone(count: int, depth: int) -> None:
    made = installation(count, depth)
    parcels, instructions = cut(made)
    numbers = {relay_id(number): number for number in range(count)}
    told: dict[bytes, Install] = {}
    for parcel in parcels:
        sealed = parcel.sealed(instructions, roster(count), EPOCH, stream())
        assert len(errand_body(GiveErrand(parcel.top, sealed))) > len(sealed)
        waiting = [(parcel.top, sealed)]
        for relay, held in waiting:
            opened = open_parcel(held, parcel_key(numbers[relay]), NETWORK.id, relay, EPOCH)
            if isinstance(opened.instruction, Install):
                assert relay not in told
                told[relay] = opened.instruction
            below = [(one.relay, one.sealed) for one in opened.onward]
            assert {one for one, _ in below} <= set(made.tree.children.get(relay, ()))
            waiting += below
    assert told == instructions
    assert told[made.tree.children[None][0]].next_hop == ToListedHost(HOST)


@pytest.mark.slow
def test_a_tree_of_five_hundred_relays_takes_as_many_letters_as_pages_say() -> None:
    made = installation(500, HARDENED.depth)
    parcels, instructions = cut(made)
    assert Counter(relay for parcel in parcels for relay in parcel.told) == Counter(list(made.tree.parents))
    for number in range(0, len(parcels) - 3, 3):
        assert len({one.top for one in parcels[number : number + 3]}) == 3
    dear = roster(500, 4)
    sizes = [len(one.sealed(instructions, dear, EPOCH, stream())) for one in parcels]
    assert max(sizes) <= PARCEL_ROOM
    assert len(parcels) == letters_of(500, HARDENED.depth) == 66
    assert [letters_of(count, HARDENED.depth) for count in (12, 100)] == [
        len(cut(installation(12, 2))[0]),
        20,
    ]


def test_relays_that_are_listed_no_more_are_left_out_with_those_below_them() -> None:
    made = installation(60, 2)
    parcels, instructions = cut(made)
    whole = next(one for one in parcels if len(one.told) > 2)
    leaf = next(one for one in whole.told if one != whole.top)
    rest = whole.among(whole.shape.parents.keys() - {leaf})
    assert rest.told == whole.told - {leaf}
    assert rest.sealed(instructions, roster(60), EPOCH, stream())
    with pytest.raises(Refusal, match="not listed"):
        whole.among(whole.shape.parents.keys() - {whole.top})


def test_a_condition_with_too_many_values_is_refused() -> None:
    with pytest.raises(Refusal, match="too many values"):
        cut(installation(12, 2, entries=250))
