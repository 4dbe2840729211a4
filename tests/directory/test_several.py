"""Several directories: a daemon takes what a quorum signed, whatever a minority answers, and nothing else."""

from __future__ import annotations

import random
from contextlib import nullcontext

import msgspec
import pytest
import trio
from directory_bench import CALENDAR, NETWORK
from several_bench import (
    FIRST,
    Say,
    SeveralBench,
    Truth,
    a_set,
    agreed,
    digest_of,
    drawn,
    entry,
    epoch_of,
)

from hushcast_directory.client.several_directories import PATIENCE
from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.directory_requests import (
    HeadAnswer,
    KeySuccession,
    Rosters,
    decode_directory_answer,
)
from hushcast_protocol.authorities.head_answers import follow, roster_of
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import AuthorityChange, CertifiedHead, decode_head
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Network, Roster, RosterView
from hushcast_protocol.base.wire import encode
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import TransportError

HANDED_IN = entry(7, FIRST).descriptor


def replaced(answer: HeadAnswer, **changes: object) -> HeadAnswer:
    return msgspec.structs.replace(answer, **changes)


def newest(truth: Truth) -> HeadAnswer:
    return truth.held[-1]


def unsigned(answer: HeadAnswer, keep: int) -> HeadAnswer:
    """The answer with so many signatures left."""
    last = answer.heads[-1]
    return replaced(answer, heads=(CertifiedHead(last.head, last.marks[:keep]),))


def made_up(truth: Truth, after: int | None) -> HeadAnswer:
    """A head of the running epoch that two of five signed."""
    return agreed(truth.authorities, epoch_of(newest(truth)), (0, 9), signers=truth.authorities.quorum - 1)


def by_its_own(truth: Truth, after: int | None) -> HeadAnswer:
    """A head by authorities of the liar's choice."""
    return agreed(a_set(5, 3, first=5), epoch_of(newest(truth)) + 1)


def signed_thrice(truth: Truth, after: int | None) -> HeadAnswer:
    """One signature, given three times."""
    certified = newest(truth).heads[-1]
    return replaced(newest(truth), heads=(CertifiedHead(certified.head, certified.marks[:1] * 3),))


def with_a_relay_more(truth: Truth, after: int | None) -> HeadAnswer:
    last = newest(truth)
    return replaced(last, seats=(*last.seats, entry(9, FIRST)))


def without_a_relay(truth: Truth, after: int | None) -> HeadAnswer:
    return replaced(newest(truth), seats=newest(truth).seats[1:])


def since_another_epoch(truth: Truth, after: int | None) -> HeadAnswer:
    first, *others = newest(truth).seats
    return replaced(newest(truth), seats=(replaced(first, since=FIRST - 1), *others))  # type: ignore[type-var, arg-type]


def with_one_that_waits(truth: Truth, after: int | None) -> HeadAnswer:
    return replaced(newest(truth), waiting=((bytes(32), FIRST),))


def of_the_beginning(truth: Truth, after: int | None) -> HeadAnswer:
    return truth.held[0]


def nothing(truth: Truth, after: int | None) -> HeadAnswer:
    return HeadAnswer((), (), (), False, None)


def alone(truth: Truth, after: int | None) -> Rosters:
    return Rosters(None, False)


def handing_over(truth: Truth, after: int | None) -> KeySuccession:
    return KeySuccession((HANDED_IN,))


LIES: list[Say] = [
    made_up,
    by_its_own,
    signed_thrice,
    with_a_relay_more,
    without_a_relay,
    since_another_epoch,
    with_one_that_waits,
    of_the_beginning,
    nothing,
    alone,
    handing_over,
]


async def to_the_next_epoch(world: SeveralBench) -> None:
    epoch = CALENDAR.epoch(world.env.now()) + 1
    await trio.sleep(CALENDAR.epoch_start(epoch) - world.env.now())


# A minority


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
async def test_no_answer_of_a_minority_moves_a_daemon(lie: Say) -> None:
    for number in range(6):  # whoever is asked first
        world = SeveralBench()
        world.lies = dict.fromkeys(world.truth.authorities.keys[:2], lie)
        daemon = world.daemon()
        world.asked = list(world.truth.authorities.keys[:1]) * number
        for epoch in (FIRST, FIRST + 1, FIRST + 2):
            world.truth.agree(epoch)
            await daemon.catch_up()
            assert daemon.digest == digest_of(newest(world.truth))
            await to_the_next_epoch(world)


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_two_of_five_do_every_epoch_s_head_is_taken_and_no_other(seed: int) -> None:
    draw = random.Random(seed)
    world, store = SeveralBench(), MemoryStore()
    daemon = world.daemon(store)
    keys = world.truth.authorities.keys
    for epoch in range(FIRST, FIRST + 12):
        faulty = draw.sample(keys, 2)
        world.lies = {key: draw.choice(LIES) for key in faulty if draw.random() < 0.6}
        world.away = {key for key in faulty if key not in world.lies and draw.random() < 0.5}
        world.silent = set(faulty) - world.lies.keys() - world.away
        honest = world.truth.agree(epoch, draw.sample(range(6), 4))
        await daemon.catch_up()
        assert daemon.digest == digest_of(honest), epoch
        assert set(daemon.keeper.whole.current().relays) == set(roster_of(honest, NETWORK).relays)
        if draw.random() < 0.3:
            daemon = world.daemon(store)
            await daemon.keeper.load()
            assert daemon.digest == digest_of(honest)
        await trio.sleep(CALENDAR.epoch_start(epoch + 1) - world.env.now())


