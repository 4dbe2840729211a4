"""Targets: a relay's lease book, router, memories and hops, moved by hostile instructions and messages.

Caps are set low, so that they are reached; beside each machine stands what must be true of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import Any
from unittest import mock

import confirming
import core_examples as examples
import hop_world
import register_world
from core_examples import CALENDAR, NOW, relay_id, small_message
from fuzzing import Script, Target, scripts
from mutating import mutate_packed

from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.content import routing_table
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay import forwarding, leases, parcels
from hushcast_protocol.overlay.box_frames import Hold, box_lease
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.forwarding import ForwardingOutcome, RecentIds, Router
from hushcast_protocol.overlay.hops import is_box
from hushcast_protocol.overlay.leases import Instruction, Lease, LeaseBook
from hushcast_protocol.overlay.profile import HARDENED, PAPER
from hushcast_protocol.overlay.trail import label_bits, trail_of

OWN = relay_id(0)
_TOKENS = [bytes([number]) * 16 for number in range(6)]
_PREVIOUS = [ORIGIN, relay_id(1), relay_id(2)]
_DAYS = (-2, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2**40)  # from today
_WORDS = [bytes([number]) * 16 for number in range(24)]


@contextmanager
def _low_caps() -> Iterator[None]:
    with (
        mock.patch.object(leases, "MAX_LEASES", 8),
        mock.patch.object(leases, "MAX_BOX_LEASES", 3),
        mock.patch.object(leases, "MAX_TOMBSTONES", 5),
        mock.patch.object(leases, "MAX_ELEMENTS_HELD", 30),
        mock.patch.object(routing_table, "CAPACITY", 10),
        mock.patch.object(forwarding, "MAX_SENDS", 12),
    ):
        yield


def _elements(script: Script, profile: Any = HARDENED) -> tuple[bytes, ...]:
    return tuple(
        element(profile, script.choose(_TOKENS), OWN, script.choose(_PREVIOUS))
        for _ in range(script.number() % 7 + 1)
    )


def _instruction(script: Script, now: float, profile: Any = HARDENED) -> Instruction:
    word, day = script.choose(_WORDS), CALENDAR.day(now) + script.choose(_DAYS)
    if script.number() % 6 == 0:
        return leases.Withdraw(word)
    number = script.number() % 5
    hops = (
        leases.ToRelay(relay_id(number)),
        leases.ToHost(examples.host_card(number)),
        leases.ToListedHost(relay_id(number)),
    )
    hop = hops[script.number() % len(hops)]
    elements = _elements(script, profile)
    instruction = leases.Install(
        leases.lease_id(word), day, hop, elements, script.take(16).ljust(16), script.take(16).ljust(16)
    )
    if script.number() % 16 == 0:
        hostile = mutate_packed(Random(script.number(4)), [encode(instruction)])
        try:
            return _decode_instruction(hostile)  # type: ignore[no-any-return]
        except DecodeError:
            pass
    return instruction


_decode_instruction = decoder(leases.Install | leases.Withdraw, "instruction", parcels.MAX_PARCEL)


def _check_book(book: LeaseBook, held: dict[bytes, Lease]) -> None:
    named = {child for lease in held.values() for child in lease.children}
    assert all(book.is_child(relay_id(number)) == (relay_id(number) in named) for number in range(4))
    assert {lease.id: lease for lease in book.leases()} == held
    assert len(book) <= leases.MAX_LEASES
    assert len(book) + len(book.tombstones()) <= leases.MAX_LEASES + leases.MAX_TOMBSTONES
    assert sum(len(lease.elements) for lease in held.values()) <= leases.MAX_ELEMENTS_HELD
    assert not held.keys() & book.tombstones().keys()
    assert len(book._tables) <= 4, "tables of days that are over, or not yet open"
    for hop in {lease.hop for lease in held.values() if is_box(lease.hop)}:
        assert len(book.held_for(hop)) <= leases.MAX_BOX_LEASES
    for lease in held.values():
        table = book.table(lease.day)
        assert table is not None
        assert table.elements(lease.hop) == sum(
            len(one.elements) for one in held.values() if (one.day, one.hop) == (lease.day, lease.hop)
        )
        for one in lease.elements:
            assert lease.hop in table.lookup(one), "an element that is installed is not found"
    for day, table in book._tables.items():
        columns = {lease.hop for lease in held.values() if lease.day == day}
        assert set(table._columns) == columns, "a next hop without a lease, or a lease without a next hop"
        assert bool(table._rows) == bool(columns)
        assert all(
            0 < column.elements <= routing_table.CAPACITY for column in table._by_bit if column is not None
        )
        assert len(table._by_bit) <= leases.MAX_LEASES + 1


def _move_book(script: Script, book: LeaseBook, held: dict[bytes, Lease], now: float, profile: Any) -> float:
    """Make one move at a book; return what time it is then."""
    move = script.number() % 24
    if move == 0:
        now += CALENDAR.epoch_seconds * (script.number() ** 2 / 2048)  # up to 32 epochs, often few
    if move <= 1:
        for lease in [lease for gone in book.lapse(now) for lease in gone]:
            held.pop(lease, None)
        return now
    paid = script.number() % 2 == 0
    try:
        if move <= 5:
            lease, day = leases.lease_id(script.choose(_WORDS)), CALENDAR.day(now) + script.choose(_DAYS)
            box = relay_id(script.number() % 3)
            children = tuple(relay_id(script.number() % 4) for _ in range(script.number() % 4))
            hold = Hold(0, lease, day, _elements(script, profile), children, None)
            done: Lease | tuple[bytes, int] = book.hold(box_lease(box, hold), now, paid)
        else:
            done = examples.carry_out(book, _instruction(script, now, profile), now, paid)
    except (PeerError, Refusal):
        return now
    if isinstance(done, Lease):
        held[done.id] = done
    else:
        held.pop(done[0], None)
    return now


def _leases(data: bytes) -> None:
    script, now = Script(data), NOW
    with _low_caps():
        book = examples.lease_book(OWN)
        held: dict[bytes, Lease] = {}
        while script:
            now = _move_book(script, book, held, now, HARDENED)
            if script.number() % 12 == 0:
                restored = examples.lease_book(OWN)
                for lease in book.leases():
                    restored.restore(lease)
                for dead, day in book.tombstones().items():
                    restored.restore_tombstone(dead, day)
                book = restored
            if script.number() % 4 == 0:
                _check_book(book, held)
        _check_book(book, held)


def _router(data: bytes) -> None:
    script, now = Script(data), NOW
    profile = PAPER if script.number() % 4 == 0 else HARDENED
    with _low_caps():
        book, held = examples.lease_book(OWN), {}
        memory = RecentIds(now, capacity=6)
        router = Router(OWN, profile, book, memory, bytes(16))
        while script:
            move = script.number()
            if move % 4 == 0:
                now = _move_book(script, book, held, now, profile)
            elif move % 16 == 1:
                router.use_label(bytes([script.number() % 8]) * 16)
            else:
                now += move / 32
                _route(script, router, book, memory, profile, now)
        _check_book(book, held)


def _route(
    script: Script, router: Router, book: LeaseBook, memory: RecentIds, profile: Any, now: float
) -> None:
    message, previous = _message(script, CALENDAR.day(now)), script.choose(_PREVIOUS)
    trunk = message.tokens[0]
    before = set(memory.sent(message.id, trunk))
    known = memory.knows(message.id, trunk)
    try:
        only = is_box if script.number() % 4 == 0 else None
        decision = router.route(message, previous, now, only)
    except DecodeError:
        return
    assert len(memory) <= 6
    assert sum(len(known.sent) for known in memory._sent.values()) <= forwarding.MAX_SENDS
    for send in decision.sends:
        assert only is None or is_box(send.hop)
        assert send.hop not in before, "sent to one next hop twice"
        assert send.message.tokens == (trunk,)
        assert (send.message.id, send.message.body) == (message.id, message.body)
    assert bool(decision.sends) == (decision.outcome is ForwardingOutcome.FORWARDED)
    table = book.table(message.day)
    if table is None or known or only is not None or decision.outcome is ForwardingOutcome.LOOP:
        return
    asked, come = message.tokens, previous
    if previous != ORIGIN and profile.detours and len(asked) > 1:
        asked, come = asked[1:], ORIGIN  # a detour
    elif previous != ORIGIN:
        asked = asked[:1]
    wanted = {hop for token in asked for hop in table.lookup(element(profile, token, OWN, come))}
    assert {send.hop for send in decision.sends} == wanted, "a next hop that asked was passed over"


@cache
def _sealed(number: int, day: int) -> Message:
    return small_message(number=number, day=day)


def _message(script: Script, today: int) -> Message:
    message = _sealed(script.number() % 12, today + script.choose((0, 0, 0, 1)))
    tokens = tuple(script.choose(_TOKENS) for _ in range(script.number() % 4 + 1))
    kind = script.number() % 8
    passed = message.trail
    if kind == 0:
        passed = script.take(TRAIL_SIZE).ljust(TRAIL_SIZE, b"\x00")
    elif kind == 1:
        bits = 425 + script.number() % 28  # hardly room for one more label, or too many already
        passed = ((1 << bits) - 1).to_bytes(TRAIL_SIZE, "little")
    elif kind == 2:
        bits = 0
        for _ in range(script.number() % 36):
            bits |= label_bits(bytes([script.number() % 48]) * 16)
        passed = trail_of(bits)
    return Message(message.id, message.day, tokens, passed, message.body)


def _parcel_memory(data: bytes) -> None:
    """None works twice while it could be taken; no more are remembered than the cap allows."""
    script, epoch = Script(data), 1000
    memory = parcels.ParcelMemory()
    taken: dict[bytes, int] = {}
    with mock.patch.object(parcels, "MAX_PARCELS_REMEMBERED", 6):
        while script:
            move = script.number() % 8
            if move == 0:
                epoch += script.number() % 4
                memory.forget(epoch)
                continue
            sealed = script.take(1)
            try:
                memory.note(sealed, epoch, True)
            except Refusal:
                assert len(memory) == 6
                continue
            except PeerError:
                assert sealed in taken
                continue
            assert taken.get(sealed, -1) + 2 * parcels.NEAR < epoch, "a parcel worked twice"
            taken[sealed] = epoch
            assert len(memory) <= 6


def _confirmations(data: bytes) -> None:
    """Nobody is counted who was not told, whatever relays on the way answer."""
    script = Script(data)
    confirming.play(lambda most: script.number() % most, lambda: bool(script))


def _hop(data: bytes) -> None:
    """Nothing is lost or stuck, whatever the other end, the network and the disk do."""
    script = Script(data)
    goes_around = script.number() % 4 != 0
    hop_world.play(lambda most: script.number() % most, lambda: bool(script), goes_around)


def _register(data: bytes) -> None:
    """The register of the central system's server agrees with a model, whatever it is asked."""
    script = Script(data)
    register_world.play(lambda most: script.number() % most, lambda: bool(script))


TARGETS = [
    Target("leases", _leases, scripts, weight=2),
    Target("router", _router, lambda: scripts(size=1500), weight=3),
    Target("parcel-memory", _parcel_memory, scripts, weight=5),
    Target("confirmations", _confirmations, scripts, weight=3),
    Target("hop", _hop, lambda: scripts(size=1500), weight=3),
    Target("register", _register, scripts, weight=2),
]
