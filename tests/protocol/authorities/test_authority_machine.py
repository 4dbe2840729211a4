"""The machine of an authority: its table; and whatever is lost or restarted, nobody says two things."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from authority_world import FIRST, NETWORK, RELAYS, SEEDS, Member, World, members, play, start_of
from hypothesis import given, settings
from hypothesis import strategies as st
from told_heads import retold

from hushcast_protocol.authorities.actions import (
    Accuse,
    AuthorityCommand,
    AuthorityState,
    Keep,
    Phase,
    PublishHead,
    SendFrame,
    Stop,
)
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Ballot
from hushcast_protocol.authorities.chain import MAX_HEADS, MAX_TURNS, Chain, ChainState
from hushcast_protocol.authorities.evidence import check_fork, who_forked
from hushcast_protocol.authorities.frames import Assent, Echo, decode_frame
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.head_questions import AskHeads, Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.authorities.machine import MAX_ASKED, MAX_ASSENTS, MAX_LISTINGS, Authority
from hushcast_protocol.authorities.schedule import schedule
from hushcast_protocol.authorities.seat_admission import OPEN, SeatAdmission
from hushcast_protocol.authorities.tally import head_basis
from hushcast_protocol.base.errors import AuthenticationError, PeerError
from hushcast_protocol.base.wire import encode

FIVE = members(5, 3)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_nobody_honest_says_two_things_or_is_accused(script: bytes) -> None:
    data = iter(script)
    left = len(script)

    def pick(most: int) -> int:
        nonlocal left
        left -= 1
        return next(data, 0) % most

    play(pick, lambda: left > 0)


@pytest.mark.parametrize("seed", range(6))
def test_nor_in_a_long_life(seed: int) -> None:
    left = iter(range(300))
    play(Random(seed).randrange, lambda: next(left, None) is not None)


def heads_of(world: World) -> set[bytes]:
    return {one.published[-1].head for one in world.honest.values() if one.published}


# The table, row by row.


def test_an_epoch_of_one() -> None:
    """n = 1, q = 1 is the same machine: on disk, then published, at the time of a roster of before."""
    world = World(members(1, 1))
    (member,) = world.honest.values()
    machine = member.machine
    times = schedule(NETWORK.calendar, FIRST, world.authorities)
    assert machine.deadline == times.gathered
    assert machine.tick(times.gathered - 1) == []
    assert machine.tick(times.gathered) == [AuthorityCommand.GATHER]
    assert machine.deadline == times.cast
    assert machine.tick(times.cast) == [AuthorityCommand.VOTE]
    assert machine.cast(RELAYS, None, times.cast) == [Keep(machine.kept)]
    assert machine.deadline == times.counted == times.cast + 300
    first, second, published = machine.tick(times.counted)
    assert isinstance(first, Keep)
    assert first.kept.assented == FIRST
    assert first.kept.chain.newest is None
    assert isinstance(second, Keep)
    assert isinstance(published, PublishHead)
    assert second.kept.chain.newest == published.certified
    assert first.listing == published.listing
    assert published.listing.seats == tuple((*one, FIRST) for one in RELAYS)
    assert inside_of(decode_head(published.certified.head)).count == 3
    assert times.published == NETWORK.calendar.epoch_start(FIRST) - NETWORK.calendar.lead


def test_one_alone_waits_for_nobody() -> None:
    world = World(members(1, 1))
    (member,) = world.honest.values()
    machine, now = member.machine, start_of(FIRST)
    vote, assent, kept, published = machine.alone(RELAYS, None, now)
    assert isinstance(vote, Keep)
    assert isinstance(assent, Keep)
    assert isinstance(kept, Keep)
    assert isinstance(published, PublishHead)
    assert (vote.kept.voted, assent.kept.assented) == (FIRST - 1, FIRST - 1)
    assert assent.listing == published.listing
    assert published.listing.epoch == machine.chain.epoch == FIRST - 1
    assert machine.alone(RELAYS, None, now) == []
    member.disk = kept.kept
    world.epoch(FIRST)
    assert machine.chain.epoch == FIRST
    # After days away it goes on at once, and then as before.
    world.now += 3 * 86400
    member.listings[FIRST] = member.listings.get(FIRST, published.listing)
    member.restart()
    epoch = NETWORK.calendar.epoch(world.now + NETWORK.calendar.lead)
    assert isinstance(member.machine.alone(RELAYS, None, world.now)[-1], PublishHead)
    assert member.machine.chain.epoch == epoch
    assert World(FIVE).honest[FIVE.keys[0]].machine.alone(RELAYS, None, now) == []


def test_one_goes_on_from_the_last_roster_of_a_single_directory() -> None:
    one, roster = members(1, 1), bytes([9]) * 32
    before = Listing(FIRST, tuple((*one, FIRST - 50) for one in RELAYS[:2]), ())
    kept = AuthorityState(ChainState(one, beginning=roster))
    machine = Authority(NETWORK, SEEDS[0], kept, start_of(FIRST), before)
    assert machine.alone(RELAYS, None, start_of(FIRST)) == []  # there is a roster for that epoch
    times = schedule(NETWORK.calendar, FIRST + 1, one)
    assert machine.deadline == times.gathered
    machine.tick(times.gathered)
    machine.tick(times.cast)
    machine.cast(RELAYS, None, times.cast)
    *_, published = machine.tick(times.counted)
    assert isinstance(published, PublishHead)
    assert decode_head(published.certified.head).previous == roster
    assert [since for *_, since in published.listing.seats] == [FIRST - 50, FIRST - 50, FIRST + 1]


def test_without_the_listing_before_there_is_no_assent_until_it_comes() -> None:
    world = World(FIVE)
    world.epoch(FIRST)
    lost = next(iter(world.honest.values()))
    lost.listings.clear()
    lost.restart()
    assert not any(isinstance(one, PublishHead) for one in lost.machine.tick(lost.machine.deadline))
    lost.machine.phase = Phase.VOTING
    ballot = Ballot(NETWORK.id, FIRST + 1, FIVE.keys[1], lost.disk.chain.newest, RELAYS, None, None, None)
    ballots = {FIVE.keys[1]: ballot}
    assert head_basis(FIVE, ballots, lost.machine.key, None, lost.machine._listings) is None
    world.epoch(FIRST + 1)
    lost.restart()
    world.epoch(FIRST + 2)
    assert lost.disk.assented == FIRST + 2
    assert FIRST + 1 in lost.listings
    # Another listing than the one asked for is passed over, and few are held.
    made_up = encode(Listing(FIRST + 2, (), ()))
    assert lost.machine.received(FIVE.keys[1], made_up, world.now) == []
    for number in range(MAX_LISTINGS + 3):
        lost.machine.know(Listing(number, (), ()))
    assert len(lost.machine._listings) == MAX_LISTINGS
    lost.machine._listings.clear()
    assert lost.machine.received(FIVE.keys[1], made_up, world.now) == []
    assert lost.machine._listings == {}


def test_a_quorum_agrees_with_two_silent() -> None:
    world = World(FIVE, two_faced=2)
    for epoch in range(FIRST, FIRST + 3):
        world.epoch(epoch)
        (head,) = heads_of(world)
        assert decode_head(head).epoch == epoch
    assert all(len(one.published) == 3 for one in world.honest.values())
    assert not any(one.proofs for one in world.honest.values())


def test_three_silent_leave_no_head_until_they_are_back() -> None:
    world = World(FIVE)
    gone = [world.honest.pop(key) for key in FIVE.keys[:3]]
    for epoch in range(FIRST, FIRST + 24):
        world.epoch(epoch)
    assert not heads_of(world)
    for one in gone:
        one.restart()
        world.honest[one.key] = one
    world.epoch(FIRST + 24)
    world.epoch(FIRST + 25)
    (head,) = heads_of(world)
    assert decode_head(head).epoch == FIRST + 25
    assert len([one for one in world.honest.values() if one.published]) == 5


def test_a_relay_needs_more_than_half_of_all_authorities() -> None:
    world = World(FIVE, two_faced=2)
    ours = list(world.honest.values())
    ours[0].listed = RELAYS[:1]
    ours[1].listed = RELAYS[:2]
    ours[2].listed = RELAYS  # two of the three that are there list the second: not enough
    world.epoch(FIRST)
    (head,) = heads_of(world)
    assert inside_of(decode_head(head)).count == 1


def test_who_equivocates_is_named_and_counts_for_nothing() -> None:
    world = World(FIVE, two_faced=2)
    liar = FIVE.keys[0]
    targets = list(world.honest)
    versions = [world.cast(liar, FIRST, RELAYS[:1]), world.cast(liar, FIRST, RELAYS[:2])]

    def lie() -> None:
        while versions:
            world.send(liar, targets[len(versions)], versions.pop())

    world.epoch(FIRST, lie)
    (head,) = heads_of(world)
    assert inside_of(decode_head(head)).faults == (liar,)
    for one in world.honest.values():
        (proof,) = one.proofs
        assert isinstance(proof, Accuse)
        assert proof.evidence.accused == liar


def partitioned(authorities: Authorities, two_faced: int) -> World:
    """Let an epoch go while all between two halves is late, and the two-faced sign with both."""
    world = World(authorities, two_faced)
    honest = list(world.honest)
    half = set(honest[: len(honest) // 2])
    late = []

    def between() -> None:
        for item in list(world.on_the_way):
            if (item[0] in half) != (item[1] in half) and item[0] in world.honest:
                world.on_the_way.remove(item)
                late.append(item)

    deliver = world.deliver

    def only_within() -> None:
        between()
        while world.on_the_way:
            sender, to, data = world.on_the_way.pop(0)
            world.honest[to].hear(sender, data)
            between()

    casts = [
        world.cast(liar, FIRST, RELAYS[: 1 + (key in half)], *world.two_faced)
        for key in honest
        for liar in world.two_faced
    ]
    said = []

    def lie() -> None:
        if not said:
            said.append(True)
            for number, cast in enumerate(casts):
                world.send(cast.author, honest[number // len(world.two_faced)], cast)
        for key, one in world.honest.items():
            for liar in world.two_faced:
                if one.machine.phase is Phase.ASSENTING and one.machine._head is not None:
                    world.send(liar, key, world.assent(liar, FIRST, head_digest(one.machine._head)))

    world.deliver = only_within  # type: ignore[method-assign]
    world.epoch(FIRST, lie)
    world.deliver = deliver  # type: ignore[method-assign]
    world.on_the_way = late
    return world


def test_one_that_signs_twice_and_late_messages_fork_five_of_three() -> None:
    """2q − n = 1: the bound is told, and the fork is proven as soon as messages come."""
    world = partitioned(FIVE, two_faced=1)
    assert len(heads_of(world)) == 2
    world.deliver()
    for one in world.honest.values():
        assert one.machine.phase is Phase.STOPPED
        (fork,) = [proof.fork for proof in one.proofs if isinstance(proof, Stop)]
        check_fork(fork, NETWORK.id, FIVE)
        assert [proof.accused for proof in who_forked(fork, NETWORK.id, FIVE)] == list(world.two_faced)
        assert {one.evidence.accused for one in one.proofs if isinstance(one, Accuse)} == {*world.two_faced}


@pytest.mark.parametrize(("count", "quorum", "two_faced"), [(5, 4, 2), (7, 5, 2), (3, 3, 2)])
def test_fewer_than_it_takes_never_fork(count: int, quorum: int, two_faced: int) -> None:
    world = partitioned(members(count, quorum), two_faced)
    assert len(heads_of(world)) <= 1
    world.deliver()
    assert all(one.machine.phase is not Phase.STOPPED for one in world.honest.values())


@pytest.mark.parametrize("rounds", [2, 3])
def test_it_takes_all_rounds(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two who show a ballot in the last round to one alone split the rest if there is a round too few."""
    monkeypatch.setattr(Authorities, "rounds", property(lambda self: rounds))
    world = World(FIVE, two_faced=2)
    one, other = FIVE.keys[:2]
    target = next(iter(world.honest))
    times = schedule(NETWORK.calendar, FIRST, FIVE)

    def lie() -> None:
        if world.now < times.cast + 2 * times.round and world.now > times.cast + times.round:
            world.send(one, target, world.cast(one, FIRST, RELAYS[:1], other))

    world.epoch(FIRST, lie)
    assented = {each.said[Assent, FIRST] for each in world.honest.values()}
    assert len(assented) == (1 if rounds == FIVE.rounds else 2)


