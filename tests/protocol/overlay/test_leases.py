"""Leases: replacement, withdrawal, tombstones, lapse, quotas, and the table in step."""

import msgspec
import pytest
from core_examples import (
    BYPASS,
    CALENDAR,
    DAY,
    FILTER_KEY,
    HOST,
    LEASE_SECRET,
    MARK,
    NOW,
    carry_out,
    host_install,
    lease_book,
    properties,
    relay_id,
    seed,
)
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.content.bloom import CAPACITY
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay import leases
from hushcast_protocol.overlay.hops import host_hop, relay_hop
from hushcast_protocol.overlay.leases import (
    MAX_ELEMENTS,
    Install,
    Lease,
    LeaseBook,
    ToListedHost,
    ToRelay,
    Withdraw,
    lease_id,
    lease_mark,
    lease_word,
)

OWN, OTHER, THIRD = relay_id(0), relay_id(1), relay_id(2)
HOST_ADDRESS = memory_address(seed(3000 + HOST).public())
TO_OTHER, TO_THIRD, TO_HOST = relay_hop(OTHER), relay_hop(THIRD), host_hop(relay_id(HOST))
WORD = b"w" * 16
LEASE = lease_id(WORD)


def element(number: int) -> bytes:
    return number.to_bytes(16, "big")


def lapsed(held: LeaseBook, now: float) -> list[bytes]:
    """Return the ids of all that lapses by then."""
    return [lease for gone in held.lapse(now) for lease in gone]


def elements(*numbers: int) -> tuple[bytes, ...]:
    return tuple(element(number) for number in numbers)


def to_relay(*numbers: int, word: bytes = WORD, hop: bytes = OTHER, day: int = DAY) -> Install:
    return Install(lease_id(word), day, ToRelay(hop), elements(*numbers), MARK, BYPASS)


def book() -> LeaseBook:
    return lease_book(OWN)


def routes(held: LeaseBook, number: int, day: int = DAY) -> list[Hop]:
    table = held.table(day)
    return sorted(table.lookup(element(number))) if table else []


def state(held: LeaseBook) -> tuple[object, ...]:
    ways = [routes(held, number, day) for number in range(40) for day in range(DAY - 1, DAY + 3)]
    return sorted(held.leases(), key=lambda lease: lease.id), held.tombstones(), ways


# Installing


def test_an_install_routes_its_elements_to_its_next_hop():
    held = book()
    lease = carry_out(held, to_relay(1, 2))
    assert lease == Lease(LEASE, DAY, TO_OTHER, None, elements(1, 2), MARK, BYPASS)
    assert routes(held, 1) == routes(held, 2) == [TO_OTHER]
    assert routes(held, 3) == []
    assert routes(held, 1, DAY + 1) == []
    assert LEASE in held
    assert len(held) == 1


def test_an_install_for_a_host_notes_its_address():
    held = book()
    lease = carry_out(held, host_install(elements=elements(1)))
    assert lease.hop == TO_HOST
    assert lease.address == HOST_ADDRESS
    assert held.address_of(TO_HOST) == HOST_ADDRESS
    assert held.address_of(TO_OTHER) is None
    assert held.address_of(relay_hop(relay_id(HOST))) is None
    assert routes(held, 1) == [TO_HOST]


def test_an_install_for_a_host_that_is_listed_has_it_as_a_host_and_leaves_its_address_to_rosters():
    held = book()
    hop = ToListedHost(relay_id(HOST))
    lease = carry_out(held, Install(LEASE, DAY, hop, elements(1), MARK, BYPASS))
    assert (lease.hop, lease.address) == (TO_HOST, None)
    assert routes(held, 1) == [TO_HOST]
    carry_out(held, host_install(b"x" * 16, elements(2)))
    assert held.address_of(TO_HOST) == HOST_ADDRESS, "who names it without a card hides no address"
    carry_out(held, Withdraw(b"x" * 16))
    assert held.address_of(TO_HOST) is None
    with pytest.raises(DecodeError):
        carry_out(held, Install(LEASE, DAY, ToListedHost(OWN), elements(1), MARK, BYPASS))


def test_who_names_a_host_without_its_card_again_takes_no_address_away():
    held = book()
    bare, whole = host_install(elements=elements(1)), host_install(elements=elements(1))
    bare = msgspec.structs.replace(bare, next_hop=ToListedHost(relay_id(HOST)))
    for install in (bare, whole, bare):
        lease = carry_out(held, install)
    assert lease.address == held.address_of(TO_HOST) == HOST_ADDRESS
    assert lease is held.get(LEASE)
    carry_out(held, to_relay(1))
    assert held.get(LEASE).address is None, "it is another next hop"


