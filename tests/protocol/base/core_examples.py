"""Examples of everything that crosses the wire, ways to damage them, and strategies for random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import get_args

import nacl.public
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from hushcast_protocol.authorities import directory_requests as asked
from hushcast_protocol.authorities import head_inside, heads
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.base import roster
from hushcast_protocol.base.addresses import Address, memory_address, onion_address
from hushcast_protocol.base.crypto import proof_of_work
from hushcast_protocol.base.crypto.secrets import LeaseSecret, ParcelKey, Randomness, Seed, TopicKey
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.link import links
from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.versions.wires import WireRange
from hushcast_protocol.base.wire import decoder
from hushcast_protocol.content import bodies, messages
from hushcast_protocol.content.messages import TRAIL_SIZE
from hushcast_protocol.overlay import box_frames as boxes
from hushcast_protocol.overlay import frames, keeper_frames, leases, parcels
from hushcast_protocol.overlay.host_cards import HostCard, make_host_card
from hushcast_protocol.shards import shard_requests as shards
from hushcast_protocol.shards.guides import piece_bits

CALENDAR = Calendar(60)
DAY = 1000
NOW = CALENDAR.day_start(DAY) + CALENDAR.day_seconds / 2  # noon: one day is open
EPOCH = CALENDAR.epoch(NOW)
FILTER_KEY = bytes(range(32))


def properties(examples: int) -> settings:
    """Settings of a property test: the same examples on every run, no deadline on a shared machine."""
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def stream(number: int = 0) -> Randomness:
    """A seeded stream of bytes, in place of `os.urandom`."""
    return random.Random(number).randbytes


@cache
def seed(number: int) -> Seed:
    return Seed(number.to_bytes(32, "big"))


@cache
def relay_id(number: int) -> bytes:
    """Identity key of relay `number`, 0 and up."""
    return seed(1000 + number).public()


@cache
def parcel_key(number: int) -> ParcelKey:
    return ParcelKey((2000 + number).to_bytes(32, "big"))


NETWORK = roster.Network("example", "hardened", 60)
DIRECTORY = seed(1)
BOX = seed(2)
TOPIC_KEY = TopicKey(b"k" * 32)
LEASE_SECRET = LeaseSecret(b"l" * 32)


def descriptor_of(number: int) -> roster.Descriptor:
    relay = relay_id(number)
    return roster.Descriptor(
        NETWORK.id, relay, memory_address(relay), parcel_key(number).public(), 6_000_000, 7_000_000, 0
    )


def signed_descriptor(number: int) -> Signed:
    return roster.sign_descriptor(seed(1000 + number), descriptor_of(number))


def roster_body(
    count: int, epoch: int = EPOCH, previous: bytes = roster.GENESIS, since: int | None = None
) -> roster.RosterBody:
    first = epoch if since is None else since
    entries = tuple(roster.RosterEntry(signed_descriptor(number), first) for number in range(count))
    return roster.RosterBody(NETWORK, epoch, previous, entries)


def roster_of(count: int) -> roster.Roster:
    signed = roster.sign_roster(DIRECTORY, roster_body(count))
    return roster.check_roster(signed, DIRECTORY.public(), NETWORK)


def some_address(service: Seed = BOX) -> Address:
    return onion_address(service.public())


MARK, BYPASS = b"m" * 16, b"b" * 16
HOST = 90  # whom `host_install` sends to, another relay than all those of small rosters


@cache
def host_card(number: int) -> HostCard:
    """The card of relay `number`."""
    service = seed(3000 + number)
    return make_host_card(seed(1000 + number), service, memory_address(service.public()))


def host_install(
    word: bytes = b"w" * 16, elements: tuple[bytes, ...] = (b"e" * 16,), day: int = DAY
) -> leases.Install:
    return leases.Install(leases.lease_id(word), day, leases.ToHost(host_card(HOST)), elements, MARK, BYPASS)


def lease_book(relay: bytes, key: bytes = FILTER_KEY) -> leases.LeaseBook:
    return leases.LeaseBook(relay, CALENDAR, key)


def carry_out(
    book: leases.LeaseBook, instruction: leases.Instruction, now: float = NOW, paid: bool = True
) -> leases.Lease | tuple[bytes, int]:
    """Do with an instruction what a daemon does."""
    if isinstance(instruction, leases.Withdraw):
        return book.withdraw(instruction, now, paid)
    return book.install(instruction, now, paid)


def parcel_to(
    number: int, instruction: leases.Instruction, *onward: parcels.OnwardParcel, epoch: int = EPOCH
) -> parcels.Parcel:
    return parcels.Parcel(
        network=NETWORK.id,
        relay=relay_id(number),
        epoch=epoch,
        instruction=instruction,
        patience=20 if onward else 0,
        onward=onward,
        word=bytes([number]) * 16,
    )


def small_message(
    tokens: tuple[bytes, ...] = (b"t" * 16,), number: int = 0, day: int = DAY
) -> messages.Message:
    content = bodies.Content(b"payload %d" % number)
    return bodies.compose(TOPIC_KEY, day, tokens, content, stream(number))


def truncations(data: bytes) -> Iterator[bytes]:
    """Every proper prefix."""
    for size in range(len(data)):
        yield data[:size]


def bit_flips(data: bytes, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The data with each single bit flipped in turn, of the bytes `start` to `end`."""
    damaged = bytearray(data)
    for index in range(start, len(data) if end is None else end):
        for bit in range(8):
            damaged[index] ^= 1 << bit
            yield bytes(damaged)
            damaged[index] ^= 1 << bit


