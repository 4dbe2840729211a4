"""Messages: five sizes, an id that is the hash of the body, and a seal that only the topic's key opens."""

import pytest
from core_examples import DAY, TOPIC_KEY, bit_flips, properties, small_message, stream
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.bodies import Content, compose, open_body
from hushcast_protocol.content.messages import (
    HEADER,
    MAX_BODY,
    MAX_TOKENS,
    SEAL,
    TRAIL_SIZE,
    Message,
    check_message,
    message_id,
)
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD, PADDED_SIZES
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Forward, decode_overlay

TOKENS = (b"t" * 16,)
OTHER_KEY = TopicKey(b"o" * 32)


def with_body(message: Message, body: bytes, day: int = DAY) -> Message:
    """The message with another body and the id that fits it, as any forger could make it."""
    return Message(message_id(day, body), day, message.tokens, message.trail, body)


def sealed(plain: bytes, data: bytes | None = None) -> Message:
    """A message around any plain text, sealed by somebody who holds the topic's key."""
    key = digest(Domain.BODY_KEY, key=TOPIC_KEY.reveal())
    nonce = bytes(24)
    data = b"hushcast body 1\x00" + DAY.to_bytes(8, "big") if data is None else data
    return with_body(small_message(), nonce + aead_seal(plain, data, nonce, key))


@properties(60)
@given(st.binary(max_size=5000), st.integers(0, 2**48 - 1), st.integers(0, 1000))
def test_what_is_sealed_is_opened(payload, day, number):
    message = compose(TOPIC_KEY, day, TOKENS, Content(payload), stream(number))
    check_message(message)
    assert open_body(TOPIC_KEY, message) == Content(payload)
    assert message.trail == bytes(TRAIL_SIZE)
    assert message.tokens == TOKENS
    assert decode_overlay(encode(Forward(message))).message == message


