"""Forwarding: the rules one by one, and whole networks in memory against what trees and floods promise."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field, replace

import pytest
from core_examples import (
    DAY,
    NOW,
    bytes16,
    carry_out,
    host_card,
    lease_book,
    properties,
    relay_id,
    seed,
    small_message,
    stream,
)
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.secrets import LeaseSecret
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message, check_message
from hushcast_protocol.overlay import forwarding
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.forwarding import (
    CIRCULATION,
    ForwardingDecision,
    ForwardingOutcome,
    RecentIds,
    Router,
)
from hushcast_protocol.overlay.hops import key_of, relay_hop, waits
from hushcast_protocol.overlay.installations import HostRoot, Installation, ListedRoot
from hushcast_protocol.overlay.leases import Install, ToRelay, lease_mark
from hushcast_protocol.overlay.profile import HARDENED, PAPER, Profile
from hushcast_protocol.overlay.trail import LABEL_SIZE, MAX_BITS_SET, label_bits, trail_bits, trail_of
from hushcast_protocol.overlay.tree import Tree, plan

OWN, A, B, C = (relay_id(number) for number in range(4))
TO_A, TO_B, TO_C, TO_D = (relay_hop(relay_id(number)) for number in (1, 2, 3, 7))
D = key_of(TO_D)
ONE, TWO, THREE = (letter * 16 for letter in (b"1", b"2", b"3"))
LABEL = b"L" * LABEL_SIZE
START = NOW - 10 * CIRCULATION
FRESH = NOW - 1  # a relay that started a second ago


class Seat:
    """One relay with a way to install what a test needs."""

    def __init__(self, profile: Profile = HARDENED, started: float = START, memory: int = 1000):
        self.profile = profile
        self.leases = lease_book(OWN)
        self.memory = RecentIds(started, memory)
        self.router = Router(OWN, profile, self.leases, self.memory, LABEL)
        self._count = 0

    def take(self, *ways: tuple[bytes, bytes], to: bytes, day: int = DAY) -> Seat:
        """Route each (token, previous hop) to a next hop."""
        self._count += 1
        found = tuple(element(self.profile, token, OWN, previous) for token, previous in ways)
        carry_out(
            self.leases,
            Install(self._count.to_bytes(16, "big"), day, ToRelay(to), found, bytes(16), bytes(16)),
        )
        return self

    def lease(self, number: int, trunk: bytes, to: bytes) -> None:
        """Install one lease, perhaps anew, for a trunk's messages."""
        found = (element(self.profile, trunk, OWN, ORIGIN),)
        mark = lease_mark(trunk, OWN)
        carry_out(self.leases, Install(bytes([number]) * 16, DAY, ToRelay(to), found, mark, bytes(16)))

    def route(self, message: Message, previous: bytes = A, now: float = NOW) -> ForwardingDecision:
        return self.router.route(message, previous, now)


def sent(decision: ForwardingDecision) -> dict[Hop, tuple[bytes, ...]]:
    return {send.hop: send.message.tokens for send in decision.sends}


def passed(message: Message, *labels: bytes) -> Message:
    """The message after it passed the relays with these labels."""
    trail = trail_bits(message.trail)
    for label in labels:
        trail |= label_bits(label)
    return Message(message.id, message.day, message.tokens, trail_of(trail), message.body)


def has_passed(message: Message, label: bytes) -> bool:
    return trail_bits(message.trail) & label_bits(label) == label_bits(label)


both = pytest.mark.parametrize("profile", [HARDENED, PAPER], ids=lambda profile: profile.name)


# Where to


@both
def test_a_message_goes_where_its_element_leads(profile):
    message = small_message((ONE,))
    decision = Seat(profile).take((ONE, A), to=B).route(message)
    assert decision.outcome is ForwardingOutcome.FORWARDED
    assert sent(decision) == {TO_B: (ONE,)}
    on = decision.sends[0].message
    assert (on.id, on.day, on.body) == (message.id, message.day, message.body)
    check_message(on)


@both
def test_a_message_that_nobody_asked_for_goes_nowhere(profile):
    seat = Seat(profile)
    assert seat.route(small_message((ONE,))).outcome is ForwardingOutcome.UNROUTED
    seat.take((TWO, A), to=B)
    decision = seat.route(small_message((ONE,), number=1))
    assert decision.outcome is ForwardingOutcome.UNROUTED
    assert decision.sends == ()


