"""Bodies: attributes and an author inside the seal, which shows nothing of either."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_examples import DAY, TOPIC_KEY, properties, seed, stream
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt as aead_open
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal
from topic_examples import labels, names

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.bodies import (
    MAX_VALUES,
    Content,
    compose,
    fingerprint,
    open_body,
    reseal_label,
)
from hushcast_protocol.content.messages import HEADER, NONCE, SEAL, Message, message_id, padded_size
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD, PADDED_SIZES

TOKENS = (b"t" * 16,)
AUTHOR, OTHER_AUTHOR = seed(77), seed(78)
OTHER_KEY = TopicKey(b"o" * 32)
FIRE = Content(b"it burns", {"kind": "fire", "lat": 150_170})
LENGTHS = HEADER - 96
carried = st.dictionaries(names, labels | st.integers(0, 2**32 - 1), max_size=4)


def composed(content=FIRE, author=None, key=TOPIC_KEY, day=DAY, number=0):
    return compose(key, day, TOKENS, content, stream(number), author)


def associated(day):
    return b"hushcast body 1\x00" + day.to_bytes(8, "big")


def inside(message, key=TOPIC_KEY):
    """The plain text, as whoever holds the topic's key can read it."""
    nonce, sealed = message.body[:NONCE], message.body[NONCE:]
    return aead_open(sealed, associated(message.day), nonce, digest(Domain.BODY_KEY, key=key.reveal()))


def sealed(plain, nonce, key=TOPIC_KEY, day=DAY):
    """A message around a plain text, sealed by whoever holds the topic's key."""
    body = nonce + aead_seal(plain, associated(day), nonce, digest(Domain.BODY_KEY, key=key.reveal()))
    return Message(message_id(day, body), day, TOKENS, bytes(64), body)


@pytest.mark.slow
@properties(200)
@given(st.binary(max_size=3000), carried, st.none() | st.integers(1, 9), st.integers(0, 2**48 - 1))
def test_what_is_sealed_is_opened(payload, values, author, day):
    signer = None if author is None else seed(author)
    message = composed(Content(payload, values), signer, day=day)
    assert open_body(TOPIC_KEY, message) == Content(payload, values, signer and signer.public())


def test_a_reseal_has_the_first_id_in_the_place_of_an_author():
    resealed = replace(FIRE, first_id=b"f" * 32)
    message = composed(resealed)
    assert open_body(TOPIC_KEY, message) == resealed
    assert inside(message)[LENGTHS:HEADER] == b"f" * 32 + bytes(64)
    assert len(message.body) == len(composed().body)
    with pytest.raises(ValueError, match="signed"):
        composed(resealed, AUTHOR)


def test_a_reseal_that_is_signed_is_not_opened():
    message = composed(replace(FIRE, first_id=b"f" * 32))
    plain = bytearray(inside(message))
    plain[HEADER - 1] = 1
    with pytest.raises(DecodeError, match="signed"):
        open_body(TOPIC_KEY, sealed(bytes(plain), message.body[:NONCE]))


def test_a_message_and_its_reseals_have_a_label_and_other_contents_have_others():
    label = reseal_label(b"f" * 32, FIRE)
    assert label == reseal_label(b"f" * 32, replace(FIRE, first_id=b"f" * 32))
    others = (Content(b"it burns"), Content(b"it rains", FIRE.values))
    assert label not in {reseal_label(b"g" * 32, FIRE), *(reseal_label(b"f" * 32, one) for one in others)}


def test_without_an_author_96_zero_bytes_stand_in_the_place():
    assert inside(composed())[LENGTHS:HEADER] == bytes(96)
    assert open_body(TOPIC_KEY, composed()).author is None
    assert inside(composed(author=AUTHOR))[LENGTHS : LENGTHS + 32] == AUTHOR.public()


