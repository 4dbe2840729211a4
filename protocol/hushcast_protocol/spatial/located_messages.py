"""A message of a feed: what the owner puts into a batch, and what is hashed of it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec.structs import replace

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import Counter, Wire, encode
from hushcast_protocol.spatial.json_lines import read_object
from hushcast_protocol.spatial.keywords import MAX_WORDS, NEWEST, Keyword, WordRule, words_of
from hushcast_protocol.spatial.places import Place, place_of

MAX_MESSAGES = 16_384  # of one batch, eight times the paper's
MAX_ID = 64  # characters of a message's id
MAX_PAYLOAD = 65_536  # bytes of a message's text

_KEYS = {"id": "text", "lat": "number", "lon": "number", "text": "text"}
EXAMPLE = '{"id": "1", "lat": 60.17, "lon": 24.94, "text": "shoes at half the price"}'

MessageId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID)]
Payload = Annotated[bytes, msgspec.Meta(max_length=MAX_PAYLOAD)]


class LocatedMessage(Wire, frozen=True, tag="located"):
    """A message: the number of its batch, its id there, place, distinct sorted words, and what it says."""

    number: Counter
    id: MessageId
    place: Place
    words: Annotated[tuple[Keyword, ...], msgspec.Meta(max_length=MAX_WORDS)]
    payload: Payload


def read_message(line: bytes, number: int, rule: WordRule = NEWEST) -> LocatedMessage:
    """Return the message that a line of JSON is, for the batch of this number; raise `UsageError`.

    No text keeps a message from having words: those that are too long are cut, and too many end somewhere.
    """
    return worded(read_wordless(line), number, rule)


def worded(message: LocatedMessage, number: int, rule: WordRule) -> LocatedMessage:
    """Return a message of the batch of this number with the words of its text."""
    words = words_of(message.payload.decode(errors="replace"), rule)
    return replace(message, number=number, words=words)


def read_wordless(line: bytes) -> LocatedMessage:
    """Return the message that a line of JSON is, of batch 0 and without its words; raise `UsageError`."""
    given = read_object(line, _KEYS, EXAMPLE)
    name, payload = given["id"], given["text"].encode()
    if not 1 <= len(name) <= MAX_ID:
        raise UsageError(f"'id' has {len(name):,} characters: 1 to {MAX_ID}")
    if len(payload) > MAX_PAYLOAD:
        raise UsageError(f"'text' has {len(payload):,} bytes, above {MAX_PAYLOAD:,}")
    return LocatedMessage(0, name, place_of(given["lat"], given["lon"]), (), payload)


def content_digest(number: int, name: str, payload: bytes) -> bytes:
    """Return the hash of what a proof shows of a wanted message alone: interval, id and payload."""
    return digest(Domain.LOCATED_MESSAGE, encode((number, name)), payload)
