"""What brokers see under `clear`: an id instead of a topic's name, digests instead of labels, plain numbers.

A topic's id is the token of its trunk under the key of day 0. So it stays the same, and costs as much to
guess as any topic does (`content.tokens`); a private topic's cannot be guessed. A message's tokens are its
*words*: the id, then one for each attribute that is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import Bytes16, Wire, encode
from hushcast_protocol.brokers.filters import Filter, Side, Sides
from hushcast_protocol.content.attributes import MAX_ATTRIBUTES, MAX_BITS, Attribute, Label, Number, Values
from hushcast_protocol.content.tokens import label_token, token
from hushcast_protocol.content.topics import Topic

ID_DAY = 0
"""The day whose key ids and labels come from, whatever day it is."""

LABEL_DIGEST = 14  # bytes of a label, in a word and in a filter
_NUMBER, _LABEL = 1, 2  # what a word is of: its second byte; the first is the attribute's place in the topic
_KNOWN_TOPICS = 65_536  # topics as brokers see them that are kept, so that equal ones are one object

Place = Annotated[int, msgspec.Meta(ge=0, lt=2**MAX_BITS)]
# A tuple of a fixed length beside bytes crashes msgspec 0.22 when garbage is collected.
Range = Annotated[tuple[Place, ...], msgspec.Meta(min_length=2, max_length=2)]
LabelDigest = Annotated[bytes, msgspec.Meta(min_length=LABEL_DIGEST, max_length=LABEL_DIGEST)]


class ShownFilter(Wire, frozen=True, tag="filter"):
    """A filter on its way; `places` tells each number's last place on its grid, and none for labels."""

    topic: Bytes16
    places: Annotated[tuple[Place | None, ...], msgspec.Meta(max_length=MAX_ATTRIBUTES)]
    sides: Annotated[tuple[Range | LabelDigest | None, ...], msgspec.Meta(max_length=MAX_ATTRIBUTES)]

    @property
    def name(self) -> bytes:
        """16 bytes that name it; equal for equal filters."""
        return digest(Domain.SHOWN_FILTER, encode(self), size=LABEL)


class CoveredFilter(Wire, frozen=True, tag="covered-filter"):
    """A filter that is to be passed on though another that is shown covers it; it brings no message."""

    filter: ShownFilter

    @property
    def name(self) -> bytes:
        """16 bytes that name it, other than those of the filter itself."""
        return digest(Domain.COVERED_FILTER, encode(self.filter), size=LABEL)


def shown(key: TopicKey, given: Filter) -> ShownFilter:
    """Return a filter as brokers see it; `key` is its topic's, of `ID_DAY`."""
    return shown_by(filter_words(key, given), given)


def filter_words(key: TopicKey, given: Filter) -> tuple[bytes, ...]:
    """Return the words that a filter takes beside its numbers: the topic's id, then one for each label."""
    named = zip(given.topic.attributes, given.sides, strict=True)
    return words(key, given.topic, {one.name: side for one, side in named if isinstance(side, str)})


def shown_by(known: Sequence[bytes], given: Filter) -> ShownFilter:
    """Return a filter as brokers see it, of its words (`filter_words`), which take the topic's key."""
    places = tuple(one.last if isinstance(one, Number) else None for one in given.topic.attributes)
    topic, labels = read_words(known)
    sides = tuple(
        bytes.fromhex(str(labels[place])) if isinstance(side, str) else side
        for place, side in enumerate(given.sides)
    )
    return ShownFilter(topic, places, sides)


def outside(filter_: ShownFilter) -> Filter:
    """Return a filter as brokers compare it; raise `DecodeError` where it is none.

    Its topic is named by the id in hexadecimal digits, its attributes by their places, and a label is its
    digest in such digits; covering, volumes and levels are those of the filter that it is made of.
    """
    if len(filter_.places) != len(filter_.sides):
        raise DecodeError("a filter has not one side for each attribute")
    sides = tuple(map(_read_side, filter_.places, filter_.sides))
    return Filter(_outside_topic(filter_.topic, filter_.places), sides)


