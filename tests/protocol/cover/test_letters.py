"""Letters: one size at each stage, for one relay, stage, network and round, and not to be changed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.sealed_box import seal_box
from hushcast_protocol.base.crypto.secrets import ParcelKey
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.cover.cover_rules import PASSED_A_ROUND, CoverRules
from hushcast_protocol.cover.letter_contents import (
    CONTENT,
    LOOP_EVERY,
    MAX_LETTER_BODY,
    LetterFind,
    blank_content,
    open_content,
    seal_content,
)
from hushcast_protocol.cover.letter_second import LetterSecond, MarkedLetter
from hushcast_protocol.cover.letter_third import LetterThird
from hushcast_protocol.cover.letters import (
    LAST_ROUND,
    LETTER,
    LetterRelays,
    SealedLetter,
    Stage,
    empty_letter,
    open_letter,
    seal_letter,
    size_at,
)
from hushcast_protocol.cover.waybills import WAYBILL, Waybill, WaybillKey, waybill_name

RULES = CoverRules(b"n" * 32, 3600)
DRAW = random.Random(1).randbytes
KEYS = [ParcelKey.draw(DRAW) for _ in range(4)]
PORTER, SECOND, THIRD, OTHER = (
    Relay(bytes([n + 1]) * 32, parse_address("127.0.0.1:9"), key.public(), 0) for n, key in enumerate(KEYS)
)
WAYBILL_OF_ALL = Waybill.drawn(RULES, SECOND, THIRD.id, DRAW)
RELAYS = LetterRelays(PORTER, SECOND, THIRD, WAYBILL_OF_ALL)
DUE = 3_000_000
LOW_ORDER = [
    bytes(32),
    bytes([1]) + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
]
"""The points of small order of Curve25519, its neutral one first (RFC 7748, section 6.1)."""


def sealed(body: bytes | None, due: int = DUE) -> SealedLetter:
    return seal_letter(RULES, RELAYS, due, body, DRAW)


def at_second(body: bytes | None = None, due: int = DUE) -> bytes:
    return open_letter(RULES, Stage.PORTER, PORTER.id, KEYS[0], sealed(body, due).sealed).inside


def made() -> bytes:
    """A porter's letter."""
    return empty_letter(RULES, SECOND, WAYBILL_OF_ALL.name, DUE, DRAW)


def second(*, is_shown: bool = True, first: int = DUE) -> LetterSecond:
    desk = LetterSecond(RULES, SECOND.id, KEYS[1], {THIRD.id}, first)
    if is_shown:
        desk.show(WAYBILL_OF_ALL.sealed, DUE, PORTER.id)
    return desk


def passed(*letters: bytes) -> list[MarkedLetter]:
    desk = second()
    for letter in letters:
        desk.take(letter, DUE, PORTER.id)
    onward = desk.end_round(DUE, DRAW)
    assert {relay for relay, _ in onward} == {THIRD.id}
    return [marked for _, marked in onward]


def third(first: int = DUE - 1) -> LetterThird:
    return LetterThird(RULES, THIRD.id, KEYS[2], first)


def found(letter: MarkedLetter) -> LetterFind:
    desk = third()
    desk.take(letter, letter.due, SECOND.id)
    ((_, content),) = desk.end_round(DRAW)
    return content


@pytest.mark.parametrize("size", [0, 1, MAX_LETTER_BODY])
def test_a_letter_has_one_size_at_each_stage_and_comes_out_as_it_went_in(size: int) -> None:
    letter = sealed(b"m" * size or None)
    assert len(letter.sealed) == LETTER == 4096
    opened = open_letter(RULES, Stage.PORTER, PORTER.id, KEYS[0], letter.sealed)
    assert (opened.due, opened.onward) == (DUE, SECOND.id)
    assert len(opened.inside) == len(made()) == size_at(Stage.SECOND) == LETTER - 120
    (marked,) = passed(opened.inside)
    assert len(marked.inside) == size_at(Stage.THIRD) == CONTENT
    content = found(marked)
    assert content.receipt == letter.receipt
    assert content.body == (b"m" * size or None)
    assert content.is_listed == bool(size or letter.receipt.is_loop)


def test_a_message_that_would_show_is_refused() -> None:
    for body in (b"", b"m" * (MAX_LETTER_BODY + 1)):
        with pytest.raises(Refusal, match="1 to 3806 bytes"):
            sealed(body)


def test_it_is_for_one_network_length_of_round_relay_and_stage() -> None:
    letter = sealed(None).sealed
    for rules in (replace(RULES, network=b"o" * 32), replace(RULES, round_seconds=60)):
        with pytest.raises(AuthenticationError):
            open_letter(rules, Stage.PORTER, PORTER.id, KEYS[0], letter)
    with pytest.raises(AuthenticationError):
        open_letter(RULES, Stage.PORTER, SECOND.id, KEYS[0], letter)
    with pytest.raises(DecodeError):
        open_letter(RULES, Stage.SECOND, PORTER.id, KEYS[0], letter)
    for place in (0, 31, 32, 47, 48, 90, 2000, LETTER - 1):
        changed = bytearray(letter)
        changed[place] ^= 0x80
        with pytest.raises(AuthenticationError):
            open_letter(RULES, Stage.PORTER, PORTER.id, KEYS[0], bytes(changed))


