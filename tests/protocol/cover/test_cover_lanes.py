"""The way of a box's blocks: one a round and lane, which host and porter cannot match, whoever is hostile."""

from __future__ import annotations

import random
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.crypto.secrets import ParcelKey, Seed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_box import (
    LANE_DAYS,
    MAX_LANE_BODIES,
    MAX_LANE_ITEM,
    LaneBox,
    lane_filled,
    lane_items,
)
from hushcast_protocol.cover.lane_papers import (
    HELD_FOR,
    LANE_NAME,
    LANE_PAPER,
    LaneBill,
    LaneErrand,
    bill_name,
)
from hushcast_protocol.cover.lane_pieces import (
    MAX_BODIES_IN_PIECES,
    MAX_PIECES,
    LanePieces,
    lane_pieces,
    piece_sizes,
)
from hushcast_protocol.cover.lane_porter import LanePorter
from hushcast_protocol.cover.lane_seals import (
    HOST_BLOCK,
    LANE_ROOM,
    LaneKey,
    LaneKeys,
    host_block,
    second_block,
)
from hushcast_protocol.cover.lane_second import MAX_BILLS, MAX_BILLS_OF_PORTER, LaneSecond
from hushcast_protocol.cover.lane_seconds import LANES, LaneSeconds
from hushcast_protocol.cover.receipt_list import BLOCK
from hushcast_protocol.overlay.lane_holds import check_lane_hold, lane_hold

RULES = CoverRules(b"n" * 32, 3600)
DAY = RULES.held_rounds
DRAW = random.Random(1).randbytes
KEYS = [ParcelKey.draw(DRAW) for _ in range(5)]
HOST, PORTER, *SECONDS = (
    Relay(bytes([n + 1]) * 32, parse_address("127.0.0.1:9"), key.public(), 0) for n, key in enumerate(KEYS)
)
SECOND = SECONDS[0]
NOW = 3_000_000
LANE = LaneKeys.drawn(DRAW)
ERRAND = LaneErrand(SECOND.id, DRAW(LANE_NAME), LANE.host, NOW + DAY)


def bill(errand: LaneErrand = ERRAND, key: LaneKey = LANE.second, until: int = NOW + DAY) -> LaneBill:
    asked = LaneErrand(errand.second, errand.lane, errand.key, until)
    return LaneBill.drawn(RULES, SECOND, asked, key, HOST.id, DRAW)


def second(*bills: LaneBill, first: int = NOW) -> LaneSecond:
    desk = LaneSecond(RULES, SECOND.id, KEYS[2], first)
    for one in bills:
        assert desk.show(one.sealed, NOW, PORTER.id)
    return desk


def filled(*bodies: bytes) -> bytes:
    box: LaneBox[bytes] = LaneBox(RULES)
    for body in bodies:
        put(box, body, NOW)
    return fill(box, NOW)


def put(box: LaneBox[bytes], body: bytes, now: int) -> None:
    box.put(body, (len(body),), now)


def fill(box: LaneBox[bytes], now: int) -> bytes:
    return lane_filled(body for body, _ in box.said(now))


@given(st.lists(st.binary(min_size=1, max_size=1200), max_size=3))
def test_what_a_host_fills_in_its_owner_reads_and_the_sizes_are_fixed(bodies: list[bytes]) -> None:
    shown = bill()
    desk = second(shown)
    given_by_host = host_block(LANE.host, NOW, filled(*bodies))
    desk.take(ERRAND.lane, NOW, given_by_host, HOST.id)
    (handed,) = desk.end_round(NOW, DRAW)
    assert (handed.porter, handed.bill, len(handed.block)) == (PORTER.id, shown.name, BLOCK)
    assert len(given_by_host) == HOST_BLOCK
    assert lane_items(LANE.opened(NOW, handed.block)) == bodies


