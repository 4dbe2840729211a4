"""Rounds, ballots, heads and evidence: which signatures count, and that hostile bytes are refused."""

from __future__ import annotations

import msgspec
import pytest
from authority_world import FIRST, NETWORK, RELAYS, SEEDS, World, members
from hypothesis import given, settings
from hypothesis import strategies as st
from told_heads import head_told

from hushcast_protocol.authorities.actions import Accuse, SendFrame
from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES, MAX_SET, Authorities
from hushcast_protocol.authorities.ballots import (
    LISTED,
    MAX_BALLOT,
    MAX_LISTED,
    Ballot,
    Cast,
    ballot_digest,
    read_ballot,
)
from hushcast_protocol.authorities.beacon import advance, commitment, secret_of, to_say
from hushcast_protocol.authorities.evidence import Evidence, check_evidence
from hushcast_protocol.authorities.frames import MAX_ECHO, MAX_PEER_FRAME, AskBallot, Echo, decode_frame
from hushcast_protocol.authorities.head_inside import Beacon, BeaconShare, BeaconState, inside_of
from hushcast_protocol.authorities.heads import (
    MAX_CERTIFIED,
    MAX_HEAD,
    MAX_SIGNATURE,
    AssentBody,
    AuthorityChange,
    CertifiedHead,
    Head,
    IndexedSignature,
    assent_to,
    check_certified,
    decode_head,
    head_digest,
)
from hushcast_protocol.authorities.listing import (
    MAX_DRAWN,
    MAX_LISTING,
    MAX_WAITING,
    ListedCut,
    ListedRelay,
    Listing,
)
from hushcast_protocol.authorities.rounds import MAX_ANSWERS, MAX_SHOWN, Rounds
from hushcast_protocol.authorities.seat_admission import MAX_WORK, SeatAdmission
from hushcast_protocol.authorities.tally import HeadBasis, count, listed_by
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.roster import GENESIS, MAX_RELAYS, MAX_SEATED
from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import decoder, encode

FIVE = members(5, 3)
LIAR, OTHER = FIVE.keys[:2]
HONEST = FIVE.keys[4]


def rounds() -> Rounds:
    return Rounds(NETWORK.id, FIRST, FIVE, SEEDS[4])


def liars() -> World:
    return World(FIVE, two_faced=4)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_ballot_is_taken_with_as_many_signatures_as_the_round_asks_for(number: int) -> None:
    for signers in range(1, 4):
        one = rounds()
        echo = liars().cast(LIAR, FIRST, RELAYS, *FIVE.keys[:signers])
        actions = one.take(OTHER, echo, number)
        assert bool(actions) == (signers >= number)
        assert list(one.counted()[0]) == ([LIAR] if signers >= number else [])
        if actions:
            (send,) = actions
            assert isinstance(send, SendFrame)
            assert isinstance(send.frame, Echo)
            assert send.frame.body is None
            assert set(send.to) == set(FIVE.keys[signers:4])
            assert [mark.place for mark in send.frame.marks] == [*range(signers), 4]
            assert one.take(OTHER, echo, number) == []


def test_nothing_is_taken_after_the_last_round() -> None:
    assert rounds().take(OTHER, liars().cast(LIAR, FIRST, RELAYS, *FIVE.keys[:4]), 4) == []


def test_only_what_is_held_entire_is_signed() -> None:
    one, echo = rounds(), liars().cast(LIAR, FIRST, RELAYS)
    bare = msgspec.structs.replace(echo, body=None)
    assert one.take(OTHER, bare, 1) == [SendFrame((OTHER,), AskBallot(FIRST, echo.ballot))]
    assert one.take(OTHER, bare, 1) == []  # asked once
    assert one.take(LIAR, bare, 1) == [SendFrame((LIAR,), AskBallot(FIRST, echo.ballot))]
    assert one.answer(OTHER, AskBallot(FIRST, echo.ballot)) == []
    assert len(one.take(LIAR, echo, 1)) == 1
    for _ in range(MAX_ANSWERS):
        (answer,) = one.answer(OTHER, AskBallot(FIRST, echo.ballot))
        assert isinstance(answer, SendFrame)
        assert isinstance(answer.frame, Echo)
        assert answer.frame.body == echo.body
    assert one.answer(OTHER, AskBallot(FIRST, echo.ballot)) == []


