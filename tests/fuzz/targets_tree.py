"""Targets: what brokers and those below and above them read, and a broker beside its parent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import broker_examples as examples
from advertising_world import play
from fuzzing import Script, Target, scripts
from mutating import mutate_packed

from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers import frames
from hushcast_protocol.brokers.broker_tree import check_tree
from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements, read_filter
from hushcast_protocol.brokers.clear_words import from_outside
from hushcast_protocol.brokers.community.charter import check_charter
from hushcast_protocol.brokers.filter_routes import FilterRoutes
from hushcast_protocol.content.messages import check_message

MOST = 200  # bytes of a script: some hundred moves, after each of which all is compared


def _from_below(data: bytes) -> object:
    """A broker: filters and messages of anybody."""
    frame = frames.decode_from_below(data)
    assert frames.decode_from_below(encode(frame)) == frame
    if isinstance(frame, frames.Advertise):
        return _advertised(frame)
    if isinstance(frame, frames.Subscribe):
        given = read_filter(b"c" * 32, frame.filter)
        assert from_outside(given) == frame.filter
        routes = FilterRoutes()
        routes.put(b"c" * 32, frame.name, given)
        return routes.interested(examples.MESSAGE.tokens)
    if isinstance(frame, frames.Publish):
        return _matched(frame.message)
    if isinstance(frame, frames.NewTree):
        return check_tree(frame.tree, examples.NETWORK)
    if isinstance(frame, frames.NewCharter):
        return check_charter(frame.charter, examples.NETWORK.id)
    return frame


def _advertised(frame: frames.Advertise) -> object:
    """All of it is taken, or nothing."""
    table = ChildAdvertisements()
    list(table.take(b"c" * 32, examples.FROM_BELOW[0]))  # type: ignore[arg-type]
    before = set(table.routes.of(b"c" * 32))
    try:
        list(table.take(b"c" * 32, frame))
    except Refusal:
        assert set(table.routes.of(b"c" * 32)) == before
        raise
    return table.routes.interested(examples.MESSAGE.tokens)


def _matched(message: Any) -> object:
    check_message(message)
    table = ChildAdvertisements()
    list(table.take(b"c" * 32, examples.FROM_BELOW[0]))  # type: ignore[arg-type]
    return table.routes.interested(message.tokens)


def _from_above(data: bytes) -> object:
    """A broker or client: whatever its parent says."""
    frame = frames.decode_from_above(data)
    assert frames.decode_from_above(encode(frame)) == frame
    if isinstance(frame, frames.Forward):
        return _matched(frame.message)
    if isinstance(frame, frames.NewTree):
        return check_tree(frame.tree, examples.NETWORK)
    if isinstance(frame, frames.NewCharter):
        return check_charter(frame.charter, examples.NETWORK.id)
    return frame


def _advertising(data: bytes) -> None:
    """A parent routes what it has confirmed, whatever breaks."""
    script = Script(data, MOST)
    play(lambda most: script.number() % most, lambda: bool(script))


def _said(values: list[Any]) -> Callable[[], list[bytes]]:
    return lambda: [encode(value) for value in values]


TARGETS = [
    Target(
        *("brokers-from-below", _from_below, _said(examples.FROM_BELOW)),
        (PeerError, Refusal),
        mutate_packed,
        30,
    ),
    Target("brokers-from-above", _from_above, _said(examples.FROM_ABOVE), (PeerError,), mutate_packed, 20),
    Target("brokers-advertising", _advertising, lambda: scripts(size=200), weight=1),
]
