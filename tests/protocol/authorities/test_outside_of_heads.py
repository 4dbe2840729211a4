"""The outside of heads: every release follows them, of whatever wire; and the rules of their sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from authority_world import FIRST, NETWORK, SEEDS, World, members, start_of
from told_heads import head_told, retold

from hushcast_protocol.authorities.actions import AuthorityState, Phase, SendFrame
from hushcast_protocol.authorities.authority_set import MAX_SET, Authorities
from hushcast_protocol.authorities.chain import Chain, ChainState
from hushcast_protocol.authorities.directory_requests import HeadAnswer
from hushcast_protocol.authorities.frames import decode_frame
from hushcast_protocol.authorities.head_answers import follow, roster_of
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.head_questions import AskHeads, Heads
from hushcast_protocol.authorities.heads import (
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
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.authorities.network_rules import MAX_RULES, MAX_RULES_SIZE, rules_of
from hushcast_protocol.authorities.seat_admission import MAX_WORK, OPEN, SeatAdmission
from hushcast_protocol.base.cover_terms import NO_COVER
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT
from hushcast_protocol.base.roster import GENESIS, MAX_RELAYS
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.base.versions.wires import OtherWire, spoken
from hushcast_protocol.base.wire import encode

THREE = members(3, 2)
OTHER = spoken().highest + 1


def in_wire(number: int, authorities: Authorities = THREE) -> Authorities:
    return msgspec.structs.replace(authorities, wire=number)


def signed(body: bytes, epoch: int, signers: int = 2) -> CertifiedHead:
    accord = AssentBody(NETWORK.id, epoch, head_digest(body))
    marks = (IndexedSignature(place, assent_to(SEEDS[place], accord)) for place in range(signers))
    return CertifiedHead(body, tuple(marks))


def of_wire(number: int, epoch: int, inside: bytes, change: AuthorityChange | None = None) -> Head:
    return Head(NETWORK.id, epoch, GENESIS, in_wire(number), change, inside)


def grown(value: Any) -> Any:
    """What a release to come may send: each kind of the outside with one field more at its end."""
    if isinstance(value, list):
        longer = [grown(one) for one in value]
        tags = ("head", "authorities", "authority/1", "change", "certified", "mark")
        return [*longer, "of a release to come"] if value and value[0] in tags else longer
    return value


def test_a_chain_goes_on_through_wires_that_nobody_here_speaks() -> None:
    chain = Chain(NETWORK.id, ChainState(THREE))
    coming = AuthorityChange(FIRST + 48, in_wire(OTHER))
    before = encode(msgspec.structs.replace(head_told(NETWORK.id, FIRST, GENESIS, THREE), change=coming))
    assert chain.take(signed(before, FIRST))
    head = of_wire(OTHER, FIRST + 48, b"\xc1" * (MAX_HEAD - 2048), AuthorityChange(FIRST + 96, members(1, 1)))
    longer = encode(grown(msgspec.msgpack.decode(encode(head))))
    assert len(longer) <= MAX_HEAD
    assert decode_head(longer) == head
    certified = signed(longer, FIRST + 48)
    shown = decode_frame(encode(grown(msgspec.msgpack.decode(encode(Heads((certified,)))))))
    assert shown == Heads((certified,))
    assert chain.take(certified)
    assert chain.head is not None
    assert (chain.head.authorities.wire, chain.epoch) == (OTHER, FIRST + 48)
    assert chain.in_charge(FIRST + 96) == members(1, 1)
    kept = msgspec.msgpack.decode(encode(chain.state), type=ChainState)
    assert Chain(NETWORK.id, kept).head == chain.head
    with pytest.raises(OtherWire, match=r"this network speaks wire 2, and this program wire 1: install"):
        inside_of(chain.head)
    answer = HeadAnswer((certified,), (), (), False, None)
    assert follow(ChainState(THREE), answer.heads, NETWORK.id).newest == certified
    with pytest.raises(OtherWire):
        roster_of(answer, NETWORK)


def test_what_is_inside_is_checked_in_a_wire_that_is_spoken() -> None:
    chain = Chain(NETWORK.id, ChainState(THREE))
    for inside in (b"", b"\xc1", encode(["inside"]), encode(THREE)):
        body = encode(of_wire(spoken().highest, FIRST, inside))
        assert check_certified(signed(body, FIRST), NETWORK.id, THREE)
        with pytest.raises(DecodeError, match="inside"):
            chain.take(signed(body, FIRST))
    assert chain.epoch == -1


def test_signatures_of_another_kind_have_room_and_do_not_hold() -> None:
    body = encode(head_told(NETWORK.id, FIRST, GENESIS, THREE))
    good = signed(body, FIRST)
    large = IndexedSignature(1, bytes(MAX_SIGNATURE))
    other = msgspec.structs.replace(good, marks=(good.marks[0], large))
    assert decode_frame(encode(Heads((other,)))) == Heads((other,))
    with pytest.raises(AuthenticationError):
        check_certified(other, NETWORK.id, THREE)


def test_an_authority_that_does_not_speak_a_wire_follows_and_has_no_part() -> None:
    later = FIRST + 24
    state = ChainState(THREE)
    newest = signed(encode(of_wire(OTHER, later - 1, b"something")), later - 1)
    chain = msgspec.structs.replace(state, authorities=in_wire(OTHER), newest=newest)
    machine = Authority(NETWORK, SEEDS[0], AuthorityState(chain), start_of(later))
    actions = machine.tick(start_of(later) + 2)
    assert machine.phase is Phase.WAITING
    assert machine.epoch is None
    assert [type(one.frame) for one in actions if isinstance(one, SendFrame)] == [AskHeads]
    alone = msgspec.structs.replace(chain, authorities=in_wire(OTHER, members(1, 1)), newest=None)
    assert (
        Authority(NETWORK, SEEDS[0], AuthorityState(alone), start_of(later)).due_alone(start_of(later))
        is None
    )
    following = signed(encode(of_wire(OTHER, later, b"something else")), later)
    machine.take(SEEDS[1].public(), Heads((following,)), start_of(later) + 3)
    assert machine.chain.epoch == later


def test_a_set_keeps_rules_that_nobody_here_knows() -> None:
    """They are in the heads that follow, and in a set that an operator votes for instead."""
    unknown = ("a.rule_to_come", 7)
    rules = tuple(sorted([*rules_of(SeatAdmission(newcomers=1), 0, NOTHING_KEPT, NO_COVER), unknown]))
    world = World(msgspec.structs.replace(THREE, rules=rules))
    asked = members(3, 2, admission=SeatAdmission(work=4))
    for member in world.honest.values():
        member.following = asked.instead_of(world.authorities)
    for epoch in range(FIRST, FIRST + 25):
        world.epoch(epoch)
        head = decode_head(next(iter(world.honest.values())).published[-1].head)
        assert unknown in head.authorities.rules
        assert head.authorities.admission == (
            SeatAdmission(work=4) if epoch >= FIRST + 24 else SeatAdmission(newcomers=1)
        )
    assert head.authorities.shard_size == SHARD_SIZE


def test_rules_have_one_order_defaults_and_bounds() -> None:
    names = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(MAX_RULES + 1)]
    assert rules_of(OPEN, SHARD_SIZE, NOTHING_KEPT, NO_COVER) == ()
    assert (THREE.admission, THREE.shard_size) == (OPEN, SHARD_SIZE)
    for rules in (
        (("b", 1), ("a", 1)),
        (("a", 1), ("a", 2)),
        (("A", 1),),
        (("a", -1),),
        (("a" * 33, 1),),
        tuple((name, 1) for name in names),
    ):
        with pytest.raises(DecodeError):
            decode_head(encode(retold_set(rules)))
    everything = (
        ("admission.age", 2**40),
        ("admission.growth", 2**40),
        ("admission.newcomers", 2**40),
        ("admission.work", 2**40),
    )
    beyond = msgspec.structs.replace(THREE, rules=everything)
    assert beyond.admission == SeatAdmission(MAX_RELAYS, 1000, True, MAX_WORK)
    most = tuple(
        (f"{chr(97 + n // 26)}{chr(97 + n % 26)}".ljust(32, "z"), 2**48 - 1) for n in range(MAX_RULES)
    )
    assert len(encode(most)) <= MAX_RULES_SIZE
    assert len(encode(msgspec.structs.replace(members(9, 5), rules=most))) <= MAX_SET


def retold_set(rules: object) -> list[object]:
    """A head with rules that no set of ours has, as it would come."""
    head = msgspec.msgpack.decode(encode(head_told(NETWORK.id, FIRST, GENESIS, THREE)))
    head[4][4] = rules
    return head


def test_a_head_that_says_something_else_inside_is_another_head() -> None:
    head = head_told(NETWORK.id, FIRST, GENESIS, THREE)
    assert head_digest(encode(head)) != head_digest(encode(retold(head, count=1)))


def test_a_head_that_was_written_once_is_read_for_ever() -> None:
    """Those bytes are never made anew: a change of the outside that does not read them is a mistake."""
    golden = (Path(__file__).parents[2] / "data" / "wire-1" / "certified-head.bin").read_bytes()
    admission = SeatAdmission(20, 20, True, 8)
    authorities = members(3, 2, admission=admission)
    change = AuthorityChange(FIRST + 48, members(5, 3))
    told = head_told(NETWORK.id, FIRST, GENESIS, authorities, change, count=7)
    *inside, _, _ = msgspec.msgpack.decode(told.inside)  # which told of no candidates, nor of cover, then
    body = encode(msgspec.structs.replace(told, inside=msgspec.msgpack.encode(inside)))
    assert encode(signed(body, FIRST)) == golden
    (found,) = decode_frame(encode(Heads((signed(body, FIRST),)))).heads
    head = check_certified(found, NETWORK.id, THREE)
    assert (head.epoch, head.change, head.authorities.admission) == (FIRST, change, admission)
    assert (inside_of(head).count, inside_of(head).candidates) == (7, ())
