"""Hostile bytes: whatever is read from the network ends in a value, a `PeerError` or a `Refusal`."""

import msgspec
import pytest
from core_examples import (
    DAY,
    DIRECTORY,
    EPOCH,
    NETWORK,
    READERS,
    answers,
    bit_flips,
    bytes64,
    host_install,
    open_parcels,
    overlay_frames,
    packed,
    parcel_to,
    plain_messages,
    proofs,
    properties,
    relay_id,
    requests,
    roster_body,
    seed,
    signed_descriptor,
    small_message,
    some_address,
    truncations,
)
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.authorities import directory_requests as asked
from hushcast_protocol.authorities import head_inside, heads
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.base import key_handovers, roster
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.link import links
from hushcast_protocol.base.versions.wires import FIRST, spoken
from hushcast_protocol.base.wire import Bytes16, Counter, Wire, decoder, encode
from hushcast_protocol.overlay import frames, leases, parcels

DESCRIPTOR = roster.Descriptor(NETWORK.id, relay_id(0), some_address(), bytes([9]) * 32, 1, 2, 0)
WORD = b"w" * 16
HANDED = key_handovers.sign_handover(
    DIRECTORY, key_handovers.KeyHandover(NETWORK.id, DIRECTORY.public(), seed(6).public(), EPOCH)
)
PROOF = links.IdentityProof(
    seed(5).public(),
    signature(seed(5), SignaturePurpose.LINK_INITIATOR, b"x"),
    roster.RosterView(3, bytes(32)),
    spoken(),
)
HEAD = heads.CertifiedHead(
    b"head", (heads.IndexedSignature(0, bytes(64)), heads.IndexedSignature(8, bytes(64)))
)
WORK = NameWork(head_inside.Beacon(7, bytes(32)), b"8 bytes!")

EXAMPLES: list[tuple[str, object]] = [
    ("message", frames.Forward(small_message((b"t" * 16, b"u" * 16)))),
    ("message", frames.Drop(small_message(), ProofOfWork(1, b"12345678"))),
    ("overlay", frames.Ack(7, ())),
    ("overlay", frames.Ack(7, (1, 70_000))),
    ("overlay", frames.Ping()),
    ("overlay", frames.Receipt("quota")),
    ("overlay", frames.ParcelFrame(300, b"sealed" * 9, None)),
    ("overlay", frames.ParcelAnswer(1, None, ())),
    ("overlay", frames.ParcelAnswer(70_000, "withdrawn", (b"1" * 16, b"2" * 16))),
    ("request", asked.RegisterRelay(signed_descriptor(0))),
    ("request", asked.Fetch(EPOCH)),
    ("request", asked.Fetch(None)),
    ("answer", asked.RelayRegistered()),
    ("answer", asked.Rosters(roster.sign_roster(DIRECTORY, roster_body(2)), True)),
    ("answer", asked.Rosters(None, False)),
    ("request", asked.RegisterRelay(signed_descriptor(0), WORK)),
    ("answer", asked.HeadAnswer((), (), (), False, None)),
    ("answer", asked.HeadAnswer((HEAD, HEAD), roster_body(2).entries, ((relay_id(3), 7),), True, None)),
    ("answer", asked.KeySuccession((HANDED, HANDED))),
    ("answer", asked.DirectoryRefusal("quota")),
    ("proof", PROOF),
    ("proof", links.Anonymous(roster.RosterView(3, bytes(32)))),
    ("proof", links.Anonymous(None)),
    ("descriptor", DESCRIPTOR),
    ("roster", roster_body(2)),
    ("parcel", parcel_to(0, host_install(), parcels.OnwardParcel(relay_id(1), b"below" * 5))),
    (
        "parcel",
        parcel_to(
            0, leases.Install(WORD, DAY, leases.ToRelay(relay_id(1)), (b"e" * 16, b"f" * 16), WORD, WORD)
        ),
    ),
    ("parcel", parcel_to(0, leases.Withdraw(WORD))),
    (
        "parcel",
        msgspec.structs.replace(parcel_to(0, leases.Withdraw(WORD)), stamp=ProofOfWork(1, b"12345678")),
    ),
]
NAMES = [f"{reader}-{type(value).__name__}-{index}" for index, (reader, value) in enumerate(EXAMPLES)]
each_example = pytest.mark.parametrize(("reader", "value"), EXAMPLES, ids=NAMES)
each_reader = pytest.mark.parametrize("reader", READERS)


