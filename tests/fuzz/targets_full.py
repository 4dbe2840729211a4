"""Targets: what brokers read of items, labels and requests for factors, of children and parents that lie."""

from __future__ import annotations

from functools import cache, partial

from full_world import (
    DAY,
    FIGURE_2,
    World,
    decode_ask,
    decode_item,
    enclosed,
    key_of,
    message,
    word_of,
)
from fuzzing import Target
from msgspec.structs import replace
from mutating import mutate_packed

from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.full.aggregation import asking, check_asked, with_share
from hushcast_protocol.brokers.full.group_action import GROUP
from hushcast_protocol.brokers.full.hand_up import as_published, turned_back
from hushcast_protocol.brokers.full.item_labels import as_tokens, onward, read_labels
from hushcast_protocol.brokers.full.published_names import published_names
from hushcast_protocol.brokers.full.rows import Rows
from hushcast_protocol.content.messages import MAX_BODY, MAX_TOKENS, Message

LAYERS = 3
decode_message = decoder(Message, "message", 2 * MAX_BODY)


@cache
def _world() -> World:
    world = World(FIGURE_2, GROUP, LAYERS)
    for name in ("A1", "A2", "B1", "A4"):
        world.want(name, word_of(1))
    world.settle()
    world.publish(word_of(1))
    return world


def _item(data: bytes) -> object:
    """A table takes an item whole or not at all, and gives up what it took."""
    item = decode_item(data)
    assert decode_item(encode(item)) == item
    node = _world().nodes["B3"]
    rows = Rows(node.keys, node.above, LAYERS)
    try:
        read = rows.read(item)
    finally:
        assert len(rows) == 0
    child = key_of("B1").public()
    rows.put(child, read)
    (shown,) = rows.take_changes().shown
    assert decode_item(encode(shown)) == shown
    parent = _world().nodes["B4"]
    assert Rows(parent.keys, parent.above, LAYERS).read(shown).name == shown.name
    assert [(one.child, one.name) for one in rows.matching(item.day, shown.name)] == [(child, item.name)]
    rows.take(child, item.name)
    assert rows.take_changes().withdrawn == (shown.name,)
    assert not rows.rows(item.day)
    return item


def _ask(data: bytes) -> object:
    """An ancestor puts its share into what is asked as it must be, and into nothing else."""
    ask = decode_ask(data)
    assert decode_ask(encode(ask)) == ask
    world = _world()
    above = tuple(key_of(name).public() for name in world.path("B1"))
    check_asked(ask, above, LAYERS, above[0], set(above).__contains__)
    return decode_ask(encode(with_share(world.nodes["B3"].keys, ask, 7)))


def _labels(data: bytes) -> object:
    """Labels are those that the parent knows of, with elements beside them, or the message goes nowhere."""
    tokens = [data[at : at + 16] for at in range(0, min(len(data) // 16, MAX_TOKENS) * 16, 16)]
    labels = read_labels(tokens)
    assert [one for copy in as_tokens(labels) for one in read_labels(copy)] == list(labels)
    found = onward(_world().nodes["B3"].rows, DAY, labels)
    assert not found or {one.name for one in labels} & _world().nodes["B3"].shown.keys()
    return found


def _handed_up(data: bytes) -> object:
    """What is handed up comes back as it was published, under words that it had, or not at all."""
    world, given = _world(), decode_message(data)
    rows, named = world.nodes["C"].rows, published_names(GROUP, [word_of(1)])
    origin = partial(rows.origin, given.day, key_of("B4").public())
    back = as_published(GROUP, key_of("C"), given, turned_back(GROUP, given, origin))
    assert back == message(*named, day=given.day)
    return back


def _messages() -> list[bytes]:
    """What came to a child of the root."""
    labels = _world().nodes["B4"].labels
    outer, _ = enclosed(GROUP, key_of("C"), message(*published_names(GROUP, [word_of(1)])))
    return [encode(replace(outer, tokens=tokens)) for tokens in as_tokens(labels)]


def _items() -> list[bytes]:
    return [encode(item) for name in ("B1", "A1") for item in _world().nodes[name].shown.values()]


def _asks() -> list[bytes]:
    b1 = _world().nodes["B1"]
    return [encode(asking(GROUP, b1.keys.public, 1, DAY, path)) for path in b1.factors]


def _tokens() -> list[bytes]:
    labels = [one for name in ("B3", "B1") for one in _world().nodes[name].labels]
    return [b"".join(tokens) for tokens in (*as_tokens(labels), *as_tokens(labels[:1]))]


TARGETS = [
    Target("item", _item, _items, (PeerError, Refusal), mutate_packed, weight=6),
    Target("ask-factors", _ask, _asks, (PeerError, Refusal), mutate_packed, weight=6),
    Target("hand-up", _handed_up, _messages, (PeerError,), mutate_packed, weight=4),
    Target("labels", _labels, _tokens, (PeerError,), weight=6),
]