def test_only_the_edges_of_a_tree_lead_on():
    seat = Seat().take((ONE, A), (ONE, ORIGIN), to=B)
    assert seat.route(small_message((ONE,), 1), A).outcome is ForwardingOutcome.FORWARDED
    assert seat.route(small_message((ONE,), 2), ORIGIN).outcome is ForwardingOutcome.FORWARDED
    assert seat.route(small_message((ONE,), 3), B).outcome is ForwardingOutcome.UNROUTED
    assert seat.route(small_message((ONE,), 4), C).outcome is ForwardingOutcome.UNROUTED


def test_as_published_all_edges_lead_on():
    seat = Seat(PAPER).take((ONE, A), to=B)
    for number, previous in enumerate((A, B, C, ORIGIN)):
        assert seat.route(small_message((ONE,), number), previous).outcome is ForwardingOutcome.FORWARDED


@both
def test_a_message_enters_by_any_of_its_entry_tokens_and_climbs_by_the_trunk_alone(profile):
    for entry in (ONE, TWO, THREE):
        seat = Seat(profile).take((entry, ORIGIN), to=B)
        assert sent(seat.route(small_message((ONE, TWO, THREE)), ORIGIN)) == {TO_B: (ONE,)}
    seat = Seat(profile).take((ONE, ORIGIN), to=B).take((TWO, ORIGIN), (THREE, ORIGIN), to=C)
    assert sent(seat.route(small_message((ONE, TWO, THREE)), ORIGIN)) == {TO_B: (ONE,), TO_C: (ONE,)}


@both
def test_extra_tokens_added_by_a_relay_in_between_lead_along_no_edge(profile):
    alone = Seat(profile).take((TWO, A), (THREE, A), to=C) if profile is HARDENED else Seat(profile)
    assert alone.route(small_message((ONE, TWO, THREE)), A).outcome is ForwardingOutcome.UNROUTED


@both
def test_tables_of_other_days_do_not_count(profile):
    seat = Seat(profile).take((ONE, A), to=B, day=DAY + 1)
    assert seat.route(small_message((ONE,))).outcome is ForwardingOutcome.UNROUTED
    assert seat.route(small_message((ONE,), day=DAY + 1)).outcome is ForwardingOutcome.FORWARDED


@both
def test_a_token_said_twice_counts_once(profile):
    seat = Seat(profile).take((ONE, A), (ONE, ORIGIN), to=B)
    assert sent(seat.route(small_message((ONE, ONE), 1), A)) == {TO_B: (ONE,)}
    decision = seat.route(small_message((ONE, ONE), 2), ORIGIN)
    assert [(send.hop, send.message.tokens) for send in decision.sends] == [(TO_B, (ONE,))]


@both
def test_the_own_label_joins_the_trail(profile):
    before = passed(small_message((ONE,)), b"x" * LABEL_SIZE)
    decision = Seat(profile).take((ONE, A), to=B).route(before)
    after = decision.sends[0].message
    assert has_passed(after, LABEL)
    assert has_passed(after, b"x" * LABEL_SIZE)
    assert decision.popcount == trail_bits(before.trail).bit_count()


def test_a_way_that_is_known_changes_with_the_leases():
    seat = Seat()
    seat.take((ONE, A), to=B)
    assert sent(seat.route(small_message((ONE,), 1))) == {TO_B: (ONE,)}
    seat.take((ONE, A), to=C)
    assert sent(seat.route(small_message((ONE,), 2))) == {TO_B: (ONE,), TO_C: (ONE,)}
    for lease in seat.leases.leases():
        seat.leases.prune(lease)
    assert seat.route(small_message((ONE,), 3)).outcome is ForwardingOutcome.UNROUTED
    seat.take((ONE, A), to=D)
    assert sent(seat.route(small_message((ONE,), 4))) == {TO_D: (ONE,)}
    list(seat.leases.lapse(NOW + 3 * 24 * 3600))
    assert seat.route(small_message((ONE,), 5)).outcome is ForwardingOutcome.UNROUTED