def test_two_ballots_are_evidence_and_a_third_is_refused_from_the_same() -> None:
    one, world = rounds(), liars()
    echoes = [world.cast(LIAR, FIRST, RELAYS[:many]) for many in range(4)]
    assert len(one.take(OTHER, echoes[0], 1)) == 1
    accuse, send = one.take(OTHER, echoes[1], 1)
    assert isinstance(accuse, Accuse)
    assert isinstance(send, SendFrame)
    assert check_evidence(accuse.evidence, NETWORK.id) == FIRST
    assert one.counted() == ({}, [LIAR])
    with pytest.raises(DecodeError, match="third"):
        one.take(OTHER, echoes[2], 1)
    assert MAX_SHOWN == 2
    assert one.take(FIVE.keys[2], echoes[2], 1) == []  # says nothing new


def test_room_that_one_fills_is_not_anothers() -> None:
    """Ballots without bodies, as many as one may show, keep out no ballot that an honest one shows."""
    one, world = rounds(), liars()
    for sender in FIVE.keys[:3]:
        for many in range(2):
            listed = ((bytes([sender[0]]) * 32, bytes([many]) * 16),)
            one.take(sender, msgspec.structs.replace(world.cast(LIAR, FIRST, listed), body=None), 1)
    assert one.take(FIVE.keys[3], world.cast(LIAR, FIRST, RELAYS), 1)
    assert LIAR in one.counted()[0]


def test_hostile_echoes_are_refused_with_a_reason() -> None:
    world = liars()
    echo = world.cast(LIAR, FIRST, RELAYS)
    stranger = SEEDS[8]
    replace = msgspec.structs.replace
    cases = {
        "nobody of the authorities": replace(echo, author=stranger.public()),
        "not signed by its author": replace(
            echo, marks=world.cast(OTHER, FIRST, RELAYS).marks[:0] + _by(echo, 1)
        ),
        "signed by nobody": replace(echo, marks=(*echo.marks, IndexedSignature(7, bytes(64)))),
        "does not hold": replace(echo, marks=(*echo.marks, IndexedSignature(1, bytes(64)))),
        "not the one": replace(echo, body=world.cast(LIAR, FIRST, RELAYS[:1]).body),
    }
    for reason, bad in cases.items():
        one = rounds()
        with pytest.raises(PeerError, match=reason):
            one.take(OTHER, bad, 1)
        assert one.counted() == ({}, [])
        assert not any(one._held.values())
    # Nobody else casts one's own ballot.
    assert rounds().take(OTHER, replace(echo, author=HONEST), 1) == []


def _by(echo: Echo, place: int) -> tuple[IndexedSignature, ...]:
    cast = Cast(NETWORK.id, echo.epoch, echo.author, echo.ballot)
    return (IndexedSignature(place, signature(SEEDS[place], SignaturePurpose.BALLOT, encode(cast))),)


def _echo_of(ballot: Ballot) -> Echo:
    body = encode(ballot)
    echo = Echo(FIRST, LIAR, ballot_digest(body), (IndexedSignature(0, bytes(64)),), body)
    return msgspec.structs.replace(echo, marks=_by(echo, 0))


def test_a_ballot_that_says_nonsense_is_signed_by_nobody() -> None:
    good = Ballot(NETWORK.id, FIRST, LIAR, None, RELAYS, None, None, None)
    assert rounds().take(LIAR, _echo_of(good), 1)
    late = certified(head(epoch=FIRST), 3)
    changes: list[dict[str, object]] = [
        {"network": bytes(32)},
        {"epoch": FIRST + 1},
        {"author": OTHER},
        {"listed": RELAYS[::-1]},
        {"listed": (RELAYS[0], RELAYS[0])},
        {"previous": late},
        {"previous": certified(head(), 2)},
    ]
    for change in changes:
        with pytest.raises(PeerError):
            rounds().take(LIAR, _echo_of(msgspec.structs.replace(good, **change)), 1)
    assert rounds().take(LIAR, _echo_of(msgspec.structs.replace(good, previous=certified(head(), 3))), 1)


