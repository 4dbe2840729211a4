"""Parcels: libsodium's sealed box, for one relay, one time and once."""

import nacl.public
import pytest
from core_examples import (
    EPOCH,
    NETWORK,
    bit_flips,
    host_install,
    open_parcels,
    parcel_key,
    parcel_to,
    properties,
    relay_id,
    stream,
    truncations,
)
from drilled_wire import BOTH, DRILL, mix_releases, release
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay import parcels
from hushcast_protocol.overlay.leases import Withdraw
from hushcast_protocol.overlay.parcels import (
    MAX_FANOUT,
    MAX_PARCEL,
    OnwardParcel,
    Parcel,
    ParcelMemory,
    instructed,
    open_parcel,
    price,
    seal_parcel,
)

PARCEL = parcel_to(0, host_install(), OnwardParcel(relay_id(1), b"below" * 9))
SEALED = seal_parcel(PARCEL, parcel_key(0).public(), stream())


def opened(sealed: bytes, number: int = 0, epoch: int = EPOCH) -> Parcel:
    return open_parcel(sealed, parcel_key(number), NETWORK.id, relay_id(number), epoch)


@properties(60)
@given(open_parcels, st.integers(0, 1000))
def test_what_is_sealed_is_opened_here_and_by_libsodium(parcel, number):
    sealed = seal_parcel(parcel, parcel_key(0).public(), stream(number))
    assert opened(sealed) == parcel
    assert nacl.public.SealedBox(parcel_key(0).private_key()).decrypt(sealed) == encode(parcel)


def test_what_libsodium_seals_is_opened():
    recipient = nacl.public.PublicKey(parcel_key(0).public())
    assert opened(nacl.public.SealedBox(recipient).encrypt(encode(PARCEL))) == PARCEL


def test_seals_replay_from_a_seed_and_differ_otherwise():
    public = parcel_key(0).public()
    assert seal_parcel(PARCEL, public, stream()) == SEALED
    assert seal_parcel(PARCEL, public, stream(1))[32:] != SEALED[32:]


def test_it_is_sealed_in_the_wire_of_the_network_and_opened_in_any_that_is_spoken(monkeypatch):
    """Whoever sealed it before a change, and a relay that opens it after."""
    mix_releases(monkeypatch)
    public = parcel_key(0).public()
    other = seal_parcel(PARCEL, public, stream(), DRILL)
    assert len(other) == len(SEALED) + 1, "a field more"
    with release(BOTH):
        assert opened(SEALED) == opened(other) == PARCEL
    assert opened(SEALED) == PARCEL
    with pytest.raises(DecodeError):
        opened(other)  # who does not speak that wire: it has no seat in it


@pytest.mark.slow
def test_no_flipped_bit_opens():
    for damaged in bit_flips(SEALED):
        with pytest.raises(AuthenticationError):
            opened(damaged)


def test_no_truncation_opens():
    for prefix in truncations(SEALED):
        with pytest.raises(PeerError):
            opened(prefix)


def test_another_relay_does_not_open():
    with pytest.raises(AuthenticationError):
        opened(SEALED, number=1)


def test_a_parcel_sealed_anew_for_another_relay_is_refused():
    """Whoever opens a parcel could seal the same words to somebody else."""
    resealed = seal_parcel(PARCEL, parcel_key(1).public(), stream())
    with pytest.raises(AuthenticationError, match="another relay"):
        opened(resealed, number=1)


def test_another_network_is_refused():
    with pytest.raises(AuthenticationError, match="network"):
        open_parcel(SEALED, parcel_key(0), bytes(32), relay_id(0), EPOCH)