def test_three_of_five_do_as_they_like() -> None:
    """More than n − q: with messages in time, too, three who sign anything make two heads."""
    world = partitioned(FIVE, two_faced=3)
    assert len(heads_of(world)) == 2


def test_a_restart_sits_out_and_never_votes_twice() -> None:
    world = World(FIVE)
    one = next(iter(world.honest.values()))
    times = schedule(NETWORK.calendar, FIRST, FIVE)
    world.pass_to(times.cast)
    assert one.disk.voted == FIRST
    assert one.machine.cast(RELAYS[:1], None, times.cast) == []
    one.restart()
    assert one.machine.deadline == times.gathered + 3600
    # Nor where a clock is set back.
    back = Authority(NETWORK, one.seed, one.disk, start_of(FIRST))
    assert back.deadline == times.gathered + 3600
    world.epoch(FIRST)
    world.epoch(FIRST + 1)
    assert len(heads_of(world)) == 1
    assert len(one.published) == 2


def test_too_late_to_cast_is_sat_out() -> None:
    times = schedule(NETWORK.calendar, FIRST, FIVE)
    world = World(FIVE)
    machine = next(iter(world.honest.values())).machine
    late = times.cast + times.round
    assert machine.tick(late) == []
    assert machine.deadline == times.gathered + 3600
    machine = Authority(NETWORK, SEEDS[0], AuthorityState(ChainState(FIVE)), start_of(FIRST))
    assert machine.tick(times.gathered) == [AuthorityCommand.GATHER]
    assert machine.tick(late) == [AuthorityCommand.VOTE]
    assert machine.cast(RELAYS, None, late) == []
    assert machine.kept.voted == -1