async def test_liars_are_counted_and_another_one_is_asked() -> None:
    world = SeveralBench()
    world.truth.agree(FIRST)
    world.lies = dict.fromkeys(world.truth.authorities.keys, made_up)
    daemon = world.daemon()
    with pytest.raises(AuthenticationError, match="too few"):
        await daemon.catch_up()
    assert len(set(world.asked)) == 5
    assert daemon.counters["heads_refused"] == 5
    assert daemon.digest is None
    del world.lies[world.truth.authorities.keys[3]]
    await daemon.catch_up()
    assert daemon.digest == digest_of(newest(world.truth))


async def test_a_silent_one_is_not_waited_for() -> None:
    world = SeveralBench()
    world.truth.agree(FIRST)
    world.silent = set(world.truth.authorities.keys[:4])
    daemon, began = world.daemon(), trio.current_time()
    await daemon.catch_up()
    assert daemon.digest == digest_of(newest(world.truth))
    patience = min(PATIENCE, CALENDAR.lead / 6)
    assert trio.current_time() - began <= 4 * patience
    assert daemon.source.reached().answered == 5, "those left aside were not heard out"


async def test_silent_ones_keep_no_daemon_that_asks_too_early() -> None:
    """The others have nothing new yet: it asks again soon, and has not waited for an answer of the silent."""
    world = SeveralBench()
    world.silent = set(world.truth.authorities.keys[:2])
    daemon, began = world.daemon(), trio.current_time()
    await daemon.catch_up()
    assert daemon.digest is None
    world.truth.agree(FIRST)
    await daemon.catch_up()
    assert daemon.digest == digest_of(newest(world.truth))
    assert trio.current_time() - began <= 4 * min(PATIENCE, CALENDAR.lead / 6)
    world.away = set(world.truth.authorities.keys[2:])
    with pytest.raises(TransportError):
        await daemon.catch_up()


async def test_without_any_a_daemon_goes_on_with_what_it_has() -> None:
    world = SeveralBench()
    world.truth.agree(FIRST)
    daemon = world.daemon()
    await daemon.catch_up()
    world.away = set(world.truth.authorities.keys)
    world.truth.agree(FIRST + 1)
    with pytest.raises(TransportError):
        await daemon.catch_up()
    assert daemon.keeper.whole.current().epoch == FIRST
    assert daemon.source.reached() == (5, 0, None)
    world.away = set(world.truth.authorities.keys[1:])
    await daemon.catch_up()
    assert daemon.digest == digest_of(newest(world.truth))
    assert daemon.source.reached() == (5, 1, None)


# Forks


def two_heads(truth: Truth, epoch: int) -> HeadAnswer:
    """Two heads of one epoch that a quorum signed each: who signed both has given itself away."""
    authorities, last = truth.authorities, newest(truth)
    other = agreed(authorities, epoch, (4, 5), decode_head(last.heads[-1].head).previous)
    return HeadAnswer((last.heads[-1], other.heads[-1]), (), (), False, None)


async def test_a_fork_is_kept_and_ends_it_while_the_daemon_goes_on() -> None:
    world, store = SeveralBench(), MemoryStore()
    world.truth.agree(FIRST)
    daemon = world.daemon(store)
    await daemon.catch_up()
    world.truth.agree(FIRST + 1)
    proof = two_heads(world.truth, FIRST + 1)
    world.lies = {key: lambda truth, after: proof for key in world.truth.authorities.keys}
    with pytest.raises(AuthenticationError, match="two rosters"):
        await daemon.catch_up()
    for again in (daemon, world.daemon(store)):
        await again.keeper.load()
        world.lies.clear()
        with pytest.raises(AuthenticationError, match="two rosters"):
            await again.catch_up()
        assert again.source.reached().fork == FIRST + 1
        assert again.keeper.whole.current().epoch == FIRST
        state = again.following.state
        assert state is not None
        assert state.fork is not None
        assert {state.fork.first, state.fork.second} == set(proof.heads)


