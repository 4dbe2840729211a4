"""Rosters: signed by the directory, each relay by its own key, chained by hash."""

import msgspec
import pytest
from core_examples import (
    DIRECTORY,
    EPOCH,
    NETWORK,
    bit_flips,
    bytes32,
    counters,
    descriptor_of,
    parcel_key,
    properties,
    relay_id,
    roster_body,
    roster_of,
    seed,
    signed_descriptor,
    truncations,
)
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.authorities.authority_set import (
    MAX_AUTHORITIES,
    MAX_SET,
    Authorities,
    AuthorityContact,
)
from hushcast_protocol.authorities.chain import MAX_TURNS
from hushcast_protocol.authorities.directory_requests import (
    MAX_DIRECTORY_ANSWER,
    MAX_DIRECTORY_REQUEST,
    HeadAnswer,
    RegisterRelay,
    Rosters,
)
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.heads import MAX_HEAD, MAX_SIGNATURE, CertifiedHead, IndexedSignature
from hushcast_protocol.authorities.listing import MAX_WAITING
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.authorities.seat_admission import MAX_WORK, SeatAdmission
from hushcast_protocol.base.addresses import MAX_ADDRESS, onion_address
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.roster import (
    GENESIS,
    MAX_DESCRIPTOR,
    MAX_RELAYS,
    MAX_ROSTER,
    Descriptor,
    Network,
    Roster,
    RosterBody,
    RosterEntry,
    check_descriptor,
    check_roster,
    check_successor,
    descriptor_digest,
    guide_digest,
    inner_digest,
    read_descriptor,
    roster_digest,
    sign_descriptor,
    sign_roster,
)
from hushcast_protocol.base.sharding import Sharding, sharding_for
from hushcast_protocol.base.versions.wires import WireRange
from hushcast_protocol.base.wire import encode

KEY = DIRECTORY.public()


def descriptor(**changed: object) -> Descriptor:
    good = descriptor_of(0)
    fields = {name: getattr(good, name) for name in good.__struct_fields__}
    return Descriptor(**(fields | changed))


def body(**changed: object) -> RosterBody:
    good = roster_body(3)
    fields = {name: getattr(good, name) for name in good.__struct_fields__}
    return RosterBody(**(fields | changed))


def checked(roster: RosterBody) -> Roster:
    return check_roster(sign_roster(DIRECTORY, roster), KEY, NETWORK)


# Descriptors


def test_a_descriptor_is_read_back():
    assert check_descriptor(signed_descriptor(0), NETWORK) == descriptor_of(0)


@properties(40)
@given(st.integers(0, 50), counters, counters, bytes32)
def test_any_honest_descriptor_is_read_back(number, issued, expires, service):
    relay_seed = seed(1000 + number)
    key = parcel_key(number).public()
    made = Descriptor(NETWORK.id, relay_seed.public(), onion_address(service), key, issued, expires, 10)
    assert check_descriptor(sign_descriptor(relay_seed, made), NETWORK) == made


def test_no_damaged_descriptor_is_accepted():
    good = signed_descriptor(0)
    for damaged in (*bit_flips(good.body), *truncations(good.body), good.body + b"\x00"):
        with pytest.raises(PeerError):
            check_descriptor(Signed(damaged, good.signature), NETWORK)
    for damaged in bit_flips(good.signature):
        with pytest.raises(AuthenticationError):
            check_descriptor(Signed(good.body, damaged), NETWORK)


