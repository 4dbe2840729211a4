"""The introduction: what each party holds at its end, and that it says nothing of the others' keys."""

from __future__ import annotations

import json

import central_vectors as independent
import pytest
from core_examples import properties, stream
from hypothesis import assume, given
from hypothesis import strategies as st
from nacl.bindings import crypto_box_seal

from hushcast_protocol.base.crypto.group import ORDER, Scalar
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import Attach, UserAnswer
from hushcast_protocol.central.introduction import (
    MAX_SEALED,
    IntroductionContent,
    PseudonymSecret,
    SealingKey,
    check_proof,
    factor_for,
    introduction,
    opened,
    proof,
    pseudonym_of,
    transformation,
)
from hushcast_protocol.central.rerouting import WrappedMessage

VECTORS = json.loads(independent.VECTORS.read_text())
SEALING = SealingKey.draw(stream(1))
SECRET = PseudonymSecret.draw(stream(2))
DAY = 20_000
scalars = st.integers(1, ORDER - 1).map(lambda number: Scalar(number.to_bytes(32, "little")))


def server_view(server: Scalar, key: Scalar, blinding: Scalar) -> tuple[Scalar, Scalar]:
    """All numbers that the server meets: its key, and what it opens. It answers with a function of these."""
    sealed = introduction(SEALING.public(), "subscribe", DAY, key, blinding, SECRET)
    return server, opened(SEALING, sealed).blinded


def proxy_view(server: Scalar, key: Scalar, blinding: Scalar) -> tuple[Scalar, Scalar]:
    """All numbers that the proxy meets: b from the user, the factor from the server; the rest is sealed."""
    return blinding, factor_for(server, blinding.times(key))


@properties(50)
@given(scalars, scalars, scalars)
def test_the_proxy_ends_with_the_transformation(server: Scalar, key: Scalar, blinding: Scalar) -> None:
    held = transformation(*proxy_view(server, key, blinding))
    assert held.times(key) == server


@properties(50)
@given(scalars, scalars, scalars, scalars)
def test_the_servers_view_is_the_same_for_every_key_of_the_user(
    server: Scalar, key: Scalar, blinding: Scalar, other: Scalar
) -> None:
    """For each key there is exactly one blinding that shows the server the same; blindings are uniform."""
    fitting = blinding.times(key).times(other.inverse())
    assert server_view(server, other, fitting) == server_view(server, key, blinding)
    assert (fitting == blinding) == (other == key)


@properties(50)
@given(scalars, scalars, scalars, scalars)
def test_the_proxys_view_is_the_same_for_every_key_of_the_user(
    server: Scalar, key: Scalar, blinding: Scalar, other: Scalar
) -> None:
    """For each key of the user exactly one of the server's fits, so that the proxy learns neither."""
    fitting = server.times(other).times(key.inverse())
    assert proxy_view(fitting, other, blinding) == proxy_view(server, key, blinding)
    assert (fitting == server) == (other == key)


@properties(50)
@given(scalars, scalars, scalars)
def test_what_is_sealed_differs_each_time_and_has_one_length(
    key: Scalar, blinding: Scalar, other: Scalar
) -> None:
    """The proxy sees the box: its length is that of any other of the day, whatever the keys."""
    boxes = [
        introduction(SEALING.public(), "subscribe", DAY, one, blinding, SECRET) for one in (key, other, key)
    ]
    assert len({len(box) for box in boxes}) == 1
    assert len(set(boxes)) == 3
    assert len(boxes[0]) <= MAX_SEALED


def test_what_the_user_hears_has_nothing_of_the_servers_key() -> None:
    """Answers to a user are verdicts, proofs under its own secret, a salt, and points; no scalar."""
    request = request_proofs.subscribe(pseudonym_of(SECRET), SECRET, 1, (b"p" * 32,))
    answers = {request_proofs.done(SECRET, request, "accepted") for _ in range(3)}
    assert answers == {UserAnswer("accepted", proof(SECRET, b"done", b"accepted", request.proof))}
    assert Attach.__struct_fields__ == ("pseudonym", "proof")
    assert WrappedMessage.__struct_fields__ == ("mask", "masked", "payload")


@properties(50)
@given(scalars, scalars, scalars)
def test_proxy_and_user_together_have_the_servers_key(server: Scalar, key: Scalar, blinding: Scalar) -> None:
    """The paper's own caveat (VB §4.1); what is inside is sealed for that reason."""
    assert transformation(*proxy_view(server, key, blinding)).times(key) == server


