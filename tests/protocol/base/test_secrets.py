"""Secrets show themselves nowhere but through `reveal`."""

import copy
import json
import logging
import pickle
import traceback

import pytest
from core_examples import stream
from nacl.bindings import crypto_scalarmult_base

from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import LeaseSecret, ParcelKey, Secret, Seed, TopicKey
from hushcast_protocol.central.introduction import PseudonymSecret, SealingKey

KINDS = [Seed, ParcelKey, TopicKey, LeaseSecret, Scalar, PseudonymSecret, SealingKey]
VALUE = b"do-not-show-these-32-bytes-eve\0\0"  # a scalar, too
each_kind = pytest.mark.parametrize("kind", KINDS)


def shows(text: str) -> bool:
    return any(
        shown in text for shown in ("do-not-show", VALUE.hex(), VALUE.hex().upper(), str(list(VALUE))[1:-1])
    )


@each_kind
def test_no_way_of_printing_shows_the_bytes(kind):
    secret = kind(VALUE)
    printed = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r}",
        f"{secret!a}",
        "%s %r" % (secret, secret),  # noqa: UP031
    ]
    printed += [
        repr([secret]),
        repr({"key": secret}),
        ascii(secret),
        logging.LogRecord("name", logging.INFO, "file", 1, "%s", (secret,), None).getMessage(),
    ]
    assert not any(shows(text) for text in printed)
    assert repr(secret) == f"<{kind.__name__}>"


@each_kind
def test_nothing_copies_the_bytes_out(kind):
    secret = kind(VALUE)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not to be pickled") as refused:
            pickle.dumps(secret, protocol)
        assert not shows(str(refused.value))
    for copier in (copy.copy, copy.deepcopy, json.dumps, bytes, vars):
        with pytest.raises(TypeError):
            copier(secret)


@each_kind
def test_tracebacks_do_not_show_the_bytes(kind):
    secret = kind(VALUE)

    def fails(held: Secret) -> None:
        raise RuntimeError(f"failed with {held}")

    with pytest.raises(RuntimeError) as failed:
        fails(secret)
    captured = traceback.TracebackException.from_exception(failed.value, capture_locals=True)
    assert any("held" in line for line in captured.format())
    assert not any(shows(line) for line in captured.format())
    assert not any(shows(line) for line in traceback.format_exception(failed.value))


@each_kind
@pytest.mark.parametrize("value", [b"", VALUE[:-1], VALUE + b"!", VALUE.decode(), bytearray(VALUE), None])
def test_other_sizes_and_types_are_refused_without_showing_them(kind, value):
    with pytest.raises(ValueError, match="takes 32 bytes") as refused:
        kind(value)
    assert not shows(str(refused.value))


def test_secrets_are_equal_by_kind_and_value():
    assert Seed(VALUE) == Seed(VALUE)
    assert hash(Seed(VALUE)) == hash(Seed(VALUE))
    assert Seed(VALUE) != Seed(VALUE[::-1])
    assert Seed(VALUE) != TopicKey(VALUE)
    assert Seed(VALUE) != VALUE
    assert len({kind(VALUE) for kind in KINDS}) == len(KINDS)


@each_kind
def test_draws_replay_from_a_seed(kind):
    assert kind.draw(stream(1)) == kind.draw(stream(1)) != kind.draw(stream(2))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Scalar])
def test_draws_are_the_bytes_drawn(kind):
    assert kind.draw(stream(1)).reveal() == stream(1)(32)


def test_public_keys_do_not_change():
    """RFC 8032 §7.1 test 1; for X25519 the multiple of the base point."""
    seed = Seed(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert seed.public().hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert ParcelKey(VALUE).public() == crypto_scalarmult_base(VALUE)
