"""Installations: a tree turned into one instruction a relay, sealed so that each sees its own alone."""

from __future__ import annotations

import pytest
from core_examples import (
    BOX,
    DAY,
    EPOCH,
    LEASE_SECRET,
    NETWORK,
    carry_out,
    descriptor_of,
    host_card,
    lease_book,
    parcel_key,
    properties,
    relay_id,
    some_address,
    stream,
)
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.roster import GENESIS, Relay, Roster
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.confirmations import confirm
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.installations import (
    HostRoot,
    Installation,
    ListedRoot,
    SealedBranch,
    seal_down,
    seal_through,
)
from hushcast_protocol.overlay.leases import (
    MAX_ELEMENTS,
    Install,
    ToHost,
    ToListedHost,
    ToRelay,
    Withdraw,
    lease_id,
    lease_mark,
    lease_word,
)
from hushcast_protocol.overlay.parcels import MAX_FANOUT, MAX_PARCEL, Parcel, open_parcel
from hushcast_protocol.overlay.profile import HARDENED, PAPER, Profile
from hushcast_protocol.overlay.tree import Tree, branching, plan

TRUNK = b"0" * 16
ENTRIES = (b"1" * 16, b"2" * 16)
NUMBERS = {relay_id(number): number for number in range(60)}
RELAYS = list(NUMBERS)
both = pytest.mark.parametrize("profile", [HARDENED, PAPER], ids=lambda profile: profile.name)


def roster(count: int) -> Roster:
    """A roster as if checked; the relays' descriptors are not signed."""
    relays = {}
    for number in range(count):
        listed = descriptor_of(number)
        relays[listed.relay] = Relay(listed.relay, listed.address, listed.parcel_key, EPOCH)
    return Roster(NETWORK, EPOCH, GENESIS, bytes(32), relays)


def installation(
    profile: Profile, count: int = 60, seed: bytes = bytes(32), entries: tuple[bytes, ...] = ENTRIES
) -> Installation:
    if profile is PAPER:
        root: ListedRoot | HostRoot = ListedRoot(RELAYS[0])
        relays = RELAYS[1:count]
    else:
        root, relays = HostRoot(BOX, relay_id(7)), RELAYS[:count]
    return Installation(DAY, root, plan(relays, profile.depth, seed), TRUNK, entries, LEASE_SECRET)


def installs(profile: Profile, made: Installation) -> dict[bytes, Install]:
    return {relay: made.install(profile, relay, HOST_CARD) for relay in made.tree.parents}


def walk(branches: dict[bytes, SealedBranch]) -> list[tuple[bytes, Parcel]]:
    """Hand parcels on as relays do; return what each relay opened, in order."""
    waiting, opened = [(top, branch.sealed) for top, branch in branches.items()], []
    for relay, sealed in waiting:
        parcel = open_parcel(sealed, parcel_key(NUMBERS[relay]), NETWORK.id, relay, EPOCH)
        opened.append((relay, parcel))
        waiting.extend((onward.relay, onward.sealed) for onward in parcel.onward)
    return opened


# Instructions


@both
def test_every_relay_sends_up_its_tree(profile):
    made = installation(profile)
    for relay, install in installs(profile, made).items():
        above = made.tree.parents[relay]
        if above is not None:
            assert install.next_hop == ToRelay(above)
        elif profile is PAPER:
            assert install.next_hop == ToRelay(RELAYS[0])
        else:
            assert install.next_hop == ToHost(HOST_CARD)


def test_a_relay_takes_from_its_children_and_from_publishers():
    made = installation(HARDENED)
    for relay, install in installs(HARDENED, made).items():
        below = made.tree.children.get(relay, ())
        entering = {element(HARDENED, entry, relay, ORIGIN) for entry in ENTRIES}
        climbing = {element(HARDENED, TRUNK, relay, child) for child in below}
        detouring = {element(HARDENED, install.bypass, relay, ORIGIN)}
        assert set(install.elements) == entering | climbing | detouring
        assert len(install.elements) == len(ENTRIES) + len(below) + 1


def test_leases_of_one_topic_share_a_mark_at_a_relay_and_nowhere_else():
    made = installation(HARDENED)
    marks = {relay: install.mark for relay, install in installs(HARDENED, made).items()}
    assert len(set(marks.values())) == len(marks)
    assert all(mark == lease_mark(TRUNK, relay) for relay, mark in marks.items())


def test_as_published_a_relay_takes_from_anybody():
    """Nor relay nor previous hop counts; those without children have nothing that climbs."""
    made = installation(PAPER)
    for relay, install in installs(PAPER, made).items():
        tokens = (TRUNK, *ENTRIES) if made.tree.children.get(relay) else ENTRIES
        assert install.elements == tuple(sorted(element(PAPER, one, RELAYS[0], ORIGIN) for one in tokens))