def test_a_way_that_is_known_is_that_of_messages_with_its_trail_and_of_the_label_of_now():
    seat = Seat(started=FRESH).take((ONE, A), to=B)
    plain = [small_message((ONE,), number) for number in range(6)]
    assert has_passed(seat.route(plain[0]).sends[0].message, LABEL)
    by_another = seat.route(passed(plain[1], b"x" * LABEL_SIZE)).sends[0].message
    assert has_passed(by_another, b"x" * LABEL_SIZE)
    assert not has_passed(seat.route(plain[2]).sends[0].message, b"x" * LABEL_SIZE)
    assert seat.route(passed(plain[3], LABEL)).outcome is ForwardingOutcome.LOOP
    seat.router.use_label(b"y" * LABEL_SIZE)
    after = seat.route(plain[4]).sends[0].message
    assert has_passed(after, b"y" * LABEL_SIZE)
    assert not has_passed(after, LABEL)
    assert seat.route(passed(plain[5], b"y" * LABEL_SIZE)).outcome is ForwardingOutcome.LOOP


def test_few_ways_are_known_and_no_wide_ones(monkeypatch):
    monkeypatch.setattr(forwarding, "MAX_FOUND", 4)
    monkeypatch.setattr(forwarding, "_WIDE", 5)
    seat, trunks = Seat(), [bytes([number]) * 16 for number in range(20)]
    for number in range(5):
        seat.take((ONE, A), to=relay_id(10 + number))
    seat.take(*[(trunk, A) for trunk in trunks], to=B)
    known = []
    for number, trunk in enumerate(trunks):
        for again in range(2):
            assert sent(seat.route(small_message((trunk,), 2 * number + again))) == {TO_B: (trunk,)}
        assert len(seat.route(small_message((ONE,), 100 + number)).sends) == 5
        assert all(len(way.hops) < 5 for way in seat.router._found.values())
        known.append(len(seat.router._found))
    assert max(known) == 4


def test_few_trails_are_known(monkeypatch):
    monkeypatch.setattr(forwarding, "MAX_TRAILS", 4)
    seat, known = Seat().take((ONE, A), to=B), []
    for number in range(20):
        before = passed(small_message((ONE,), number), bytes([number]) * LABEL_SIZE)
        after = seat.route(before).sends[0].message
        assert has_passed(after, LABEL)
        assert has_passed(after, bytes([number]) * LABEL_SIZE)
        known.append(len(seat.router._passed))
    assert max(known) == 4


# Each once


def test_the_same_message_goes_to_a_next_hop_once():
    seat = Seat().take((ONE, A), (ONE, C), to=B)
    message = small_message((ONE,))
    assert sent(seat.route(message, A)) == {TO_B: (ONE,)}
    for previous in (A, C, A):
        decision = seat.route(message, previous)
        assert decision.outcome is ForwardingOutcome.DUPLICATE
        assert decision.sends == ()


def test_a_second_copy_brings_what_the_first_did_not():
    seat = Seat().take((ONE, A), to=B).take((ONE, C), to=B).take((ONE, C), (TWO, ORIGIN), to=D)
    message = small_message((ONE,))
    assert sent(seat.route(message, A)) == {TO_B: (ONE,)}
    assert sent(seat.route(message, C)) == {TO_D: (ONE,)}
    assert seat.route(message, C).outcome is ForwardingOutcome.DUPLICATE
    assert seat.route(small_message((ONE, TWO)), ORIGIN).outcome is ForwardingOutcome.DUPLICATE


def test_a_copy_with_other_tokens_suppresses_nothing():
    """Tokens are not part of the id: an adversary may send a true body under a token of its own first."""
    seat = Seat().take((ONE, A), (TWO, A), to=B)
    assert sent(seat.route(small_message((TWO,)))) == {TO_B: (TWO,)}
    assert sent(seat.route(small_message((ONE,)))) == {TO_B: (ONE,)}


def test_a_lease_installed_between_two_copies_is_served():
    seat = Seat().take((ONE, A), to=B)
    message = small_message((ONE,))
    seat.route(message)
    seat.take((ONE, A), to=C)
    assert sent(seat.route(message)) == {TO_C: (ONE,)}