def test_a_host_finds_none_of_its_bytes_in_what_a_porter_has() -> None:
    given_by_host = host_block(LANE.host, NOW, filled())
    block = second_block(LANE.second, NOW, given_by_host)
    same = sum(a == b for a, b in zip(given_by_host, block, strict=False))
    assert same < 2 * HOST_BLOCK / 256 + 20  # as many as two random texts have
    assert second_block(LANE.second, NOW + 1, given_by_host) != block


@pytest.mark.parametrize("is_given", [True, False])
def test_a_block_comes_down_whether_or_not_the_host_and_the_second_give_one(is_given: bool) -> None:
    """A porter that has no key cannot tell which, and an owner opens nothing that was made up."""
    desk = second(bill())
    if is_given:
        desk.take(ERRAND.lane, NOW, host_block(LANE.host, NOW, filled(b"body")), HOST.id)
    (handed,) = desk.end_round(NOW, DRAW)
    assert len(handed.block) == BLOCK
    porter = LanePorter(RULES, [(one.id, DRAW(LANE_PAPER)) for one in SECONDS], DRAW)
    assert [len(one) for one in porter.end_round()] == [BLOCK] * LANES
    for block in (*porter.end_round(), *([] if is_given else [handed.block])):
        with pytest.raises(AuthenticationError):
            LANE.opened(NOW, block)


@given(st.integers(0, BLOCK - 1), st.integers(1, 255), st.integers(-2, 2))
def test_what_is_changed_replayed_or_of_another_lane_opens_for_nobody(at: int, bit: int, late: int) -> None:
    block = bytearray(second_block(LANE.second, NOW, host_block(LANE.host, NOW, filled(b"body"))))
    assert LANE.opened(NOW, bytes(block))
    wrong = [(LaneKeys.drawn(DRAW), 0, bytes(block))] + [(LANE, late, bytes(block))] * (late != 0)
    block[at] ^= bit
    for keys, rounds, changed in [*wrong, (LANE, 0, bytes(block)), (LANE, 0, bytes(block[:-1]))]:
        with pytest.raises(AuthenticationError):
            keys.opened(NOW + rounds, changed)


def test_a_second_takes_one_block_of_the_round_from_the_host_of_the_bill() -> None:
    desk = second(bill())
    block = host_block(LANE.host, NOW, filled())
    with pytest.raises(DecodeError):
        desk.take(ERRAND.lane, NOW, block + b"x", HOST.id)
    for lane, host in ((DRAW(LANE_NAME), HOST.id), (ERRAND.lane, PORTER.id)):
        with pytest.raises(AuthenticationError):
            desk.take(lane, NOW, block, host)
    for number in (NOW - 1, NOW + 1):
        with pytest.raises(Refusal, match="day"):
            desk.take(ERRAND.lane, number, block, HOST.id)
    desk.take(ERRAND.lane, NOW, block, HOST.id)
    with pytest.raises(Refusal, match="rate"):
        desk.take(ERRAND.lane, NOW, block, HOST.id)


def test_a_round_that_was_left_out_brings_random_blocks_and_seals_nothing_twice() -> None:
    desk = second(bill())
    desk.take(ERRAND.lane, NOW, host_block(LANE.host, NOW, filled(b"body")), HOST.id)
    (handed,) = desk.end_round(NOW + 1, DRAW)  # its machine slept
    for number in (NOW, NOW + 1):
        with pytest.raises(AuthenticationError):
            LANE.opened(number, handed.block)


def test_a_lane_ends_with_its_bill_and_where_nobody_shows_it() -> None:
    desk = second(
        bill(until=NOW + 1), bill(LaneErrand(SECOND.id, DRAW(LANE_NAME), LANE.host, 0), until=NOW + 3 * DAY)
    )
    assert len(list(desk.end_round(NOW + 1, DRAW))) == 2
    assert len(desk) == 1
    list(desk.end_round(NOW + 2 * DAY + 1, DRAW))
    assert len(desk) == 0


