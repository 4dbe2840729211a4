"""Boxes are libsodium's, drawn from the randomness that is given, and opened by their owner alone."""

from __future__ import annotations

from random import Random

import pytest
from nacl.public import PrivateKey, SealedBox

from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.errors import AuthenticationError


def test_a_box_is_libsodiums_and_replays() -> None:
    owner = PrivateKey(bytes(range(32)))
    sealed = seal_box(bytes(owner.public_key), b"plain", Random(1).randbytes)
    assert sealed == seal_box(bytes(owner.public_key), b"plain", Random(1).randbytes)
    assert len(sealed) == SEALED_BOX + len(b"plain")
    assert SealedBox(owner).decrypt(sealed) == b"plain"
    assert open_box(owner, SealedBox(owner.public_key).encrypt(b"other")) == b"other"


def test_who_is_not_the_owner_opens_nothing() -> None:
    owner, other = PrivateKey(bytes(range(32))), PrivateKey(bytes(range(1, 33)))
    sealed = seal_box(bytes(owner.public_key), b"plain", Random(1).randbytes)
    for key, data in ((other, sealed), (owner, sealed[:-1]), (owner, b""), (owner, b"x" + sealed[1:])):
        with pytest.raises(AuthenticationError):
            open_box(key, data)


def test_nothing_is_sealed_to_a_key_of_low_order() -> None:
    with pytest.raises(AuthenticationError):
        seal_box(bytes(32), b"plain", Random(1).randbytes)
