"""Which relays keep a trunk of a day: the same for all who read a head, and each as often as any other."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from core_examples import NETWORK, relay_id
from steps import one_step

from hushcast_protocol.authorities.candidate_days import candidate_day, candidate_roots
from hushcast_protocol.authorities.head_inside import BeaconState, HeadInside
from hushcast_protocol.authorities.listing import ListedCut, Listing
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.candidate_root import MAX_ROOTS, CandidateRoot
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.roster import MAX_RELAYS, Descriptor, descriptor_digest
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay import keepers
from hushcast_protocol.overlay.keepers import KeeperDraws
from hushcast_protocol.shards.candidates import CandidateDay, CandidateList, read_candidates

DAY = 100
BEGINS = DAY * EPOCHS_A_DAY
SIX = KeepingRule(6)
IDS = [relay_id(number) for number in range(12)]
BEFORE = b"b" * 32


def described(relay: bytes) -> Signed:
    """What a relay says of itself; nobody checks signatures here."""
    at = str(memory_address(relay))
    return Signed(encode(Descriptor(NETWORK.id, relay, at, bytes(32), 0, 1, 0)), bytes(64))


def listing(relays: list[bytes], epoch: int = BEGINS, since: int = BEGINS - 5, *cuts: ListedCut) -> Listing:
    seats = tuple((one, descriptor_digest(described(one).body), 0, since) for one in sorted(relays))
    return Listing(epoch, seats, (), cuts)


def lists_of(day: CandidateDay, relays: list[bytes]) -> list[CandidateList]:
    """All lists of a day, as whoever fetched them has read them."""
    held = {descriptor_digest(one.body): one for one in map(described, relays)}
    bodies = [day.shown(shard, held.get) for shard in range(len(day.shards))]
    return [
        read_candidates(body, day.tree.path(shard), day.root, shard)
        for shard, body in enumerate(bodies)
        if body is not None
    ]


def whole(relays: list[bytes], keepers: int = 6, previous: bytes = BEFORE, day: int = DAY) -> CandidateList:
    made = candidate_day(NETWORK.id, previous, listing(relays, day * EPOCHS_A_DAY), keepers)
    (found,) = lists_of(made, relays)
    return found


def inside(*roots: CandidateRoot) -> HeadInside:
    return HeadInside(bytes(32), 0, BeaconState(None, None, (), (), ()), (), (), roots)


def test_the_candidates_have_a_seat_since_before_the_day() -> None:
    seats = (*listing(IDS[:9]).seats, *listing(IDS[9:], since=BEGINS).seats)
    made = candidate_day(NETWORK.id, BEFORE, Listing(BEGINS, tuple(sorted(seats)), ()), 6)
    (found,) = lists_of(made, IDS)
    assert [one.relay for one in found.relays] == sorted(IDS[:9])
    assert [one.address for one in found.relays] == [str(memory_address(one)) for one in sorted(IDS[:9])]
    assert (found.day, found.shard, found.keepers) == (DAY, 0, 6)


def test_on_the_first_day_of_a_network_all_are_candidates() -> None:
    made = candidate_day(NETWORK.id, bytes(32), listing(IDS, BEGINS + 7, BEGINS + 7), 6)
    assert [one.relay for one in lists_of(made, IDS)[0].relays] == sorted(IDS)


def test_what_draws_them_is_known_after_them() -> None:
    """The head before has their names; and who is seated in the day's first head moves all others."""
    one = whole(IDS)
    assert one.value != whole(IDS, previous=b"c" * 32).value
    seats = tuple(sorted((*listing(IDS).seats, (relay_id(20), bytes(16), 0, BEGINS))))
    assert (
        lists_of(candidate_day(NETWORK.id, BEFORE, Listing(BEGINS, seats, ()), 6), IDS)[0].value != one.value
    )


def test_of_a_day_that_is_cut_each_shard_has_its_own() -> None:
    known = {relay: name for relay, name, *_ in listing(IDS).seats}
    drawn = ListedCut(DAY, b"n" * 32, 1, tuple((one, known[one], 0) for one in sorted(IDS)))
    coming = ListedCut(DAY + 1, b"m" * 32, 2, drawn.seats)
    made = candidate_day(NETWORK.id, BEFORE, listing(IDS, BEGINS, 0, drawn, coming), 6)
    assert made.root.bits == 1
    shards = lists_of(made, IDS)
    assert sorted(one.relay for found in shards for one in found.relays) == sorted(IDS)
    assert all(found.relays for found in shards)
    assert shards[0].value != shards[1].value
    other = candidate_day(NETWORK.id, b"c" * 32, listing(IDS[:3], BEGINS, 0, drawn), 6)
    assert other.root == made.root, "by the cut and its beacon alone"
    stays = candidate_day(NETWORK.id, BEFORE, listing(IDS, BEGINS + EPOCHS_A_DAY, 0, drawn), 6)
    assert stays.root != made.root, "a cut that stays is drawn from anew"


