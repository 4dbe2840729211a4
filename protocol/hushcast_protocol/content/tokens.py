"""Topic → key → token: each step is one-way and changes every day."""

from __future__ import annotations

from collections.abc import Iterable

from nacl.pwhash import argon2id

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, TopicKey
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.attributes import Label, Number, Values
from hushcast_protocol.content.dyadic_covers import DyadicInterval, around, cover_to_end, widened
from hushcast_protocol.content.messages import MAX_TOKENS
from hushcast_protocol.content.predicates import MAX_TAGS, Between, Condition, Equals, Predicate
from hushcast_protocol.content.topics import Topic

# Guessing an open topic costs this much a try, a day and a network; a daemon pays it once a topic and day.
STRETCH_OPERATIONS = 3
STRETCH_MEMORY = 32 * 1024 * 1024  # bytes

TOKEN_COUNTS = (
    8,
    24,
    48,
    MAX_TOKENS,
)  # a message's tokens are padded to one of these: the count tells little
MAX_COVER = 32  # entry tokens of a subscription, each an element at every relay; a 16-bit range takes 30
LABEL_SHARE = 1 / 32  # share of messages assumed to have a certain label: what a label is worth as a filter

OPEN_KEY = TopicKey(bytes(TopicKey.LENGTH))
"""The key of bodies that are sealed from nobody, in experiments with schemes as published."""


def topic_key(topic: Topic, network: bytes, day: int) -> TopicKey:
    """Derive the key of a topic for one day, salted with network and day.

    A private topic's comes from its secret. An open topic's comes from its name and attributes by Argon2id,
    which takes tens of milliseconds and 32 MiB on purpose: call it from a worker thread.
    """
    when = day.to_bytes(8, "big")
    if topic.secret is not None:
        return TopicKey(digest(Domain.PRIVATE, network, when, topic.schema, key=topic.secret.reveal()))
    salt = digest(Domain.SALT, network, when, size=argon2id.SALTBYTES)
    key = argon2id.kdf(
        TopicKey.LENGTH, topic.schema, salt, opslimit=STRETCH_OPERATIONS, memlimit=STRETCH_MEMORY
    )
    return TopicKey(key)


def hashed_topic_key(topic: Topic, network: bytes, day: int) -> TopicKey:
    """Derive a key as `topic_key` does, but an open topic's by one hash: whoever has a dictionary has all.

    For experiments with schemes as published, which know no other protection of subjects.
    """
    if topic.secret is not None:
        return topic_key(topic, network, day)
    return TopicKey(digest(Domain.HASHED_TOPIC, network, day.to_bytes(8, "big"), topic.schema))


def token(key: TopicKey, part: bytes = b"") -> bytes:
    """Return the token (16 bytes) of one part of a topic; of the part `b""`, its trunk."""
    return digest(Domain.TOKEN, part, key=key.reveal(), size=LABEL)


def label_token(key: TopicKey, attribute: Label, value: str) -> bytes:
    """Return the token (16 bytes) of one value of a label."""
    return token(key, encode(["label", attribute.name, value]))


def tag_token(key: TopicKey, tag: str) -> bytes:
    """Return the token (16 bytes) of a tag."""
    return token(key, encode(["tag", tag]))


def published_tokens(
    key: TopicKey, topic: Topic, values: Values, randomness: Randomness, tags: Iterable[str] = ()
) -> tuple[bytes, ...]:
    """Return a message's tokens: the trunk, then what any subscription to it may have asked for.

    For a label its value, for a number the intervals around it, and each tag; padded with random ones to one
    of `TOKEN_COUNTS` and in an order that tells nothing. With tags there are as many as if it had `MAX_TAGS`,
    as far as there is room: a probe has one tag, a publication as many as it has. Raises `UsageError` for
    more than `MAX_TOKENS`.
    """
    entries = [tag_token(key, tag) for tag in tags]
    spare = max(0, MAX_TAGS - len(entries)) if entries else 0
    for attribute in topic.attributes:
        value = values.get(attribute.name)
        if isinstance(attribute, Number) and isinstance(value, int):
            entries += [_interval(key, attribute, at) for at in around(value, attribute.bits)]
        elif isinstance(attribute, Label) and isinstance(value, str):
            entries.append(label_token(key, attribute, value))
    if len(entries) >= MAX_TOKENS:
        raise UsageError(f"attributes and tags take {len(entries) + 1} tokens, and {MAX_TOKENS} are possible")
    least = min(len(entries) + spare, MAX_TOKENS - 1)
    count = next(count for count in TOKEN_COUNTS if count > least)
    padding = [randomness(LABEL) for _ in range(count - 1 - len(entries))]
    return (token(key), *sorted(entries + padding))


def entry_tokens(key: TopicKey, predicate: Predicate) -> tuple[bytes, ...]:
    """Return the tokens by which a subscription's messages enter its tree (at most `MAX_COVER`).

    Those of its tags; without any, of the condition that lets the fewest through, or the trunk if there is no
    condition. A range that would take more is entered by the narrowest around it that does not. The
    subscriber applies all conditions itself.
    """
    if predicate.tags:
        return tuple(sorted(tag_token(key, tag) for tag in predicate.tags))
    entry = entry_condition(predicate)
    if entry is None:
        return (token(key),)
    if isinstance(entry, Equals):
        return (label_token(key, entry.attribute, entry.value),)
    return tuple(_interval(key, entry.attribute, at) for at in _cover(entry))


def entry_condition(predicate: Predicate) -> Condition | None:
    """Return the entry condition, which relays are told as opaque elements; `None` if there is none.

    It is the one that lets the fewest messages through; with tags there is none.
    """
    if predicate.tags or not predicate.conditions:
        return None
    return min(predicate.conditions, key=_share)


def _interval(key: TopicKey, attribute: Number, interval: DyadicInterval) -> bytes:
    return token(key, encode(["number", attribute.name, *interval]))


def _cover(condition: Between) -> list[DyadicInterval]:
    number = condition.attribute
    low, high = widened(condition.low, condition.high, number.last, number.bits, MAX_COVER)
    return cover_to_end(low, high, number.last, number.bits)


def _share(condition: Condition) -> float:
    """Estimate the share of messages that meet a condition, by the width of its range."""
    if isinstance(condition, Equals):
        return LABEL_SHARE
    return condition.attribute.share(condition.low, condition.high)
