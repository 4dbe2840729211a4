"""Hand-overs: daemons that know a directory's former key follow it to the new one, and nobody else's."""

from __future__ import annotations

import msgspec
import pytest
import trio
from directory_bench import DIRECTORY, NETWORK, Bench, bench, catch_up_with
from test_rosters import made_roster

from hushcast_directory.client.trust import Trust
from hushcast_directory.server.key_rotation import _next_epoch
from hushcast_directory.server.succession import hand_over, load_succession
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.authorities.directory_requests import KeySuccession
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.key_handovers import (
    MAX_HANDOVERS,
    KeyHandover,
    check_handover,
    following,
    sign_handover,
)
from hushcast_protocol.base.roster import check_roster, check_successor
from hushcast_protocol.base.wire import encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore, StoreError
from hushcast_runtime.transports.base import TransportError

KEYS = [DIRECTORY, *(Seed(bytes([number]) * 32) for number in range(200, 203))]


def signed(number: int, epoch: int = 3) -> Signed:
    """The hand-over from a key to the next."""
    old, new = KEYS[number], KEYS[number + 1]
    return sign_handover(old, KeyHandover(NETWORK.id, old.public(), new.public(), epoch))


async def rotate(made: Bench, old: Seed, new: Seed, signs: bool = True) -> None:
    """What `hushcast admin key rotate` does to the directory of a bench, and its next start."""
    await made.stop()
    epoch = await _next_epoch(made.store, NETWORK, old)
    await hand_over(made.store, NETWORK, old, new, epoch, signs)
    await made.start(new)


# What is signed


async def test_a_hand_over_is_its_old_key_s_and_of_this_network() -> None:
    handover = KeyHandover(NETWORK.id, KEYS[0].public(), KEYS[1].public(), 3)
    assert check_handover(sign_handover(KEYS[0], handover), NETWORK) == handover
    for other in KEYS[1:]:
        with pytest.raises(AuthenticationError):
            check_handover(sign_handover(other, handover), NETWORK)
    with pytest.raises(AuthenticationError):
        check_handover(sign(KEYS[0], SignaturePurpose.ROSTER, handover), NETWORK)
    elsewhere = msgspec.structs.replace(handover, network=bytes(32))
    with pytest.raises(DecodeError, match="another network"):
        check_handover(sign_handover(KEYS[0], elsewhere), NETWORK)


async def test_hand_overs_lead_on_or_are_refused() -> None:
    chain = [signed(0), signed(1), signed(2)]
    assert [one.new for one in following(KEYS[0].public(), chain, NETWORK)] == [k.public() for k in KEYS[1:]]
    for key, wrong in [(0, chain[1:]), (1, chain), (0, [chain[0], chain[2]]), (0, [chain[0], chain[0]])]:
        with pytest.raises(AuthenticationError, match="not from the key"):
            following(KEYS[key].public(), wrong, NETWORK)


# What a daemon trusts


async def test_what_was_taken_outlives_a_restart() -> None:
    store, trust = MemoryStore(), Trust(NETWORK, DIRECTORY.public())
    await trust.take([signed(0), signed(1)], store)
    await trust.take([signed(2)], store)
    with pytest.raises(AuthenticationError):  # a former key says nothing any more
        await trust.take([signed(0)], store)
    for pinned in KEYS:  # also for who has since taken a later key into the configuration
        again = Trust(NETWORK, pinned.public())
        await again.load(store)
        assert again.key == KEYS[3].public()
    other = Trust(NETWORK, Seed(bytes(32)).public())
    await other.load(store)
    assert other.key == Seed(bytes(32)).public()


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("value", [b"", b"\x90", encode(signed(2))])
async def test_no_daemon_goes_back_to_a_key_because_its_disk_is_damaged(place: int, value: bytes) -> None:
    """Who has it by now would be followed: as little starts as where the authorities are damaged."""
    store, trust = MemoryStore(), Trust(NETWORK, DIRECTORY.public())
    await trust.take([signed(0), signed(1)], store)
    store.write_soon(Change("handover", place.to_bytes(8, "big"), value))
    again = Trust(NETWORK, DIRECTORY.public())
    with pytest.raises(StoreError, match="without it this daemon might follow a key"):
        await again.load(store)


async def test_a_former_key_signs_rosters_of_its_own_time_alone() -> None:
    store, trust = MemoryStore(), Trust(NETWORK, KEYS[0].public())
    await trust.take([signed(0, epoch=5), signed(1, epoch=8)], store)
    for epoch, by, holds in [(4, 0, True), (5, 0, False), (7, 1, True), (8, 1, False), (8, 2, True)]:
        roster = made_roster(epoch, by=KEYS[by])
        if holds:
            assert trust.check(roster.signed, check_roster).epoch == epoch
        else:
            with pytest.raises(AuthenticationError):
                trust.check(roster.signed, check_roster)