def test_the_same_install_may_be_repeated():
    held = book()
    carry_out(held, to_relay(1, 2))
    before = state(held)
    carry_out(held, to_relay(1, 2))
    assert state(held) == before
    carry_out(held, Withdraw(WORD))
    assert routes(held, 1) == []


def test_another_install_of_a_lease_replaces_it():
    held = book()
    carry_out(held, to_relay(1, 2))
    carry_out(held, to_relay(2, 3, hop=THIRD, day=DAY + 1))
    assert len(held) == 1
    assert [routes(held, number) for number in (1, 2, 3)] == [[], [], []]
    assert [routes(held, number, DAY + 1) for number in (1, 2, 3)] == [[], [TO_THIRD], [TO_THIRD]]


def test_a_lease_may_grow_and_shrink():
    held = book()
    for numbers in ((1,), (1, 2, 3), (3,)):
        carry_out(held, to_relay(*numbers))
        assert [number for number in range(5) if routes(held, number)] == list(numbers)
        assert held.table(DAY).elements(TO_OTHER) == len(numbers)


def test_repeated_elements_count_once():
    held = book()
    assert carry_out(held, to_relay(*[1] * 10, 2)).elements == elements(1, 2)
    assert held.table(DAY).elements(TO_OTHER) == 2


@pytest.mark.parametrize(("day", "taken"), [(DAY - 1, False), (DAY, True), (DAY + 1, True), (DAY + 2, False)])
def test_leases_are_for_today_or_tomorrow(day, taken):
    held = book()
    if taken:
        carry_out(held, to_relay(1, day=day))
    else:
        with pytest.raises(Refusal, match="day"):
            carry_out(held, to_relay(1, day=day))
    assert len(held) == taken


def test_next_hops_are_told_by_day():
    held = book()
    for word, hop, day in ((WORD, OTHER, DAY), (b"v" * 16, THIRD, DAY + 1), (b"u" * 16, OTHER, DAY + 1)):
        carry_out(held, to_relay(1, word=word, hop=hop, day=day))
    assert set(held.next_hops()) == {TO_OTHER, TO_THIRD}
    assert held.next_hops((DAY,)) == [TO_OTHER]
    assert set(held.next_hops((DAY + 1,))) == {TO_OTHER, TO_THIRD}
    assert held.next_hops((DAY + 2,)) == []


def test_a_relay_is_not_its_own_next_hop():
    held = book()
    with pytest.raises(DecodeError):
        carry_out(held, to_relay(1, hop=OWN))
    assert len(held) == 0


# Withdrawing


def test_a_withdrawn_lease_stays_away():
    held = book()
    carry_out(held, to_relay(1))
    assert carry_out(held, Withdraw(WORD)) == (LEASE, DAY)
    assert routes(held, 1) == []
    assert LEASE not in held
    with pytest.raises(Refusal, match="withdrawn"):
        carry_out(held, to_relay(1))


def test_a_withdrawal_may_overtake_its_install():
    held = book()
    carry_out(held, Withdraw(WORD))
    for day in (DAY, DAY + 1):
        with pytest.raises(Refusal, match="withdrawn"):
            carry_out(held, to_relay(1, day=day))


def test_the_lease_id_withdraws_nothing():
    held = book()
    carry_out(held, to_relay(1))
    carry_out(held, Withdraw(LEASE))
    assert routes(held, 1) == [TO_OTHER]


def test_a_withdrawal_leaves_other_leases_alone():
    held = book()
    carry_out(held, to_relay(1, 2))
    carry_out(held, to_relay(2, 3, word=b"x" * 16))
    carry_out(held, Withdraw(WORD))
    assert [routes(held, number) for number in (1, 2, 3)] == [[], [TO_OTHER], [TO_OTHER]]


def test_words_tell_relays_and_secrets_apart():
    words = {
        lease_word(secret, relay)
        for secret in (LEASE_SECRET, type(LEASE_SECRET)(bytes(32)))
        for relay in (OWN, OTHER)
    }
    assert len(words | {lease_id(word) for word in words}) == 8


def test_words_and_ids_do_not_change():
    assert lease_word(LEASE_SECRET, b"r" * 32).hex() == "0a5e02704b8d4822ab014f4c232c3211"
    assert lease_id(b"w" * 16).hex() == "62c958231a61f1fa7be09e8f09819095"


# Lapsing