async def test_another_head_of_the_epoch_held_is_a_fork() -> None:
    world = SeveralBench()
    world.truth.agree(FIRST)
    daemon = world.daemon()
    await daemon.catch_up()
    other = agreed(world.truth.authorities, FIRST, (4, 5))
    with pytest.raises(AuthenticationError, match="two rosters"):
        await daemon.source.examine(other, daemon.keeper.newest)
    assert daemon.source.reached().fork == FIRST


async def test_where_a_peer_shows_another_roster_all_are_asked_and_a_fork_is_found() -> None:
    world = SeveralBench()
    world.truth.agree(FIRST)
    daemon = world.daemon()
    await daemon.catch_up()
    last = agreed(world.truth.authorities, FIRST, (4, 5))
    for claimed, fork in ((made_up(world.truth, None), None), (last, FIRST)):
        # One of five has another head; the relay that shows it, or the directory, may have made it up.
        world.lies = {world.truth.authorities.keys[2]: lambda truth, after, given=claimed: given}  # type: ignore[misc]
        with pytest.raises(AuthenticationError, match="another roster"):
            daemon.keeper.compare(RosterView(FIRST, digest_of(claimed)))
        with pytest.raises(AuthenticationError, match="two rosters") if fork else nullcontext():
            await daemon.keeper._compare_doubted()
        assert daemon.source.reached().fork == fork
        await daemon.keeper._compare_doubted()  # asked once
    assert daemon.keeper.whole.current().epoch == FIRST


async def test_silent_ones_are_not_waited_for_when_heads_are_compared() -> None:
    world = SeveralBench()
    world.truth.agree(FIRST)
    daemon = world.daemon()
    await daemon.catch_up()
    world.silent = set(world.truth.authorities.keys[:2])
    began = trio.current_time()
    await daemon.source.compare(FIRST)
    assert trio.current_time() - began <= PATIENCE
    assert daemon.following.forked is None


async def test_two_heads_of_too_few_signatures_are_no_fork() -> None:
    world = SeveralBench()
    world.truth.agree(FIRST)
    daemon = world.daemon()
    await daemon.catch_up()
    made = made_up(world.truth, None)
    with pytest.raises(AuthenticationError, match="too few"):
        await daemon.source.examine(made, daemon.keeper.newest)
    assert daemon.source.reached().fork is None


# Other authorities


async def test_a_daemon_follows_from_one_authority_to_three_and_five() -> None:
    one, three, five = a_set(1, 1), a_set(3, 2), a_set(5, 3)
    world, store = SeveralBench(1, 1), MemoryStore()
    daemon = world.daemon(store, one)
    world.truth.agree(FIRST, change=AuthorityChange(FIRST + 2, three))
    await daemon.catch_up()
    assert [member.key for member in daemon.following.coming()] == list(three.keys[1:])
    for epoch in range(FIRST + 1, FIRST + 8):
        await trio.sleep(CALENDAR.epoch_start(epoch) - world.env.now())
        world.truth.agree(epoch, change=AuthorityChange(FIRST + 6, five) if epoch == FIRST + 3 else None)
        if epoch not in (FIRST + 2, FIRST + 5):  # it may be away
            await daemon.catch_up()
    assert daemon.digest == digest_of(newest(world.truth))
    assert daemon.following.members() == list(five.members)
    assert len(daemon.following.coming()) == 0
    alone = agreed(one, FIRST + 9)
    with pytest.raises(AuthenticationError, match="other authorities"):
        await daemon.source.examine(alone, daemon.keeper.newest)
    for pinned in (one, three, five):  # whichever of them its configuration names
        again = world.daemon(store, pinned)
        await again.keeper.load()
        assert again.digest == digest_of(newest(world.truth))
    other = world.daemon(store, a_set(5, 4))
    await other.keeper.load()
    assert other.digest is None
    fresh = world.daemon(pinned=one)
    await fresh.catch_up()
    assert fresh.digest == digest_of(newest(world.truth))
    late = world.daemon(pinned=three)
    await late.catch_up()
    assert late.digest == digest_of(newest(world.truth))
    stranger = world.daemon(pinned=a_set(5, 3, first=6))
    with pytest.raises(AuthenticationError, match="no head of the authorities"):
        await stranger.catch_up()


async def test_of_a_set_nothing_is_believed_that_it_does_not_sign() -> None:
    world, store = SeveralBench(), MemoryStore()
    honest = world.truth.agree(FIRST)
    pinned = msgspec.structs.replace(
        world.truth.authorities,
        members=tuple(
            AuthorityContact(key, one.address)
            for key, one in zip(world.truth.authorities.keys, a_set(5, 3, 6).members, strict=True)
        ),
    )
    daemon = world.daemon(store, pinned)
    assert daemon.following.members() == list(pinned.members), "found where the configuration says"
    await daemon.catch_up()
    assert daemon.following.members() == [*world.truth.authorities.members, *pinned.members]
    state = daemon.following.state
    assert state is not None
    assert state.authorities == decode_head(honest.heads[-1].head).authorities