@pytest.mark.parametrize("size", [0, 1, 900, 1024, 1025, 60_000])
def test_signed_and_unsigned_bodies_with_and_without_attributes_have_equal_sizes(size):
    payload = bytes(size)
    signed, plain = composed(Content(payload), AUTHOR), composed(Content(payload))
    assert len(signed.body) == len(plain.body)
    assert len(plain.body) - SEAL - HEADER in PADDED_SIZES
    if size <= 900:
        assert len(composed(replace(FIRE, payload=payload)).body) == len(plain.body)


def test_neither_author_nor_attributes_show():
    message = composed(Content(b"x", {"kind": "wildfire"}), AUTHOR)
    for hidden in (b"kind", b"wildfire", AUTHOR.public(), AUTHOR.reveal()):
        assert hidden not in encode(message)


def test_a_content_is_hidden_in_print():
    content = Content(b"it burns", {"kind": "wildfire", "lat": 150_170}, AUTHOR.public())
    shown = f"{content} {content!r} {[content]}"
    for hidden in ("burns", "kind", "wildfire", "150170", repr(AUTHOR.public()), AUTHOR.public().hex()):
        assert hidden not in shown


def test_the_wrong_key_opens_nothing():
    for author in (None, AUTHOR):
        with pytest.raises(AuthenticationError):
            open_body(OTHER_KEY, composed(author=author))


# Authorship


def test_a_fingerprint_is_stable_and_tells_authors_apart():
    assert fingerprint(AUTHOR.public()) == fingerprint(AUTHOR.public())
    assert fingerprint(AUTHOR.public()) != fingerprint(OTHER_AUTHOR.public())
    assert len(fingerprint(AUTHOR.public())) == 32
    assert fingerprint(bytes(32)) == "861e38c57cd7758751768f7820368f03"


def test_a_signed_body_can_be_sealed_again_as_it_was():
    """The forgeries below are refused for what they change, not for how they are made."""
    message = composed(author=AUTHOR)
    assert open_body(TOPIC_KEY, sealed(inside(message), message.body[:NONCE])) == replace(
        FIRE, author=AUTHOR.public()
    )