def test_a_lease_lapses_with_its_day_and_grace():
    held = book()
    carry_out(held, to_relay(1))
    carry_out(held, to_relay(2, word=b"x" * 16, day=DAY + 1))
    end = CALENDAR.lapse(DAY)
    assert lapsed(held, end - 0.5) == []
    assert routes(held, 1) == [TO_OTHER]
    assert lapsed(held, end) == [LEASE]
    assert held.table(DAY) is None
    assert LEASE not in held
    assert routes(held, 2, DAY + 1) == [TO_OTHER]


def test_tombstones_lapse_only_when_the_lease_could_not_return():
    held = book()
    carry_out(held, Withdraw(WORD))
    assert held.tombstones() == {LEASE: DAY + 1}
    assert lapsed(held, CALENDAR.lapse(DAY)) == []
    assert lapsed(held, CALENDAR.lapse(DAY + 1)) == [LEASE]
    assert held.tombstones() == {}
    for day in (DAY, DAY + 1):
        with pytest.raises(Refusal, match="day"):
            carry_out(held, to_relay(1, day=day), CALENDAR.lapse(DAY + 1))


# Quotas


def test_a_full_book_takes_no_new_lease_but_replaces(monkeypatch):
    monkeypatch.setattr(leases, "MAX_LEASES", 2)
    held = book()
    carry_out(held, to_relay(1))
    carry_out(held, to_relay(2, word=b"x" * 16))
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, to_relay(3, word=b"y" * 16))
    assert routes(held, 3) == []
    carry_out(held, to_relay(4))
    assert [routes(held, number) for number in (1, 4)] == [[], [TO_OTHER]]
    carry_out(held, Withdraw(WORD))
    carry_out(held, to_relay(3, word=b"y" * 16))
    assert routes(held, 3) == [TO_OTHER]


def test_nobody_fills_a_next_hop_for_others():
    """Two leases of the largest size fill its filter; another comes beside it."""
    held = book()
    carry_out(held, to_relay(1))
    for number in range(CAPACITY // MAX_ELEMENTS):
        first = 10_000 * (number + 1)
        carry_out(held, to_relay(*range(first, first + MAX_ELEMENTS), word=bytes([number]) * 16))
    carry_out(held, to_relay(1, 2))
    carry_out(held, to_relay(3, word=b"x" * 16))
    assert [routes(held, number) for number in (1, 2, 3, 10_000, 20_000)] == [[TO_OTHER]] * 5
    assert held.table(DAY).elements(TO_OTHER) == CAPACITY + 3
    for number in range(CAPACITY // MAX_ELEMENTS):
        carry_out(held, Withdraw(bytes([number]) * 16))
    carry_out(held, Withdraw(WORD))
    carry_out(held, Withdraw(b"x" * 16))
    assert len(held.table(DAY)) == 0


@pytest.mark.parametrize("scarce", ["MAX_LEASES", "MAX_ELEMENTS_HELD"])
def test_half_of_what_is_scarce_is_for_those_who_paid(monkeypatch, scarce):
    monkeypatch.setattr(leases, scarce, 4)
    held = book()
    carry_out(held, to_relay(1), paid=False)
    carry_out(held, to_relay(2, word=b"x" * 16), paid=False)
    before = state(held)
    assert held.fullness() == 0.5
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, to_relay(3, word=b"y" * 16), paid=False)
    assert state(held) == before
    carry_out(held, to_relay(3, word=b"y" * 16), paid=True)
    carry_out(held, to_relay(4, hop=THIRD, word=b"x" * 16), paid=False)  # takes no room that it did not have
    carry_out(held, to_relay(5, word=b"z" * 16), paid=True)
    assert held.fullness() == 1
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, to_relay(6, word=b"u" * 16), paid=True)


def test_a_lease_grows_by_a_child_unpaid_and_to_the_size_of_many_if_paid(monkeypatch):
    monkeypatch.setattr(leases, "MAX_LEASES", 4)
    monkeypatch.setattr(leases, "MAX_ELEMENTS_HELD", 4 * leases.ELEMENTS_A_LEASE)
    held = book()
    for number in range(2):
        carry_out(held, to_relay(*range(20), word=bytes([number]) * 16), paid=False)
    carry_out(held, to_relay(*range(32), word=bytes(16)), paid=False)
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, to_relay(*range(80), word=bytes(16)), paid=False)
    carry_out(held, to_relay(*range(80), word=bytes(16)), paid=True)