def test_as_published_an_id_is_forwarded_once():
    seat = Seat(PAPER).take((ONE, A), to=B)
    message = small_message((ONE, TWO))
    assert sent(seat.route(message, A)) == {TO_B: (ONE,)}
    seat.take((ONE, A), (TWO, A), to=C)
    assert seat.route(message, C).outcome is ForwardingOutcome.DUPLICATE
    assert seat.route(message, ORIGIN).outcome is ForwardingOutcome.DUPLICATE


# The trail


def test_the_trail_alone_never_drops():
    """A false positive, or a forged trail, costs nothing where memory is whole."""
    seat = Seat().take((ONE, A), to=B)
    assert sent(seat.route(passed(small_message((ONE,)), LABEL))) == {TO_B: (ONE,)}


def test_the_trail_drops_where_memory_may_have_been_lost():
    seat = Seat(started=FRESH).take((ONE, A), to=B)
    looped = passed(small_message((ONE,)), LABEL)
    assert seat.route(looped) == ForwardingDecision(
        ForwardingOutcome.LOOP, popcount=trail_bits(looped.trail).bit_count()
    )
    assert sent(seat.route(small_message((ONE,)))) == {TO_B: (ONE,)}, "a drop must not be remembered as sent"


def test_a_relay_that_started_lately_forwards_what_did_not_pass_it():
    seat = Seat(started=FRESH).take((ONE, A), to=B)
    assert seat.route(passed(small_message((ONE,)), b"x" * LABEL_SIZE)).outcome is ForwardingOutcome.FORWARDED


def test_a_known_id_is_judged_by_memory_even_if_that_is_young():
    seat = Seat(started=FRESH).take((ONE, A), to=B).take((ONE, C), to=D)
    message = small_message((ONE,))
    seat.route(message, A)
    assert sent(seat.route(passed(message, LABEL), C)) == {TO_D: (ONE,)}
    assert seat.route(passed(message, LABEL), A).outcome is ForwardingOutcome.DUPLICATE


@pytest.mark.parametrize("started", [START, FRESH])
def test_as_published_the_trail_drops(started):
    seat = Seat(PAPER, started).take((ONE, A), to=B)
    assert seat.route(passed(small_message((ONE,)), LABEL)).outcome is ForwardingOutcome.LOOP
    assert seat.route(small_message((ONE,))).outcome is ForwardingOutcome.FORWARDED


def test_the_labels_of_this_and_the_last_epoch_are_recognised():
    labels = [bytes([number]) * LABEL_SIZE for number in range(3)]
    outcomes = (
        ForwardingOutcome.FORWARDED,
        ForwardingOutcome.FORWARDED,
        ForwardingOutcome.LOOP,
        ForwardingOutcome.LOOP,
    )
    for passed_label, outcome in zip((LABEL, *labels), outcomes, strict=True):
        seat = Seat(PAPER).take((ONE, A), to=B)
        for label in labels:
            seat.router.use_label(label)
        decision = seat.route(passed(small_message((ONE,)), passed_label))
        assert decision.outcome is outcome
        if decision.sends:
            assert has_passed(decision.sends[0].message, labels[2])


@both
def test_a_forged_trail_is_refused(profile):
    message = small_message((ONE,))
    forged = Message(message.id, message.day, message.tokens, b"\xff" * len(message.trail), message.body)
    with pytest.raises(DecodeError):
        Seat(profile).take((ONE, A), to=B).route(forged)
    assert Seat(profile).take((ONE, A), to=B).route(message).outcome is ForwardingOutcome.FORWARDED


@both
def test_what_a_relay_sends_on_the_next_one_accepts(profile):
    """Else anybody who drops a message with the fullest trail makes one honest relay accuse another."""
    message = small_message((ONE,))
    full = ((1 << MAX_BITS_SET) - 1).to_bytes(len(message.trail), "little")
    fullest = Message(message.id, message.day, message.tokens, full, message.body)
    with pytest.raises(DecodeError, match="room"):
        Seat(profile).take((ONE, ORIGIN), to=B).route(fullest, ORIGIN)


