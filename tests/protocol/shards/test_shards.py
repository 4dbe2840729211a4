"""Shards: cut alike by all who have the list, proven by paths, and hostile bytes refused."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest
from core_examples import NETWORK, descriptor_of, relay_id, signed_descriptor
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.addresses import MAX_ADDRESS
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.roster import (
    MAX_DESCRIPTOR,
    Descriptor,
    RosterEntry,
    descriptor_digest,
    guide_digest,
    read_descriptor,
)
from hushcast_protocol.base.shard_count import MAX_BITS, bits_for
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.topics import MAX_WIDTH
from hushcast_protocol.shards.assignment import copies_of_topic, shard_of_relay, shard_of_topic
from hushcast_protocol.shards.cost import topic_day
from hushcast_protocol.shards.guides import (
    GUIDES,
    MAX_PIECE,
    Guide,
    Piece,
    piece_digest,
    piece_of,
    read_piece,
    read_whole_piece,
)
from hushcast_protocol.shards.merkle import MerkleTree, root_by
from hushcast_protocol.shards.shard_cut import Cut, cut
from hushcast_protocol.shards.slices import (
    AWAY,
    MAX_LEAF,
    MAX_SEATS,
    MAX_SLICE,
    CutRelay,
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
SIGNED = {
    descriptor_digest(signed.body): signed for signed in (signed_descriptor(number) for number in range(90))
}
NAMED = tuple(
    (relay_id(number), descriptor_digest(signed_descriptor(number).body), number) for number in range(90)
)
STANDING = {relay: since % 3 for relay, _, since in NAMED if since % 7}
BITS = 2  # four shards of 90 relays


def cut_into(bits: int, day: int = DAY, beacon: bytes = BEACON, relays: tuple[CutRelay, ...] = NAMED) -> Cut:
    return cut(NETWORK.id, day, beacon, bits, relays)


def made() -> tuple[Cut, Sharding]:
    done = cut_into(BITS)
    return done, done.sharding(done.leaves(STANDING))


def sent(body: bytes | None) -> bytes:
    """Return what an authority sends that has all descriptors."""
    assert body is not None
    return body


def slice_of(done: Cut, shard: int) -> bytes:
    return sent(done.slice(shard, SIGNED.get))


def piece_at(done: Cut, number: int) -> bytes:
    return sent(done.piece(number, SIGNED.get))


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
    trunks = [bytes([number]) * 32 for number in range(50)]
    wide = [{shard_of_topic(trunk, copy, 11) for copy in range(2**MAX_WIDTH)} for trunk in trunks]
    assert len(set().union(*wide)) > 600  # of 2,048, with 800 draws


@given(st.binary(min_size=16, max_size=16), st.integers(0, MAX_WIDTH), st.integers(0, 6))
def test_a_publisher_drops_once_at_each_shard_that_a_subscriber_may_draw(trunk, width, bits):
    copies = copies_of_topic(trunk, width, bits)
    shards = [shard_of_topic(trunk, copy, bits) for copy in copies]
    assert len(set(shards)) == len(shards)
    assert set(shards) == {shard_of_topic(trunk, copy, bits) for copy in range(2**width)}
    assert copies[0] == 0
    assert width or copies == (0,)


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
    again = cut_into(BITS, relays=tuple(Random(1).sample(NAMED, len(NAMED))))
    assert again == done
    assert again.sharding(again.leaves(STANDING)) == sharding
    assert sharding.count == len(NAMED)
    assert sorted(named for shard in done.shards for named in shard) == sorted(NAMED)
    assert cut_into(BITS, beacon=bytes(32)).shards != done.shards


def test_whatever_a_cut_is_of_shows_in_what_a_head_says():
    done, sharding = made()
    other_digest = ((NAMED[0][0], bytes(16), NAMED[0][2]), *NAMED[1:])
    younger = ((*NAMED[0][:2], 1000), *NAMED[1:])
    for other in (
        cut_into(BITS, day=DAY + 1),
        cut_into(BITS, relays=NAMED[1:]),
        cut_into(BITS, relays=other_digest),
        cut_into(BITS, relays=younger),
        cut(bytes(32), DAY, BEACON, BITS, NAMED),
    ):
        assert other.sharding(other.leaves(STANDING)).root != sharding.root
    later = done.sharding(done.leaves({**STANDING, NAMED[1][0]: 7}))
    assert (later.root != sharding.root, later.guides) == (True, sharding.guides)


def test_without_a_descriptor_nothing_is_sent():
    done, _ = made()
    lacking = {known: signed for known, signed in SIGNED.items() if known != NAMED[0][1]}
    shard = next(number for number, relays in enumerate(done.shards) if NAMED[0] in relays)
    sends = [done.slice(number, lacking.get) is not None for number in range(4)]
    assert sends == [number != shard for number in range(4)]
    guides = {known for guides in done.pieces[0] for _, known in guides}
    for known in SIGNED:
        held = {one: signed for one, signed in SIGNED.items() if one != known}
        assert (done.piece(0, held.get) is None) == (known in guides)


def test_a_client_reads_its_shard_by_a_head_alone():
    done, sharding = made()
    leaves = done.leaves(STANDING)
    seen = {}
    for shard in range(4):
        leaf = read_leaf(leaves.bodies[shard], leaves.tree.path(shard), sharding, shard)
        read = read_slice(slice_of(done, shard), leaf, sharding, NETWORK)
        assert tuple(read.relays) == tuple(relay for relay, *_ in done.shards[shard])
        seen |= read.relays
        for relay in read.relays:
            assert (relay in read.away) == (relay not in STANDING)
            assert read.relays[relay].difficulty == STANDING.get(relay, 0)
        piece = piece_of(shard)
        guides = read_piece(piece_at(done, piece), done.guides.path(piece), sharding, shard)
        assert len(guides) == min(GUIDES, len(read.relays))
        assert all(read.relays[guide.relay].address == guide.address for guide in guides)
    assert {(relay, one.since) for relay, one in seen.items()} == {
        (relay, since) for relay, _, since in NAMED
    }


def test_many_shards_have_a_guide_in_pieces():
    done = cut_into(6)
    sharding = done.sharding(done.leaves({}))
    assert len(done.pieces) == 2
    for shard in (0, 31, 32, 63):
        piece = piece_of(shard)
        read_piece(piece_at(done, piece), done.guides.path(piece), sharding, shard)
        with pytest.raises(PeerError):  # the other piece, under its own path
            read_piece(piece_at(done, 1 - piece), done.guides.path(1 - piece), sharding, shard)


def test_a_network_of_one_shard_needs_no_path():
    done = cut_into(0)
    leaves = done.leaves(STANDING)
    sharding = done.sharding(leaves)
    assert leaves.tree.path(0) == ()
    leaf = read_leaf(leaves.bodies[0], (), sharding, 0)
    assert len(read_slice(slice_of(done, 0), leaf, sharding, NETWORK).relays) == len(NAMED)


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
        whole = slice_of(done, 1)
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
        read_slice(slice_of(done, 2), leaf, sharding, NETWORK)
    later = cut_into(BITS, day=DAY + 1).leaves(STANDING)
    with pytest.raises(PeerError):  # yesterday's, or tomorrow's
        read_leaf(later.bodies[1], later.tree.path(1), sharding, 1)


def digest_of(held: Slice) -> bytes:
    """Return the digest of a slice as whoever signs a head could have made it, of what is in it."""
    relays = tuple(
        (read_descriptor(one.descriptor.body).relay, descriptor_digest(one.descriptor.body), one.since)
        for one in held.entries
    )
    return slice_digest(held.network, held.day, held.shard, relays)


def lying(**changed: object) -> tuple[bytes, Leaf, Sharding]:
    """Return a slice of one shard, changed, with a leaf and a head that stand for it."""
    held = msgspec.structs.replace(decode_slice(slice_of(cut_into(0, relays=NAMED[:5]), 0)), **changed)
    standing = [0] * len(held.entries)
    body = encode(held)
    leaf = make_leaf(DAY, 0, digest_of(held), standing)
    sharding = Sharding(DAY, BEACON, 0, leaf_digest(leaf), bytes(32), len(standing))
    return body, read_leaf(leaf, (), sharding, 0), sharding


def test_authorities_that_agree_on_nonsense_are_not_followed():
    read_slice(*lying(), NETWORK)
    entries = decode_slice(lying()[0]).entries
    forged = RosterEntry(Signed(entries[0].descriptor.body, bytes(64)), 0)
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
    stranger = decode_slice(slice_of(done, 0)).entries[0]
    held = decode_slice(slice_of(done, 1))
    entries = sorted((*held.entries, stranger), key=lambda entry: entry.descriptor.body[40:80])
    held = msgspec.structs.replace(held, entries=tuple(entries))
    leaf = decode_leaf(make_leaf(DAY, 1, digest_of(held), [0] * len(entries)))
    with pytest.raises(PeerError, match="another shard"):
        read_slice(encode(held), leaf, sharding, NETWORK)


def test_a_guide_has_the_address_that_it_signed():
    """Whoever serves a piece cannot send clients elsewhere, though descriptors are not in it."""
    done, sharding = made()
    piece = msgspec.msgpack.decode(piece_at(done, 0))
    read_piece(encode(piece), (), sharding, 0)
    *_, shards = piece
    (relay, address, inner), other = shards[1][0][1:], shards[1][1][1:]
    for wrong in ((relay, other[1], inner), (relay, address, other[2]), (other[0], address, inner)):
        shards[1][0][1:] = wrong
        for shard in (0, 1):  # the whole piece is refused
            with pytest.raises(AuthenticationError):
                read_piece(encode(piece), (), sharding, shard)
    shards[1][0][1:] = relay, address, inner
    assert len(read_whole_piece(encode(piece), (), sharding, 0)) == 4


def test_what_is_largest_fits():
    largest_id, last = bytes([255]) * 32, 2**48 - 1
    held = Descriptor(largest_id, largest_id, "a" * MAX_ADDRESS, largest_id, last, last, MAX_DIFFICULTY)
    entry = RosterEntry(Signed(encode(held), bytes(64)), last)
    assert len(encode(Slice(bytes(32), 2**48 - 1, 4095, (entry,) * MAX_SEATS))) <= MAX_SLICE
    padded = RosterEntry(Signed(bytes(MAX_DESCRIPTOR), bytes(64)), last)  # as far as a descriptor may be
    assert len(encode(Slice(bytes(32), last, 4095, (padded,) * 840))) <= MAX_SLICE  # five deviations of 707
    with pytest.raises(PeerError):
        decode_slice(encode(Slice(bytes(32), 1, 0, (entry,) * (MAX_SEATS + 1))))
    assert len(encode(Leaf(2**48 - 1, 4095, bytes(32), bytes(MAX_SEATS)))) <= MAX_LEAF
    with pytest.raises(PeerError):
        decode_leaf(encode(Leaf(1, 0, bytes(32), bytes(MAX_SEATS + 1))))
    done, sharding = made()
    guides = read_piece(piece_at(done, 0), (), sharding, 0)
    largest = (Guide(bytes(32), "a" * MAX_ADDRESS, bytes(16)),) * GUIDES
    assert len(encode(Piece(2**48 - 1, 2**48 - 1, (largest,) * 32))) <= MAX_PIECE
    known = tuple((one.relay, guide_digest(one.address, one.inner)) for one in guides)
    for count in (4, 33):
        agreed = msgspec.structs.replace(sharding, guides=piece_digest(DAY, 0, (known,) * count))
        body = encode(Piece(DAY, 0, (guides,) * count))
        if count == 4:
            assert read_piece(body, (), agreed, 3) == guides
        else:
            with pytest.raises(DecodeError):
                read_piece(body, (), agreed, 0)


def test_the_cost_of_a_topic_and_day_is_what_is_fetched():
    # Onion addresses, as in a real network; these have those of the memory transport.
    done = cut_into(BITS)
    leaves = done.leaves({})
    cost = topic_day(done.bits)
    shard = 1
    fetched = (
        len(slice_of(done, shard))
        + 24 * (len(leaves.bodies[shard]) + 34 * len(leaves.tree.path(shard)))
        + len(piece_at(done, 0))
    )
    relays = len(done.shards[shard])
    longer = 68 - len(descriptor_of(0).address)
    assert abs(cost.bytes(relays) - fetched - longer * (relays + 4 * GUIDES)) < 0.05 * fetched
    assert topic_day(11).a_relay == cost.a_relay


def test_a_client_pays_for_its_shard_and_not_for_the_network():
    small, large = (topic_day(bits_for(n)).bytes(n / 2 ** bits_for(n)) for n in (2_000, 10**6))
    assert large / small <= 1.15
