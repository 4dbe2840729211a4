"""Re-routable encryption: under one key what was under another, the same message inside, and nothing else."""

from __future__ import annotations

import json

import central_vectors as independent
import msgspec
import pytest
from core_examples import properties, small_message, stream
from hypothesis import assume, given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.group import ORDER, Scalar, added, base, hashed, multiplied
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.central.frames import MAX_CENTRAL_FRAME, Publish, decode_from_user
from hushcast_protocol.central.rerouting import (
    MAX_INSIDE,
    TAG,
    WrappedMessage,
    encrypted,
    rerandomised,
    rerouted,
    transformed,
    unwrap,
    wrap,
)
from hushcast_protocol.content.messages import MAX_BODY, MAX_TOKENS

VECTORS = json.loads(independent.VECTORS.read_text())
scalars = st.integers(1, ORDER - 1).map(lambda number: Scalar(number.to_bytes(32, "little")))
insides = st.binary(max_size=200)
seeds = st.integers(0, 2**16)


def factor(old: Scalar, new: Scalar) -> Scalar:
    return new.times(old.inverse())


@properties(50)
@given(scalars, scalars, st.binary(max_size=32))
def test_a_transformed_token_is_as_if_encrypted_under_the_other_key(
    one: Scalar, other: Scalar, token: bytes
) -> None:
    assert transformed(factor(one, other), encrypted(one, token)) == encrypted(other, token)


@properties(50)
@given(scalars, scalars, scalars, st.binary(max_size=32))
def test_transformations_chain_and_turn_back(a: Scalar, b: Scalar, c: Scalar, token: bytes) -> None:
    there = transformed(factor(b, c), transformed(factor(a, b), encrypted(a, token)))
    assert there == encrypted(c, token)
    assert transformed(factor(a, c).inverse(), there) == encrypted(a, token)


@properties(50)
@given(scalars, scalars, st.binary(max_size=32), st.binary(max_size=32))
def test_tokens_are_equal_under_one_key_alone(one: Scalar, other: Scalar, token: bytes, twin: bytes) -> None:
    assume(one != other)
    assert (encrypted(one, token) == encrypted(one, twin)) == (token == twin)
    assert encrypted(one, token) != encrypted(other, token)


@properties(50)
@given(scalars, scalars, insides, seeds)
def test_a_rerouted_message_is_as_if_wrapped_under_the_other_key(
    one: Scalar, other: Scalar, inside: bytes, seed: int
) -> None:
    there = rerouted(factor(one, other), wrap(one, inside, stream(seed)))
    assert there == wrap(other, inside, stream(seed))
    assert unwrap(other, there) == inside
    assert rerouted(factor(one, other).inverse(), there) == wrap(one, inside, stream(seed))


@properties(50)
@given(scalars, insides, seeds, seeds)
def test_rerandomising_changes_both_points_and_keeps_the_message(
    key: Scalar, inside: bytes, seed: int, other: int
) -> None:
    before = wrap(key, inside, stream(seed))
    after = rerandomised(base(key), before, stream(other + 2**16 + 1))
    assert unwrap(key, after) == inside
    assert after.mask != before.mask
    assert after.masked != before.masked
    assert after.payload == before.payload  # what hardened mends: the server wraps anew


@properties(50)
@given(scalars, insides, seeds)
def test_a_rerandomised_message_is_one_that_could_have_been_sent(
    key: Scalar, inside: bytes, seed: int
) -> None:
    """Whatever r was, the sum of it and a fresh one is uniform: nothing of the old points stays."""
    before = wrap(key, inside, stream(seed))
    r = Scalar.draw(stream(seed + 1))
    shifted = rerandomised(base(key), before, stream(seed + 1))
    assert shifted.mask == added(before.mask, multiplied(r, base(key)))
    assert shifted.masked == added(before.masked, base(r))


