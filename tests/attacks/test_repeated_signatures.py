"""A reader of a topic, who can open and seal, makes new messages of a signed one, to show it once more."""

from __future__ import annotations

from typing import NamedTuple

from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt as aead_open
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal
from small_network import ONE, derive, small_network

from hushcast_protocol.base.crypto.secrets import Seed, TopicKey
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.content.bodies import Content, _associated, _body_key, compose, open_body
from hushcast_protocol.content.messages import HEADER, NONCE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.overlay.frames import Drop, Receipt

AUTHOR = Seed(bytes(range(32)))
KEY = TopicKey(b"k" * 32)
DAY = 7
ORDER = 2**252 + 27742317777372353535851937790883648493  # of the group that Ed25519 signs in


class Inside(NamedTuple):
    """A message opened by a reader."""

    nonce: bytes
    plain: bytes


def opened(key: TopicKey, message: Message) -> Inside:
    """Open a message as any reader can."""
    nonce = message.body[:NONCE]
    return Inside(nonce, aead_open(message.body[NONCE:], _associated(message.day), nonce, _body_key(key)))


def sealed(key: TopicKey, message: Message, nonce: bytes, plain: bytes) -> Message:
    """Seal a plain text in the place of a message's."""
    body = nonce + aead_seal(plain, _associated(message.day), nonce, _body_key(key))
    return Message(message_id(message.day, body), message.day, message.tokens, message.trail, body)


def is_shown(message: Message) -> bool:
    """Tell whether readers take a message for its author's."""
    try:
        return open_body(KEY, message).author == AUTHOR.public()
    except (AuthenticationError, DecodeError):
        return False


async def test_a_signed_message_is_shown_once() -> None:
    async with small_network(relays=3, clients=2) as net:
        ear = await net.clients[0].listen()
        key = derive(ONE, net.net.id, net.calendar.day(net.now))
        publication = await net.clients[1].daemon.service.publish(ONE, Content(b"pay 10 to Bob"), AUTHOR)
        await ear.hears(1)
        inside = opened(key, publication.message)
        for change in range(1, 4):
            forged = sealed(key, publication.message, inside.nonce, inside.plain[:-1] + bytes([change]))
            channel = await net.knock(net.relays[0])
            await channel.send(Drop(forged, None))
            assert await channel.one(60) == Receipt("accepted")
            await channel.aclose()
        await net.drop_at(net.relays[0], ONE, Content(b"the last"))
        await ear.hears(2)
        assert ear.payloads == [b"pay 10 to Bob", b"the last"]
        assert net.clients[0].count("messages_not_ours") == 3


async def test_nothing_that_is_sealed_can_be_changed_under_a_signature() -> None:
    """Every byte, kind and padding included, and every other size."""
    message = compose(KEY, DAY, (b"t" * 16,), Content(b"pay", {"to": "Bob"}), bytes, AUTHOR)
    inside = opened(KEY, message)
    assert is_shown(sealed(KEY, message, *inside))
    for at in range(len(inside.plain)):
        changed = bytearray(inside.plain)
        changed[at] ^= 1 + at % 255
        assert not is_shown(sealed(KEY, message, inside.nonce, bytes(changed))), at
    for size in PADDED_SIZES[1:]:
        longer = inside.plain.ljust(HEADER + size, b"\x00")
        assert not is_shown(sealed(KEY, message, inside.nonce, longer)), size
    assert not is_shown(sealed(KEY, message, bytes(range(NONCE)), inside.plain))


async def test_a_signature_has_one_form() -> None:
    """In Ed25519 s and s + the group's order sign alike, unless whoever checks refuses the second."""
    message = compose(KEY, DAY, (b"t" * 16,), Content(b"pay"), bytes, AUTHOR)
    inside = opened(KEY, message)
    scalar = int.from_bytes(inside.plain[HEADER - 32 : HEADER], "little") + ORDER
    other = inside.plain[: HEADER - 32] + scalar.to_bytes(32, "little") + inside.plain[HEADER:]
    assert not is_shown(sealed(KEY, message, inside.nonce, other))


async def test_a_probe_has_no_author() -> None:
    """Else a signed message could be made one, and hidden."""
    message = compose(KEY, DAY, (b"t" * 16,), Content(b"pay"), bytes, AUTHOR)
    inside = opened(KEY, message)
    assert not is_shown(sealed(KEY, message, inside.nonce, b"\x02" + inside.plain[1:]))
