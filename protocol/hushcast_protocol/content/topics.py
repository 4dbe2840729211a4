"""Topics, which people subscribe to and publish on: a name, optional attributes, an optional secret.

A plain text is an open topic without attributes. A link carries a whole topic in one line (`link_text`). A
*wide* topic, for more subscribers than one shard bears, has 2^width shards on days that are cut.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.wire import Bytes32, Wire, decoder, encode
from hushcast_protocol.content.attributes import (
    MAX_ATTRIBUTES,
    Attribute,
    Number,
    Value,
    fits,
    parse_attribute,
    parse_value,
    write_attribute,
)
from hushcast_protocol.content.link_text import LINK_SCHEME as LINK_SCHEME
from hushcast_protocol.content.link_text import MAX_LINK as MAX_LINK
from hushcast_protocol.content.link_text import unpack, write_packed
from hushcast_protocol.content.messages import MAX_TOKENS
from hushcast_protocol.content.predicates import Predicate

MAX_TOPIC = 256  # bytes of UTF-8 of a name, after normalisation
MAX_WIDTH = 4
"""16 shards of one topic: publishers fetch the relays of all of them each day, and drop in each."""


@dataclass(frozen=True)
class Topic:
    """A topic; all of it is hidden from `repr`, so that no log shows it."""

    name: str = field(repr=False)
    attributes: tuple[Attribute, ...] = field(default=(), repr=False)
    secret: TopicSecret | None = field(default=None, repr=False)
    width: int = field(default=0, repr=False)
    """w of the 2^w shards that it has on days that are cut, 0 to `MAX_WIDTH`."""

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, object]:
        # Another process hashes texts in another way.
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    @cached_property
    def _hash(self) -> int:
        # Numbers take microseconds to hash, and tables of filters ask for it again and again.
        return hash((self.name, self.attributes, self.secret, self.width))

    @property
    def schema(self) -> bytes:
        """The bytes that identify this topic: its name and attributes, and its width if it has one.

        With another width it is another topic: who publishes drops in just the shards that subscribers draw.
        """
        if not self.attributes and not self.width:
            return self.name.encode()
        named = [self.name, [write_attribute(attribute) for attribute in self.attributes]]
        return encode([*named, self.width] if self.width else named)


@dataclass(frozen=True)
class Interest:
    """What a subscription wants: a topic, and which of its messages."""

    topic: Topic
    predicate: Predicate = field(default=Predicate(), repr=False)


class _Link(Wire, frozen=True, tag="topic/1"):
    """What a link encodes; attributes as their specifications."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_TOPIC)]
    attributes: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_ATTRIBUTES)]
    secret: Bytes32 | None


class _WideLink(Wire, frozen=True, tag="topic/2"):
    """What the link of a wide topic encodes; one without a width has `_Link`, as ever."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_TOPIC)]
    attributes: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_ATTRIBUTES)]
    secret: Bytes32 | None
    width: Annotated[int, msgspec.Meta(ge=1, le=MAX_WIDTH)]


_decode_link: Callable[[bytes], _Link | _WideLink] = decoder(_Link | _WideLink, "link", MAX_LINK)


def make_topic(
    name: str, specs: Iterable[str] = (), secret: TopicSecret | None = None, width: int = 0
) -> Topic:
    """Return a topic from what a person wrote; raises `UsageError`."""
    if not 0 <= width <= MAX_WIDTH:
        raise UsageError(f"the width of a topic is 0 to {MAX_WIDTH}, not {width}")
    # Sorted, so that the order in which they were given does not matter.
    attributes = tuple(sorted(map(parse_attribute, specs), key=lambda attribute: attribute.name))
    if len(attributes) > MAX_ATTRIBUTES:
        raise UsageError(f"a topic has at most {MAX_ATTRIBUTES} attributes")
    names = [attribute.name for attribute in attributes]
    if len(set(names)) != len(names):
        raise UsageError("two attributes of a topic have the same name")
    tokens = 1 + sum(attribute.bits + 1 if isinstance(attribute, Number) else 1 for attribute in attributes)
    if tokens > MAX_TOKENS:
        raise UsageError(
            f"a message on this topic would carry {tokens} tokens, and {MAX_TOKENS} are possible:"
            " take fewer attributes, or coarser resolutions"
        )
    return Topic(_parse_name(name), attributes, secret, width)


def parse_topic(text: str) -> Topic:
    """Return the topic that a person named by a text or a link; raises `UsageError`."""
    if text.startswith(LINK_SCHEME):
        return _read_link(text)
    if unpack(text.strip()[len(LINK_SCHEME) :]) is not None:
        # Otherwise a private topic's secret would become the name of an open one, and be shown as such.
        raise UsageError(f"the link does not begin with {LINK_SCHEME!r}: copy it again, whole")
    return Topic(_parse_name(text))


def write_link(topic: Topic) -> str:
    """Return a topic as a link, on one line; a private topic's gives away everything about it."""
    specs = tuple(write_attribute(attribute) for attribute in topic.attributes)
    secret = topic.secret.reveal() if topic.secret else None
    link = _WideLink(topic.name, specs, secret, topic.width) if topic.width else None
    return write_packed(encode(link or _Link(topic.name, specs, secret)))


def parse_values(topic: Topic, settings: Iterable[str]) -> dict[str, Value]:
    """Return a message's attributes from settings written `NAME=VALUE`; raises `UsageError`."""
    known = {attribute.name: attribute for attribute in topic.attributes}
    values: dict[str, Value] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(f"{setting!r}: write NAME=VALUE")
        if name not in known:
            raise UsageError(
                f"{setting!r}: the topic has no such attribute: it has {', '.join(known) or 'none'}"
            )
        if name in values:
            raise UsageError(f"{setting!r}: this attribute is set twice")
        values[name] = parse_value(known[name], text)
    return values


def check_values(topic: Topic, values: Mapping[str, object]) -> None:
    """Raise `DecodeError` unless a message's attributes are ones of its topic, with values they can have."""
    known = {attribute.name: attribute for attribute in topic.attributes}
    for name, value in values.items():
        if name not in known or not fits(known[name], value):
            raise DecodeError("a message has attributes that its topic does not")


def _parse_name(text: str) -> str:
    name = unicodedata.normalize("NFC", text)
    if not name:
        raise UsageError("the topic is empty: give any text of 1 to 256 bytes")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise UsageError(f"the topic {text!r} is not valid Unicode: give it as UTF-8 text") from None
    if size > MAX_TOPIC:
        raise UsageError(f"the topic {name[:32]!r}… has {size} bytes: at most {MAX_TOPIC} are possible")
    return name


def _read_link(text: str) -> Topic:
    # A link may hold a secret: errors show nothing of it.
    packed = text.strip().removeprefix(LINK_SCHEME)
    if len(packed) > MAX_LINK:
        raise UsageError("the link is too long to be one: was something pasted behind it?")
    body = unpack(packed)
    if body is None:
        raise UsageError("the link was altered or cut off: copy it again, whole")
    try:
        link = _decode_link(body)
    except DecodeError:
        raise UsageError(
            "the link is no topic's, or of another version of this program: `hushcast device join` takes "
            "one that invites a device"
        ) from None
    width = link.width if isinstance(link, _WideLink) else 0
    return make_topic(link.name, link.attributes, TopicSecret(link.secret) if link.secret else None, width)