@both
@pytest.mark.parametrize("room", range(15))
def test_a_trail_is_filled_to_the_cap_and_not_beyond(profile, room):
    """The own label sets up to 14 bits: what fits under the cap goes on, the rest is refused."""
    message = small_message((ONE,))
    before = ((1 << (MAX_BITS_SET - room)) - 1).to_bytes(len(message.trail), "little")
    nearly = Message(message.id, message.day, message.tokens, before, message.body)
    with_label = trail_bits(before) | label_bits(LABEL)
    seat = Seat(profile).take((ONE, A), to=B)
    if with_label.bit_count() > MAX_BITS_SET:
        with pytest.raises(DecodeError, match="room"):
            seat.route(nearly)
    else:
        (send,) = seat.route(nearly).sends
        assert send.message.trail == trail_of(with_label)


@both
def test_a_copy_with_a_forged_trail_suppresses_nothing(profile):
    """The trail is not part of the id: any relay can fill that of a true message and send it ahead."""
    message = small_message((ONE,))
    full = ((1 << MAX_BITS_SET) - 1).to_bytes(len(message.trail), "little")
    seat = Seat(profile).take((ONE, A), to=B)
    with pytest.raises(DecodeError):
        seat.route(Message(message.id, message.day, message.tokens, full, message.body))
    assert sent(seat.route(message)) == {TO_B: (ONE,)}


@both
def test_a_trail_without_room_matters_only_where_the_message_would_go_on(profile):
    message = small_message((ONE,))
    full = ((1 << MAX_BITS_SET) - 1).to_bytes(len(message.trail), "little")
    fullest = Message(message.id, message.day, message.tokens, full, message.body)
    assert Seat(profile).route(fullest).outcome is ForwardingOutcome.UNROUTED


# Memory


def test_memory_is_bounded_and_knows_that_it_forgot():
    memory = RecentIds(0.0, capacity=2)
    memory.note(b"one", ONE, A, 1000.0, [TO_A])
    memory.note(b"two", ONE, A, 1001.0, [TO_A])
    assert not memory.may_have_forgotten(1002.0)
    memory.note(b"three", ONE, A, 1500.0, [TO_A])
    assert len(memory) == 2
    assert not memory.knows(b"one", ONE)
    assert memory.knows(b"two", ONE)
    assert memory.may_have_forgotten(1500.0)
    assert memory.may_have_forgotten(1000.0 + CIRCULATION - 1)
    assert not memory.may_have_forgotten(1000.0 + CIRCULATION)


def test_one_message_under_ever_new_tokens_cannot_fill_the_memory(monkeypatch):
    """Whoever drops a message again under another trunk adds to what is remembered of a single id."""
    monkeypatch.setattr(forwarding, "MAX_SENDS", 4)
    memory = RecentIds(0.0)
    memory.note(b"other", ONE, A, 900.0, [TO_B])
    for number in range(50):
        memory.note(b"one", bytes([number]) * 16, A, 1000.0, [TO_A])
        held = [memory.sent(b"one", bytes([tried]) * 16) for tried in range(number + 1)]
        assert sum(map(len, held)) + len(memory.sent(b"other", ONE)) <= 4
    assert memory.may_have_forgotten(1001.0)
    memory.note(b"two", ONE, A, 2000.0, [TO_A, TO_B])
    memory.note(b"two", TWO, A, 2000.0, [TO_A])
    assert memory.sent(b"two", ONE) == {TO_A, TO_B}
    assert memory.sent(b"two", TWO) == {TO_A}


def test_memory_grows_with_every_note_of_an_id():
    memory = RecentIds(0.0)
    assert memory.sent(b"one", ONE) == frozenset()
    memory.note(b"one", ONE, A, 1.0, [TO_A])
    memory.note(b"one", ONE, B, 2.0, [TO_B, TO_A, TO_B])
    memory.note(b"one", TWO, B, 2.0, [TO_A])
    assert memory.sent(b"one", ONE) == {TO_A, TO_B}
    assert memory.sent(b"one", TWO) == {TO_A}
    assert memory.sent(b"two", ONE) == frozenset()
    assert len(memory) == 2


@both
def test_what_went_nowhere_is_not_remembered(profile):
    """Else anybody could flush the memory with messages that nobody asked for."""
    seat = Seat(profile).take((TWO, A), to=B)
    message = small_message((ONE,))
    for _ in range(3):
        assert seat.route(message).outcome is ForwardingOutcome.UNROUTED
    assert len(seat.memory) == 0
    seat.take((ONE, A), to=C)
    assert sent(seat.route(message)) == {TO_C: (ONE,)}
    assert seat.memory.sent(message.id, ONE) == {TO_C}


