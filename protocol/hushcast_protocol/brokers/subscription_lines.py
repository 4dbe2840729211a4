"""Subscriptions as lines of a file: who subscribes to which filter.

{"source": "alice", "topic": "hushcast:k6d0…", "where": "lat in [60, 61]"}
{"source": "bob", "topic": "fires", "attributes": ["kind", "lat:-90..90:0.001"], "where": "kind = fire"}
"""

from __future__ import annotations

import json

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.foreign_text import foreign
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import LINK_SCHEME, Interest, Topic, make_topic, parse_topic

_KEYS = {"source": str, "topic": str, "where": str, "attributes": list}
_LINE = '{"source": "alice", "topic": "news", "where": ""}'

MAX_SUBSCRIPTION = 65_536
"""Bytes of a line; the longest link and condition, all of them escaped, take half of it."""

KnownTopics = dict[tuple[str, ...], Topic]
"""Topics that were read before, by what was written."""


def read_subscription(line: bytes, topics: KnownTopics, *, alone: bool = True) -> tuple[str, Filter]:
    """Return the source and the filter of one line; `topics` remembers those that were read before.

    Raises `UsageError` with what is wrong with it: also with the link of a private topic, unless the reader
    of the file is `alone` in being able to.
    """
    if len(line) > MAX_SUBSCRIPTION:
        raise UsageError(f"it is longer than {MAX_SUBSCRIPTION:,} bytes")
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError(foreign(line) or f"this is no JSON: write one object a line, as {_LINE}") from None
    if not isinstance(given, dict):
        raise UsageError(f"this is no JSON object: write {_LINE}")
    for key in ("source", "topic"):
        if key not in given:
            raise UsageError(f"{key!r} is missing: write {_LINE}")
    for key, value in given.items():
        if key not in _KEYS:
            raise UsageError(f"{key!r} is not known: there are {', '.join(map(repr, _KEYS))}")
        if not isinstance(value, _KEYS[key]):
            raise UsageError(f"{key!r} is no {'list of texts' if key == 'attributes' else 'text'}")
    specs = given.get("attributes", [])
    if not all(isinstance(spec, str) for spec in specs):
        raise UsageError("'attributes' is no list of texts")
    if not given["source"]:
        raise UsageError("'source' is empty: name the subscriber")
    named = (given["topic"], *specs)
    if named not in topics:
        topics[named] = _topic(given["topic"], specs)
    topic = topics[named]
    one = Filter.of(Interest(topic, parse_where(given.get("where", ""), topic.attributes)))
    if topic.secret is not None and not alone:
        raise UsageError("it has the link of a private topic, and others can read the file: chmod 600 it")
    return given["source"], one


def _topic(text: str, specs: list[str]) -> Topic:
    is_link = text.lstrip().startswith(LINK_SCHEME)
    if is_link:
        text = text.strip()
    if not specs:
        return parse_topic(text)
    if is_link:
        raise UsageError("'attributes' are for a text: a link has its own")
    return make_topic(parse_topic(text).name, specs)