@both
def test_the_order_of_elements_tells_nothing(profile):
    forth, back = installation(profile), installation(profile, entries=ENTRIES[::-1])
    for relay in forth.tree.parents:
        assert forth.install(profile, relay, HOST_CARD) == back.install(profile, relay, HOST_CARD)
        assert list(forth.install(profile, relay, HOST_CARD).elements) == sorted(
            forth.install(profile, relay, HOST_CARD).elements
        )


@both
def test_leases_differ_at_every_relay_and_only_their_word_withdraws(profile):
    made = installation(profile)
    found = installs(profile, made)
    assert len({install.lease for install in found.values()}) == len(found)
    for relay, install in found.items():
        assert install.lease == lease_id(made.withdraw(relay).word)
        assert made.withdraw(relay) == Withdraw(lease_word(LEASE_SECRET, relay))


@both
def test_no_instruction_shows_token_or_secret(profile):
    made = installation(profile)
    for relay, install in installs(profile, made).items():
        encoded = encode(install)
        for hidden in (TRUNK, *ENTRIES, LEASE_SECRET.reveal(), BOX.reveal(), made.withdraw(relay).word):
            assert hidden not in encoded


def test_relays_under_the_top_do_not_learn_the_host_and_none_the_box():
    made = installation(HARDENED)
    for relay, install in installs(HARDENED, made).items():
        assert (HOST_CARD.place in encode(install)) == (made.tree.parents[relay] is None)
        assert BOX.public() not in encode(install)


# Parcels


@both
@properties(15)
@given(st.integers(2, 60), st.binary(min_size=32, max_size=32), st.integers(0, 1000))
def test_every_relay_is_reached_once_with_its_own_instruction(profile, count, seed, number):
    made = installation(profile, count, seed)
    instructions = installs(profile, made)
    top = seal_down(made.tree, instructions, roster(60), EPOCH, stream(number))
    assert set(top) == set(made.tree.children.get(None, ()))
    opened = walk(top)
    assert len(opened) == len(instructions)
    assert {relay: parcel.instruction for relay, parcel in opened} == instructions
    for relay, parcel in opened:
        assert [onward.relay for onward in parcel.onward] == list(made.tree.children.get(relay, ()))


def test_installs_and_withdrawals_are_carried_out_all_over():
    made = installation(HARDENED)
    books = {relay: lease_book(relay) for relay in RELAYS}
    for relay, parcel in walk(seal_down(made.tree, installs(HARDENED, made), roster(60), EPOCH, stream())):
        carry_out(books[relay], parcel.instruction)
    assert all(len(book) == 1 for book in books.values())
    withdrawals = {relay: made.withdraw(relay) for relay in RELAYS}
    other_way = plan(RELAYS, 3, b"s" * 32)
    for relay, parcel in walk(seal_down(other_way, withdrawals, roster(60), EPOCH, stream(1))):
        carry_out(books[relay], parcel.instruction)
    assert all(len(book) == 0 for book in books.values())


def test_no_relay_reads_anothers_instruction():
    made = installation(PAPER)  # three levels, so that somebody passes on what passes on
    instructions = installs(HARDENED, made)
    opened = walk(seal_down(made.tree, instructions, roster(60), EPOCH, stream()))
    assert any(onward.sealed for _, parcel in opened for onward in parcel.onward)
    for relay, parcel in opened:
        seen = encode(parcel)
        for other, install in instructions.items():
            shown = [install.lease in seen, *(one in seen for one in install.elements)]
            assert all(shown) if other == relay else not any(shown)
        for onward in parcel.onward:
            with pytest.raises(AuthenticationError):
                open_parcel(onward.sealed, parcel_key(NUMBERS[relay]), NETWORK.id, relay, EPOCH)


def test_a_parcel_names_no_relay_but_the_next_ones():
    made = installation(PAPER)
    for relay, parcel in walk(seal_down(made.tree, installs(PAPER, made), roster(60), EPOCH, stream())):
        known = {relay, RELAYS[0], made.tree.parents[relay], *made.tree.children.get(relay, ())}
        assert {other for other in RELAYS if other in encode(parcel)} <= known


def test_a_part_of_a_tree_is_sealed_by_itself():
    """Relays that did not answer are tried again, without those that did."""
    made = installation(HARDENED)
    missing = RELAYS[::3]
    part = made.tree.only(missing)
    instructions = {relay: made.install(HARDENED, relay, HOST_CARD) for relay in missing}
    opened = walk(seal_down(part, instructions, roster(60), EPOCH, stream()))
    assert sorted(relay for relay, _ in opened) == sorted(missing)
    assert {relay: parcel.instruction for relay, parcel in opened} == instructions


def test_seals_replay_from_a_seed():
    made = installation(HARDENED)
    seals = [seal_down(made.tree, installs(HARDENED, made), roster(60), EPOCH, stream(n)) for n in (1, 1, 2)]
    assert seals[0] == seals[1]
    assert all(seals[0][relay] != seals[2][relay] for relay in seals[0])