def test_half_of_the_tombstones_are_for_words_of_those_who_paid(monkeypatch):
    monkeypatch.setattr(leases, "MAX_TOMBSTONES", 2)
    held = book()
    carry_out(held, to_relay(1))
    carry_out(held, Withdraw(b"x" * 16), paid=False)
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, Withdraw(b"y" * 16), paid=False)
    carry_out(held, Withdraw(b"y" * 16), paid=True)
    carry_out(held, Withdraw(WORD), paid=False)  # what is held can always be withdrawn


def test_where_leases_moved_is_known_for_as_long_as_they_are_held():
    held = book()
    trunk = b"t" * 16
    mark = lease_mark(trunk, OWN)
    for word, hop in ((WORD, OTHER), (b"x" * 16, OTHER), (b"y" * 16, THIRD)):
        carry_out(held, msgspec.structs.replace(to_relay(1, word=word, hop=hop), mark=mark))
    assert held.moved(DAY, TO_OTHER, trunk) == []
    for word in (WORD, b"x" * 16):
        carry_out(held, msgspec.structs.replace(to_relay(1, word=word, hop=THIRD), mark=mark))
    assert held.moved(DAY, TO_OTHER, trunk) == [TO_THIRD]
    assert held.moved(DAY + 1, TO_OTHER, trunk) == held.moved(DAY, TO_THIRD, trunk) == []
    assert held.moved(DAY, TO_OTHER, b"u" * 16) == []
    carry_out(held, Withdraw(WORD))
    assert held.moved(DAY, TO_OTHER, trunk) == [TO_THIRD]
    again = book()
    for lease in held.leases():
        again.restore(lease)
    assert again.moved(DAY, TO_OTHER, trunk) == [TO_THIRD]
    lapsed(held, CALENDAR.lapse(DAY))
    assert held.moved(DAY, TO_OTHER, trunk) == []
    assert not held.moves.left()


def test_a_withdrawal_that_is_refused_changes_nothing(monkeypatch):
    """Otherwise the caller, told of a refusal, would keep on disk a lease that is gone from memory."""
    monkeypatch.setattr(leases, "MAX_TOMBSTONES", 1)
    held = book()
    carry_out(held, Withdraw(b"x" * 16))
    carry_out(held, to_relay(1))
    before = state(held)
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, Withdraw(b"y" * 16))
    assert state(held) == before


def test_a_lease_held_can_be_withdrawn_when_there_is_no_room_for_more(monkeypatch):
    """Room for their tombstones is kept from the beginning: only words never heard of are refused."""
    monkeypatch.setattr(leases, "MAX_TOMBSTONES", 1)
    held = book()
    carry_out(held, Withdraw(b"x" * 16))
    carry_out(held, to_relay(1))
    assert carry_out(held, Withdraw(WORD)) == (LEASE, DAY)
    assert routes(held, 1) == []
    assert set(held.tombstones()) == {LEASE, lease_id(b"x" * 16)}
    carry_out(held, Withdraw(WORD))


def test_installing_and_withdrawing_in_turn_does_not_pile_up_tombstones(monkeypatch):
    monkeypatch.setattr(leases, "MAX_LEASES", 2)
    monkeypatch.setattr(leases, "MAX_TOMBSTONES", 3)
    held = book()
    for number in range(5):
        carry_out(held, to_relay(1, word=bytes([number]) * 16))
        carry_out(held, Withdraw(bytes([number]) * 16))
    before = state(held)
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, to_relay(1, word=b"x" * 16))
    assert state(held) == before
    lapsed(held, CALENDAR.lapse(DAY))
    carry_out(held, to_relay(1, word=b"x" * 16, day=DAY + 1), CALENDAR.day_start(DAY + 1) + 60)


def test_the_elements_of_all_leases_are_bounded_together(monkeypatch):
    """Else the largest leases, each for a next hop of its own, would fill the memory: 20,000 of 1,024."""
    monkeypatch.setattr(leases, "MAX_ELEMENTS_HELD", 5)
    held = book()
    carry_out(held, to_relay(1, 2, 3))
    carry_out(held, to_relay(4, 5, word=b"x" * 16, hop=THIRD, day=DAY + 1))
    before = state(held)
    for refused in (to_relay(1, 2, 3, 4), to_relay(6, word=b"y" * 16)):
        with pytest.raises(Refusal, match="quota"):
            carry_out(held, refused)
        assert state(held) == before
    carry_out(held, to_relay(1, 2))
    carry_out(held, to_relay(6, word=b"y" * 16))
    carry_out(held, Withdraw(WORD))
    carry_out(held, to_relay(7, 8, word=b"z" * 16))
    lapsed(held, CALENDAR.lapse(DAY))
    again = book()
    for lease in held.leases():
        again.restore(lease)
    for one in (held, again):
        day = CALENDAR.day_start(DAY + 1) + 60
        carry_out(one, to_relay(1, 2, 3, word=b"u" * 16, day=DAY + 1), day)
        with pytest.raises(Refusal, match="quota"):
            carry_out(one, to_relay(9, word=b"v" * 16, day=DAY + 1), day)