def test_who_was_away_comes_back_with_the_exchange() -> None:
    world = World(FIVE)
    away = world.honest.pop(FIVE.keys[4])
    for epoch in range(FIRST, FIRST + 3):
        world.epoch(epoch)
    world.honest[away.key] = away
    away.restart()
    world.epoch(FIRST + 3)
    assert len({one.disk.chain.newest.head for one in world.honest.values() if one.disk.chain.newest}) == 1


def test_assents_of_others_are_held_to_two() -> None:
    world = World(FIVE, two_faced=1)
    liar = FIVE.keys[0]
    one = next(iter(world.honest.values()))
    world.pass_to(schedule(NETWORK.calendar, FIRST, FIVE).cast)
    for number in range(MAX_ASSENTS + 2):
        one.hear(liar, encode(world.assent(liar, FIRST, bytes([number]) * 32)))
    assert len(one.proofs) == 1
    with pytest.raises(AuthenticationError):
        one.hear(FIVE.keys[2], encode(world.assent(liar, FIRST, bytes(32))))
    with pytest.raises(AuthenticationError, match="nobody"):
        one.hear(SEEDS[8].public(), encode(world.assent(liar, FIRST, bytes(32))))


def test_questions_are_answered_a_few_times_an_epoch() -> None:
    world = World(FIVE)
    world.epoch(FIRST)
    one = next(iter(world.honest.values()))
    asked = encode(AskHeads(None))
    answers = [one.machine.received(FIVE.keys[1], asked, world.now) for _ in range(MAX_ASKED + 3)]
    assert sum(map(bool, answers)) == MAX_ASKED
    (send,) = answers[0]
    assert isinstance(send, SendFrame)
    assert send.frame == Heads((one.published[-1],))
    assert one.machine.received(SEEDS[8].public(), asked, world.now) == []