def test_memory_is_young_after_a_start():
    memory = RecentIds(1000.0)
    assert memory.may_have_forgotten(1000.0 + CIRCULATION - 1)
    assert not memory.may_have_forgotten(1000.0 + CIRCULATION)


@properties(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from([A, B, C]), st.sampled_from([ONE, TWO])), max_size=30
    )
)
def test_no_next_hop_gets_a_token_of_a_message_twice(arrivals):
    seat = Seat()
    seat.take((ONE, A), (TWO, A), (ONE, B), to=D).take((ONE, A), (ONE, C), (TWO, B), to=relay_id(8))
    seen: Counter[tuple[bytes, bytes, bytes]] = Counter()
    for number, previous, token in arrivals:
        for send in seat.route(small_message((token,), number), previous).sends:
            seen.update((send.message.id, send.hop, one) for one in send.message.tokens)
    assert all(count == 1 for count in seen.values())


@properties(40)
@given(st.lists(bytes16, min_size=1, max_size=80).map(tuple), st.sampled_from([HARDENED, PAPER]))
def test_any_tokens_end_in_a_decision(tokens, profile):
    assert Seat(profile).take((ONE, A), to=B).route(small_message(tokens)).outcome in ForwardingOutcome


# Whole networks

RELAYS = [relay_id(number) for number in range(60)]