def test_heads_tell_of_a_day_from_its_first_on_for_as_long_as_it_is_kept() -> None:
    told: tuple[CandidateRoot, ...] = ()
    last = None
    for epoch in range(BEGINS - 1, BEGINS + 20 * EPOCHS_A_DAY):
        before = told
        told = candidate_roots(NETWORK.id, last, b"%032d" % epoch, listing(IDS, epoch), SIX)
        last = epoch, inside(*told)
        if epoch % EPOCHS_A_DAY and before:
            assert told == before, "what the first head of a day says the others repeat"
        assert told[-1].day == epoch // EPOCHS_A_DAY
    assert [one.day for one in told] == list(range(DAY + 5, DAY + 20))
    assert len(told) == MAX_ROOTS
    short = candidate_roots(NETWORK.id, last, BEFORE, listing(IDS, last[0] + 1), KeepingRule(6, 2))  # type: ignore[index]
    assert [one.day for one in short] == [DAY + 18, DAY + 19, DAY + 20]


def test_an_epoch_without_a_head_changes_nothing() -> None:
    late = listing(IDS, BEGINS + 3)
    (told,) = candidate_roots(NETWORK.id, (BEGINS - 4, inside()), BEFORE, late, SIX)
    assert told == candidate_day(NETWORK.id, BEFORE, late, 6).root


def test_where_nobody_keeps_heads_tell_nothing_and_forget_in_time() -> None:
    assert candidate_roots(NETWORK.id, None, BEFORE, listing(IDS), NOTHING_KEPT) == ()
    old, older = (CandidateRoot(DAY - back, 0, bytes(32)) for back in (1, 20))
    last = BEGINS - 1, inside(older, old)
    assert candidate_roots(NETWORK.id, last, BEFORE, listing(IDS), NOTHING_KEPT) == (old,)


@pytest.mark.parametrize(("relays", "drawn"), [(0, 0), (2, 0), (3, 1), (9, 3), (17, 5), (18, 6), (50, 6)])
def test_a_third_of_the_relays_keep_at_most(relays: int, drawn: int) -> None:
    found = whole([relay_id(number) for number in range(relays)])
    keepers_of = KeeperDraws(found).of(bytes(16))
    assert len(keepers_of) == len(set(keepers_of)) == drawn
    assert set(keepers_of) <= {one.relay for one in found.relays}
    assert len(KeeperDraws(whole(IDS, keepers=2)).of(bytes(16))) == 2


def test_each_relay_keeps_as_often_as_any_other_and_days_are_drawn_apart() -> None:
    relays = [os.urandom(32) for _ in range(60)]
    draws, tomorrow = KeeperDraws(whole(relays)), KeeperDraws(whole(relays, day=DAY + 1))
    trunks = [number.to_bytes(16, "big") for number in range(3000)]
    drawn = Counter(one for trunk in trunks for one in draws.of(trunk))
    mean = 3000 * 6 / 60
    chi = sum((drawn[one] - mean) ** 2 / mean for one in relays)
    assert chi < 110, "of 59 degrees of freedom one in 10,000 has more"
    assert draws.of(trunks[0]) == KeeperDraws(whole(relays)).of(trunks[0])
    assert draws.of(trunks[0]) != tomorrow.of(trunks[0])
    keeper, *_ = draws.of(trunks[0])
    assert draws.address(keeper) == memory_address(keeper)


def test_a_list_that_the_head_does_not_stand_for_is_refused() -> None:
    known = {relay: name for relay, name, *_ in listing(IDS).seats}
    drawn = ListedCut(DAY, b"n" * 32, 1, tuple((one, known[one], 0) for one in sorted(IDS)))
    made = candidate_day(NETWORK.id, BEFORE, listing(IDS, BEGINS, 0, drawn), 6)
    one, two = lists_of(made, IDS)
    path, root = made.tree.path(0), made.root
    lies = {
        "less": CandidateList(one.day, 0, one.value, 6, one.relays[1:]),
        "another value": CandidateList(one.day, 0, two.value, 6, one.relays),
        "more keepers": CandidateList(one.day, 0, one.value, 5, one.relays),
        "another day": CandidateList(one.day + 1, 0, one.value, 6, one.relays),
        "another shard": two,
    }
    for lie in lies.values():
        with pytest.raises(AuthenticationError):
            read_candidates(encode(lie), path, root, 0)
    moved = (type(one.relays[0])(one.relays[0].relay, str(memory_address(b"x" * 32)), bytes(16)),)
    with pytest.raises(AuthenticationError):
        read_candidates(encode(CandidateList(DAY, 0, one.value, 6, moved + one.relays[1:])), path, root, 0)
    with pytest.raises(DecodeError):
        read_candidates(encode(one), (), root, 0)
    with pytest.raises(AuthenticationError):
        read_candidates(encode(one), path, root, 1)
    assert made.shown(0, lambda _: None) is None, "without descriptors nothing is shown"


def test_a_full_list_is_read_and_drawn_from_in_short_steps_and_draws_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    relays = [os.urandom(32) for _ in range(MAX_RELAYS)]
    made = candidate_day(NETWORK.id, BEFORE, listing(relays), 6)
    held = {descriptor_digest(one.body): one for one in map(described, relays)}
    body = made.shown(0, held.get)
    assert body is not None
    with one_step():
        found = read_candidates(body, (), made.root, 0)
    draws = KeeperDraws(found)
    with one_step():
        drawn = draws.of(bytes(16))
    assert draws.of(bytes(16)) is drawn
    monkeypatch.setattr(keepers, "MAX_DRAWS", 3)
    for number in range(1, 6):
        draws.of(number.to_bytes(16, "big"))
        draws.of(number.to_bytes(16, "big"))
    assert len(draws._drawn) == 3
    assert draws.of(bytes(16)) == drawn