def outside_asked(filter_: ShownFilter) -> Filter:
    """Return `outside` of a filter that somebody asks for; raise `Refusal` ("form") where it is none."""
    try:
        return outside(filter_)
    except DecodeError:
        raise Refusal("form") from None


def from_outside(given: Filter) -> ShownFilter:
    """Return what `outside` made a filter of."""
    places = tuple(one.last if isinstance(one, Number) else None for one in given.topic.attributes)
    sides = tuple(bytes.fromhex(side) if isinstance(side, str) else side for side in given.sides)
    return ShownFilter(bytes.fromhex(given.topic.name), places, sides)


def inside(own: Filter, seen: Filter) -> Filter:
    """Return, in the words of whoever subscribed to `own`, a filter seen outside that covers it."""
    sides = tuple(
        mine if isinstance(side, str) else side for mine, side in zip(own.sides, seen.sides, strict=True)
    )
    return Filter(own.topic, sides)


def words(key: TopicKey, topic: Topic, values: Values) -> tuple[bytes, ...]:
    """Return the words (16 bytes each) of a message: its tokens under `clear`."""
    found = [token(key)]
    for place, attribute in enumerate(topic.attributes):
        value = values.get(attribute.name)
        if isinstance(attribute, Number) and isinstance(value, int):
            found.append(bytes((place, _NUMBER)) + value.to_bytes(LABEL_DIGEST, "big"))
        elif isinstance(attribute, Label) and isinstance(value, str):
            found.append(bytes((place, _LABEL)) + label_token(key, attribute, value)[:LABEL_DIGEST])
    return tuple(found)


def read_words(tokens: Sequence[bytes]) -> tuple[bytes, dict[int, Side]]:
    """Return the topic's id and, by place of the attribute, what is set; raise `DecodeError`.

    Of a number that is the range with the one place in it, of a label its digest in hexadecimal digits.
    """
    found: dict[int, Side] = {}
    for word in tokens[1:]:
        place, kind, value = word[0], word[1], word[2:]
        if place >= MAX_ATTRIBUTES or place in found or kind not in (_NUMBER, _LABEL):
            raise DecodeError("a message has words that say nothing, or twice the same")
        if kind == _LABEL:
            found[place] = value.hex()
            continue
        number = int.from_bytes(value, "big")
        if number >= 2**MAX_BITS:
            raise DecodeError("a message has a number that lies on no grid")
        found[place] = (number, number)
    return tokens[0], found


def point(topic: Topic, found: dict[int, Side]) -> Sides:
    """Return the box of one message on a topic: filters that cover it are those that match it.

    Where it has a label for a number, a number for a label, or one that lies outside of the grid, it lacks
    the attribute: it is of another topic, or its author lies.
    """
    return tuple(_fitting(one, found.get(place)) for place, one in enumerate(topic.attributes))


def _fitting(attribute: Attribute, side: Side) -> Side:
    if isinstance(side, tuple):
        return side if isinstance(attribute, Number) and side[1] <= attribute.last else None
    return side if isinstance(attribute, Label) else None


def _read_side(last: int | None, side: tuple[int, ...] | bytes | None) -> Side:
    if side is None:
        return None
    if isinstance(side, bytes):
        if last is not None:
            raise DecodeError("a filter has a label where its topic has a number")
        return side.hex()
    low, high = side
    if last is None or not low <= high <= last:
        raise DecodeError("a filter's range is upside down, or lies outside of the grid")
    return low, high


@lru_cache(_KNOWN_TOPICS)
def _outside_topic(name: bytes, places: tuple[int | None, ...]) -> Topic:
    attributes = tuple(
        Label(f"a{at}") if last is None else Number(f"a{at}", Decimal(0), Decimal(last), Decimal(1))
        for at, last in enumerate(places)
    )
    return Topic(name.hex(), attributes)