# Heads that nobody agreed on.


def test_heads_without_a_quorum_move_nobody() -> None:
    world = World(FIVE)
    world.epoch(FIRST)
    chain = Chain(NETWORK.id, ChainState(FIVE))
    (certified, *_) = next(iter(world.honest.values())).published
    made_up = encode(retold(decode_head(certified.head), root=bytes(32)))
    marks = certified.marks
    for false in (
        msgspec.structs.replace(certified, marks=marks[:2]),
        msgspec.structs.replace(certified, marks=(marks[0],) * 3),
        CertifiedHead(made_up, marks),
        msgspec.structs.replace(certified, head=certified.head + b"\x00"),
    ):
        with pytest.raises(PeerError):
            chain.take(false)
    assert chain.epoch == -1
    assert chain.take(certified)
    assert not chain.take(certified)
    other = Chain(bytes(32), ChainState(FIVE))
    with pytest.raises(PeerError):
        other.take(certified)


def test_a_chain_compares_two_days_of_heads() -> None:
    world = World(members(1, 1))
    (member,) = world.honest.values()
    for epoch in range(FIRST, FIRST + MAX_HEADS + 2):
        world.epoch(epoch)
    assert len(member.machine.chain._heads) == MAX_HEADS
    assert member.machine.chain.epoch == FIRST + MAX_HEADS + 1