LOW_ORDER = [bytes(32), b"\x01" + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f"]


@pytest.mark.parametrize("relay", LOW_ORDER, ids=["zero", "one", "minus one"])
def test_a_relay_that_is_no_key_is_refused(relay):
    """Such keys have signatures that anybody can make; all zero stands for the origin."""
    encoded = encode(descriptor(relay=relay))
    for signature in (bytes(64), b"\x01" + bytes(63), relay + bytes(32)):
        with pytest.raises(PeerError):
            check_descriptor(Signed(encoded, signature), NETWORK)


@pytest.mark.parametrize("key", LOW_ORDER[:2], ids=["zero", "one"])
def test_a_parcel_key_that_nothing_can_be_sealed_to_is_refused(key):
    """One relay that lists such a key would stop every subscriber from sealing any tree."""
    with pytest.raises(PeerError):
        check_descriptor(sign_descriptor(seed(1000), descriptor(parcel_key=key)), NETWORK)


@pytest.mark.parametrize(
    "changed",
    [
        {"network": bytes(32)},
        {"address": ""},
        {"address": "example.org:80"},
        {"address": "8.8.8.8:53"},
        {"relay": relay_id(1)},
    ],
    ids=["network", "no address", "host name", "clear net", "relay"],
)
def test_a_descriptor_wrong_in_a_field_is_refused(changed):
    with pytest.raises(PeerError):
        check_descriptor(sign_descriptor(seed(1000), descriptor(**changed)), NETWORK)


def test_a_signature_for_another_purpose_is_refused():
    for purpose in set(SignaturePurpose) - {SignaturePurpose.DESCRIPTOR}:
        with pytest.raises(AuthenticationError):
            check_descriptor(sign(seed(1000), purpose, descriptor_of(0)), NETWORK)


def test_the_largest_descriptors_and_rosters_fit_their_limits():
    largest = descriptor(address="a" * MAX_ADDRESS, issued=2**48 - 1, expires=2**48 - 1)
    signed = sign_descriptor(seed(1000), largest)
    assert len(signed.body) <= MAX_DESCRIPTOR
    work = NameWork(Beacon(2**48 - 1, bytes(32)), bytes(8))
    assert len(encode(RegisterRelay(signed, work))) <= MAX_DIRECTORY_REQUEST
    full = body(entries=(RosterEntry(signed, 2**48 - 1),) * MAX_RELAYS)
    roster = sign_roster(DIRECTORY, full)
    assert len(roster.body) <= MAX_ROSTER
    assert len(encode(Rosters(roster, True))) <= MAX_DIRECTORY_ANSWER
    heads = (
        CertifiedHead(bytes(MAX_HEAD), (IndexedSignature(8, bytes(MAX_SIGNATURE)),) * MAX_AUTHORITIES),
    ) * (MAX_TURNS + 2)
    members = tuple(
        AuthorityContact(key, onion_address(key)) for key in (bytes([n]) * 32 for n in range(1, 10))
    )
    authorities = Authorities.of(members, 9, SeatAdmission(MAX_RELAYS, 1000, True, MAX_WORK))
    assert len(encode(authorities)) <= MAX_SET
    agreed = HeadAnswer(heads, full.entries, ((relay_id(0), 2**48 - 1),) * MAX_WAITING, False, None)
    assert len(encode(agreed)) <= MAX_DIRECTORY_ANSWER


# Rosters


def test_a_roster_is_read_back():
    roster = checked(roster_body(3))
    assert list(roster.relays) == [relay_id(number) for number in range(3)]
    relay = roster.relays[relay_id(1)]
    assert (relay.id, relay.address, relay.parcel_key, relay.since) == (
        relay_id(1),
        descriptor_of(1).address,
        descriptor_of(1).parcel_key,
        EPOCH,
    )
    assert (roster.network, roster.epoch, roster.previous) == (NETWORK, EPOCH, GENESIS)


def test_an_empty_roster_is_read_back():
    assert checked(roster_body(0)).relays == {}


@pytest.mark.slow
def test_no_damaged_roster_is_accepted():
    good = sign_roster(DIRECTORY, roster_body(2))
    for damaged in (*bit_flips(good.body), *truncations(good.body), good.body + b"\x00"):
        with pytest.raises(AuthenticationError):
            check_roster(Signed(damaged, good.signature), KEY, NETWORK)
    for damaged in bit_flips(good.signature):
        with pytest.raises(AuthenticationError):
            check_roster(Signed(good.body, damaged), KEY, NETWORK)


@pytest.mark.slow
def test_a_directory_cannot_alter_what_relays_signed():
    """Any flipped bit, signed anew by the directory, is refused or leaves the descriptor as it was."""
    good = encode(body(entries=(RosterEntry(signed_descriptor(0), EPOCH),)))
    for damaged in bit_flips(good):
        try:
            roster = check_roster(Signed(damaged, sign_raw(damaged)), KEY, NETWORK)
        except PeerError:
            continue
        assert [(relay.id, relay.address, relay.parcel_key) for relay in roster.relays.values()] == [
            (relay_id(0), descriptor_of(0).address, descriptor_of(0).parcel_key)
        ]


def sign_raw(data: bytes) -> bytes:
    return DIRECTORY.signing_key().sign(SignaturePurpose.ROSTER.value + data).signature


def test_another_directory_is_refused():
    with pytest.raises(AuthenticationError):
        check_roster(sign_roster(seed(3), roster_body(1)), KEY, NETWORK)


@pytest.mark.parametrize(
    "network",
    [Network("other", "hardened", 60), Network("example", "paper", 60), Network("example", "hardened", 61)],
)
def test_another_network_is_refused(network):
    with pytest.raises(DecodeError, match="another network"):
        checked(body(network=network))


def test_a_relay_is_listed_once():
    entry = RosterEntry(signed_descriptor(0), EPOCH)
    with pytest.raises(DecodeError, match="twice"):
        checked(body(entries=(entry, entry)))


def test_a_relay_is_not_listed_since_the_future():
    with pytest.raises(DecodeError, match="to come"):
        checked(body(entries=(RosterEntry(signed_descriptor(0), EPOCH + 1),)))


def test_more_relays_than_a_mesh_bears_are_refused():
    entry = RosterEntry(Signed(b"", bytes(64)), 0)
    with pytest.raises(DecodeError):
        checked(body(entries=(entry,) * (MAX_RELAYS + 1)))


@pytest.mark.parametrize("seconds", [0, 4, 24 * 3600 + 1])
def test_epochs_of_unworkable_length_are_refused(seconds):
    with pytest.raises(PeerError):
        checked(body(network=Network("example", "hardened", seconds)))


def test_relays_are_origins_from_their_second_epoch():
    old, new = RosterEntry(signed_descriptor(0), EPOCH - 1), RosterEntry(signed_descriptor(1), EPOCH)
    assert checked(body(previous=b"p" * 32, entries=(old, new))).origins == [relay_id(0)]


def test_all_relays_of_the_first_roster_are_origins():
    assert roster_of(3).origins == [relay_id(number) for number in range(3)]


# The chain


def test_the_chain_is_followed():
    first = roster_of(2)
    second = checked(roster_body(2, epoch=EPOCH + 1, previous=first.digest))
    check_successor(first, None)
    check_successor(second, first)
    check_successor(second, None)
    later = checked(roster_body(2, epoch=EPOCH + 5, previous=second.digest))
    check_successor(later, second)


@pytest.mark.parametrize("case", ["fork", "gap", "same epoch", "earlier epoch", "itself", "genesis"])
def test_what_does_not_follow_is_refused(case):
    first = roster_of(2)
    second = checked(roster_body(2, epoch=EPOCH + 1, previous=first.digest))
    wrong = {
        "fork": checked(roster_body(1, epoch=EPOCH + 2, previous=first.digest)),
        "gap": checked(roster_body(2, epoch=EPOCH + 3, previous=b"?" * 32)),
        "same epoch": checked(roster_body(1, epoch=EPOCH + 1, previous=second.digest)),
        "earlier epoch": checked(roster_body(1, epoch=EPOCH, previous=second.digest)),
        "itself": second,
        "genesis": checked(roster_body(1, epoch=EPOCH + 2)),
    }
    with pytest.raises(AuthenticationError, match="forked"):
        check_successor(wrong[case], second)


def test_the_digest_covers_every_bit():
    good = sign_roster(DIRECTORY, roster_body(1))
    digests = {roster_digest(damaged) for damaged in bit_flips(good.body)}
    assert len(digests) == len(good.body) * 8
    assert checked(roster_body(1)).digest not in digests


def test_the_digest_does_not_change():
    assert roster_of(2).digest.hex() == "f854df4b72403014cb6ff781ec94da495d11d031ffac0e00064d69fd0f17fc6d"


def test_a_descriptors_digest_shows_its_address_without_the_rest():
    body = signed_descriptor(1).body
    address = descriptor_of(1).address
    assert descriptor_digest(body) == guide_digest(address, inner_digest(body))
    assert descriptor_digest(body) != guide_digest(descriptor_of(2).address, inner_digest(body))
    assert descriptor_digest(body) != descriptor_digest(signed_descriptor(2).body)
    with pytest.raises(DecodeError):
        descriptor_digest(b"nothing of the kind")


def test_the_shards_of_a_day_are_the_newest_up_to_it():
    today, tomorrow = (Sharding(day, bytes(32), 2, bytes(32), bytes(32), 90) for day in (7, 8))
    whole = Sharding(9, bytes(32), 0, bytes(32), bytes(32), 0)
    assert sharding_for((), 7) is None
    assert sharding_for((today, tomorrow), 6) is None
    assert sharding_for((tomorrow, today), 7) == today
    assert [sharding_for((today, tomorrow), day) for day in (8, 9)] == [tomorrow, tomorrow]
    assert [sharding_for((tomorrow, whole), day) for day in (8, 9, 10)] == [tomorrow, None, None]


def test_who_does_not_say_what_it_speaks_speaks_the_first_wire() -> None:
    shorter = msgspec.msgpack.decode(encode(descriptor()))[:-1]
    assert read_descriptor(msgspec.msgpack.encode(shorter)).speaks == WireRange(1, 1)
    for lowest, highest in ((0, 1), (2, 1), (1, 2**16)):
        wrong = [*shorter, ["wires", lowest, highest]]
        with pytest.raises(DecodeError):
            read_descriptor(msgspec.msgpack.encode(wrong))
