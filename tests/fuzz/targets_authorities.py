"""Targets: all that authorities say to each other, evidence, and their machine among those who lie."""

from __future__ import annotations

from functools import cache

import msgspec
from authority_world import FIRST, NETWORK, RELAYS, World, members, play
from core_examples import signed_descriptor
from fuzzing import Script, Target, scripts
from mutating import mutate_packed

from hushcast_protocol.authorities.actions import AuthorityState, Keep
from hushcast_protocol.authorities.ballots import Cast, read_ballot
from hushcast_protocol.authorities.chain import Chain, ChainState
from hushcast_protocol.authorities.descriptor_exchange import (
    MAX_BATCH,
    MAX_HAVE,
    AskDescriptors,
    DescriptorBatch,
    DescriptorExchange,
    HaveDescriptors,
    decode_peer_frame,
)
from hushcast_protocol.authorities.evidence import Evidence, Fork, check_evidence, check_fork
from hushcast_protocol.authorities.frames import AskBallot, AskListing, Assent, Echo, decode_frame
from hushcast_protocol.authorities.head_questions import AskHeads, Heads
from hushcast_protocol.authorities.heads import CertifiedHead, decode_head
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.authorities.schedule import schedule
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.roster import descriptor_digest
from hushcast_protocol.base.wire import decoder, encode

FIVE = members(5, 3)
MOST = 100  # bytes of a script: some forty moves, most of which sign or check
_evidence = decoder(Evidence, "evidence", 4096)
_fork = decoder(Fork, "fork", 1 << 16)
_TIMES = schedule(NETWORK.calendar, FIRST + 1, FIVE)


@cache
def _world() -> World:
    world = World(FIVE, two_faced=2)
    world.epoch(FIRST)
    return world


@cache
def _head() -> CertifiedHead:
    (certified,) = next(iter(_world().honest.values())).published
    return certified


@cache
def _echoes() -> tuple[Echo, ...]:
    return tuple(_world().cast(FIVE.keys[0], FIRST + 1, RELAYS[:many], FIVE.keys[1]) for many in (2, 3))


def _machine() -> Authority:
    """An honest authority in its first round of the second epoch."""
    member = next(iter(_world().honest.values()))
    machine = Authority(NETWORK, member.seed, member.disk, _TIMES.gathered - 1)
    machine.tick(_TIMES.gathered)
    machine.tick(_TIMES.cast)
    machine.cast(RELAYS, None, _TIMES.cast)
    return machine


def _frame(data: bytes) -> object:
    """A two-faced one says it: only what a quorum signed is followed, and what is kept reads back."""
    frame = decode_frame(data)
    assert decode_frame(encode(frame)) == frame
    machine = _machine()
    before = machine.chain.state
    for action in machine.received(FIVE.keys[0], data, _TIMES.cast + 1):
        if isinstance(action, Keep):
            assert msgspec.msgpack.decode(encode(action.kept), type=AuthorityState) == action.kept
    assert machine.chain.state == before, "moved by what no quorum signed"
    return frame


def _frames() -> list[bytes]:
    machine = _machine()
    own = machine.received(FIVE.keys[0], encode(_echoes()[0]), _TIMES.cast)
    asked = [AskBallot(FIRST + 1, _echoes()[0].ballot), AskHeads(None), AskHeads(FIRST)]
    listing = next(iter(_world().honest.values())).listings[FIRST]
    assent = _world().assent(FIVE.keys[0], FIRST + 1, bytes(32))
    assert own
    return [
        encode(one)
        for one in (
            *_echoes(),
            *asked,
            assent,
            Heads((_head(),)),
            Assent(1, bytes(32), bytes(64)),
            AskListing(listing.root),
            listing,
        )
    ]


def _gathered(data: bytes) -> object:
    """Whatever one says of descriptors, no more is asked of it, given to it or taken from it than may be."""
    frame = decode_peer_frame(data)
    assert decode_peer_frame(encode(frame)) == frame
    gathering, sender = DescriptorExchange(), FIVE.keys[0]
    signed = signed_descriptor(1)
    own = descriptor_digest(signed.body)
    asked = {known for question in gathering.ask(sender, [own]) for known in question.digests}
    if isinstance(frame, HaveDescriptors):
        for question in gathering.heard(sender, frame, {RELAYS[0][0]: 10}.get):
            assert len(question.digests) <= MAX_BATCH
            assert not asked & set(question.digests)
            asked |= set(question.digests)
        assert len(asked) <= MAX_HAVE + 1
    elif isinstance(frame, AskDescriptors):
        answer = gathering.asked(sender, frame, {own: signed}.get)
        assert (answer is not None) == (own in frame.digests)
    elif isinstance(frame, DescriptorBatch):
        for known, given in gathering.given(sender, frame):
            assert (known, given.body) == (own, signed.body)
    return frame


def _gatherings() -> list[bytes]:
    signed = signed_descriptor(1)
    own = descriptor_digest(signed.body)
    have = HaveDescriptors(
        tuple((relay, known, 10 + number) for number, (relay, known, _) in enumerate(RELAYS))
    )
    frames = (
        have,
        AskDescriptors((own, bytes(16))),
        AskDescriptors((own,)),
        DescriptorBatch((signed, signed)),
    )
    return [encode(one) for one in frames]


def _ballot(data: bytes) -> object:
    """Bytes that are not the ballot that was signed are not taken for it."""
    echo = _echoes()[0]
    ballot = read_ballot(data, Cast(NETWORK.id, echo.epoch, echo.author, echo.ballot))
    assert data == echo.body
    return ballot


def _certified(data: bytes) -> object:
    """Nothing but what a quorum signed moves a daemon."""
    chain = Chain(NETWORK.id, ChainState(FIVE))
    certified = CertifiedHead(data, _head().marks)
    decode_head(data)
    assert chain.take(certified)
    assert data == _head().head
    return certified


def _accused(data: bytes) -> object:
    found = _evidence(data)
    check_evidence(found, NETWORK.id)
    assert found.accused == FIVE.keys[0], "an honest one is accused"
    return found


def _accusations() -> list[bytes]:
    signed = []
    for echo in _echoes():
        body = encode(Cast(NETWORK.id, echo.epoch, echo.author, echo.ballot))
        signed.append(Signed(body, signature(_world().two_faced[echo.author], SignaturePurpose.BALLOT, body)))
    return [encode(Evidence(FIVE.keys[0], signed[0], other)) for other in (signed[1], signed[0])]


def _forked(data: bytes) -> object:
    found = _fork(data)
    check_fork(found, NETWORK.id, FIVE)
    raise AssertionError("two heads are proven where there is one")


def _play(data: bytes) -> None:
    """Whatever is lost, late, repeated or said by the two-faced: nobody honest says two things."""
    script = Script(data, MOST)
    play(lambda most: script.number() % most, lambda: bool(script))


TARGETS = [
    Target("authority-frame", _frame, _frames, (PeerError,), mutate_packed, weight=3),
    Target("authority-gathering", _gathered, _gatherings, (PeerError,), mutate_packed, weight=3),
    Target(
        "authority-ballot",
        _ballot,
        lambda: [echo.body for echo in _echoes() if echo.body],
        (PeerError,),
        mutate_packed,
    ),
    Target("authority-head", _certified, lambda: [_head().head], (PeerError,), mutate_packed),
    Target("authority-evidence", _accused, _accusations, (PeerError,), mutate_packed, weight=5),
    Target(
        "authority-fork", _forked, lambda: [encode(Fork(_head(), _head()))], (PeerError,), mutate_packed, 3
    ),
    Target("authorities", _play, lambda: scripts(size=MOST), weight=1),
]
