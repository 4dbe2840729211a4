"""Letter errands: what a daemon under cover has its third do, as the body of a letter."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import Wire, decoder, encode
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message
from hushcast_protocol.cover.letter_contents import MAX_LETTER_BODY


class DropErrand(Wire, frozen=True, tag="drop-errand"):
    """Drop this message, as whoever publishes it would; list the letter once its origins have it.

    The trail is zeros, as a message has it when it is sealed.
    """

    message: Message


_decode: Callable[[bytes], DropErrand] = decoder(DropErrand, "letter's errand", MAX_LETTER_BODY)


def errand_body(errand: DropErrand) -> bytes:
    """Return a letter's body; raise `Refusal` where the message is too large for one letter.

    One whose attributes and payload are padded to 1 KiB fits with any number of tokens, a larger one never.
    """
    body = encode(errand)
    if len(body) > MAX_LETTER_BODY:
        raise Refusal("a message is too large for one letter")
    return body


def read_errand(body: bytes) -> DropErrand:
    """Return what a letter asks for; raise a `PeerError` where no daemon asks so."""
    errand = _decode(body)
    check_message(errand.message)
    if errand.message.trail != bytes(TRAIL_SIZE):
        raise DecodeError("a letter's message was on its way before")
    return errand
