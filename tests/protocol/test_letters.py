"""Letters: one size at each stage, for one relay, stage, network and round, and not to be changed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.secrets import ParcelKey
from hushcast_protocol.cover.cover_rules import LATE_FOR, CoverRules
from hushcast_protocol.cover.letter_batch import LetterBatch
from hushcast_protocol.cover.letters import (
    CONTENT,
    LETTER,
    MAX_LETTER_BODY,
    NOBODY,
    LetterContent,
    LetterKind,
    Stage,
    open_letter,
    seal_letter,
    size_at,
)

RULES = CoverRules(b"n" * 32, 3600)
DRAW = random.Random(1).randbytes
KEYS = [ParcelKey.draw(DRAW) for _ in Stage]
WAY = [
    Relay(bytes([n + 1]) * 32, parse_address("127.0.0.1:9"), key.public(), 0) for n, key in enumerate(KEYS)
]
DUE = 3_000_000


def sealed(content: LetterContent, due: int = DUE) -> bytes:
    return seal_letter(RULES, WAY, due, content, DRAW)


@pytest.mark.parametrize("size", [0, 1, MAX_LETTER_BODY])
def test_a_letter_has_one_size_at_each_stage_and_comes_out_as_it_went_in(size: int) -> None:
    kind = LetterKind.DROP if size else LetterKind.LOOP
    content = LetterContent(b"12345678", kind, b"m" * size)
    passed = sealed(content)
    for stage, relay, key in zip(Stage, WAY, KEYS, strict=True):
        assert len(passed) == size_at(stage) == LETTER - 120 * stage
        letter = open_letter(RULES, stage, relay.id, key, passed)
        assert letter.due == DUE
        assert letter.onward == (WAY[stage + 1].id if stage < Stage.THIRD else NOBODY)
        passed = letter.inside
    assert len(passed) == CONTENT
    assert LetterContent.decoded(passed) == content


def test_a_message_that_would_show_is_refused() -> None:
    with pytest.raises(Refusal, match="at most 3725 bytes"):
        sealed(LetterContent(bytes(8), LetterKind.DROP, b"m" * (MAX_LETTER_BODY + 1)))


def test_it_is_for_one_network_length_of_round_relay_and_stage() -> None:
    letter = sealed(LetterContent(bytes(8), LetterKind.EMPTY))
    for rules in (replace(RULES, network=b"o" * 32), replace(RULES, round_seconds=60)):
        with pytest.raises(AuthenticationError):
            open_letter(rules, Stage.PORTER, WAY[0].id, KEYS[0], letter)
    with pytest.raises(AuthenticationError):
        open_letter(RULES, Stage.PORTER, WAY[1].id, KEYS[0], letter)
    with pytest.raises(DecodeError):
        open_letter(RULES, Stage.SECOND, WAY[0].id, KEYS[0], letter)
    for place in (0, 31, 32, 47, 48, 90, 2000, LETTER - 1):
        changed = bytearray(letter)
        changed[place] ^= 0x80
        with pytest.raises(AuthenticationError):
            open_letter(RULES, Stage.PORTER, WAY[0].id, KEYS[0], bytes(changed))


@pytest.mark.parametrize("change", [b"\x03", b"\x02", b"\x00"])
def test_content_that_no_daemon_writes_is_refused(change: bytes) -> None:
    content = LetterContent(bytes(8), LetterKind.LOOP).encoded()
    odd = content[:8] + change + content[9:]
    if change == b"\x00":
        odd = odd[:-1] + b"\x01"
    with pytest.raises(DecodeError):
        LetterContent.decoded(odd)


def second() -> LetterBatch:
    return LetterBatch(RULES, Stage.SECOND, WAY[1].id, KEYS[1], {WAY[2].id})


def test_a_second_takes_a_letter_once_when_it_is_due_and_for_its_list_alone() -> None:
    letters = [
        seal_letter(RULES, WAY[1:], DUE, LetterContent(DRAW(8), LetterKind.EMPTY), DRAW) for _ in range(3)
    ]
    batch = second()
    for when in (DUE - 1, DUE + LATE_FOR + 1):
        with pytest.raises(Refusal, match="day"):
            batch.take(letters[0], when)
    for letter in letters:
        batch.take(letter, DUE)
    with pytest.raises(AuthenticationError, match="seen before"):
        batch.take(letters[0], DUE + 1)
    assert {one.onward for one in batch.end_round(DUE, DRAW)} == {WAY[2].id}
    assert len(batch) == 0
    with pytest.raises(AuthenticationError, match="seen before"):  # after the round, too, until it is too old
        batch.take(letters[0], DUE + LATE_FOR)
    elsewhere = seal_letter(RULES, [WAY[1], WAY[0]], DUE, LetterContent(DRAW(8), LetterKind.EMPTY), DRAW)
    with pytest.raises(AuthenticationError, match="not on the list"):
        batch.take(elsewhere, DUE)


def test_whatever_a_stranger_hands_in_is_an_error_of_his() -> None:
    batch = second()
    for size in (0, 1, 31, 48, size_at(Stage.SECOND), LETTER):
        with pytest.raises(PeerError):
            batch.take(DRAW(size), DUE)
