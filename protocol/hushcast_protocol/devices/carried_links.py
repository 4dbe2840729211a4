"""Carried links: the subscriptions of one daemon, sealed under a password, to be taken to another device.

A file is a line that names it, 16 bytes of salt, a nonce, and what XChaCha20-Poly1305 makes of the links
under a key that Argon2id makes of the password; salt and nonce are sealed with it. It is padded, so that its
size tells the number of links to a few dozens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id

from hushcast_protocol.base.crypto.aead import KEY, NONCE, TAG, seal, unseal
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.wire import Wire, decoder, encode
from hushcast_protocol.content.predicates import MAX_WHERE, parse_where
from hushcast_protocol.content.topics import LINK_SCHEME, MAX_LINK, Interest, parse_topic

MIN_PASSWORD = 8  # characters: less is guessed in days, whatever a guess costs
MAX_PASSWORD = 1024  # bytes: a sentence
MAX_LINKS = 256  # as many as a daemon has subscriptions
MAX_CARRIED_FILE = 2 * 1024 * 1024  # bytes; the largest links and conditions of 256 subscriptions take 1.4 MB
_PADDED_TO = 8 * 1024  # bytes: some thirty links
_FIRST_LINE = b"hushcast links 1\n"
# A guess takes a second of a core and 256 MiB: made once by a person, and by who guesses each time.
_OPERATIONS = 4
_MEMORY = 256 * 1024 * 1024  # bytes


class CarriedLink(Wire, frozen=True, repr_omit_defaults=True):
    """One subscription: the topic's link, the condition as it is written, and terms, if it has some."""

    link: Annotated[str, msgspec.Meta(max_length=len(LINK_SCHEME) + MAX_LINK)]
    where: Annotated[str, msgspec.Meta(max_length=MAX_WHERE)] = ""
    terms: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return "<CarriedLink>"  # links are secrets

    def interest(self) -> Interest:
        """Return what is to be subscribed to; raise `UsageError` where that is none."""
        topic = parse_topic(self.link)
        return Interest(topic, parse_where(self.where, topic.attributes))


_Links = Annotated[tuple[CarriedLink, ...], msgspec.Meta(max_length=MAX_LINKS)]
_decode: Callable[[bytes], tuple[CarriedLink, ...]] = decoder(_Links, "list of links", MAX_CARRIED_FILE)


def seal_links(links: Sequence[CarriedLink], password: str, randomness: Randomness) -> bytes:
    """Return a file that holds links; takes a second and 256 MiB. Raises `UsageError` for a bad password."""
    salt, nonce = randomness(argon2id.SALTBYTES), randomness(NONCE)
    packed = encode(tuple(links))
    plain = len(packed).to_bytes(4, "big") + packed
    plain += bytes(-len(plain) % _PADDED_TO)
    return _header(salt) + nonce + seal(plain, _header(salt), nonce, _key(password, salt))


def open_links(data: bytes, password: str) -> tuple[CarriedLink, ...]:
    """Return the links in a file; takes as long. Raises `UsageError` where it is none, or not under this."""
    salt_end = len(_FIRST_LINE) + argon2id.SALTBYTES
    begin = salt_end + NONCE
    if not data.startswith(_FIRST_LINE) or not begin + TAG <= len(data) <= MAX_CARRIED_FILE:
        raise UsageError("this is no file of links: `hushcast device export FILE` makes one")
    salt, nonce = data[len(_FIRST_LINE) : salt_end], data[salt_end:begin]
    try:
        plain = unseal(data[begin:], _header(salt), nonce, _key(password, salt))
        return _decode(plain[4 : 4 + int.from_bytes(plain[:4], "big")])
    except CryptoError:
        raise UsageError("the password is another one, or the file was changed or cut off") from None
    except DecodeError:
        raise UsageError("the file is of another version of this program") from None


def _header(salt: bytes) -> bytes:
    return _FIRST_LINE + salt


def _key(password: str, salt: bytes) -> bytes:
    given = password.encode("utf-8", "surrogateescape")
    if len(password) < MIN_PASSWORD or len(given) > MAX_PASSWORD:
        raise UsageError(f"a password for links has {MIN_PASSWORD} characters to {MAX_PASSWORD} bytes")
    return argon2id.kdf(KEY, given, salt, opslimit=_OPERATIONS, memlimit=_MEMORY)