def test_a_bill_is_followed_by_the_same_owners_alone() -> None:
    """A host that knows the name, or a porter that shows an old one, turns no lane to itself."""
    before = bill()
    desk = second(before)
    assert not desk.show(before.sealed, NOW, PORTER.id)
    with pytest.raises(Refusal, match="lane"):
        desk.show(before.sealed, NOW, HOST.id)
    stranger = bill(key=LaneKeys.drawn(DRAW).second, until=NOW + 2 * DAY)
    for one in (stranger, bill()):
        with pytest.raises(Refusal, match="lane"):
            desk.show(one.sealed, NOW, HOST.id)
    after = bill(until=NOW + 2 * DAY)
    assert desk.show(after.sealed, NOW, HOST.id)  # the daemon has another porter
    assert [one.porter for one in desk.end_round(NOW, DRAW)] == [HOST.id]
    with pytest.raises(Refusal, match="lane"):
        desk.show(before.sealed, NOW, PORTER.id)


def test_bills_are_bounded_by_porter_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = second()
    for until in (NOW - 1, NOW + RULES.rounds_in(HELD_FOR) + 1):
        with pytest.raises(Refusal, match="day"):
            desk.show(bill(until=until).sealed, NOW, PORTER.id)
    with pytest.raises(AuthenticationError):
        desk.show(DRAW(LANE_PAPER), NOW, PORTER.id)
    assert MAX_BILLS // MAX_BILLS_OF_PORTER == 64
    module = "hushcast_protocol.cover.lane_second"
    monkeypatch.setattr(f"{module}.MAX_BILLS_OF_PORTER", 2)
    monkeypatch.setattr(f"{module}.MAX_BILLS", 3)

    def shown(porter: Relay) -> None:
        other = LaneErrand(SECOND.id, DRAW(LANE_NAME), LANE.host, 0)
        desk.show(bill(other).sealed, NOW, porter.id)

    shown(PORTER)
    shown(PORTER)
    with pytest.raises(Refusal, match="quota"):
        shown(PORTER)
    shown(HOST)
    with pytest.raises(Refusal, match="quota"):
        shown(SECOND)
    assert len(desk) == 3
    lanes = LaneErrand(SECOND.id, DRAW(LANE_NAME), LANE.host, 0)
    full = second(*(bill(lanes, until=NOW + DAY + late) for late in (0, 1)))
    assert len(full) == 1  # one that follows takes no room of its own


def test_an_errand_is_for_one_host_and_shows_neither_key_nor_bill() -> None:
    sealed = ERRAND.sealed(RULES, HOST, DRAW)
    assert len(sealed) == len(bill().sealed) == LANE_PAPER
    assert LaneErrand.opened(RULES, HOST.id, KEYS[0], sealed) == ERRAND
    assert LANE.host.reveal().hex() not in repr(ERRAND)
    for relay, key, paper in (
        (PORTER.id, KEYS[0], sealed),
        (HOST.id, KEYS[1], sealed),
        (SECOND.id, KEYS[2], bill().sealed),
        (HOST.id, KEYS[0], sealed[:-1]),
    ):
        with pytest.raises(PeerError):
            LaneErrand.opened(RULES, relay, key, paper)
    with pytest.raises(PeerError):
        LaneBill.opened(RULES, HOST.id, KEYS[0], sealed)


def test_a_porter_takes_each_lane_from_its_own_second_and_shows_bills_apart() -> None:
    papers = [(one.id, DRAW(LANE_PAPER)) for one in SECONDS]
    porter = LanePorter(RULES, papers, DRAW)
    shown = [(number, one) for number in range(DAY) for one in porter.shown(number)]
    assert sorted(one for _, one in shown) == sorted(papers)
    assert len({number for number, _ in shown}) == LANES  # with this seed
    names = [bill_name(paper) for _, paper in papers]
    block = DRAW(BLOCK)
    with pytest.raises(DecodeError):
        porter.take(names[0], block[:-1], SECONDS[0].id)
    for name, relay in ((names[0], SECONDS[1]), (DRAW(16), SECONDS[0])):
        with pytest.raises(AuthenticationError):
            porter.take(name, block, relay.id)
    porter.take(names[1], block, SECONDS[1].id)
    with pytest.raises(Refusal, match="rate"):
        porter.take(names[1], block, SECONDS[1].id)
    assert porter.end_round()[1] == block
    assert porter.end_round()[1] != block
    for bad in (papers[:2], [papers[0]] * 3, [(one, paper[:-1]) for one, paper in papers]):
        with pytest.raises(DecodeError):
            LanePorter(RULES, bad, DRAW)


