"""Letter errands: what a daemon under cover has its third do, as the body of a letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import RelayId, Wire, decoder, encode
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message
from hushcast_protocol.cover.letter_contents import MAX_LETTER_BODY


class DropErrand(Wire, frozen=True, tag="drop-errand"):
    """Drop this message, as whoever publishes it would; list it as done once its origins have it.

    The trail is zeros, as a message has it when it is sealed.
    """

    message: Message


class GiveErrand(Wire, frozen=True, tag="give-errand"):
    """Hand this parcel to this relay, as whoever drops one would; list it as done once it was carried out.

    So the third learns which relay, and nothing of what is asked for there.
    """

    relay: RelayId
    sealed: Annotated[bytes, msgspec.Meta(max_length=MAX_LETTER_BODY)]


LetterErrand = DropErrand | GiveErrand

_decode: Callable[[bytes], LetterErrand] = decoder(LetterErrand, "letter's errand", MAX_LETTER_BODY)


def errand_body(errand: LetterErrand) -> bytes:
    """Return a letter's body; raise `Refusal` where the message or parcel is too large for one letter.

    A message whose attributes and payload are padded to 1 KiB fits with any number of tokens, a larger one
    never.
    """
    body = encode(errand)
    if len(body) > MAX_LETTER_BODY:
        what = "message" if isinstance(errand, DropErrand) else "parcel"
        raise Refusal(f"a {what} is too large for one letter")
    return body


def read_errand(body: bytes) -> LetterErrand:
    """Return what a letter asks for; raise a `PeerError` where no daemon asks so."""
    errand = _decode(body)
    if isinstance(errand, GiveErrand):
        return errand
    check_message(errand.message)
    if errand.message.trail != bytes(TRAIL_SIZE):
        raise DecodeError("a letter's message was on its way before")
    return errand