def test_a_withdrawal_may_be_repeated_when_there_is_no_room_for_more(monkeypatch):
    monkeypatch.setattr(leases, "MAX_TOMBSTONES", 1)
    held = book()
    carry_out(held, Withdraw(WORD))
    carry_out(held, Withdraw(WORD))
    with pytest.raises(Refusal, match="quota"):
        carry_out(held, Withdraw(b"x" * 16))


# Restarts


def test_a_book_is_restored_from_what_it_held():
    held = book()
    carry_out(held, to_relay(1, 2))
    carry_out(held, host_install(word=b"m" * 16, elements=elements(3)))
    carry_out(held, Withdraw(b"x" * 16))
    again = lease_book(OWN, FILTER_KEY[::-1])
    for lease in held.leases():
        again.restore(lease)
    for lease, day in held.tombstones().items():
        again.restore_tombstone(lease, day)
    assert state(again) == state(held)
    assert again.address_of(TO_HOST) == HOST_ADDRESS


# A life


WORDS = [bytes([number]) * 16 for number in range(6)]


class BookLife(RuleBasedStateMachine):
    """The book and its tables against dicts that know nothing of filters."""

    words = st.sampled_from(WORDS)
    some = st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple)
    hops = st.sampled_from([OTHER, THIRD])

    def __init__(self):
        super().__init__()
        self.book = book()
        self.now = NOW
        self.leases: dict[bytes, tuple[int, Hop, set[int]]] = {}
        self.dead: dict[bytes, int] = {}

    def apply(self, instruction: leases.Instruction, refusal: str | None) -> None:
        if refusal is None:
            carry_out(self.book, instruction, self.now)
        else:
            with pytest.raises(Refusal, match=refusal):
                carry_out(self.book, instruction, self.now)

    @rule(word=words, ahead=st.integers(-2, 2), hop=hops, numbers=some, to_host=st.booleans())
    def install(self, word, ahead, hop, numbers, to_host):
        day = CALENDAR.day(self.now) + ahead
        if day not in CALENDAR.installable_days(self.now):
            refusal = "day"
        elif word in self.dead:
            refusal = "withdrawn"
        else:
            refusal = None
            self.leases[word] = (day, TO_HOST if to_host else relay_hop(hop), set(numbers))
        if to_host:
            self.apply(host_install(word, elements(*numbers), day), refusal)
        else:
            self.apply(to_relay(*numbers, word=word, hop=hop, day=day), refusal)

    @rule(word=words)
    def withdraw(self, word):
        held = self.leases.pop(word, None)
        self.dead[word] = held[0] if held else CALENDAR.day(self.now) + 1
        self.apply(Withdraw(word), None)

    @rule(epochs=st.integers(1, 30))
    def wait(self, epochs):
        self.now += epochs * CALENDAR.epoch_seconds

    @precondition(lambda self: self.leases or self.dead)
    @rule()
    def lapse(self):
        gone = [word for word, (day, _, _) in self.leases.items() if CALENDAR.lapse(day) <= self.now]
        gone += [word for word, day in self.dead.items() if CALENDAR.lapse(day) <= self.now]
        assert sorted(lapsed(self.book, self.now)) == sorted(map(lease_id, gone))
        for word in gone:
            self.leases.pop(word, None)
            self.dead.pop(word, None)

    @invariant()
    def the_book_is_as_the_model(self):
        assert {lease.id for lease in self.book.leases()} == {lease_id(word) for word in self.leases}
        assert self.book.tombstones() == {lease_id(word): day for word, day in self.dead.items()}
        assert len(self.book) == len(self.leases)

    @invariant()
    def the_tables_are_in_step(self):
        today = CALENDAR.day(self.now)
        for day in range(today - 3, today + 3):
            for number in range(10):
                hops = {hop for on, hop, held in self.leases.values() if on == day and number in held}
                assert routes(self.book, number, day) == sorted(hops)


BookLife.TestCase.settings = properties(60)
test_book_life = pytest.mark.slow(BookLife.TestCase)


def test_lease_addresses_are_checked_texts():
    lease = carry_out(book(), host_install())
    assert lease.address == Address(HOST_ADDRESS)