@given(st.lists(st.integers(1, 1500), min_size=1, max_size=40))
def test_a_box_says_what_is_new_first_and_then_everything_in_turn(sizes: list[int]) -> None:
    box: LaneBox[bytes] = LaneBox(RULES)
    bodies = [bytes([place + 1]) * size for place, size in enumerate(sizes)]
    for body in bodies:
        put(box, body, NOW)
    said = [lane_items(fill(box, NOW + number)) for number in range(2 * len(bodies))]
    assert all(len(one) == len(set(one)) for one in said)
    flat = [body for one in said for body in one]
    assert flat[: len(bodies)] == bodies
    assert all(flat.count(body) >= 2 for body in bodies)
    assert all(bodies.index(b) == (bodies.index(a) + 1) % len(bodies) for a, b in pairwise(flat))


def test_a_box_forgets_after_two_weeks_and_is_bounded() -> None:
    box: LaneBox[bytes] = LaneBox(RULES)
    put(box, b"old", NOW)
    later = NOW + RULES.rounds_in(LANE_DAYS)
    assert lane_items(fill(box, later - 1)) == [b"old"]
    assert lane_items(fill(box, later)) == []
    for bad in (b"", bytes(MAX_LANE_ITEM + 1)):
        with pytest.raises(Refusal):
            put(box, bad, NOW)
    for number in range(MAX_LANE_BODIES + 1):
        put(box, b"%d" % number, later)
    assert len(box) == MAX_LANE_BODIES
    assert lane_items(fill(box, later))[0] == b"1"


def test_what_came_before_a_start_is_said_after_what_is_new_and_the_last_of_it_first() -> None:
    box: LaneBox[bytes] = LaneBox(RULES)
    for body in (b"a", b"b"):
        box.restore(body, (len(body),), NOW)
    put(box, b"c", NOW)
    assert lane_items(fill(box, NOW)) == [b"c", b"b", b"a"]


def test_a_body_of_several_items_is_said_in_its_turn_and_let_go_of_when_it_is_not_held() -> None:
    box: LaneBox[bytes] = LaneBox(RULES)
    box.put(b"large", (MAX_LANE_ITEM, 10), NOW)
    put(box, b"small", NOW)
    assert box.said(NOW) == [(b"large", 0)]
    assert box.said(NOW) == [(b"large", 1), (b"small", 0)]
    assert box.said(NOW) == [(b"large", 0)]
    box.keep(lambda what: what == b"small")
    assert (box.said(NOW), len(box)) == ([(b"small", 0)], 1)


