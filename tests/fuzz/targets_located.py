"""Targets: what a provider and a subscriber of located feeds read, signed anew where an owner could lie."""

from __future__ import annotations

from random import Random

from fuzzing import Target
from mutating import mutate_packed, mutate_text
from spatial_world import OWNER, World, entries, wants
from targets_decoders import unpacked

from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_protocol.base.signatures import Purpose, signature
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer import Feed, decode_answer
from hushcast_protocol.spatial.batch import WholeBatch, read_batch
from hushcast_protocol.spatial.messages import EXAMPLE as MESSAGE
from hushcast_protocol.spatial.messages import read_message
from hushcast_protocol.spatial.places import on_earth
from hushcast_protocol.spatial.subscription import EXAMPLE as SUBSCRIPTION
from hushcast_protocol.spatial.subscription import Subscription, read_subscription
from hushcast_protocol.spatial.table import read_table
from hushcast_protocol.spatial.verify import verify

_WORLD = World.draw(Random("located"), most=12)
_FEED = _WORLD.feeds[-1]
_ASKED = {one.digest: one for one in _WORLD.subscriptions}


def _signed_anew(data: bytes, purpose: Purpose, at: int) -> bytes:
    """Sign whatever stands where the signed body does, as an owner may."""
    tree = unpacked(data)
    if isinstance(tree, list) and len(tree) > at and isinstance(tree[at], list) and len(tree[at]) > 2:
        body = tree[at][1]
        if isinstance(body, bytes):
            tree[at][2] = signature(OWNER, purpose, body)
    return encode(tree)


def _batch(data: bytes) -> object:
    """A provider: what it takes it can answer from, and the answers hold."""
    owner, batch, root = read_batch(_signed_anew(data, Purpose.LOCATED_BATCH, 2))
    assert owner == OWNER.public()
    assert batch.body.count == len(list(entries(root)))
    if batch.body.table == _FEED.table.digest:
        _hold(Feed(batch, root, _FEED.table), _WORLD.subscriptions[0])
    return root


def _table(data: bytes) -> object:
    table = read_table(_signed_anew(data, Purpose.LOCATED_TABLE, 1), OWNER.public())
    asked = table.asked(_WORLD.subscriptions[0])
    assert asked.whole >= 1
    return asked


def _hold(feed: Feed, one: Subscription) -> None:
    (answer,) = feed.answers([one])
    said = verify(OWNER.public(), one, encode(answer))
    wanted = [entry.message.id for entry in entries(feed.root) if wants(one, entry.message, feed.table)]
    assert sorted(message.id for message in said.messages) == sorted(wanted)


def _answer(data: bytes) -> object:
    """A subscriber: what holds says what the honest answer for that batch says."""
    answer = decode_answer(data)
    one = _ASKED.get(answer.subscription, _WORLD.subscriptions[0])
    said = verify(OWNER.public(), one, data)
    feed = _WORLD.feeds[said.batch.body.number - 1]
    wanted = [entry.message for entry in entries(feed.root) if wants(one, entry.message, feed.table)]
    assert {(each.id, each.payload) for each in said.messages} == {(each.id, each.payload) for each in wanted}
    return said


def _line(data: bytes) -> object:
    """A subscription as a person writes it: every one that is taken gets an answer that holds."""
    name, one = read_subscription(data)
    assert on_earth(one.place)
    _hold(_FEED, one)
    return name


def _message(data: bytes) -> object:
    message = read_message(data, 1)
    assert on_earth(message.place)
    return message


def _answers() -> list[bytes]:
    return [encode(answer) for answers in _WORLD.answers for answer in answers]


def _batches() -> list[bytes]:
    return [_whole(feed) for feed in _WORLD.feeds]


def _whole(feed: Feed) -> bytes:
    messages = sorted((entry.message for entry in entries(feed.root)), key=lambda one: one.id)
    return encode(WholeBatch(OWNER.public(), feed.batch.signed, tuple(messages)))


def _tables() -> list[bytes]:
    return [encode(_FEED.table.whole)]


def _lines() -> list[bytes]:
    return [
        SUBSCRIPTION.encode(),
        b'{"lat": -89.999, "lon": 180, "keywords": "fl\xc3\xbcssig 9", "alpha": 0, "threshold": 1}',
    ]


TARGETS = [
    Target("located-batch", _batch, _batches, (PeerError,), mutate_packed, 5),
    Target("located-table", _table, _tables, (PeerError,), mutate_packed, 5),
    Target("located-answer", _answer, _answers, (PeerError,), mutate_packed, 10),
    Target("located-subscription", _line, _lines, (UsageError,), mutate_text, 5),
    Target("located-message", _message, lambda: [MESSAGE.encode()], (UsageError,), mutate_text, 5),
]