# Readers: how a daemon takes hostile bytes of each type, once past whatever seal or signature an adversary
# can make for itself.

_decode_proof = decoder(links.IdentityProof | links.Anonymous, "proof", links.MAX_HANDSHAKE_FRAME)


def read_descriptor(data: bytes) -> object:
    given = signature(seed(1000), SignaturePurpose.DESCRIPTOR, data)
    return roster.check_descriptor(Signed(data, given), NETWORK)


def read_roster(data: bytes) -> object:
    given = signature(DIRECTORY, SignaturePurpose.ROSTER, data)
    return roster.check_roster(Signed(data, given), DIRECTORY.public(), NETWORK)


def read_parcel(data: bytes) -> object:
    recipient = parcel_key(0)
    sealed = nacl.public.SealedBox(nacl.public.PublicKey(recipient.public())).encrypt(data)
    return parcels.open_parcel(sealed, recipient, NETWORK.id, relay_id(0), EPOCH)


def read_message(data: bytes) -> object:
    frame = frames.decode_overlay(data)
    if isinstance(frame, frames.Forward | frames.Drop):
        messages.check_message(frame.message)
    return frame


READERS = {
    "overlay": frames.decode_overlay,
    "message": read_message,
    "request": asked.decode_directory_request,
    "answer": asked.decode_directory_answer,
    "proof": _decode_proof,
    "descriptor": read_descriptor,
    "roster": read_roster,
    "parcel": read_parcel,
}


# Strategies for random values of every type.