def read(reader: str, data: bytes) -> object | None:
    """Read as a daemon would; `None` stands for a refusal. Any other exception fails the test."""
    try:
        return READERS[reader](data)
    except (PeerError, Refusal):
        return None


@each_example
def test_every_example_is_read(reader, value):
    assert read(reader, encode(value)) is not None


@each_example
def test_every_truncation_is_refused(reader, value):
    for prefix in truncations(encode(value)):
        assert read(reader, prefix) is None


@pytest.mark.slow
@each_example
def test_every_flipped_bit_ends_in_a_value_or_a_refusal(reader, value):
    for damaged in bit_flips(encode(value)):
        read(reader, damaged)


@each_example
def test_bytes_behind_the_end_are_refused(reader, value):
    assert read(reader, encode(value) + b"\x00") is None
    assert read(reader, encode(value) * 2) is None


@each_example
def test_more_and_fewer_fields_are_refused(reader, value):
    fields = list(msgspec.msgpack.decode(encode(value)))
    assert read(reader, encode([*fields, 0])) is None
    assert read(reader, encode([*fields, None])) is None
    if len(fields) > 1:
        fewer = read(reader, encode(fields[:-1]))
        # A parcel has no stamp inside from before there were any, and a relay shows no work, or first wire.
        later = {"parcel": {"stamp": None}, "RegisterRelay": {"work": None}, "descriptor": {"speaks": FIRST}}
        left_out = later.get(reader) or later.get(type(value).__name__)
        assert fewer == (msgspec.structs.replace(value, **left_out) if left_out else None)


@each_example
@pytest.mark.parametrize("tag", ["", "unknown", "descriptor/2", "parcel/1", "roster/2", 1, None, []])
def test_other_types_and_versions_are_refused(reader, value, tag):
    _, *fields = msgspec.msgpack.decode(encode(value))
    assert read(reader, encode([tag, *fields])) is None


@each_example
def test_every_field_of_another_type_is_refused(reader, value):
    fields = list(msgspec.msgpack.decode(encode(value)))
    for index in range(len(fields)):
        for other in ({}, 1.5, -1, 2**63, b"", [[]]):
            changed = [*fields[:index], other, *fields[index + 1 :]]
            if other == b"" and reader == "overlay":
                continue  # an empty parcel is well formed; it opens under no key
            assert read(reader, encode(changed)) is None


@each_reader
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\x92\xa7forward", b"\xdc\x00\x01"])
@pytest.mark.parametrize("before", [b"", b"\x92\xa7refused", b"\x92\xa7forward", b"\x97\xa8parcel/1"])
def test_deep_nesting_is_refused(reader, opening, before):
    assert read(reader, before + opening * 100_000) is None
    assert read(reader, before + opening * 20) is None


@each_reader
@pytest.mark.parametrize("bomb", ["dd", "df", "c6", "db", "c9"])
@pytest.mark.parametrize("before", [b"", b"\x92\xa7forward", b"\x93\xa6parcel\x01", b"\x92\xa5fetch"])
def test_stated_lengths_allocate_nothing(reader, bomb, before):
    for size in ("ffffffff", "7fffffff", "00ffffff"):
        assert read(reader, before + bytes.fromhex(bomb + size)) is None


@each_reader
def test_text_that_is_not_utf8_is_refused(reader):
    for start in (b"\x92", b"\x97", b""):
        assert read(reader, start + b"\xa7\xff\xfe\xfd\xc0\xed\xa0\x80") is None
    assert read(reader, b"\x92\xa7refused\xa2\xff\xff") is None


def test_addresses_that_are_not_utf8_are_refused():
    good = encode(DESCRIPTOR)
    position = good.index(some_address().encode())
    assert read("descriptor", good[:position] + b"\xff" + good[position + 1 :]) is None


@each_reader
def test_nothing_at_all_is_refused(reader):
    assert read(reader, b"") is None


LIMITS = {
    "overlay": frames.MAX_OVERLAY_FRAME,
    "message": frames.MAX_OVERLAY_FRAME,
    "request": asked.MAX_DIRECTORY_REQUEST,
    "answer": asked.MAX_DIRECTORY_ANSWER,
    "proof": links.MAX_HANDSHAKE_FRAME,
    "descriptor": roster.MAX_DESCRIPTOR,
    "roster": roster.MAX_ROSTER,
    "parcel": parcels.MAX_PARCEL,
}


@each_reader
def test_oversized_bytes_are_refused_before_they_are_decoded(reader):
    with pytest.raises(PeerError, match="over the limit"):
        READERS[reader](b"\xc1" * (LIMITS[reader] + 1))


