"""XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) for many short records: libsodium's, without PyNaCl's detour.

PyNaCl's own functions take three times as long on a short record: they format the texts of four errors
before they know of any. Whoever calls these answers for the sizes of key and nonce, which never come from a
peer.
"""

from __future__ import annotations

from typing import Any

from nacl import _sodium
from nacl.exceptions import CryptoError

KEY = 32  # bytes
NONCE = 24
TAG = 16

_ffi: Any = _sodium.ffi
_lib: Any = _sodium.lib
_buffer = _ffi.new_allocator(should_clear_after_alloc=False)  # it is written over


def seal(plain: bytes, header: bytes, nonce: bytes, key: bytes) -> bytes:
    """Return `plain` encrypted, and its tag, which holds for `header` (bytes, perhaps none), too."""
    assert len(nonce) == NONCE
    assert len(key) == KEY
    size = len(plain) + TAG
    sealed = _buffer("unsigned char[]", size)
    _lib.crypto_aead_xchacha20poly1305_ietf_encrypt(
        sealed, _ffi.NULL, plain, len(plain), header, len(header), _ffi.NULL, nonce, key
    )
    return bytes(_ffi.buffer(sealed, size))


def unseal(sealed: bytes, header: bytes, nonce: bytes, key: bytes) -> bytes:
    """Return what was sealed; raise `CryptoError` if it was not sealed so."""
    assert len(nonce) == NONCE
    assert len(key) == KEY
    size = len(sealed) - TAG
    if size < 0:
        raise CryptoError("nothing sealed is shorter than its tag")
    plain = _buffer("unsigned char[]", size or 1)
    if _lib.crypto_aead_xchacha20poly1305_ietf_decrypt(
        plain, _ffi.NULL, _ffi.NULL, sealed, len(sealed), header, len(header), nonce, key
    ):
        raise CryptoError("the tag does not hold")
    return bytes(_ffi.buffer(plain, size))