@dataclass(frozen=True)
class Subscription:
    """A subscriber's key at the root, its tree, its trunk, and the token that messages enter by."""

    root: bytes
    tree: Tree
    trunk: bytes
    token: bytes

    def way(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        """The edges from an origin up to the root."""
        edges, seat = [], origin
        while seat != self.root:
            above = self.tree.parents[seat] or self.root
            edges.append((seat, above))
            seat = above
        return edges


@dataclass
class Overlay:
    """All relays of a network, their leases and routers, and a breadth-first walk through them."""

    routers: dict[bytes, Router]
    subscriptions: list[Subscription]
    carried: set[tuple[bytes, ...]] = field(default_factory=set)  # tokens of all transmissions

    def publish(self, message: Message, *origins: bytes) -> list[tuple[bytes, bytes]]:
        """Drop a message at origins; return the transmissions as edges, in order."""
        waiting = deque((ORIGIN, origin, message) for origin in origins)
        edges = []
        while waiting:
            previous, relay, arrived = waiting.popleft()
            for send in self.routers[relay].route(arrived, previous, NOW).sends:
                hop = key_of(send.hop)
                assert waits(send.hop) == (hop not in self.routers)
                edges.append((relay, hop))
                self.carried.add(send.message.tokens)
                if hop in self.routers:
                    waiting.append((relay, hop, send.message))
        return edges

    def on(self, token: bytes) -> list[Subscription]:
        """Subscriptions whose trees a message on this trunk may climb, and that it enters by `token`."""
        return [subscription for subscription in self.subscriptions if subscription.token == token]


def build(profile: Profile, tokens: list[bytes], number: int, trunk: bytes | None = None) -> Overlay:
    """Plan and install one subscription a token (repeats are several subscribers of one topic).

    Each token is a trunk that messages enter by, or, where a trunk is given, an entry to it.
    """
    draw, chooser = stream(number), random.Random(number)
    books = {relay: lease_book(relay) for relay in RELAYS}
    subscriptions = []
    for index, token in enumerate(tokens):
        root: ListedRoot | HostRoot
        card = host_card(5000 + index)
        if profile.edge_elements:
            key = relay_id(5000 + index)
            root = HostRoot(seed(9000 + index), key)
        else:
            key = chooser.choice(RELAYS)
            root = ListedRoot(key)
        tree = plan([relay for relay in RELAYS if relay != key], profile.depth, draw(32))
        installation = Installation(DAY, root, tree, trunk or token, (token,), LeaseSecret(draw(32)))
        for relay in tree.parents:
            carry_out(books[relay], installation.install(profile, relay, card))
        subscriptions.append(Subscription(key, tree, trunk or token, token))
    routers = {
        relay: Router(relay, profile, book, RecentIds(START), draw(LABEL_SIZE))
        for relay, book in books.items()
    }
    return Overlay(routers, subscriptions)


TOPICS = [ONE] * 10 + [TWO] * 4 + [THREE]


@pytest.mark.parametrize("number", range(3))
def test_two_levels_send_exactly_what_the_trees_say(number):
    overlay = build(HARDENED, TOPICS, number)
    for index, origin in enumerate(RELAYS):
        for token in (ONE, TWO, THREE):
            edges = overlay.publish(small_message((token,), index), origin)
            assert len(edges) == len(set(edges))
            assert set(edges) == {edge for one in overlay.on(token) for edge in one.way(origin)}


@pytest.mark.parametrize(("depth", "times_ideal"), [(2, 1.0), (3, 1.1), (4, 1.2)])
def test_every_subscriber_is_reached_along_its_tree_at_little_more_than_the_ideal(depth, times_ideal):
    """What is above the ideal: an edge of one tree may be one of another tree that the message is not on."""
    overlay = build(replace(HARDENED, depth=depth), TOPICS, 7)
    transmissions = ideal = 0
    for index, origin in enumerate(RELAYS):
        edges = overlay.publish(small_message((ONE,), index), origin)
        ways = [subscription.way(origin) for subscription in overlay.on(ONE)]
        assert {edge for way in ways for edge in way} <= set(edges)
        assert len(edges) == len(set(edges))
        assert {one.root for one in overlay.on(TWO)}.isdisjoint(hop for _, hop in edges)
        transmissions += len(edges)
        ideal += sum(len(way) for way in ways)
    assert transmissions <= times_ideal * ideal


def test_a_message_reaches_whoever_asked_for_an_entry_token_and_others_over_shared_edges_alone():
    overlay = build(HARDENED, TOPICS, 8, trunk=b"0" * 16)
    over_shared_edges = 0
    for index, origin in enumerate(RELAYS):
        edges = overlay.publish(small_message((b"0" * 16, ONE, TWO), index), origin)
        entered = {edge for token in (ONE, TWO) for one in overlay.on(token) for edge in one.way(origin)}
        assert len(edges) == len(set(edges))
        assert entered <= set(edges)
        for one in overlay.on(THREE):
            over = any(one.tree.parents[low] == high for low, high in entered)
            assert (one.root in {hop for _, hop in edges}) == over
            over_shared_edges += over
    trees, expected = len(overlay.on(ONE) + overlay.on(TWO)), 1 / len(RELAYS)
    assert over_shared_edges / len(RELAYS) <= trees * expected


@pytest.mark.parametrize("profile", [HARDENED, replace(HARDENED, depth=4), PAPER])
def test_between_relays_a_message_carries_one_token(profile):
    overlay = build(profile, TOPICS, 11, trunk=b"0" * 16)
    for index, origin in enumerate(RELAYS[:20]):
        message = small_message((b"0" * 16, ONE, TWO, THREE), index)
        overlay.publish(message, origin)
        assert overlay.carried == {(b"0" * 16,)}


def test_a_second_origin_reaches_all_again_at_no_more_than_twice_the_cost():
    overlay = build(HARDENED, TOPICS, 9)
    for index in range(20):
        origins = RELAYS[index], RELAYS[index + 30]
        edges = overlay.publish(small_message((ONE,), index), *origins)
        assert len(edges) == len(set(edges))
        for subscription in overlay.on(ONE):
            assert all(edge in edges for origin in origins for edge in subscription.way(origin))


def test_a_message_dropped_again_costs_nothing():
    overlay = build(HARDENED, TOPICS, 10)
    message = small_message((ONE,))
    assert overlay.publish(message, RELAYS[0])
    assert overlay.publish(message, RELAYS[0]) == []


def flood(overlay: Overlay, token: bytes, origin: bytes) -> tuple[set[bytes], int]:
    """What VB §4.2 with an exact memory of ids does: who is reached, and at how many transmissions."""
    hops: dict[bytes, set[bytes]] = {}
    for subscription in overlay.on(token):
        for relay, above in subscription.tree.parents.items():
            hops.setdefault(relay, set()).add(above or subscription.root)
    reached, waiting = {origin}, [origin]
    while waiting:
        for hop in hops.get(waiting.pop(), set()) - reached:
            reached.add(hop)
            waiting.append(hop)
    return reached, sum(len(hops.get(relay, ())) for relay in reached)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_as_published_all_are_reached_by_a_flood(number):
    overlay = build(PAPER, TOPICS, number)
    transmissions = expected = 0
    for index, origin in enumerate(RELAYS):
        edges = overlay.publish(small_message((ONE,), index), origin)
        reached, cost = flood(overlay, ONE, origin)
        assert {hop for _, hop in edges} | {origin} == reached
        for subscription in overlay.on(ONE):
            assert subscription.root in reached
        transmissions += len(edges)
        expected += cost
    assert transmissions == pytest.approx(expected, rel=0.05)
    # What the hardened profile saves: one path a subscriber instead of nearly all relays times subscribers.
    assert transmissions > 5 * sum(
        len(one.way(o)) for one in overlay.on(ONE) for o in RELAYS if o != one.root
    )


def test_a_flood_on_one_link_pushes_out_nothing_of_another():
    memory = RecentIds(0.0, capacity=100)
    for number in range(30):
        memory.note(b"honest %d" % number, ONE, A, 1.0, [TO_A])
    for number in range(1000):
        memory.note(b"flood %d" % number, ONE, B, 2.0, [TO_A])
    assert all(memory.knows(b"honest %d" % number, ONE) for number in range(30))
    assert len(memory) == 100


def test_a_late_link_gets_its_share_of_a_memory_that_another_filled():
    memory = RecentIds(0.0, capacity=100)
    for number in range(100):
        memory.note(b"flood %d" % number, ONE, B, 1.0, [TO_A])
    for number in range(200):
        memory.note(b"honest %d" % number, ONE, A, 2.0, [TO_A])
    assert sum(memory.knows(b"honest %d" % number, ONE) for number in range(200)) == 50
    assert len(memory) == 100


def test_a_detour_enters_by_its_bypass_alone():
    seat = Seat().take((ONE, ORIGIN), to=A).take((TWO, ORIGIN), to=B)
    detour = small_message((ONE, TWO))
    assert [send.hop for send in seat.route(detour, previous=C).sends] == [TO_B]
    assert seat.route(detour, previous=C).sends == ()


def test_a_detour_that_comes_back_says_that_it_is_not_routed():
    seat = Seat().take((TWO, ORIGIN), to=B)
    detour = small_message((ONE, TWO))
    assert seat.route(detour, previous=C).outcome is ForwardingOutcome.FORWARDED
    assert seat.route(detour, previous=A).outcome is ForwardingOutcome.UNROUTED


def test_as_published_there_are_no_detours():
    seat = Seat(PAPER).take((TWO, ORIGIN), to=B)
    assert seat.route(small_message((ONE, TWO)), previous=C).sends == ()


def test_an_id_that_is_known_is_still_unrouted_where_nothing_leads_on():
    seat = Seat().take((ONE, A), to=B)
    known = small_message((ONE,))
    assert seat.route(known, previous=A).outcome is ForwardingOutcome.FORWARDED
    assert seat.route(known, previous=A).outcome is ForwardingOutcome.DUPLICATE
    assert seat.route(known, previous=C).outcome is ForwardingOutcome.UNROUTED


def test_what_waits_for_a_next_hop_follows_its_lease_and_no_other_and_goes_nowhere_twice():
    seat = Seat()
    for lease, to in ((1, A), (2, B), (3, C)):
        seat.lease(lease, ONE, to)
    message = small_message((ONE,))
    seat.memory.note(message.id, ONE, ORIGIN, NOW, [TO_A, TO_B])
    assert seat.router.moved(message, TO_A, NOW) == [], "the lease is as it was"
    seat.lease(1, ONE, D)
    assert seat.router.moved(message, TO_B, NOW) == [], "that of another lease"
    assert seat.router.moved(message, TO_A, NOW) == [TO_D]
    other = small_message((TWO,), number=1)
    assert seat.router.moved(other, TO_A, NOW) == [], "no message of this lease"
    assert not seat.memory.knows(other.id, TWO)
    seat.lease(1, ONE, D)
    assert seat.router.moved(small_message((ONE,), number=2), TO_A, NOW) == [TO_D], "said again, not moved"
    assert seat.leases.settle(bytes([1]) * 16, TO_A) is not None
    assert seat.router.moved(message, TO_A, NOW) == [], "all that waited has followed"