def test_a_third_opens_nothing_that_was_changed_or_has_another_mark_and_no_loop_comes_back() -> None:
    (marked,) = passed(at_second(b"m"))
    whole = found(marked)
    assert whole.body == b"m"
    inside = marked.inside
    changed = [
        replace(marked, inside=inside[:place] + bytes([inside[place] ^ 1]) + inside[place + 1 :])
        for place in (0, 33, 2000, CONTENT - 1)
    ]
    for odd in (*changed, replace(marked, mark=DRAW(32)), replace(marked, due=DUE - 1)):
        content = found(odd)
        assert content.body is None
        assert content.receipt.number != whole.receipt.number


def test_a_porters_empty_letters_and_a_daemons_are_alike_for_second_and_third_together() -> None:
    """Whichever made it, one of eight is listed, none opens, and its bytes are evenly spread."""
    counts = {}
    for name, make in (("porter", made), ("daemon", at_second)):
        letters = [marked for _ in range(120) for marked in passed(*(make() for _ in range(5)))]
        contents = [found(one) for one in letters]
        assert not any(one.body for one in contents)
        tops = sum(byte >= 128 for one in letters for byte in one.inside[32:])
        assert abs(tops / (len(letters) * (CONTENT - 32)) - 0.5) < 0.002
        assert not any(one.inside[31] & 0x80 for one in letters), "a one-time key is a point's"
        counts[name] = sum(one.is_listed for one in contents)
    for count in counts.values():
        assert abs(count - 600 / LOOP_EVERY) < 25  # four standard deviations of 37.5


def test_a_third_tells_no_two_letters_of_a_waybill_by_their_marks() -> None:
    marks = {one.mark for one in passed(*(at_second() for _ in range(3)), made(), made())}
    assert len(marks) == 5
    assert WAYBILL_OF_ALL.mark(DUE, b"s" * 16) != WAYBILL_OF_ALL.mark(DUE + 1, b"s" * 16)


@pytest.mark.parametrize("point", LOW_ORDER, ids=range(len(LOW_ORDER)))
def test_points_of_small_order_are_refused(point: bytes) -> None:
    """Anybody would know what such a one-time key agrees on, and could seal messages without a key."""
    with pytest.raises(AuthenticationError):
        open_content(KEYS[2], bytes(32), bytes(32), point + blank_content(DRAW)[32:])
    with pytest.raises(AuthenticationError):
        seal_content(point, bytes(32), bytes(32), b"m", DRAW)
    with pytest.raises(AuthenticationError):
        Waybill.drawn(RULES, replace(SECOND, parcel_key=point), THIRD.id, DRAW)


def test_a_waybill_is_for_one_second_and_names_one_third_of_the_list() -> None:
    assert len(WAYBILL_OF_ALL.sealed) == WAYBILL
    read = Waybill.opened(RULES, SECOND.id, KEYS[1], WAYBILL_OF_ALL.sealed)
    assert read == WAYBILL_OF_ALL
    assert read.name == waybill_name(WAYBILL_OF_ALL.sealed)
    assert "WaybillKey>" in repr(read)
    assert WAYBILL_OF_ALL.key.reveal().hex() not in repr(read)
    with pytest.raises(AuthenticationError):
        Waybill.opened(RULES, OTHER.id, KEYS[1], WAYBILL_OF_ALL.sealed)
    with pytest.raises(AuthenticationError):
        Waybill.opened(replace(RULES, network=b"o" * 32), SECOND.id, KEYS[1], WAYBILL_OF_ALL.sealed)
    for place in range(WAYBILL):
        changed = bytearray(WAYBILL_OF_ALL.sealed)
        changed[place] ^= 0x80
        with pytest.raises(AuthenticationError):
            second(is_shown=False).show(bytes(changed), DUE, PORTER.id)
    with pytest.raises(Refusal, match="list"):
        second().show(Waybill.drawn(RULES, SECOND, OTHER.id, DRAW).sealed, DUE, PORTER.id)


def test_a_porter_cannot_have_a_message_dropped_by_a_waybill_that_it_cannot_read() -> None:
    own = Waybill.drawn(RULES, SECOND, THIRD.id, DRAW)
    for key in (WaybillKey.draw(DRAW), own.key):
        forged = replace(RELAYS, waybill=Waybill(WAYBILL_OF_ALL.sealed, THIRD.id, key))
        letter = seal_letter(RULES, forged, DUE, b"probe", DRAW)
        (marked,) = passed(open_letter(RULES, Stage.PORTER, PORTER.id, KEYS[0], letter.sealed).inside)
        content = found(marked)
        assert content.body is None
        assert content.receipt.number != letter.receipt.number