def head(epoch: int = FIRST - 1) -> Head:
    return head_told(NETWORK.id, epoch, GENESIS, FIVE)


def certified(given: Head, signers: int) -> CertifiedHead:
    body = encode(given)
    accord = AssentBody(given.network, given.epoch, head_digest(body))
    return CertifiedHead(
        body, tuple(IndexedSignature(place, assent_to(SEEDS[place], accord)) for place in range(signers))
    )


def test_what_a_head_needs() -> None:
    good = certified(head(), 3)
    assert check_certified(good, NETWORK.id, FIVE) == head()
    replace = msgspec.structs.replace
    for bad in (
        certified(head(), 2),
        replace(good, marks=(*good.marks, good.marks[0])),
        replace(good, marks=(*good.marks, IndexedSignature(5, bytes(64)))),
        replace(good, marks=(*good.marks, IndexedSignature(3, bytes(64)))),
        replace(good, head=encode(head(FIRST))),
        certified(replace(head(), network=bytes(32)), 3),
        certified(replace(head(), authorities=members(5, 4)), 3),
    ):
        with pytest.raises(PeerError):
            check_certified(bad, NETWORK.id, FIVE)


def test_evidence_holds_only_against_who_said_two_things() -> None:
    world = liars()
    echoes = [world.cast(LIAR, FIRST, RELAYS[:many]) for many in range(2)]
    bodies = [encode(Cast(NETWORK.id, FIRST, LIAR, echo.ballot)) for echo in echoes]
    own = [Signed(body, signature(SEEDS[0], SignaturePurpose.BALLOT, body)) for body in bodies]
    assert check_evidence(Evidence(LIAR, *own), NETWORK.id) == FIRST
    # Who passes both on has signed both, too, and is not to blame.
    passed = [Signed(body, signature(SEEDS[4], SignaturePurpose.BALLOT, body)) for body in bodies]
    accord = encode(AssentBody(NETWORK.id, FIRST, bytes(32)))
    assent = Signed(accord, signature(SEEDS[0], SignaturePurpose.ASSENT, accord))
    later = encode(Cast(NETWORK.id, FIRST + 1, LIAR, echoes[1].ballot))
    for bad in (
        Evidence(HONEST, *passed),
        Evidence(LIAR, *passed),
        Evidence(HONEST, *own),
        Evidence(LIAR, own[0], own[0]),
        Evidence(LIAR, own[0], assent),
        Evidence(LIAR, own[0], Signed(later, signature(SEEDS[0], SignaturePurpose.BALLOT, later))),
        Evidence(LIAR, own[0], Signed(own[1].body, bytes(64))),
    ):
        with pytest.raises(PeerError):
            check_evidence(bad, NETWORK.id)
    with pytest.raises(DecodeError, match="another network"):
        check_evidence(Evidence(LIAR, *own), bytes(32))


