"""The group: what is in it, what is refused, and its arithmetic beside an independent one."""

from __future__ import annotations

import json

import central_vectors as independent
import pytest
from core_examples import properties, stream
from hypothesis import assume, given
from hypothesis import strategies as st
from nacl.bindings import crypto_core_ed25519_from_uniform

from hushcast_protocol.base.crypto.group import (
    ORDER,
    Scalar,
    added,
    base,
    check_point,
    hashed,
    multiplied,
    received_scalar,
    subtracted,
)
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.central.rerouting import (
    WrappedMessage,
    rerandomised,
    rerouted,
    transformed,
    unwrap,
    wrap,
)
from hushcast_protocol.central.token_transformer import Transformer

VECTORS = json.loads(independent.VECTORS.read_text())
TORSION = [bytes.fromhex(point) for point in VECTORS["torsion"]]
NEUTRAL = TORSION[0]

scalars = st.integers(1, ORDER - 1).map(lambda number: Scalar(number.to_bytes(32, "little")))
points = st.binary(max_size=40).map(hashed)


def scalar(number: int) -> Scalar:
    return Scalar(number.to_bytes(32, "little"))


def number_of(one: Scalar) -> int:
    return int.from_bytes(one.reveal(), "little")


def mixed(point: bytes, small: bytes) -> bytes:
    """Add a point of small order to one of the group, as an adversary does."""
    one, other = independent.decoded(point), independent.decoded(small)
    assert one
    assert other
    return independent.encoded(independent.add(one, other))


def refused_everywhere(point: bytes) -> None:
    """Every use of a point from outside refuses it, wherever it stands."""
    key = scalar(8 * 12345)  # a multiple of the cofactor hides nothing
    good = wrap(key, b"inside", stream(1))
    for use in (
        lambda: check_point(point),
        lambda: multiplied(key, point),
        lambda: multiplied(scalar(3), point),
        lambda: transformed(key, point),
        lambda: Transformer().tokens(key, [point]),
        *(
            use
            for bad in (
                WrappedMessage(point, good.masked, good.payload),
                WrappedMessage(good.mask, point, good.payload),
            )
            for use in (
                lambda bad=bad: unwrap(key, bad),
                lambda bad=bad: rerouted(key, bad),
                lambda bad=bad: rerandomised(base(key), bad, stream(2)),
            )
        ),
    ):
        with pytest.raises(AuthenticationError):
            use()


@pytest.mark.parametrize("small", TORSION)
def test_points_of_small_order_are_refused(small: bytes) -> None:
    refused_everywhere(small)


@pytest.mark.parametrize("small", TORSION[1:])
@pytest.mark.parametrize("seed", range(4))
def test_points_beside_the_subgroup_are_refused(small: bytes, seed: int) -> None:
    """CVE-2025-69277: older libsodium took those that are off by the point of order two."""
    refused_everywhere(mixed(hashed(bytes([seed])), small))


def test_every_encoding_that_is_not_the_one_is_refused() -> None:
    """A y of p or more, and a sign on an x of zero: the same points a second time."""
    seconds = [(y + independent.P) | sign << 255 for y in range(19) for sign in (0, 1)]
    seconds += [y | 1 << 255 for y in (1, independent.P - 1)]
    for number in seconds:
        refused_everywhere(number.to_bytes(32, "little"))


@pytest.mark.slow
@properties(50)
@given(st.binary(min_size=32, max_size=32))
def test_any_bytes_are_refused_unless_they_are_of_the_group(data: bytes) -> None:
    """Half of all y have a point, one of eight of these is in the subgroup."""
    point = independent.decoded(data)
    inside = point is not None and independent.times(ORDER, point) == independent.NEUTRAL
    if inside and data != NEUTRAL:
        check_point(data)
        assert multiplied(scalar(1), data) == data
    else:
        with pytest.raises(AuthenticationError):
            check_point(data)
        with pytest.raises(AuthenticationError):
            multiplied(scalar(1), data)


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_points_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(AuthenticationError):
        multiplied(scalar(1), bytes(length))


@pytest.mark.parametrize("number", [0, ORDER, ORDER + 1, 2**255, 2**256 - 1])
def test_numbers_that_are_no_scalars_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        Scalar(number.to_bytes(32, "little"))
    with pytest.raises(AuthenticationError):
        received_scalar(number.to_bytes(32, "little"))


def test_scalars_of_another_length_are_refused() -> None:
    with pytest.raises(AuthenticationError):
        received_scalar(bytes(31))
    assert isinstance(scalar(1), Secret)


@properties(50)
@given(scalars, scalars)
def test_scalars_multiply_and_divide_modulo_the_order(one: Scalar, other: Scalar) -> None:
    assert number_of(one.times(other)) == number_of(one) * number_of(other) % ORDER
    assert one.times(one.inverse()) == scalar(1)
    if number_of(one) + number_of(other) != ORDER:
        assert number_of(one.plus(other)) == (number_of(one) + number_of(other)) % ORDER
    assert one.inverse() == scalar(pow(number_of(one), -1, ORDER)) == one.inverse()


@properties(50)
@given(st.binary(min_size=64, max_size=64))
def test_scalars_are_drawn_from_all(data: bytes) -> None:
    number = int.from_bytes(data, "little") % ORDER
    assume(number)
    assert number_of(Scalar.draw(lambda _: data)) == number


@properties(50)
@given(scalars, scalars, points)
def test_multiplying_is_an_action_of_the_scalars(one: Scalar, other: Scalar, point: bytes) -> None:
    assert multiplied(one, multiplied(other, point)) == multiplied(one.times(other), point)
    assert multiplied(one.inverse(), multiplied(one, point)) == point
    assert multiplied(one, base(other)) == base(one.times(other))


@properties(50)
@given(points, points)
def test_what_was_added_is_subtracted(one: bytes, other: bytes) -> None:
    assert added(one, other) == added(other, one)
    assert subtracted(added(one, other), other) == one
    assert added(one, one) == multiplied(scalar(2), one)
    assert subtracted(one, one) == NEUTRAL


@properties(50)
@given(st.binary(min_size=32, max_size=32))
def test_the_map_to_the_group_is_the_published_one(data: bytes) -> None:
    assert crypto_core_ed25519_from_uniform(data) == independent.encoded(independent.elligator(data))


@pytest.mark.slow
def test_the_vectors_are_what_the_script_computes() -> None:
    assert json.loads(json.dumps(independent.vectors())) == VECTORS


def test_the_map_gives_the_fixed_points() -> None:
    for one in VECTORS["uniform"]:
        assert crypto_core_ed25519_from_uniform(bytes.fromhex(one["bytes"])).hex() == one["point"]
    for one in VECTORS["tokens"]:
        assert hashed(bytes.fromhex(one["token"])).hex() == one["hashed"]


def test_the_map_leaves_no_sign_and_no_half_of_the_group_out() -> None:
    """One map reaches points unevenly, but no bit of a hashed token says whether it was hashed."""
    drawn = [hashed(number.to_bytes(4, "big")) for number in range(2000)]
    random = [base(Scalar.draw(stream(number))) for number in range(2000)]
    for bit in (255, 0, 100, 254):
        shares = [
            sum(int.from_bytes(point, "little") >> bit & 1 for point in some) / len(some)
            for some in (drawn, random)
        ]
        assert all(abs(share - 0.5) < 0.056 for share in shares)  # five standard deviations
    assert len(set(drawn)) == len(drawn)
