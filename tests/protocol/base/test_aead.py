"""The seal of records: PyNaCl's, byte by byte, and nothing altered opens."""

import random

import pytest
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt as nacl_open
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as nacl_seal
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import KEY, NONCE, TAG, seal, unseal

rng = random.Random(1)
SECRET, ONCE = rng.randbytes(KEY), rng.randbytes(NONCE)


@pytest.mark.parametrize("header", [b"", b"head"])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 70_000])
def test_it_is_what_pynacl_makes(size: int, header: bytes) -> None:
    plain = rng.randbytes(size)
    sealed = seal(plain, header, ONCE, SECRET)
    assert len(sealed) == size + TAG
    assert sealed == nacl_seal(plain, header, ONCE, SECRET)
    assert unseal(sealed, header, ONCE, SECRET) == plain == nacl_open(sealed, header, ONCE, SECRET)


def test_nothing_altered_or_cut_opens() -> None:
    sealed = seal(b"content", b"head", ONCE, SECRET)
    flipped = [
        bytes(byte ^ (1 << bit) if place == at else byte for at, byte in enumerate(sealed))
        for place in range(len(sealed))
        for bit in range(8)
    ]
    for bad in [*flipped, *(sealed[:size] for size in range(len(sealed))), sealed + b"x"]:
        with pytest.raises(CryptoError):
            unseal(bad, b"head", ONCE, SECRET)
    for header, nonce, key in (
        (b"heap", ONCE, SECRET),
        (b"head", bytes(NONCE), SECRET),
        (b"head", ONCE, bytes(KEY)),
    ):
        with pytest.raises(CryptoError):
            unseal(sealed, header, nonce, key)


@pytest.mark.parametrize(("nonce", "key"), [(ONCE[1:], SECRET), (ONCE, SECRET[1:])])
def test_a_short_nonce_or_key_is_ours_to_mend(nonce: bytes, key: bytes) -> None:
    with pytest.raises(AssertionError):
        seal(b"", b"", nonce, key)
    with pytest.raises(AssertionError):
        unseal(bytes(TAG), b"", nonce, key)