@each_reader
@properties(150)
@given(st.binary(max_size=200))
def test_random_bytes_end_in_a_refusal(reader, data):
    assert read(reader, data) is None or reader in ("overlay", "request", "answer", "proof")


@pytest.mark.slow
@each_reader
@properties(100)
@given(packed)
def test_random_msgpack_ends_in_a_value_or_a_refusal(reader, value):
    read(reader, msgspec.msgpack.encode(value))


@each_reader
@properties(60)
@given(st.data())
def test_spliced_examples_end_in_a_value_or_a_refusal(reader, data):
    """Pieces of two examples, put together anywhere, are the nearest to a valid encoding."""
    one, other = (
        encode(data.draw(st.sampled_from([value for _, value in EXAMPLES]), label="example")) for _ in "ab"
    )
    left = data.draw(st.integers(0, len(one)), label="left")
    right = data.draw(st.integers(0, len(other)), label="right")
    read(reader, one[:left] + other[right:])


ROUND_TRIPS = {
    "overlay": overlay_frames,
    "request": requests,
    "answer": answers,
    "proof": proofs,
    "parcel": open_parcels,
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", ROUND_TRIPS)
@properties(100)
@given(st.data())
def test_what_is_encoded_is_read_back(reader, data):
    value = data.draw(ROUND_TRIPS[reader])
    assert READERS[reader](encode(value)) == value


@pytest.mark.parametrize("reader", ROUND_TRIPS)
@properties(60)
@given(st.data())
def test_random_values_survive_no_truncation(reader, data):
    encoded = encode(data.draw(ROUND_TRIPS[reader]))
    assert read(reader, encoded[: data.draw(st.integers(0, len(encoded) - 1))]) is None


@pytest.mark.slow
@pytest.mark.parametrize("reader", ROUND_TRIPS)
@properties(100)
@given(st.data())
def test_random_values_with_a_random_bit_flipped_are_read_or_refused(reader, data):
    encoded = bytearray(encode(data.draw(ROUND_TRIPS[reader])))
    bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    read(reader, bytes(encoded))


@properties(60)
@given(plain_messages)
def test_messages_with_a_forged_body_are_refused(message):
    assert read("message", encode(frames.Forward(message))) is None


@properties(60)
@given(st.binary(max_size=300), bytes64)
def test_forged_signatures_are_refused(body, given_signature):
    forged = Signed(body, given_signature)
    with pytest.raises(PeerError):
        roster.check_descriptor(forged, NETWORK)
    with pytest.raises(PeerError):
        roster.check_roster(forged, DIRECTORY.public(), NETWORK)


class Sample(Wire, frozen=True, tag="sample"):
    name: Bytes16
    number: Counter


decode_sample = decoder(Sample, "sample", 64)


@pytest.mark.parametrize("number", [-1, 2**48, 2**64 - 1, True, 1.0, "1", None])
def test_counters_are_whole_numbers_of_48_bits(number):
    with pytest.raises(DecodeError):
        decode_sample(msgspec.msgpack.encode(["sample", bytes(16), number]))


def test_counters_reach_their_limits():
    for number in (0, 2**48 - 1):
        assert decode_sample(encode(Sample(bytes(16), number))).number == number


@pytest.mark.parametrize("size", [0, 15, 17, 32])
def test_byte_strings_have_their_exact_size(size):
    with pytest.raises(DecodeError):
        decode_sample(msgspec.msgpack.encode(["sample", bytes(size), 1]))


def test_maps_do_not_stand_for_arrays():
    with pytest.raises(DecodeError):
        decode_sample(msgspec.msgpack.encode({"type": "sample", "name": bytes(16), "number": 1}))


@pytest.mark.parametrize(
    "data", [encode(["a secret\n" * 20, 1]), encode(["receipt", "a secret\n" * 20])], ids=["tag", "literal"]
)
def test_errors_carry_nothing_that_the_peer_wrote(data):
    """`errors`: no error carries a topic, payload, key or address; a peer could write one, or a log line."""
    with pytest.raises(DecodeError) as refused:
        frames.decode_overlay(data)
    assert "secret" not in str(refused.value)


def test_errors_are_short_whatever_the_peer_wrote():
    with pytest.raises(DecodeError) as refused:
        frames.decode_overlay(encode(["x" * 100_000]))
    assert len(str(refused.value)) < 200


def test_wire_values_are_immutable():
    with pytest.raises(AttributeError):
        PROOF.identity = bytes(32)
