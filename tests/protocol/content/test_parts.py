"""Parts: whatever is sent of a message, and by whom, its pieces make that message or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from core_examples import DAY, TOPIC_KEY, properties, seed, stream
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.content.bodies import Content, compose, open_body
from hushcast_protocol.content.messages import MAX_TOKENS, Message, check_message, padded_size
from hushcast_protocol.content.parts import (
    MAX_CUT,
    MAX_PART_DAYS,
    MAX_PARTS,
    Part,
    join,
    part_content,
    part_nonce,
    parts_of,
    read_part,
)
from hushcast_protocol.overlay.letter_errands import DropErrand, errand_body

TOKENS = tuple(bytes([number]) * 16 for number in range(MAX_TOKENS))
AUTHOR, SECRET, FORGER = seed(31), seed(32), seed(33)


def whole(size: int, author: bool = True) -> Message:
    content = Content(b"m" * size, {"kind": "fire"} if size < MAX_CUT else {})
    return compose(TOPIC_KEY, DAY, TOKENS, content, stream(size), AUTHOR if author else None)


def sealed(message: Message, number: int, day: int = DAY) -> Message:
    nonce = part_nonce(SECRET, message, number, day)
    return compose(TOPIC_KEY, day, TOKENS, part_content(SECRET, message, number), nonce)


def came(message: Message) -> Part:
    return read_part(open_body(TOPIC_KEY, message), message.day)


@pytest.mark.parametrize(("size", "count"), [(1025, 5), (5000, 17), (MAX_CUT, 65)])
def test_parts_in_letters_are_messages_like_others_and_make_the_message_with_its_author(
    size: int, count: int
) -> None:
    message = whole(size)
    assert parts_of(message) == count <= MAX_PARTS
    pieces = []
    for number in range(count):
        later = sealed(message, number, DAY + number % (MAX_PART_DAYS + 1))
        assert padded_size(later) == 1024
        assert errand_body(DropErrand(later)), "it fits with as many tokens as there may be"
        pieces.append(came(later).piece)
    joined = join(DAY, pieces, TOKENS)
    check_message(joined)
    assert joined.id == message.id
    assert open_body(TOPIC_KEY, joined).author == AUTHOR.public()


def test_what_fits_a_letter_is_not_cut_and_what_is_too_large_is_refused() -> None:
    assert parts_of(whole(1000)) == 1
    with pytest.raises(Refusal, match="at most 64 KiB"):
        parts_of(whole(MAX_CUT + 1))


def test_a_part_has_one_id_on_a_day() -> None:
    message = whole(2000)
    assert sealed(message, 1).id == sealed(message, 1).id != sealed(message, 2).id
    assert sealed(message, 1).id != sealed(message, 1, DAY + 1).id
    assert came(sealed(message, 1)) == came(sealed(message, 1, DAY + 1))


@properties(100)
@given(st.binary(min_size=0, max_size=1024), st.integers(0, 2**48))
def test_whoever_has_no_key_of_the_parts_adds_none(payload: bytes, day: int) -> None:
    true = part_content(SECRET, whole(2000), 0)
    with pytest.raises((DecodeError, AuthenticationError)):
        read_part(replace(true, payload=payload), day)


@pytest.mark.parametrize(
    "change",
    [
        lambda payload: bytes([5]) + payload[1:],  # a number that is none
        lambda payload: payload[:1] + bytes([255]) + payload[2:],  # more parts than any message has
        lambda payload: payload[:1] + bytes([6]) + payload[2:],
        lambda payload: payload[:-1],
        lambda payload: payload[:2] + (DAY + 1).to_bytes(8, "big") + payload[10:],
        lambda payload: payload[:2] + (DAY - MAX_PART_DAYS - 1).to_bytes(8, "big") + payload[10:],
    ],
)
def test_a_form_that_no_publisher_makes_is_refused_though_it_is_signed(
    change: Callable[[bytes], bytes],
) -> None:
    payload = change(part_content(SECRET, whole(2000), 0).payload)
    proof = FORGER.public() + signature(FORGER, SignaturePurpose.PART, payload)
    message = compose(TOPIC_KEY, DAY, TOKENS, Content(payload, part_proof=proof), stream(1))
    with pytest.raises(DecodeError):
        came(message)
