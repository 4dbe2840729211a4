"""One directory of five (quorum 4) shows a head of the set before, so that no head follows ever again.

Honest directories that were there take the ballot that goes on from it; one that began with the set of now
has never heard of that set. If each judged by what it holds, they would count different ballots for ever.
`tests/protocol/authorities/test_changing_sets.py` plays thousands of epochs with liars who try all they can.
"""

from __future__ import annotations

import msgspec
import pytest
from authority_world import FIRST, NETWORK, RELAYS, SEEDS, Member, World, members

from hushcast_protocol.authorities.ballots import Ballot, Cast, ballot_digest
from hushcast_protocol.authorities.frames import Echo
from hushcast_protocol.authorities.head_questions import Heads
from hushcast_protocol.authorities.heads import CertifiedHead, IndexedSignature, decode_head
from hushcast_protocol.authorities.tally import begins, in_charge_after, newest_shown
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.wire import encode

pytestmark = pytest.mark.slow

THREE, FIVE = members(3, 2), members(5, 4)


def five_after_three() -> tuple[World, int, CertifiedHead]:
    """Return five after three, of whom one began late, the next epoch, and the last head of the three."""
    world, epoch, last = World(THREE, joining=1), FIRST, None
    while world.authorities != FIVE:
        for member in world.honest.values():
            member.following = FIVE
        world.epoch(epoch)
        epoch += 1
        chain = world.honest[SEEDS[1].public()].machine.chain
        world.authorities = chain.in_charge(epoch) or THREE
        last = chain.state.newest
    assert last is not None
    world.epoch(epoch)
    world.honest[SEEDS[4].public()] = Member(world, SEEDS[4], FIVE)
    world.epoch(epoch + 1)
    return world, epoch + 2, last


async def test_a_ballot_that_goes_on_from_a_former_set_stops_nobody() -> None:
    world, epoch, last = five_after_three()
    liar = SEEDS[0].public()
    world.two_faced = {liar: SEEDS[0]}
    del world.honest[liar]
    for each in range(epoch, epoch + 3):
        ballot = Ballot(NETWORK.id, each, liar, last, RELAYS, b"\1" * 32, None, None)
        cast = Cast(NETWORK.id, each, liar, ballot_digest(encode(ballot)))
        mark = IndexedSignature(
            FIVE.keys.index(liar), signature(SEEDS[0], SignaturePurpose.BALLOT, encode(cast))
        )
        echo = Echo(each, liar, cast.ballot, (mark,), encode(ballot))

        def lie(echo: Echo = echo) -> None:
            for key in world.honest:
                world.send(liar, key, echo)

        world.epoch(each, lie)
        heads = {one.disk.chain.newest for one in world.honest.values()}
        assert [decode_head(one.head).epoch for one in heads if one is not None] == [each]


async def test_a_head_of_a_set_that_is_not_known_here_is_passed_over() -> None:
    """Who shows it is an honest one as often as not: its link stays."""
    world, _, last = five_after_three()
    late = world.honest[SEEDS[4].public()]
    assert late.machine.take(SEEDS[1].public(), Heads((last,)), world.now) == []


async def test_which_head_counts_follows_from_the_ballots_alone() -> None:
    world, epoch, last = five_after_three()
    newest = world.honest[SEEDS[1].public()].disk.chain.newest
    assert newest is not None

    def ballots(*shown: CertifiedHead | None) -> list[Ballot]:
        return [
            Ballot(NETWORK.id, epoch, key, one, RELAYS, None, None, None)
            for key, one in zip(FIVE.keys, shown, strict=False)
        ]

    assert newest_shown(FIVE, ballots(last, last, last, newest)) == newest
    # One of five may be a liar: two vouch for the set before, one does not.
    assert newest_shown(FIVE, ballots(last, None, None, None)) is None
    assert newest_shown(FIVE, ballots(last, last, None, None)) == last
    assert begins(FIVE, ballots(None, None, None, None, last))
    assert not begins(FIVE, ballots(None, None, None, last, last))


async def test_addresses_and_rules_are_those_of_the_head_before_not_of_who_counts() -> None:
    world, epoch, last = five_after_three()
    newest = world.honest[SEEDS[1].public()].machine.chain.head
    moved = [msgspec.structs.replace(one, address=onion_address(one.key)) for one in FIVE.members]
    older = msgspec.structs.replace(FIVE, members=tuple(moved))
    assert in_charge_after(newest, epoch, older) == FIVE
    assert in_charge_after(decode_head(last.head), epoch, older) == FIVE  # announced there
    assert in_charge_after(None, epoch, older) == older


async def test_who_is_to_come_hears_each_head_at_once_though_the_set_changed_before() -> None:
    """Else a liar who shows them the last one alone leaves them without the listing to go on from."""
    world, epoch, _ = five_after_three()
    comes = world.honest[SEEDS[5].public()] = Member(world, SEEDS[5], FIVE)
    for member in world.honest.values():
        member.following = members(5, 4, first=1)
    for each in range(epoch, epoch + 3):
        world.epoch(each)
    assert comes.machine.chain.epoch == epoch + 2
    assert comes.machine._lacks_listing() is None