def test_a_set_has_a_majority_for_its_quorum() -> None:
    decode = decoder(Authorities, "set", 1000)
    own = FIVE.members
    nowhere = ["authority/1", own[0].key, "example.org:80"]
    for bad in (
        (own, 2),
        (own, 6),
        (own[::-1], 3),
        ((*own, own[4]), 4),
        ((), 1),
        (own[:1], 0),
        ((nowhere,), 1),
    ):
        with pytest.raises(DecodeError):
            decode(encode(["authorities", *bad, 1, []]))
    for many in range(1, MAX_AUTHORITIES + 1):
        for quorum in range(many // 2 + 1, many + 1):
            found = members(many, quorum)
            assert decode(encode(found)) == found
            assert found.rounds == many - quorum + 1


@settings(deadline=None)
@given(st.data())
def test_every_cut_and_flip_of_a_frame_is_refused_or_read(data: st.DataObject) -> None:
    whole = encode(liars().cast(LIAR, FIRST, RELAYS))
    cut = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[cut] ^= 1 << data.draw(st.integers(0, 7))
    for bad in (whole[:cut], bytes(flipped)):
        try:
            frame = decode_frame(bad)
            if isinstance(frame, Echo) and frame.epoch == FIRST:
                rounds().take(OTHER, frame, 1)
        except PeerError:
            continue
        assert bad != whole[:cut]


def test_the_largest_fit_their_bounds() -> None:
    far = [msgspec.structs.replace(one, address=onion_address(one.key)) for one in members(9, 5).members]
    nine = Authorities.of(far, 5, SeatAdmission(MAX_RELAYS, 1000, True, MAX_WORK))
    assert 1000 < len(encode(nine)) <= MAX_SET
    keys = nine.keys
    shares = tuple(BeaconShare(key, bytes(32)) for key in keys)
    draw = BeaconState(Beacon(2**47, bytes(32)), Beacon(2**47, bytes(32)), shares, shares, keys)
    shardings = (Sharding(2**47, bytes(32), MAX_BITS, bytes(32), bytes(32), MAX_SEATED),) * MAX_DRAWN
    change = AuthorityChange(2**47, nine)
    largest = head_told(
        NETWORK.id, 2**47, bytes(32), nine, change, bytes(32), MAX_SEATED, draw, keys, shardings
    )
    body = encode(largest)
    assert 4200 < len(body) <= MAX_HEAD
    shown = CertifiedHead(
        body + bytes(MAX_HEAD - len(body)),
        tuple(IndexedSignature(place, bytes(MAX_SIGNATURE)) for place in range(9)),
    )
    assert len(encode(shown)) <= MAX_CERTIFIED
    listed = tuple((number.to_bytes(32, "big"), bytes(16), MAX_DIFFICULTY) for number in range(MAX_LISTED))
    assert len(encode(listed)) <= MAX_LISTED * LISTED + 3
    ballot = Ballot(NETWORK.id, 2**47, LIAR, shown, listed, bytes(32), bytes(32), nine)
    assert len(encode(ballot)) <= MAX_BALLOT
    seats = tuple((*one, 2**47) for one in listed[:MAX_SEATED])
    cut = tuple((relay, known, since) for relay, known, _, since in seats)
    shards = (ListedCut(2**47, bytes(32), MAX_BITS, cut),) * MAX_DRAWN
    listing = Listing(2**47, seats, tuple((relay, 2**47) for relay, *_ in listed[:MAX_WAITING]), shards)
    assert len(encode(listing)) <= MAX_LISTING
    assert decode_frame(encode(listing)) == listing
    assert len(encode(listing)) <= MAX_PEER_FRAME
    marks = tuple(IndexedSignature(place, bytes(MAX_SIGNATURE)) for place in range(9))
    echo = Echo(2**47, LIAR, bytes(32), marks, encode(ballot).ljust(MAX_BALLOT, b"\x00"))
    assert decode_frame(encode(echo)) == echo
    assert len(encode(echo)) <= MAX_ECHO
    with pytest.raises(DecodeError, match="over the limit"):
        decode_head(bytes(MAX_HEAD + 1))
    with pytest.raises(DecodeError):
        read_ballot(bytes(10), Cast(NETWORK.id, FIRST, LIAR, bytes(32)))


def test_a_relay_is_listed_with_the_descriptor_that_most_name() -> None:
    one = RELAYS[0]
    other, harder = (one[0], bytes(16), 0), (*one[:2], 4)

    def ballot(*which: ListedRelay) -> Ballot:
        return Ballot(NETWORK.id, FIRST, LIAR, None, which, None, None, None)

    assert listed_by(FIVE, [ballot(one)] * 3 + [ballot(other)] * 2) == (one,)
    assert listed_by(FIVE, [ballot(one)] * 2 + [ballot(other)] * 2) == ()
    assert listed_by(FIVE, [ballot(one)] * 2 + [ballot(harder)] * 3) == (harder,)
    assert listed_by(FIVE, [ballot(one)] * 2 + [ballot(harder)] * 2) == ()


# The beacon.


def day(silent: int = 0, false: int = 0, missing: range = range(0), gap: int = 0) -> list[Head]:
    """Return a day's heads and a few more, where some do not reveal, or what does not fit."""
    last: Head | None = None
    listing: Listing | None = None
    heads = []
    for epoch in [*range(FIRST, FIRST + 26), *range(FIRST + 26 + gap, FIRST + 28 + gap)]:
        if epoch - FIRST in missing:
            continue
        ballots = {}
        shown = None if last is None else certified(last, 3)
        for place, key in enumerate(FIVE.keys):
            commit, reveal = to_say(SEEDS[place], NETWORK.id, epoch)
            if reveal is not None and place < silent + false:
                reveal = None if place < silent else bytes(32)
            ballots[key] = Ballot(NETWORK.id, epoch, key, shown, (), commit, reveal, None)
        before = HeadBasis(GENESIS) if shown is None else HeadBasis(head_digest(shown.head), last, listing)
        found = count(NETWORK.id, epoch, FIVE, ballots, (), before)
        assert found is not None
        last, listing = found
        heads.append(last)
    return heads


def test_a_beacon_comes_of_all_secrets_and_anybody_can_check_it() -> None:
    heads = day()
    assert [inside_of(one).draw.tomorrow for one in heads[:12]] == [None] * 12
    tomorrow = inside_of(heads[12]).draw.tomorrow
    assert tomorrow is not None
    assert tomorrow.day == FIRST // 24 + 1
    for share in inside_of(heads[11]).draw.reveals:
        committed = {one.author: one.value for one in inside_of(heads[5]).draw.commits}
        assert commitment(NETWORK.id, tomorrow.day, share.author, share.value) == committed[share.author]
    assert len(inside_of(heads[12]).draw.reveals) == 5
    assert inside_of(heads[24]).draw.today == tomorrow
    assert inside_of(heads[24]).draw.tomorrow is None
    assert secret_of(SEEDS[0], NETWORK.id, 5) != secret_of(SEEDS[0], NETWORK.id, 6)


@pytest.mark.parametrize(("silent", "false"), [(2, 0), (0, 2), (1, 1)])
def test_who_withholds_is_named_and_left_out_for_a_day(silent: int, false: int) -> None:
    heads = day(silent, false)
    assert inside_of(heads[12]).draw.tomorrow is not None
    assert inside_of(heads[12]).draw.tomorrow != inside_of(day()[12]).draw.tomorrow
    assert inside_of(heads[12]).draw.left_out == FIVE.keys[:2]
    assert [share.author for share in inside_of(heads[25]).draw.commits] == list(FIVE.keys[2:])


def test_without_enough_secrets_there_is_no_beacon_and_the_last_one_stays() -> None:
    heads = day(silent=3)
    assert inside_of(heads[23]).draw.tomorrow is None
    assert inside_of(heads[24]).draw.today is None
    assert len(inside_of(heads[12]).draw.left_out) == 3
    one = advance((heads[23].epoch, inside_of(heads[23]).draw), NETWORK.id, FIRST + 24, FIVE, {})
    assert one.today is None


def test_a_missing_head_delays_a_beacon_and_a_missing_day_ends_it() -> None:
    heads = day(missing=range(12, 14))
    assert heads[12].epoch == FIRST + 14
    assert inside_of(heads[12]).draw.tomorrow == inside_of(day()[12]).draw.tomorrow
    late = day(gap=72)
    assert inside_of(late[-1]).draw.today == inside_of(day()[12]).draw.tomorrow
    assert inside_of(late[-1]).draw.left_out == ()
