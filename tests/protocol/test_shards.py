"""Shards: cut alike by all who have the list, proven by paths, and hostile bytes refused."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest
from core_examples import NETWORK, descriptor_of, seed
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.addresses import MAX_ADDRESS
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.roster import MAX_DESCRIPTOR, Entry, sign_descriptor
from hushcast_protocol.base.shard_count import MAX_BITS, bits_for
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.signatures import Signed
from hushcast_protocol.base.stamps import MAX_DIFFICULTY
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.assignment import MAX_WIDTH, shard_of_relay, shard_of_topic, shards_of_topic
from hushcast_protocol.shards.cost import topic_day
from hushcast_protocol.shards.cutting import Cut, Seat, cut
from hushcast_protocol.shards.guides import (
    GUIDES,
    MAX_PIECE,
    Guide,
    Piece,
    piece_digest,
    piece_of,
    read_piece,
)
from hushcast_protocol.shards.merkle import MerkleTree, root_by
from hushcast_protocol.shards.slices import (
    AWAY,
    MAX_LEAF,
    MAX_SEATS,
    MAX_SLICE,
    Leaf,
    Slice,
    decode_leaf,
    decode_slice,
    leaf_digest,
    make_leaf,
    read_leaf,
    read_slice,
    slice_digest,
)

DAY, BEACON = 20_000, bytes(range(32))
SEATS = tuple(
    Seat(sign_descriptor(seed(1000 + number), descriptor_of(number)), descriptor_of(number), number)
    for number in range(90)
)
STANDING = {seat.descriptor.relay: seat.since % 3 for seat in SEATS if seat.since % 7}
SIZE = 20  # relays a shard: four of 90


def made() -> tuple[Cut, Sharding]:
    done = cut(NETWORK, DAY, BEACON, SEATS, SIZE)
    return done, done.sharding(done.leaves(STANDING))


def test_a_network_is_cut_at_1_41_times_the_size():
    assert [bits_for(n) for n in (0, 1, 500, 707, 708, 1414, 1415, 2_000, 10**6)] == [
        *(0, 0, 0, 0, 1, 1, 2, 2, 11)
    ]
    assert bits_for(10**9) == MAX_BITS
    sizes = [n / 2 ** bits_for(n) for n in range(354, 200_000, 97)]
    assert min(sizes) > 353
    assert max(sizes) < 708


@given(st.integers(0, 2**MAX_BITS - 1), st.integers(0, MAX_BITS))
def test_a_shard_is_within_the_bits(number, bits):
    relay = number.to_bytes(32, "big")
    assert 0 <= shard_of_relay(BEACON, relay, bits) < 2**bits
    # One more bit parts each shard in two: no other relay moves.
    assert shard_of_relay(BEACON, relay, bits + 1) >> 1 == shard_of_relay(BEACON, relay, bits)


def test_relays_spread_evenly_and_anew_each_day():
    relays = [Random(number).randbytes(32) for number in range(8000)]
    shards = [Counter(shard_of_relay(bytes([day]) * 32, relay, 4) for relay in relays) for day in (1, 2)]
    for counted in shards:  # 500 each, and a deviation of 21.7: the chance of six is 10^-8
        assert all(370 < counted[shard] < 630 for shard in range(16))
    stay = sum(
        shard_of_relay(bytes([1]) * 32, one, 4) == shard_of_relay(bytes([2]) * 32, one, 4) for one in relays
    )
    assert 370 < stay < 630  # one in 16 stays, by chance


def test_a_topic_has_a_shard_for_each_copy():
    wide = [shards_of_topic(bytes([number]) * 32, MAX_WIDTH, 11) for number in range(50)]
    assert all(len(shards) == 16 for shards in wide)
    assert len({shard for shards in wide for shard in shards}) > 600  # of 2,048, with 800 draws
    assert shards_of_topic(BEACON, 0, 11) == (shard_of_topic(BEACON, 0, 11),)
    assert shards_of_topic(BEACON, 2, 0) == (0, 0, 0, 0)


@given(st.integers(0, 6), st.data())
def test_a_path_proves_its_leaf_and_no_other(height, data):
    leaves = [bytes([number]) * 32 for number in range(2**height)]
    tree = MerkleTree(leaves)
    place = data.draw(st.integers(0, len(leaves) - 1))
    path = tree.path(place)
    assert len(path) == height
    assert root_by(leaves[place], place, path) == tree.root
    for other in range(len(leaves)):
        if other != place:
            assert root_by(leaves[other], place, path) != tree.root
            assert root_by(leaves[place], other, path) != tree.root


@pytest.mark.parametrize("count", [0, 3, 12])
def test_a_tree_is_over_a_power_of_two(count):
    with pytest.raises(ValueError, match="power of two"):
        MerkleTree([bytes(32)] * count)


def test_every_relay_is_in_one_shard_and_all_come_to_the_same():
    done, sharding = made()
    again = cut(NETWORK, DAY, BEACON, Random(1).sample(SEATS, len(SEATS)), SIZE)
    assert again == done
    assert done.bits == 2
    assert sharding.count == len(SEATS)
    assert sorted(relay for shard in done.relays for relay in shard) == sorted(
        seat.descriptor.relay for seat in SEATS
    )
    other = cut(NETWORK, DAY, bytes(32), SEATS, SIZE)
    assert other.relays != done.relays


def test_a_client_reads_its_shard_by_a_head_alone():
    done, sharding = made()
    leaves = done.leaves(STANDING)
    seen = {}
    for shard in range(4):
        leaf = read_leaf(leaves.bodies[shard], leaves.tree.path(shard), sharding, shard)
        read = read_slice(done.slices[shard], leaf, sharding, NETWORK)
        assert tuple(read.relays) == done.relays[shard]
        seen |= read.relays
        for relay in read.relays:
            assert (relay in read.away) == (relay not in STANDING)
            assert read.relays[relay].difficulty == STANDING.get(relay, 0)
        piece = piece_of(shard)
        guides = read_piece(done.pieces[piece], done.guides.path(piece), sharding, shard)
        assert len(guides) == min(GUIDES, len(read.relays))
        assert all(read.relays[guide.relay].address == guide.address for guide in guides)
    assert {relay: one.since for relay, one in seen.items()} == {
        seat.descriptor.relay: seat.since for seat in SEATS
    }


def test_many_shards_have_a_guide_in_pieces():
    done = cut(NETWORK, DAY, BEACON, SEATS, 1)
    sharding = done.sharding(done.leaves({}))
    assert done.bits == 6
    assert len(done.pieces) == 2
    for shard in (0, 31, 32, 63):
        piece = piece_of(shard)
        read_piece(done.pieces[piece], done.guides.path(piece), sharding, shard)
        with pytest.raises(PeerError):  # the other piece, under its own path
            read_piece(done.pieces[1 - piece], done.guides.path(1 - piece), sharding, shard)


def test_a_network_of_one_shard_needs_no_path():
    done = cut(NETWORK, DAY, BEACON, SEATS)
    leaves = done.leaves(STANDING)
    sharding = done.sharding(leaves)
    assert done.bits == 0
    assert leaves.tree.path(0) == ()
    leaf = read_leaf(leaves.bodies[0], (), sharding, 0)
    assert len(read_slice(done.slices[0], leaf, sharding, NETWORK).relays) == len(SEATS)


def test_other_bytes_than_the_authorities_agreed_on_are_refused():
    done, sharding = made()
    leaves = done.leaves(STANDING)
    path, body = leaves.tree.path(1), leaves.bodies[1]
    leaf = read_leaf(body, path, sharding, 1)
    random = Random(3)
    for _ in range(300):
        place, bit = random.randrange(len(body)), 1 << random.randrange(8)
        changed = body[:place] + bytes([body[place] ^ bit]) + body[place + 1 :]
        with pytest.raises(PeerError):
            read_leaf(changed, path, sharding, 1)
        whole = done.slices[1]
        place = random.randrange(len(whole))
        with pytest.raises(PeerError):
            read_slice(
                whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :], leaf, sharding, NETWORK
            )
    for wrong in (path[:-1], (*path, bytes(32)), tuple(reversed(path)), ()):
        with pytest.raises(PeerError):
            read_leaf(body, wrong, sharding, 1)
    with pytest.raises(PeerError):
        read_leaf(body, path, sharding, 2)
    with pytest.raises(PeerError):
        read_slice(done.slices[2], leaf, sharding, NETWORK)
    later = cut(NETWORK, DAY + 1, BEACON, SEATS, SIZE).leaves(STANDING)
    with pytest.raises(PeerError):  # yesterday's, or tomorrow's
        read_leaf(later.bodies[1], later.tree.path(1), sharding, 1)


def lying(**changed: object) -> tuple[bytes, Leaf, Sharding]:
    """Return a slice of one shard, changed, with a leaf and a head that stand for it."""
    done = cut(NETWORK, DAY, BEACON, SEATS[:5])
    held = msgspec.structs.replace(decode_slice(done.slices[0]), **changed)
    standing = [0] * len(held.entries)
    body = encode(held)
    leaf = make_leaf(DAY, 0, slice_digest(body), standing)
    sharding = Sharding(DAY, BEACON, 0, leaf_digest(leaf), bytes(32), len(standing))
    return body, read_leaf(leaf, (), sharding, 0), sharding


def test_authorities_that_agree_on_nonsense_are_not_followed():
    read_slice(*lying(), NETWORK)
    entries = decode_slice(lying()[0]).entries
    forged = Entry(Signed(entries[0].descriptor.body, bytes(64)), 0)
    for changed in (
        {"network": bytes(32)},
        {"day": DAY + 1},
        {"shard": 1},
        {"entries": entries[::-1]},
        {"entries": (*entries[:2], entries[1], *entries[2:])},
        {"entries": (forged, *entries[1:])},
    ):
        with pytest.raises(PeerError):
            read_slice(*lying(**changed), NETWORK)


def test_a_leaf_says_of_each_relay_what_can_be():
    body, leaf, sharding = lying()
    for standing in (
        leaf.standing[1:],
        leaf.standing + b"\0",
        bytes([MAX_DIFFICULTY + 1]) + leaf.standing[1:],
    ):
        with pytest.raises(PeerError):
            read_slice(body, msgspec.structs.replace(leaf, standing=standing), sharding, NETWORK)
    away = msgspec.structs.replace(leaf, standing=bytes([AWAY]) * len(leaf.standing))
    assert len(read_slice(body, away, sharding, NETWORK).away) == len(leaf.standing)


def test_a_relay_is_refused_in_a_shard_that_is_not_its_own():
    done, sharding = made()
    stranger = decode_slice(done.slices[0]).entries[0]
    held = decode_slice(done.slices[1])
    entries = sorted((*held.entries, stranger), key=lambda entry: entry.descriptor.body[40:80])
    body = encode(msgspec.structs.replace(held, entries=tuple(entries)))
    leaf = decode_leaf(make_leaf(DAY, 1, slice_digest(body), [0] * len(entries)))
    with pytest.raises(PeerError, match="another shard"):
        read_slice(body, leaf, sharding, NETWORK)


def test_what_is_largest_fits():
    entry = Entry(Signed(bytes(MAX_DESCRIPTOR), bytes(64)), 2**48 - 1)
    assert len(encode(Slice(bytes(32), 2**48 - 1, 4095, (entry,) * MAX_SEATS))) <= MAX_SLICE
    with pytest.raises(PeerError):
        decode_slice(encode(Slice(bytes(32), 1, 0, (entry,) * (MAX_SEATS + 1))))
    assert len(encode(Leaf(2**48 - 1, 4095, bytes(32), bytes(MAX_SEATS)))) <= MAX_LEAF
    with pytest.raises(PeerError):
        decode_leaf(encode(Leaf(1, 0, bytes(32), bytes(MAX_SEATS + 1))))
    done, sharding = made()
    guides = read_piece(done.pieces[0], (), sharding, 0)
    largest = (Guide(bytes(32), "a" * MAX_ADDRESS),) * GUIDES
    assert len(encode(Piece(2**48 - 1, 2**48 - 1, (largest,) * 32))) <= MAX_PIECE
    body = encode(Piece(DAY, 0, (guides,) * 33))
    with pytest.raises(PeerError):
        read_piece(body, (), msgspec.structs.replace(sharding, guides=piece_digest(body)), 0)


def test_the_cost_of_a_topic_and_day_is_what_is_fetched():
    # Onion addresses, as in a real network; these have those of the memory transport.
    done = cut(NETWORK, DAY, BEACON, SEATS, SIZE)
    leaves = done.leaves({})
    cost = topic_day(done.bits)
    shard = 1
    fetched = (
        len(done.slices[shard])
        + 24 * (len(leaves.bodies[shard]) + 34 * len(leaves.tree.path(shard)))
        + len(done.pieces[0])
    )
    relays = len(done.relays[shard])
    longer = 68 - len(SEATS[0].descriptor.address)
    assert abs(cost.bytes(relays) - fetched - longer * (relays + 4 * GUIDES)) < 0.05 * fetched
    assert topic_day(11).a_relay == cost.a_relay


def test_a_client_pays_for_its_shard_and_not_for_the_network():
    small, large = (topic_day(bits_for(n)).bytes(n / 2 ** bits_for(n)) for n in (2_000, 10**6))
    assert large / small <= 1.15