@properties(50)
@given(scalars, scalars, scalars)
def test_proxy_and_server_together_have_the_users_key(server: Scalar, key: Scalar, blinding: Scalar) -> None:
    own, blinded = server_view(server, key, blinding)
    from_proxy, _ = proxy_view(server, key, blinding)
    assert blinded.times(from_proxy.inverse()) == key
    assert own.times(transformation(*proxy_view(server, key, blinding)).inverse()) == key


@properties(50)
@given(scalars, scalars, scalars, scalars, scalars, scalars)
def test_two_proxies_without_a_user_have_neither_key(
    server: Scalar, one: Scalar, two: Scalar, b: Scalar, c: Scalar, other: Scalar
) -> None:
    """Each learns the ratio to the server's key; all ratios fit any of its keys."""
    ratio = other.times(server.inverse())
    views = proxy_view(server, one, b), proxy_view(server, two, c)
    assert views == (
        proxy_view(other, one.times(ratio), b),
        proxy_view(other, two.times(ratio), c),
    )


@properties(50)
@given(scalars, scalars, st.sampled_from(["publish", "subscribe"]), st.integers(0, 2**48 - 1))
def test_the_server_opens_what_the_user_sealed(key: Scalar, blinding: Scalar, use: str, day: int) -> None:
    found = opened(SEALING, introduction(SEALING.public(), use, day, key, blinding, SECRET))
    assert found == (pseudonym_of(SECRET), use, day, blinding.times(key), SECRET)


def test_a_repeated_introduction_gives_the_same_factor() -> None:
    """A proxy that repeats one learns what it had."""
    server, key, blinding = (Scalar.draw(stream(number)) for number in (3, 4, 5))
    sealed = introduction(SEALING.public(), "publish", DAY, key, blinding, SECRET)
    factors = {factor_for(server, opened(SEALING, sealed).blinded) for _ in range(2)}
    assert factors == {factor_for(server, blinding.times(key))}
    assert opened(SEALING, sealed).pseudonym == pseudonym_of(SECRET)


def test_what_is_not_sealed_to_this_server_is_refused() -> None:
    server, key, blinding = (Scalar.draw(stream(number)) for number in (3, 4, 5))
    sealed = introduction(SEALING.public(), "publish", DAY, key, blinding, SECRET)
    with pytest.raises(AuthenticationError):
        opened(SealingKey.draw(stream(9)), sealed)
    for length in range(len(sealed)):
        with pytest.raises(AuthenticationError):
            opened(SEALING, sealed[:length])
    for bit in range(8 * len(sealed)):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(PeerError):
            opened(SEALING, bytes(flipped))
    assert server


@pytest.mark.parametrize("number", [0, ORDER, 2**256 - 1])
def test_a_blinded_key_that_is_no_scalar_is_refused(number: int) -> None:
    """Of zero there is no inverse: it would have the server fail."""
    plain = encode(IntroductionContent("publish", DAY, number.to_bytes(32, "little"), SECRET.reveal()))
    with pytest.raises(AuthenticationError):
        opened(SEALING, crypto_box_seal(plain, SEALING.public()))


@pytest.mark.parametrize("plain", [b"", b"\x90", b"x" * 100, bytes(MAX_SEALED + 1)])
def test_what_is_sealed_well_and_no_introduction_is_refused(plain: bytes) -> None:
    with pytest.raises(DecodeError):
        opened(SEALING, crypto_box_seal(plain, SEALING.public()))


@properties(50)
@given(st.lists(st.binary(max_size=8), max_size=4), st.lists(st.binary(max_size=8), max_size=4))
def test_proofs_are_of_their_parts(parts: list[bytes], others: list[bytes]) -> None:
    given_proof = proof(SECRET, *parts)
    check_proof(SECRET, given_proof, *parts)
    assume(parts != others)
    with pytest.raises(AuthenticationError):
        check_proof(SECRET, given_proof, *others)
    with pytest.raises(AuthenticationError):
        check_proof(PseudonymSecret.draw(stream(8)), given_proof, *parts)


def test_keys_are_those_of_the_fixed_vectors() -> None:
    key, server, blinding = (Scalar(bytes.fromhex(VECTORS[name])) for name in ("user", "server", "blinding"))
    assert blinding.times(key).reveal().hex() == VECTORS["blinded"]
    factor = factor_for(server, blinding.times(key))
    assert factor.reveal().hex() == VECTORS["factor"]
    assert transformation(blinding, factor).reveal().hex() == VECTORS["transformation"]