# The set of authorities changes.


@pytest.mark.slow
def test_one_becomes_three_and_who_was_away_follows() -> None:
    one, three, five = members(1, 1), members(3, 2), FIVE
    world = World(one, joining=4)
    away = Chain(NETWORK.id, ChainState(one))
    for epoch in range(FIRST, FIRST + 2 * 48 + 30):
        for member in world.honest.values():
            member.following = three if epoch < FIRST + 50 else five
        newest = next(iter(world.honest.values())).machine.chain
        world.authorities = newest.in_charge(epoch) or one
        world.epoch(epoch)
        heads = [each.machine.chain.head for each in world.honest.values()]
        if epoch == FIRST:
            assert heads[0] is not None
            assert heads[0].change is not None
            assert heads[0].change.epoch == FIRST + 24  # a whole day ahead
            assert heads[0].change.authorities == three
    assert world.authorities == five
    assert len({each and each.epoch for each in heads}) == 1
    assert len(newest.state.turns) == 2
    for certified in newest.after(None):
        away.take(certified)
    assert away.head == newest.head
    # Who lacks the way does not believe the end of it.
    lost = Chain(NETWORK.id, ChainState(one))
    assert newest.state.newest is not None
    assert newest.head is not None
    assert not lost.knows_set_of(newest.head)
    with pytest.raises(AuthenticationError, match="other authorities"):
        lost.take(newest.state.newest)


def test_rules_and_addresses_change_as_the_set_does_and_need_no_turn() -> None:
    rules = SeatAdmission(newcomers=1)
    world = World(members(1, 1))
    (member,) = world.honest.values()
    member.following = members(1, 1, admission=rules)
    chains = [Chain(NETWORK.id, ChainState(members(1, 1))) for _ in range(2)]
    for epoch in range(FIRST, FIRST + 26):
        world.epoch(epoch)
        chains[0].take(member.published[-1])
        head = decode_head(member.published[-1].head)
        assert head.authorities.admission == (rules if epoch >= FIRST + 24 else OPEN)
    # Who was away meanwhile knows the keys, and so all else.
    chains[1].take(member.published[-1])
    for chain in chains:
        assert chain.state.authorities == member.following
        assert chain.state.turns == ()


def test_the_oldest_changes_are_forgotten() -> None:
    world = World(members(1, 1))
    (member,) = world.honest.values()
    member.following = following = members(1, 1, first=1)
    world.epoch(FIRST)
    (first,) = member.published
    state = msgspec.structs.replace(member.disk.chain, turns=(first,) * MAX_TURNS)
    chain = Chain(NETWORK.id, state)
    changed = msgspec.structs.replace(
        decode_head(first.head), epoch=FIRST + 24, authorities=following, change=None
    )
    accord = AssentBody(NETWORK.id, changed.epoch, head_digest(encode(changed)))
    assert chain.take(CertifiedHead(encode(changed), (IndexedSignature(0, assent_to(SEEDS[1], accord)),)))
    assert len(chain.state.turns) == MAX_TURNS
    assert chain.state.authorities == following


def test_fewer_than_a_quorum_change_no_set() -> None:
    world = World(FIVE)
    for member in list(world.honest.values())[:2]:
        member.following = members(1, 1)
    world.epoch(FIRST)
    (head,) = heads_of(world)
    assert decode_head(head).change is None


def test_what_is_kept_reads_back() -> None:
    world = World(FIVE)
    world.epoch(FIRST)
    member: Member = next(iter(world.honest.values()))
    assert msgspec.msgpack.decode(encode(member.disk), type=AuthorityState) == member.disk
    assert isinstance(decode_frame(encode(Heads((member.published[-1],)))), Heads)
    assert Echo.__struct_config__.tag == "echo"