async def test_no_directory_makes_a_daemon_keep_more_than_so_many() -> None:
    store, trust, old = MemoryStore(), Trust(NETWORK, DIRECTORY.public()), DIRECTORY
    for number in range(2 * MAX_HANDOVERS):
        new = Seed(bytes([number + 1]) * 32)
        await trust.take(
            [sign_handover(old, KeyHandover(NETWORK.id, old.public(), new.public(), number))], store
        )
        old = new
    assert len(await store.scan("handover")) == MAX_HANDOVERS
    assert trust.key == old.public()
    again = Trust(NETWORK, old.public())
    await again.load(store)
    assert again.key == old.public()


async def test_one_that_hands_over_without_end_is_left_alone() -> None:
    async with bench() as made:
        restless = Restless()
        with pytest.raises(AuthenticationError, match="again and again"):
            await catch_up_with(made.keeper(), restless)
        assert restless.asked == 2


class Restless:
    """A directory that has yet another key whenever it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def roster(self, after: int | None) -> KeySuccession:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        return KeySuccession((signed(self.asked - 1),))


# The whole way


async def test_daemons_follow_the_directory_to_its_new_key() -> None:
    async with bench(1) as made:  # its relay knows the old key alone, and goes on
        store = MemoryStore()
        keeper = made.keeper("before", store)
        await keeper._catch_up()
        first = keeper.newest
        assert first is not None
        await rotate(made, KEYS[0], KEYS[1])
        await made.sleep_until_epoch(first.epoch + 2)
        await rotate(made, KEYS[1], KEYS[2])
        await made.sleep_until_epoch(first.epoch + 4)
        keeper, trust = keeper_of(made, KEYS[0], store)
        await keeper.load()
        assert keeper.newest is not None
        assert keeper.newest.digest == first.digest
        await keeper._catch_up()
        assert keeper.newest.epoch >= first.epoch + 4
        assert len(keeper.newest.relays) == 1
        assert trust.key == KEYS[2].public()
        for pinned in (KEYS[0], KEYS[2]):  # after a restart, and with the new key in the configuration
            again, trust = keeper_of(made, pinned, store)
            await again.load()
            assert again.newest is not None
            assert again.newest.digest == keeper.newest.digest
            await again._catch_up()
        fresh, trust = keeper_of(made, KEYS[2], MemoryStore())
        await fresh._catch_up()
        assert fresh.newest is not None


async def test_without_a_hand_over_nobody_follows_and_who_changes_the_key_goes_on() -> None:
    async with bench(1) as made:
        store = MemoryStore()
        keeper = made.keeper("before", store)
        await keeper._catch_up()
        last = made.newest
        assert last is not None
        await rotate(made, KEYS[0], KEYS[1], signs=False)
        await made.sleep_until_epoch(last.epoch + 1)
        check_successor(made.roster(last.epoch + 1), last)
        with pytest.raises((PeerError, TransportError)):
            await keeper._catch_up()
        changed, _ = keeper_of(made, KEYS[1], store)
        await changed.load()
        assert changed.newest is None
        await changed._catch_up()
        assert changed.newest is not None
        assert made.newest is not None
        assert changed.newest.digest == made.newest.digest


def keeper_of(made: Bench, pinned: Seed, store: MemoryStore) -> tuple[RosterKeeper, Trust]:
    trust = Trust(NETWORK, pinned.public())
    return made.keeper_by(trust, store=store), trust


async def test_one_whose_new_key_never_came_into_use_is_void() -> None:
    store = MemoryStore()
    await hand_over(store, NETWORK, KEYS[0], KEYS[1], 3, signs=True)
    void = await load_succession(store, NETWORK, KEYS[0].public())
    assert (void.past, void.seeds, void.signed) == ((), (), ())
    await hand_over(store, NETWORK, KEYS[0], KEYS[2], 4, signs=True)
    found = await load_succession(store, NETWORK, KEYS[2].public())
    assert [handover.epoch for handover in found.past] == [4]
    assert len(found.after(KEYS[0].public())) == 1
    assert found.after(KEYS[1].public()) == ()


async def test_an_unsigned_change_ends_what_was_signed_before_it() -> None:
    store = MemoryStore()
    await hand_over(store, NETWORK, KEYS[0], KEYS[1], 3, signs=True)
    await hand_over(store, NETWORK, KEYS[1], KEYS[2], 4, signs=False)
    await hand_over(store, NETWORK, KEYS[2], KEYS[3], 5, signs=True)
    found = await load_succession(store, NETWORK, KEYS[3].public())
    assert len(found.past) == 3
    assert [seed.public() for seed in found.seeds] == [KEYS[2].public()]
    assert [len(found.after(key.public())) for key in KEYS] == [0, 0, 1, 0]