@given(st.lists(st.integers(1, 3 * MAX_LANE_ITEM), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_body_is_joined_from_its_pieces_in_any_order_and_again(
    sizes: list[int], order: random.Random
) -> None:
    bodies = [bytes([place + 1]) * size for place, size in enumerate(sizes)]
    items = [item for body in bodies for item in lane_pieces(body)]
    assert all(len(item) <= MAX_LANE_ITEM for item in items)
    assert [len(item) for item in items] == [size for body in bodies for size in piece_sizes(len(body))]
    order.shuffle(items)
    pieces = LanePieces()
    for _ in range(2):
        assert sorted(body for item in items if (body := pieces.take(item)) is not None) == sorted(bodies)
    assert not pieces._coming


def test_pieces_that_no_host_cuts_are_told_and_what_waits_is_bounded() -> None:
    (item,), pieces = lane_pieces(b"body"), LanePieces()
    head = item[:LANE_NAME]
    for bad in (item[:-4], head + b"\x01\x00body", head + bytes([0, MAX_PIECES]) + b"body"):
        with pytest.raises(DecodeError):
            pieces.take(bad)
    with pytest.raises(AuthenticationError):
        pieces.take(item + b"x")
    first, second = lane_pieces(DRAW(2 * MAX_LANE_ITEM - 100))
    assert pieces.take(first) is None
    for _ in range(MAX_BODIES_IN_PIECES):
        pieces.take(lane_pieces(DRAW(2 * MAX_LANE_ITEM - 100))[0])
    assert len(pieces._coming) == MAX_BODIES_IN_PIECES
    assert pieces.take(second) is None, "its first piece gave way"


def test_what_an_owner_asks_holds_for_its_box_and_one_host() -> None:
    box = Seed(DRAW(32))
    asked = lane_hold(box, RULES.network, HOST.id, DRAW(LANE_PAPER), 7, DRAW(16), (DRAW(16), DRAW(16)))
    check_lane_hold(RULES.network, HOST.id, asked)
    assert asked.worth == QUARTER + 1
    assert asked.held is not None
    assert asked.held.elements == asked.elements
    for name, value in (("box", SECOND.id), ("errand", None), ("day", 8), ("elements", asked.elements[:1])):
        with pytest.raises(AuthenticationError):
            check_lane_hold(RULES.network, HOST.id, msgspec.structs.replace(asked, **{name: value}))
    for network, host in ((RULES.network, PORTER.id), (bytes(32), HOST.id)):
        with pytest.raises(AuthenticationError):
            check_lane_hold(network, host, asked)
    with pytest.raises(DecodeError):
        check_lane_hold(RULES.network, HOST.id, lane_hold(box, RULES.network, HOST.id, None))
    idle = lane_hold(box, RULES.network, HOST.id, DRAW(LANE_PAPER))
    check_lane_hold(RULES.network, HOST.id, idle)
    assert (idle.worth, idle.held) == (QUARTER, None)


@given(st.binary(min_size=LANE_ROOM, max_size=LANE_ROOM) | st.binary(max_size=50))
def test_what_a_hostile_host_fills_in_is_items_or_an_error(content: bytes) -> None:
    try:
        items = lane_items(content)
    except DecodeError:
        return
    assert all(0 < len(item) <= MAX_LANE_ITEM for item in items)


def test_what_is_not_well_formed_is_told() -> None:
    for bad in (b"\x0f\xff" + bytes(LANE_ROOM - 2), bytes(LANE_ROOM - 1) + b"x", bytes(3)):
        with pytest.raises(DecodeError):
            lane_items(bad)


@given(st.integers(0, 2**32))
def test_seconds_of_lanes_change_with_the_lists_alone(seed: int) -> None:
    draw = random.Random(seed).randbytes
    relays = [bytes([n + 1]) * 32 for n in range(16)]
    rules = CoverRules(bytes(32), 3600, width=4)
    lists = CoverLists.drawn(rules, draw(32), relays)
    chain = CoverChain.drawn(relays, lists, 0, 0.0, draw)
    lanes = LaneSeconds.drawn(lists, chain, 0, draw)
    assert len(set(lanes.seconds)) == LANES
    assert chain.porter not in lanes.seconds
    assert (chain.second in lanes.seconds) == (chain.porter in lists.seconds)
    assert lanes.with_lists(lists, chain, 0, draw) == lanes
    left = CoverLists(lists.seconds - {lanes.seconds[1]} | {b"new" * 10 + b"ab"}, lists.thirds)
    moved = lanes.with_lists(left, chain, 0, draw)
    assert moved.seconds[::2] == lanes.seconds[::2]
    assert moved.seconds[1] in left.seconds - {chain.porter, *lanes.seconds}
    assert lanes.with_lists(left, chain, 1, draw).quarter == 1
