"""What subscribers want in a simulation of levels: cells of a map that nest, most of them around a few towns.

So many want the same, and what one wants others' wishes cover: else nobody would hide among others.
"""

from __future__ import annotations

from hushcast_protocol.content.attributes import Number, Value
from hushcast_protocol.content.predicates import Between, Predicate
from hushcast_protocol.content.topics import Interest, Topic, make_topic
from hushcast_runtime.environment import Environment

_BITS = 8  # of each coordinate
_TOWNS = ((60, 70), (200, 40), (150, 190))
_AROUND = 24  # places to each side of a town
_DEEPEST = 4  # halvings of the map to the narrowest cells; none is the whole map


def map_topic(name: str) -> Topic:
    """Return a topic of this name whose messages have a place on the map."""
    return make_topic(name, [f"{axis}:0..{(1 << _BITS) - 1}" for axis in "xy"])


def draw_cell(topic: Topic, env: Environment) -> Interest:
    """Draw what one subscriber wants: the cell around a place, of one of five sizes."""
    depth = env.below(_DEEPEST + 1)
    if not depth:
        return Interest(topic)
    size = _BITS - depth
    conditions = []
    for attribute, place in zip(topic.attributes, _place(env), strict=True):
        assert isinstance(attribute, Number)
        low = place >> size << size
        conditions.append(Between(attribute, low, low + (1 << size) - 1))
    return Interest(topic, Predicate(tuple(conditions)))


def draw_place(topic: Topic, env: Environment) -> dict[str, Value]:
    """Draw the attributes of a message."""
    return {one.name: place for one, place in zip(topic.attributes, _place(env), strict=True)}


def _place(env: Environment) -> list[int]:
    town = _TOWNS[env.below(len(_TOWNS))]
    return [middle - _AROUND + env.below(2 * _AROUND + 1) for middle in town]