def test_a_second_takes_a_letter_once_when_it_is_due_and_by_a_waybill_that_was_shown() -> None:
    letters = [at_second(), made(), made()]
    desk = second()
    for when in (DUE - 1, DUE + 1):
        with pytest.raises(Refusal, match="day"):
            desk.take(letters[0], when, PORTER.id)
    for letter in letters:
        desk.take(letter, DUE, PORTER.id)
    with pytest.raises(AuthenticationError, match="seen before"):
        desk.take(letters[0], DUE, PORTER.id)
    assert len(desk.end_round(DUE, DRAW)) == 3
    assert not desk.end_round(DUE + 1, DRAW)
    with pytest.raises(AuthenticationError, match="not shown"):
        second(is_shown=False).take(letters[0], DUE, PORTER.id)


def test_after_a_start_no_letter_is_taken_that_may_have_been_taken_before() -> None:
    letter = at_second(b"m")
    (marked,) = passed(letter)
    with pytest.raises(Refusal, match="day"):
        second(first=DUE + 1).take(letter, DUE + 1, PORTER.id)
    with pytest.raises(Refusal, match="day"):
        third(DUE + 1).take(marked, DUE + 1, SECOND.id)
    second(first=DUE + 1).take(at_second(due=DUE + 1), DUE + 1, PORTER.id)


def test_five_letters_of_a_waybill_pass_a_round_whoever_makes_them() -> None:
    desk = second()
    for _ in range(PASSED_A_ROUND):
        desk.take(made(), DUE, PORTER.id)
    with pytest.raises(Refusal, match="rate"):
        desk.take(at_second(), DUE, PORTER.id)
    desk.end_round(DUE, DRAW)
    desk.take(at_second(due=DUE + 1), DUE + 1, PORTER.id)


def test_a_waybill_that_nobody_names_for_a_day_is_to_be_shown_again() -> None:
    desk = second()
    desk.take(made(), DUE, PORTER.id)
    day = RULES.held_rounds
    desk.end_round(DUE + day, DRAW)
    desk.take(at_second(due=DUE + day), DUE + day, PORTER.id)
    desk.end_round(DUE + 2 * day + 1, DRAW)
    with pytest.raises(AuthenticationError, match="not shown"):
        desk.take(at_second(due=DUE + 2 * day + 2), DUE + 2 * day + 2, PORTER.id)
    desk.show(WAYBILL_OF_ALL.sealed, DUE + 2 * day + 2, PORTER.id)
    desk.take(at_second(due=DUE + 2 * day + 2), DUE + 2 * day + 2, PORTER.id)


def test_a_third_takes_a_letter_once() -> None:
    (marked,) = passed(at_second(b"m"))
    desk = third()
    desk.take(marked, DUE, SECOND.id)
    for again in (marked, replace(marked, mark=DRAW(32))):
        with pytest.raises(AuthenticationError, match="seen before"):
            desk.take(again, DUE, SECOND.id)
    desk.end_round(DRAW)
    for late in (desk, third()):
        with pytest.raises(Refusal, match="day"):
            late.take(marked, DUE + 1, SECOND.id)


def test_a_letter_that_a_porter_puts_off_is_lost_and_not_told_from_others() -> None:
    """Passed with a later round's it would be among the few that are late there: its daemon's."""
    desk = second()
    kept_back = at_second(b"m")
    desk.take(made(), DUE, PORTER.id)
    desk.end_round(DUE, DRAW)
    for later in (DUE + 1, DUE + 2):
        with pytest.raises(Refusal, match="day"):
            desk.take(kept_back, later, PORTER.id)
        assert not desk.end_round(later, DRAW)


def test_a_letter_is_not_due_in_a_round_that_never_comes() -> None:
    rules = replace(RULES, round_seconds=3_600, epoch_seconds=10)
    for due in (2**64 - 1, LAST_ROUND + 1):
        sealed = seal_box(SECOND.parcel_key, bytes(32) + due.to_bytes(8, "big") + bytes(32 + CONTENT), DRAW)
        with pytest.raises(DecodeError, match="never comes"):
            open_letter(rules, Stage.SECOND, SECOND.id, KEYS[1], sealed)


@pytest.mark.parametrize("size", [0, 1, 31, 48, WAYBILL, CONTENT, size_at(Stage.SECOND), LETTER])
def test_whatever_a_stranger_hands_in_is_an_error_of_his(size: int) -> None:
    with pytest.raises(PeerError):
        second().take(DRAW(size), DUE, PORTER.id)
    with pytest.raises(PeerError):
        second().show(DRAW(size), DUE, PORTER.id)
    if size != CONTENT:
        with pytest.raises(PeerError):
            third().take(MarkedLetter(DUE, DRAW(32), DRAW(size)), DUE, SECOND.id)