@pytest.mark.parametrize(("late", "taken"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_parcels_are_taken_within_an_epoch(late, taken):
    if taken:
        assert opened(SEALED, epoch=EPOCH + late) == PARCEL
    else:
        with pytest.raises(Refusal, match="day"):
            opened(SEALED, epoch=EPOCH + late)


@pytest.mark.parametrize(
    "plain", [b"", b"\x00", encode(Withdraw(b"w" * 16)), encode(["parcel/2"]), b"\x91" * 1000]
)
def test_other_things_sealed_to_a_relay_are_refused(plain):
    sealed = nacl.public.SealedBox(nacl.public.PublicKey(parcel_key(0).public())).encrypt(plain)
    with pytest.raises(DecodeError):
        opened(sealed)


def test_size_is_limited_at_both_ends():
    large = OnwardParcel(relay_id(1), bytes(MAX_PARCEL - 100))
    with pytest.raises(Refusal, match="deeper tree"):
        seal_parcel(parcel_to(0, Withdraw(b"w" * 16), large), parcel_key(0).public(), stream())
    with pytest.raises(AuthenticationError, match="limit"):
        opened(bytes(MAX_PARCEL + 1))


def test_the_largest_parcel_is_taken():
    empty = seal_parcel(
        parcel_to(0, Withdraw(b"w" * 16), OnwardParcel(relay_id(1), bytes(2**17))),
        parcel_key(0).public(),
        stream(),
    )
    largest = OnwardParcel(relay_id(1), bytes(MAX_PARCEL - (len(empty) - 2**17)))
    sealed = seal_parcel(parcel_to(0, Withdraw(b"w" * 16), largest), parcel_key(0).public(), stream())
    assert len(sealed) == MAX_PARCEL
    assert opened(sealed).onward == (largest,)


def test_the_number_of_parcels_to_pass_on_is_limited():
    many = [OnwardParcel(number.to_bytes(32, "big"), b"") for number in range(MAX_FANOUT + 1)]
    for onward in (many, many[1:]):
        sealed = seal_parcel(parcel_to(0, Withdraw(b"w" * 16), *onward), parcel_key(0).public(), stream())
        if onward is many:
            with pytest.raises(DecodeError):
                opened(sealed)
        else:
            assert opened(sealed).onward == tuple(onward)


@pytest.mark.parametrize("below", [(1, 1), (1, 2, 1), (0,), (1, 0)])
def test_a_parcel_passes_on_once_to_each_of_others(below):
    """No tree has more: it would be work that one frame causes over and over at the same relay."""
    onward = [OnwardParcel(relay_id(number), b"%d" % place) for place, number in enumerate(below)]
    sealed = seal_parcel(parcel_to(0, Withdraw(b"w" * 16), *onward), parcel_key(0).public(), stream())
    with pytest.raises(DecodeError, match="twice"):
        opened(sealed)


def test_half_of_the_memory_is_for_parcels_with_a_stamp(monkeypatch):
    monkeypatch.setattr(parcels, "MAX_PARCELS_REMEMBERED", 4)
    memory = ParcelMemory()
    for number in range(2):
        memory.note(b"unpaid %d" % number, EPOCH, False)
    assert memory.fullness() == 0.5
    with pytest.raises(Refusal, match="quota"):
        memory.note(b"unpaid", EPOCH, False)
    for number in range(2):
        memory.note(b"paid %d" % number, EPOCH, True)
    with pytest.raises(Refusal, match="quota"):
        memory.note(b"paid", EPOCH, True)
    assert len(memory.forget(EPOCH + 3)) == 4
    memory.note(b"later", EPOCH + 3, False)


def test_the_price_is_for_the_instruction_and_what_it_takes():
    one = host_install(elements=(b"e" * 16,))
    many = host_install(elements=tuple(bytes([number]) * 16 for number in range(33)))
    assert [price(one, bits) for bits in (0, 10, 16, 19)] == [0, 10, 16, 16]
    assert [price(many, bits) for bits in (0, 10, 16, 19)] == [0, 11, 17, 17]
    assert price(Withdraw(b"w" * 16), 12) == 12
    assert len({instructed(one), instructed(many), instructed(Withdraw(b"w" * 16))}) == 3


def test_a_low_order_ephemeral_key_opens_nothing():
    for point in (bytes(32), b"\x01" + bytes(31)):
        with pytest.raises(AuthenticationError):
            opened(point + SEALED[32:])


def test_a_parcel_works_once():
    memory = ParcelMemory()
    memory.note(SEALED, EPOCH, True)
    with pytest.raises(AuthenticationError, match="before"):
        memory.note(SEALED, EPOCH, True)
    assert len(memory) == 1


def test_a_parcel_is_remembered_for_as_long_as_it_is_taken():
    for early in (-1, 0, 1):
        memory = ParcelMemory()
        memory.note(SEALED, EPOCH + early, True)
        for epoch in range(EPOCH + early, EPOCH + 5):
            memory.forget(epoch)
            try:
                opened(SEALED, epoch=epoch)
            except Refusal:
                continue
            with pytest.raises(AuthenticationError):
                memory.note(SEALED, epoch, True)
        assert memory.forget(EPOCH + early + 3) or not len(memory)
        assert len(memory) == 0


def test_memory_survives_a_restart():
    name, last = ParcelMemory().note(SEALED, EPOCH, True)
    memory = ParcelMemory()
    memory.restore(name, last)
    with pytest.raises(AuthenticationError):
        memory.note(SEALED, EPOCH, True)


def test_memory_is_bounded_and_never_forgets_early(monkeypatch):
    monkeypatch.setattr(parcels, "MAX_PARCELS_REMEMBERED", 2)
    memory = ParcelMemory()
    memory.note(b"one", EPOCH, True)
    memory.note(b"two", EPOCH + 1, True)
    with pytest.raises(Refusal, match="quota"):
        memory.note(b"three", EPOCH + 2, True)
    with pytest.raises(AuthenticationError):
        memory.note(b"one", EPOCH + 2, True)
    with pytest.raises(Refusal, match="quota"):
        memory.note(b"three", EPOCH + 3, True)
    assert len(memory.forget(EPOCH + 3)) == 1, "whoever forgets it deletes it, too"
    memory.note(b"three", EPOCH + 3, True)
    assert len(memory) == 2


def test_a_sealed_parcel_does_not_change():
    sealed = seal_parcel(
        parcel_to(0, Withdraw(b"w" * 16)), parcel_key(0).public(), lambda size: bytes(range(size))
    )
    assert opened(sealed).instruction == Withdraw(b"w" * 16)
    assert sealed.hex() == (
        "8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285fb378259659fadf68"
        "c86968167183a6a7ca96a73f29b6f237d8e7a459ff9b9a3489a98e5a2670fe8075614be05d3a8e79"
        "b00453e5a8847512702e89eaa2c847ff872947aa8e19d84ef0053983ad43200d0f911c50d006f08e"
        "25f018e63b2cbf5b59ae9ef6435a723e48de672eff146c118ba8d4f97702b60816cf5e7868732042"
        "4fff3785ce5b5ed084078daef63660f33c0a"
    )
