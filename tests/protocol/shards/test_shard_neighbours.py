"""The roster of a shard: by leaves of epochs that follow each other, and what is asked for over links."""

from __future__ import annotations

import msgspec
import pytest
from core_examples import NETWORK, properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.roster import Relay, Roster
from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_protocol.shards.guides import MAX_PIECE, PIECE_BITS
from hushcast_protocol.shards.neighbours import check_same_slice, roster_of_shard
from hushcast_protocol.shards.shard_requests import (
    MAX_SHARD_ANSWER,
    MAX_SHARD_REQUEST,
    AskLeaf,
    AskPiece,
    AskSlice,
    ShardUnavailable,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
    decode_shard_answer,
    decode_shard_request,
)
from hushcast_protocol.shards.slices import AWAY, MAX_LEAF, MAX_SLICE, Leaf

ADDRESS = parse_address("127.0.0.1:1")
RELAYS = [bytes([number]) * 32 for number in range(1, 8)]
SEATED = {relay: Relay(relay, ADDRESS, relay, 5) for relay in RELAYS}
LAST = 2**48 - 1
standings = st.lists(
    st.one_of(st.just(AWAY), st.integers(0, MAX_DIFFICULTY)), min_size=len(RELAYS), max_size=len(RELAYS)
)


def head(epoch: int) -> Roster:
    return Roster(NETWORK, epoch, bytes([epoch - 1]) * 32, bytes([epoch]) * 32, {})


def leaf(standing: list[int]) -> Leaf:
    return Leaf(1, 0, bytes(32), bytes(standing))


@pytest.mark.slow
@properties(100)
@given(st.lists(standings, min_size=1, max_size=6))
def test_a_relay_is_listed_without_a_gap_since_it_came_back(leaves):
    last: Roster | None = None
    since = dict.fromkeys(RELAYS, 5)
    for epoch, standing in enumerate(leaves, start=10):
        roster = roster_of_shard(SEATED, leaf(standing), head(epoch), last)
        there = {relay: bits for relay, bits in zip(RELAYS, standing, strict=True) if bits != AWAY}
        assert {relay: one.difficulty for relay, one in roster.relays.items()} == there
        for relay in there:
            if last is not None and relay not in last.relays:
                since[relay] = epoch
        assert {relay: one.since for relay, one in roster.relays.items()} == {
            relay: since[relay] for relay in there
        }
        assert set(roster.origins) == {relay for relay in there if since[relay] < epoch}
        assert (roster.epoch, roster.previous, roster.digest) == (
            epoch,
            head(epoch).previous,
            head(epoch).digest,
        )
        last = roster


def test_what_stays_as_it_was_is_held_once():
    first = roster_of_shard(SEATED, leaf([0] * 7), head(10), None)
    later = roster_of_shard(SEATED, leaf([0] * 6 + [3]), head(11), first)
    assert all(later.relays[relay] is SEATED[relay] for relay in RELAYS[:6])
    assert later.relays[RELAYS[6]].difficulty == 3
    assert later.relays[RELAYS[6]].since == 5


@pytest.mark.parametrize("standing", [[0] * 6, [0] * 8, [0] * 6 + [MAX_DIFFICULTY + 1], [0] * 6 + [AWAY - 1]])
def test_a_leaf_that_does_not_fit_is_refused(standing):
    with pytest.raises(DecodeError):
        roster_of_shard(SEATED, leaf(standing), head(10), None)


def test_two_slices_of_one_shard_are_refused():
    check_same_slice(leaf([0]), leaf([1]))
    with pytest.raises(AuthenticationError):
        check_same_slice(leaf([0]), Leaf(1, 0, bytes([1]) * 32, bytes(1)))


def test_the_largest_of_what_is_asked_and_shown_fits():
    shard, path = 2**MAX_BITS - 1, (bytes(32),) * MAX_BITS
    for request in (AskLeaf(LAST, LAST, shard), AskSlice(LAST, shard), AskPiece(LAST, shard >> PIECE_BITS)):
        assert len(encode(request)) <= MAX_SHARD_REQUEST
        assert decode_shard_request(encode(request)) == decode_overlay(encode(request)) == request
    answers = (
        ShownLeaf(bytes(MAX_LEAF), path),
        ShownSlice(bytes(MAX_SLICE)),
        ShownPiece(bytes(MAX_PIECE), path),
        ShardUnavailable(),
    )
    for answer in answers:
        assert len(encode(answer)) <= MAX_SHARD_ANSWER <= MAX_OVERLAY_FRAME
        assert decode_shard_answer(encode(answer)) == decode_overlay(encode(answer)) == answer


@pytest.mark.parametrize(
    "wrong",
    [
        AskSlice(0, 2**MAX_BITS),
        AskPiece(0, 2 ** (MAX_BITS - PIECE_BITS)),
        AskLeaf(-1, 0, 0),
        AskLeaf(0, LAST + 1, 0),
        ShownSlice(bytes(MAX_SLICE + 1)),
        ShownLeaf(bytes(MAX_LEAF + 1), ()),
        ShownLeaf(b"", (bytes(32),) * (MAX_BITS + 1)),
        ShownLeaf(b"", (bytes(31),)),
        ShownPiece(bytes(MAX_PIECE + 1), ()),
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_out_of_bounds_is_refused(wrong):
    body = msgspec.msgpack.encode(wrong)
    for decode in (decode_shard_request, decode_shard_answer, decode_overlay):
        with pytest.raises(PeerError):
            decode(body)
