"""Signatures: over exact bytes, each use in a domain of its own."""

import itertools

import pytest
from core_examples import bit_flips, bytes32, bytes64, properties, seed
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import AuthenticationError

SEED = seed(1)
ORDER = 2**252 + 27742317777372353535851937790883648493


@properties(50)
@given(st.binary(max_size=200), st.sampled_from(SignaturePurpose))
def test_what_is_signed_is_accepted(body, purpose):
    check(SEED.public(), purpose, body, signature(SEED, purpose, body))


@pytest.mark.parametrize(("given_for", "asked_for"), list(itertools.permutations(SignaturePurpose, 2)))
def test_no_signature_serves_another_purpose(given_for, asked_for):
    with pytest.raises(AuthenticationError):
        check(SEED.public(), asked_for, b"body", signature(SEED, given_for, b"body"))


def test_no_purpose_begins_another():
    for one, other in itertools.permutations(SignaturePurpose, 2):
        assert not one.value.startswith(other.value)
        assert one.value.endswith(b"\x00")


def test_no_flipped_bit_is_accepted():
    good = signature(SEED, SignaturePurpose.ROSTER, b"body")
    for damaged in bit_flips(good):
        with pytest.raises(AuthenticationError):
            check(SEED.public(), SignaturePurpose.ROSTER, b"body", damaged)
    for damaged in bit_flips(b"body"):
        with pytest.raises(AuthenticationError):
            check(SEED.public(), SignaturePurpose.ROSTER, damaged, good)


def test_a_signature_has_one_form():
    """S plus the order of the group signs as well in plain algebra (RFC 8032 §5.1.7 refuses it)."""
    good = signature(SEED, SignaturePurpose.ROSTER, b"body")
    other = int.from_bytes(good[32:], "little") + ORDER
    with pytest.raises(AuthenticationError):
        check(SEED.public(), SignaturePurpose.ROSTER, b"body", good[:32] + other.to_bytes(32, "little"))


@properties(100)
@given(bytes32, bytes64)
def test_random_keys_and_signatures_are_refused(public, given_signature):
    with pytest.raises(AuthenticationError):
        check(public, SignaturePurpose.DESCRIPTOR, b"body", given_signature)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_keys_of_other_sizes_are_refused(size):
    with pytest.raises(AuthenticationError):
        check(bytes(size), SignaturePurpose.DESCRIPTOR, b"body", bytes(64))