@properties(60)
@given(st.integers(0, 2**48 - 1), st.binary(max_size=300))
def test_an_id_is_the_digest_of_day_and_body(day, body):
    """However often days and sizes come again: what ids of some begin with is made once."""
    for size in (len(body), len(body) // 2, len(body)):
        part = body[:size]
        assert message_id(day, part) == digest(Domain.MESSAGE, day.to_bytes(8, "big"), part)


@pytest.mark.parametrize(
    "size", sorted({0, 1} | {s + d for s in PADDED_SIZES for d in (-1, 0, 1)} - {MAX_PAYLOAD + 1})
)
def test_bodies_have_one_of_five_sizes(size):
    payload = bytes(size)
    message = compose(TOPIC_KEY, DAY, TOKENS, Content(payload), stream())
    padded = len(message.body) - SEAL - HEADER
    assert padded == min(fixed for fixed in PADDED_SIZES if fixed >= size)
    assert len(message.body) <= MAX_BODY
    assert len(encode(Forward(message))) <= MAX_OVERLAY_FRAME
    check_message(message)
    assert open_body(TOPIC_KEY, message) == Content(payload)


def test_payloads_that_end_in_zeros_keep_them():
    for payload in (b"", b"\x00", b"\x00" * 1024, b"a\x00\x00"):
        assert (
            open_body(TOPIC_KEY, compose(TOPIC_KEY, DAY, TOKENS, Content(payload), stream())).payload
            == payload
        )


def test_larger_payloads_are_refused():
    with pytest.raises(Refusal, match=str(MAX_PAYLOAD)):
        compose(TOPIC_KEY, DAY, TOKENS, Content(bytes(MAX_PAYLOAD + 1)), stream())


def test_equal_payloads_make_unlike_messages():
    one, other = (compose(TOPIC_KEY, DAY, TOKENS, Content(b"same"), stream(number)) for number in (1, 2))
    assert one.id != other.id
    assert one.body[24:] != other.body[24:]


def test_the_payload_does_not_show():
    message = compose(TOPIC_KEY, DAY, TOKENS, Content(b"a visible payload"), stream())
    assert b"visible" not in encode(message)
    assert TOPIC_KEY.reveal() not in encode(message)


@pytest.mark.parametrize("part", ["id", "day", "body"])
def test_id_day_and_body_belong_together(part):
    message = small_message()
    other = small_message(number=1, day=DAY + 1)
    fields = {name: getattr(message, name) for name in ("id", "day", "tokens", "trail", "body")}
    with pytest.raises(AuthenticationError):
        check_message(Message(**(fields | {part: getattr(other, part)})))


def test_no_flipped_bit_of_id_or_body_passes_a_hop():
    message = small_message()
    for body in bit_flips(message.body):
        with pytest.raises(AuthenticationError):
            check_message(Message(message.id, message.day, message.tokens, message.trail, body))
    for forged in bit_flips(message.id):
        with pytest.raises(AuthenticationError):
            check_message(Message(forged, message.day, message.tokens, message.trail, message.body))


def test_no_flipped_bit_on_the_wire_changes_body_or_id():
    """Tokens and trail are for hops to change; whatever else is accepted is the message that was sent."""
    message = small_message()
    for damaged in bit_flips(encode(Forward(message))):
        try:
            read = decode_overlay(damaged).message
            check_message(read)
        except PeerError:
            continue
        assert (read.id, read.day, read.body) == (message.id, message.day, message.body)


@pytest.mark.slow
def test_a_forger_who_fits_the_id_is_found_out_by_the_seal():
    message = small_message()
    for body in bit_flips(message.body):
        forged = with_body(message, body)
        check_message(forged)
        assert forged.id != message.id
        with pytest.raises(AuthenticationError):
            open_body(TOPIC_KEY, forged)


def test_only_the_topics_key_opens():
    for message in (small_message(), compose(OTHER_KEY, DAY, TOKENS, Content(b""), stream())):
        wrong = OTHER_KEY if message == small_message() else TOPIC_KEY
        with pytest.raises(AuthenticationError):
            open_body(wrong, message)


def test_a_body_opens_on_its_own_day_only():
    moved = with_body(small_message(), small_message().body, DAY + 1)
    check_message(moved)
    with pytest.raises(AuthenticationError):
        open_body(TOPIC_KEY, moved)


@pytest.mark.parametrize("size", [0, 1, 23, 24, 39, 40, 41, 1069, 1166, 1168, MAX_BODY - 1, MAX_BODY + 1])
def test_bodies_of_other_sizes_are_refused(size):
    message = with_body(small_message(), bytes(size))
    with pytest.raises(DecodeError, match="sizes"):
        check_message(message)
    with pytest.raises(PeerError):
        open_body(TOPIC_KEY, message)


NOBODY = bytes(96)
HOSTILE = {
    "empty": b"",
    "version alone": b"\x01",
    "another kind": b"\x05" + bytes(6) + NOBODY + bytes(1024),
    "version 0": bytes(HEADER + 1024),
    "payload too long": b"\x01" + (1025).to_bytes(4, "big") + bytes(2) + NOBODY + bytes(1024),
    "payload far too long": b"\x01\xff\xff\xff\xff\x00\x00" + NOBODY + bytes(1024),
    "attributes too long": b"\x01" + bytes(4) + (1025).to_bytes(2, "big") + NOBODY + bytes(1024),
    "both too long": b"\x01" + (1000).to_bytes(4, "big") + (25).to_bytes(2, "big") + NOBODY + bytes(1024),
    "attributes that are none": b"\x01" + bytes(4) + b"\x00\x01" + NOBODY + b"\xc1" + bytes(1023),
    "a list of attributes": b"\x01" + bytes(4) + b"\x00\x01" + NOBODY + b"\x90" + bytes(1023),
    "more behind the attributes": b"\x01" + bytes(4) + b"\x00\x02" + NOBODY + b"\x80" + bytes(1023),
    "short header": b"\x01\x00\x00",
    "header but a byte": b"\x01" + bytes(HEADER - 2),
    "an author without signature": b"\x01" + bytes(6) + b"a" * 32 + bytes(64) + bytes(1024),
    "a signature without author": b"\x01" + bytes(6) + bytes(32) + b"s" * 64 + bytes(1024),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_a_fellow_subscriber_seals_wrongly_is_refused(hostile):
    with pytest.raises(PeerError):
        open_body(TOPIC_KEY, sealed(HOSTILE[hostile]))


@pytest.mark.slow
@properties(300)
@given(st.binary(max_size=200), st.booleans())
def test_whatever_a_fellow_subscriber_seals_is_read_or_refused(plain, well_begun):
    try:
        content = open_body(
            TOPIC_KEY, sealed(b"\x01" + plain.rjust(HEADER, b"\x00") if well_begun else plain)
        )
    except PeerError:
        return
    assert len(content.payload) <= MAX_PAYLOAD


def test_another_use_of_the_key_is_not_a_body():
    with pytest.raises(AuthenticationError):
        open_body(TOPIC_KEY, sealed(b"\x01" + bytes(1028), data=b""))


@pytest.mark.parametrize("count", [0, MAX_TOKENS + 1])
def test_the_number_of_tokens_is_bounded(count):
    message = small_message()
    wrong = Message(message.id, message.day, TOKENS * count, message.trail, message.body)
    with pytest.raises(DecodeError):
        decode_overlay(encode(Forward(wrong)))


def test_a_message_does_not_change():
    message = compose(TOPIC_KEY, DAY, TOKENS, Content(b"payload"), lambda size: bytes(range(size)))
    assert message.id.hex() == "767deb344f075f408cd7c38500726d540a0cf592a0b4aedf918a2a18efa99b23"