FORGERIES = {
    "another seal": lambda plain, nonce: sealed(plain, bytes(NONCE)),
    "another day": lambda plain, nonce: sealed(plain, nonce, day=DAY + 1),
    "another topic": lambda plain, nonce: sealed(plain, nonce, key=OTHER_KEY),
    "another payload": lambda plain, nonce: sealed(plain.replace(b"burns", b"rains"), nonce),
    "other attributes": lambda plain, nonce: sealed(plain.replace(b"fire", b"rain"), nonce),
    "another author": lambda plain, nonce: sealed(
        plain[:LENGTHS] + OTHER_AUTHOR.public() + plain[LENGTHS + 32 :], nonce
    ),
    "no author": lambda plain, nonce: sealed(plain[:LENGTHS] + bytes(32) + plain[LENGTHS + 32 :], nonce),
    "no signature": lambda plain, nonce: sealed(plain[: LENGTHS + 32] + bytes(64) + plain[HEADER:], nonce),
    "a byte moved from attributes to payload": lambda plain, nonce: sealed(
        b"\x01"
        + (int.from_bytes(plain[1:5], "big") + 1).to_bytes(4, "big")
        + (int.from_bytes(plain[5:7], "big") - 1).to_bytes(2, "big")
        + plain[LENGTHS:],
        nonce,
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_signature_lifted_elsewhere_does_not_hold(forgery):
    """By a fellow subscriber, who can open and seal whatever is on the topic."""
    message = composed(author=AUTHOR)
    forged = FORGERIES[forgery](inside(message), message.body[:NONCE])
    assert forged.body != message.body or forged.day != message.day
    with pytest.raises(AuthenticationError):
        open_body(OTHER_KEY if forgery == "another topic" else TOPIC_KEY, forged)


def test_no_flipped_bit_of_a_proof_holds():
    message = composed(author=AUTHOR)
    plain = bytearray(inside(message))
    for at in range(LENGTHS, HEADER):
        for bit in range(8):
            plain[at] ^= 1 << bit
            with pytest.raises(AuthenticationError):
                open_body(TOPIC_KEY, sealed(bytes(plain), message.body[:NONCE]))
            plain[at] ^= 1 << bit


def test_taking_a_signature_off_leaves_an_anonymous_body_and_no_other_author():
    """A fellow subscriber can repeat what was said without the name; nothing can prevent that."""
    message = composed(author=AUTHOR)
    plain = inside(message)
    bare = sealed(plain[:LENGTHS] + bytes(96) + plain[HEADER:], message.body[:NONCE])
    assert open_body(TOPIC_KEY, bare) == FIRE
    assert bare.id != message.id


# Limits


def test_payload_and_attributes_share_the_limit():
    values = {"kind": "x" * 64}
    room = MAX_PAYLOAD - len(encode(values))
    assert open_body(TOPIC_KEY, composed(Content(bytes(room), values))).values == values
    with pytest.raises(Refusal, match=str(MAX_PAYLOAD)):
        composed(Content(bytes(room + 1), values))


def test_more_attributes_than_any_topic_has_are_refused():
    with pytest.raises(Refusal):
        composed(Content(b"", {f"name-{number}": "x" * 64 for number in range(60)}))


HOSTILE_VALUES = {
    "a list": encode(["kind"]),
    "a number for a name": encode({1: 2}),
    "a nested value": encode({"kind": {"fire": 1}}),
    "a truth": encode({"lat": True}),
    "a fraction": encode({"lat": 0.5}),
    "nothing": encode({"lat": None}),
    "bytes": encode({"kind": b"fire"}),
    "cut off": encode({"kind": "fire"})[:-1],
    "more behind": encode({"kind": "fire"}) + b"\x00",
    "too many": encode({f"{number}": "x" * 60 for number in range(70)}),
    "deep": b"\x91" * 3000 + b"\x90",
}


@pytest.mark.parametrize("hostile", HOSTILE_VALUES)
def test_hostile_attributes_are_decode_errors(hostile):
    values = HOSTILE_VALUES[hostile]
    assert len(values) <= MAX_VALUES or hostile == "too many"
    lengths = b"\x01" + bytes(4) + len(values).to_bytes(2, "big")
    padded = next(size for size in PADDED_SIZES if size >= len(values))
    with pytest.raises(DecodeError):
        open_body(TOPIC_KEY, sealed(lengths + bytes(96) + values.ljust(padded, b"\x00"), bytes(NONCE)))


@pytest.mark.parametrize("size", PADDED_SIZES)
def test_a_probe_is_padded_to_any_size_that_holds_it(size):
    probe = Content(b"r" * 700, {"kind": "fire"}, probe=True)
    message = compose(TOPIC_KEY, DAY, TOKENS, probe, stream(), size=size)
    assert padded_size(message) == size
    assert open_body(TOPIC_KEY, message) == probe


def test_nothing_is_padded_to_other_sizes():
    probe, large = Content(b"r", probe=True), Content(b"r" * 2000, probe=True)
    for content, size in ((probe, 1000), (probe, 2 * MAX_PAYLOAD), (large, 1024), (FIRE, 4096)):
        with pytest.raises(ValueError, match="not padded"):
            compose(TOPIC_KEY, DAY, TOKENS, content, stream(), size=size)
    plain, nonce = inside(composed()), b"n" * NONCE
    with pytest.raises(DecodeError):  # a message has one padding, though a probe has several
        open_body(TOPIC_KEY, sealed(plain + bytes(3 * 1024), nonce))
    as_probe = b"\x02" + plain[1:]
    assert open_body(TOPIC_KEY, sealed(as_probe + bytes(3 * 1024), nonce)).probe
    for bad in (as_probe + bytes(100), as_probe[:-1] + b"x" + bytes(3 * 1024)):
        with pytest.raises(DecodeError):
            open_body(TOPIC_KEY, sealed(bad, nonce))