# Registration


@pytest.mark.parametrize(("away", "taken"), [(0, True), (2, True), (3, False), (5, False)])
@pytest.mark.parametrize("how", ["away", "silent", "lies"])
async def test_a_relay_is_registered_where_more_than_half_take_it(away: int, taken: bool, how: str) -> None:
    world = SeveralBench()
    daemon, keys = world.daemon(), world.truth.authorities.keys
    if how == "lies":
        world.lies = dict.fromkeys(keys[:away], nothing)
    else:
        setattr(world, how, set(keys[:away]))
    if not taken:
        with pytest.raises(Refusal, match=f"{5 - away} of 5 directories"):
            await daemon.source.register(HANDED_IN)
    else:
        began = trio.current_time()
        await daemon.source.register(HANDED_IN)
        assert trio.current_time() - began <= PATIENCE
    assert set(world.registered) == set(keys[away:])


async def test_a_relay_is_registered_at_those_to_come_as_well() -> None:
    one, three = a_set(1, 1), a_set(3, 2)
    world = SeveralBench(1, 1)
    world.truth.agree(FIRST, change=AuthorityChange(FIRST + 24, three))
    daemon = world.daemon()
    await daemon.catch_up()
    world.away = set(three.keys) - set(one.keys)
    await daemon.source.register(HANDED_IN)
    assert world.registered == list(one.keys)
    world.away = set()
    await daemon.source.register(HANDED_IN)
    assert set(world.registered) == set(three.keys)


# What an answer is


async def test_every_bit_of_an_answer_is_signed_or_stands_in_what_is() -> None:
    honest = agreed(a_set(1, 1), FIRST, (0,))
    relays = roster_of(honest, NETWORK).relays
    state = ChainState(a_set(1, 1))
    followed = follow(state, honest.heads, NETWORK.id)
    data = encode(honest)
    told: list[Roster] = []
    for bit in range(0, len(data) * 8, 3):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            answer = decode_directory_answer(bytes(damaged))
            assert isinstance(answer, HeadAnswer)
            if follow(state, answer.heads, NETWORK.id) == followed:
                told.append(roster_of(answer, NETWORK))
        except PeerError:
            continue
    assert all(roster.relays == relays for roster in told)


TODAY = FIRST // 24
CUTS = {
    "tomorrow": (drawn(FIRST, TODAY + 1),),
    "whole again tomorrow": (drawn(FIRST, TODAY + 1, bits=0),),
    "whole again": (drawn(FIRST, TODAY, bits=0),),
    "today": (drawn(FIRST, TODAY),),
    "yesterday": (drawn(FIRST, TODAY - 1),),
    "both days": (drawn(FIRST, TODAY), drawn(FIRST, TODAY + 1, bits=2)),
    "whole again after today": (drawn(FIRST, TODAY), drawn(FIRST, TODAY + 1, bits=0)),
}


@pytest.mark.parametrize("when", CUTS)
async def test_a_roster_has_what_its_head_says_of_shards_and_no_relays_on_a_day_of_them(when: str) -> None:
    honest = agreed(a_set(1, 1), FIRST, shards=CUTS[when])
    roster, head = roster_of(honest, NETWORK), decode_head(honest.heads[-1].head)
    is_whole = when in ("tomorrow", "whole again", "whole again tomorrow")
    assert bool(roster.relays) == bool(honest.seats) == is_whole
    assert roster.shards == inside_of(head).shards
    assert [one.day for one in roster.shards] == [one.day for one in CUTS[when]]
    if is_whole:
        for shards in (None, bytes(32)):  # the root is made of them as well
            with pytest.raises(AuthenticationError, match="stands for"):
                roster_of(replaced(honest, shards=shards), NETWORK)
        return
    for more in ({"seats": (entry(0, FIRST),)}, {"waiting": ((bytes(32), FIRST),)}, {"shards": bytes(32)}):
        with pytest.raises(DecodeError, match="in shards"):
            roster_of(replaced(honest, **more), NETWORK)


async def test_the_relays_of_another_network_or_epoch_are_refused() -> None:
    honest = agreed(a_set(1, 1), FIRST)
    with pytest.raises(DecodeError, match="another network"):
        roster_of(honest, Network("another", "hardened", 60))
    later = agreed(a_set(1, 1), FIRST + 1)
    with pytest.raises(AuthenticationError, match="stands for"):
        roster_of(replaced(honest, seats=later.seats), NETWORK)
    with pytest.raises(DecodeError, match="no head"):
        roster_of(replaced(honest, heads=()), NETWORK)