bytes16 = st.binary(min_size=16, max_size=16)
bytes32 = st.binary(min_size=32, max_size=32)
bytes64 = st.binary(min_size=64, max_size=64)
counters = st.integers(0, 2**48 - 1)
printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=256)
signed = st.builds(Signed, st.binary(max_size=64), bytes64)
elements = st.lists(bytes16, min_size=1, max_size=5).map(tuple)
views = st.none() | st.builds(roster.RosterView, counters, bytes32)
host_cards = st.builds(HostCard, st.binary(max_size=100), bytes64, bytes64)
instructions = st.one_of(
    st.builds(
        leases.Install,
        bytes16,
        counters,
        st.builds(leases.ToRelay, bytes32)
        | st.builds(leases.ToListedHost, bytes32)
        | st.builds(leases.ToHost, host_cards),
        elements,
        bytes16,
        bytes16,
    ),
    st.builds(leases.Withdraw, bytes16),
)
plain_messages = st.builds(
    messages.Message,
    bytes32,
    counters,
    st.lists(bytes16, min_size=1, max_size=4).map(tuple),
    st.binary(min_size=TRAIL_SIZE, max_size=TRAIL_SIZE),
    st.binary(max_size=100),
)
made_stamps = st.builds(proof_of_work.ProofOfWork, counters, st.binary(min_size=8, max_size=8))
overlay_frames = st.one_of(
    st.builds(frames.Forward, plain_messages),
    st.builds(frames.Ack, counters, st.lists(counters, max_size=4).map(tuple)),
    st.builds(frames.Ping),
    st.builds(frames.Drop, plain_messages, st.none() | made_stamps),
    st.builds(frames.Receipt, st.sampled_from(["accepted", "form", "day", "quota", "stamp"])),
    st.builds(frames.ParcelFrame, counters, st.binary(max_size=100), st.none() | made_stamps),
    st.builds(
        frames.ParcelAnswer,
        counters,
        st.none() | st.sampled_from(get_args(frames.RefusalReason)),
        st.lists(bytes16, max_size=3).map(tuple),
    ),
    st.builds(keeper_frames.HandIn, plain_messages),
    st.builds(keeper_frames.AskKept, counters, bytes16, st.none() | counters),
    st.builds(keeper_frames.ShownKept, st.lists(bytes32, max_size=3).map(tuple), counters),
    st.builds(
        keeper_frames.AskKeptMessages, counters, bytes16, st.lists(bytes32, min_size=1, max_size=3).map(tuple)
    ),
    st.builds(keeper_frames.ShownKeptMessages, st.lists(plain_messages, max_size=3).map(tuple)),
)
box_frames = st.one_of(
    st.builds(
        boxes.BoxStanding,
        st.lists(bytes16, max_size=3).map(tuple),
        counters,
        host_cards,
        bytes32,
        st.integers(0, proof_of_work.MAX_DIFFICULTY),
    ),
    st.builds(
        boxes.Hold,
        counters,
        bytes16,
        counters,
        elements,
        st.lists(bytes32, max_size=3).map(tuple),
        st.none() | made_stamps,
    ),
    st.builds(boxes.Forget, counters),
    st.builds(boxes.HoldAnswer, counters, st.none() | st.sampled_from(get_args(frames.RefusalReason))),
)
certified = st.builds(
    heads.CertifiedHead,
    st.binary(max_size=100),
    st.lists(st.builds(heads.IndexedSignature, st.integers(0, 8), bytes64), min_size=1, max_size=3).map(
        tuple
    ),
)
works = st.builds(
    NameWork, st.builds(head_inside.Beacon, counters, bytes32), st.binary(min_size=8, max_size=8)
)
shard_numbers = st.integers(0, 2**MAX_BITS - 1)
paths = st.lists(bytes32, max_size=MAX_BITS).map(tuple)
requests = st.one_of(
    st.builds(asked.RegisterRelay, signed, st.none() | works),
    st.builds(asked.Fetch, st.none() | counters),
    st.builds(shards.AskLeaf, counters, counters, shard_numbers),
    st.builds(shards.AskSlice, counters, shard_numbers),
    st.builds(shards.AskPiece, counters, st.integers(0, 2 ** piece_bits(MAX_BITS) - 1)),
)
answers = st.one_of(
    st.just(asked.RelayRegistered()),
    st.builds(asked.Rosters, st.none() | signed, st.booleans()),
    st.builds(
        asked.HeadAnswer,
        st.lists(certified, max_size=3).map(tuple),
        st.lists(st.builds(roster.RosterEntry, signed, counters), max_size=3).map(tuple),
        st.lists(st.tuples(bytes32, counters), max_size=3).map(tuple),
        st.booleans(),
        st.none() | bytes32,
    ),
    st.builds(asked.DirectoryRefusal, printable),
    st.builds(shards.ShownLeaf, st.binary(max_size=100), paths),
    st.builds(shards.ShownSlice, st.binary(max_size=100)),
    st.builds(shards.ShownPiece, st.binary(max_size=100), paths),
    st.just(shards.ShardUnavailable()),
)
numbers = st.integers(1, 2**16 - 1)
pairs = st.tuples(numbers, numbers).map(sorted)
wires = st.none() | pairs.map(lambda pair: WireRange(*pair))
proofs = st.builds(links.IdentityProof, bytes32, bytes64, views, wires) | st.builds(links.Anonymous, views)
open_parcels = st.builds(
    parcels.Parcel,
    network=st.just(NETWORK.id),
    relay=st.just(relay_id(0)),
    epoch=st.just(EPOCH),
    instruction=instructions,
    patience=st.integers(0, parcels.MAX_PATIENCE),
    onward=st.lists(
        st.builds(
            parcels.OnwardParcel, bytes32.filter(lambda relay: relay != relay_id(0)), st.binary(max_size=40)
        ),
        max_size=3,
        unique_by=lambda onward: onward.relay,
    ).map(tuple),
    word=bytes16,
    stamp=st.none() | made_stamps,
)
packed = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=20,
)
"""Arbitrary msgpack values."""