def test_wrapping_twice_shares_nothing() -> None:
    randomness = stream(1)
    key = Scalar.draw(randomness)
    made = [wrap(key, b"the same", randomness) for _ in range(20)]
    for field in ("mask", "masked", "payload"):
        assert len({getattr(one, field) for one in made}) == len(made)


@properties(50)
@given(scalars, scalars, insides, seeds)
def test_another_key_opens_nothing(one: Scalar, other: Scalar, inside: bytes, seed: int) -> None:
    assume(one != other)
    with pytest.raises(AuthenticationError):
        unwrap(other, wrap(one, inside, stream(seed)))


@properties(50)
@given(scalars, insides, seeds, st.data())
def test_a_flipped_bit_is_found_out(key: Scalar, inside: bytes, seed: int, data: st.DataObject) -> None:
    good = wrap(key, inside, stream(seed))
    field = data.draw(st.sampled_from(["mask", "masked", "payload"]))
    old = bytearray(getattr(good, field))
    bit = data.draw(st.integers(0, 8 * len(old) - 1))
    old[bit // 8] ^= 1 << bit % 8
    with pytest.raises(AuthenticationError):
        unwrap(key, msgspec.structs.replace(good, **{field: bytes(old)}))


@properties(50)
@given(scalars, insides, seeds, seeds)
def test_parts_of_two_messages_do_not_open_together(
    key: Scalar, inside: bytes, seed: int, other: int
) -> None:
    assume(seed != other)
    one, two = wrap(key, inside, stream(seed)), wrap(key, inside, stream(other))
    for put_together in (
        WrappedMessage(one.mask, one.masked, two.payload),
        WrappedMessage(one.mask, two.masked, one.payload),
        WrappedMessage(two.mask, one.masked, one.payload),
    ):
        with pytest.raises(AuthenticationError):
            unwrap(key, put_together)


def test_the_largest_message_fits_with_all_tokens() -> None:
    message = msgspec.structs.replace(small_message((b"t" * 16,)), day=2**48 - 1, body=bytes(MAX_BODY))
    inside = encode(message)
    assert len(inside) <= MAX_INSIDE
    point = hashed(b"")
    wrapped = wrap(Scalar.draw(stream(1)), bytes(MAX_INSIDE), stream(2))
    request = Publish(b"p" * 32, (point,) * MAX_TOKENS, wrapped, b"p" * 16)
    assert len(encode(request)) <= MAX_CENTRAL_FRAME
    assert decode_from_user(encode(request)) == request


@pytest.mark.parametrize("size", [0, TAG - 1, MAX_INSIDE + TAG + 1])
def test_payloads_of_other_sizes_do_not_decode(size: int) -> None:
    decode = decoder(WrappedMessage, "wrapped message", 2 * MAX_INSIDE)
    point = hashed(b"")
    with pytest.raises(DecodeError):
        decode(encode(WrappedMessage(point, point, bytes(size))))
    for short in (point[:-1], point + b"\x00"):
        with pytest.raises(DecodeError):
            decode(encode(WrappedMessage(short, point, bytes(TAG))))


def test_tokens_and_messages_are_those_of_the_fixed_vectors() -> None:
    user, server, there = (
        Scalar(bytes.fromhex(VECTORS[name])) for name in ("user", "server", "transformation")
    )
    assert factor(user, server) == there
    assert there.inverse().reveal().hex() == VECTORS["inverse"]
    for one in VECTORS["tokens"]:
        own = encrypted(user, bytes.fromhex(one["token"]))
        assert own.hex() == one["user"]
        assert transformed(there, own).hex() == one["server"]
    given = {name: bytes.fromhex(value) for name, value in VECTORS["wrapped"].items()}
    random = iter((given["random"][:64], given["random"][64:]))
    made = wrap(user, given["inside"], lambda _: next(random))
    assert made == WrappedMessage(given["user_mask"], given["masked"], given["payload"])
    at_server = rerouted(there, made)
    assert at_server == WrappedMessage(given["server_mask"], given["masked"], given["payload"])
    assert unwrap(server, at_server) == given["inside"]