def test_a_relay_waits_longer_the_more_levels_lie_below():
    made = installation(PAPER)
    patience = {
        relay: parcel.patience
        for relay, parcel in walk(seal_down(made.tree, installs(PAPER, made), roster(60), EPOCH, stream()))
    }
    for relay in patience:
        below = made.tree.children.get(relay, ())
        assert (patience[relay] > 0) == bool(below)
        assert all(patience[child] < patience[relay] for child in below)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_largest_network_fits_its_parcels(depth):
    """2,000 relays; the instruction is one of those that a top relay gets, for one token."""
    tree = plan([number.to_bytes(32, "big") for number in range(2000)], depth, bytes(32))
    keys = parcel_key(0).public()
    relays = {relay: Relay(relay, some_address(), keys, EPOCH) for relay in tree.parents}
    whole = Roster(NETWORK, EPOCH, GENESIS, bytes(32), relays)
    width = branching(2000, depth)
    largest = Install(
        bytes(16),
        DAY,
        ToHost(HOST_CARD),
        tuple(n.to_bytes(16, "big") for n in range(1 + width)),
        bytes(16),
        bytes(16),
    )
    top = seal_down(tree, dict.fromkeys(tree.parents, largest), whole, EPOCH, stream())
    assert width <= MAX_FANOUT
    assert max(len(branch.sealed) for branch in top.values()) < MAX_PARCEL / 2


def test_an_empty_tree_needs_no_parcels():
    assert seal_down(Tree({}), {}, roster(0), EPOCH, stream()) == {}


# A host at the root

HOST = RELAYS[7]
HOST_CARD = host_card(7)


def hosted(count: int = 60, relays: list[bytes] | None = None) -> Installation:
    tree = plan(relays or [relay for relay in RELAYS[:count] if relay != HOST], HARDENED.depth, bytes(32))
    return Installation(DAY, HostRoot(BOX, HOST), tree, TRUNK, ENTRIES, LEASE_SECRET)


def test_a_host_is_asked_for_what_tops_and_publishers_bring() -> None:
    made = hosted()
    tops = made.tree.children[None]
    assert {install.next_hop for relay, install in installs(HARDENED, made).items() if relay in tops} == {
        ToHost(HOST_CARD)
    }
    assert made.install(HARDENED, tops[0]).next_hop == ToListedHost(HOST), "its owner has no card of it"
    hold = made.hold(HARDENED)
    bypass = made.install(HARDENED, tops[0], HOST_CARD).bypass
    assert hold.children == tuple(sorted(tops))
    assert set(hold.elements) == {
        *(element(HARDENED, token, HOST, ORIGIN) for token in (*ENTRIES, bypass)),
        *(element(HARDENED, TRUNK, HOST, top) for top in tops),
    }
    assert list(hold.elements) == sorted(hold.elements)
    assert (hold.day, hold.stamp) == (DAY, None)
    seated = lease_id(lease_word(LEASE_SECRET, HOST))
    assert hold.lease != seated, "it may have a seat in the same tree while another host is used"


def test_those_who_stood_at_the_top_are_held_for_as_far_as_there_is_room() -> None:
    made = hosted()
    former = [relay for relay in RELAYS if made.tree.parents.get(relay) is not None][:3]
    more = set(made.hold(HARDENED, former).elements) - set(made.hold(HARDENED).elements)
    assert more == {element(HARDENED, TRUNK, HOST, relay) for relay in former}
    many = [number.to_bytes(32, "big") for number in range(2 * MAX_ELEMENTS)]
    full = made.hold(HARDENED, many).elements
    assert len(full) == MAX_ELEMENTS
    assert set(made.hold(HARDENED).elements) <= set(full)


@given(st.integers(2, 40), st.integers(0, 2**32))
def test_a_host_passes_each_top_parcel_on_and_confirms_for_nobody(count: int, number: int) -> None:
    others = [relay for relay in RELAYS[:count] if relay != HOST] or [RELAYS[0]]
    made = hosted(relays=others)
    told = installs(HARDENED, made)
    branches = seal_through(HOST, made.tree, told, roster(60), EPOCH, stream(str(number)))
    assert set(branches) == set(made.tree.children[None])
    opened: dict[bytes, Parcel] = {}
    for top, branch in branches.items():
        (_, outer), *inner = walk({HOST: branch})
        assert outer.instruction is None
        assert [onward.relay for onward in outer.onward] == [top]
        opened.update(inner)
        below: tuple[bytes, ...] = ()
        for relay, parcel in reversed(inner):
            if made.tree.parents[relay] is None:
                below = confirm(parcel.word, (), 0, stream("a"))
        assert branch.confirmed(confirm(outer.word, below, 0, stream("b"))) == {HOST, top}
        assert branch.confirmed(confirm(outer.word, (), 10_000, stream("c"))) == {HOST}
    assert {relay: parcel.instruction for relay, parcel in opened.items()} == told
