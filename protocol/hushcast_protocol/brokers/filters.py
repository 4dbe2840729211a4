"""Filters: a topic and a condition in one normal form; which covers which, and what merging two adds.

A filter is a box: each attribute of its topic has a side, a range of places on the number's grid, a label, or
none. F1 covers F2 (F1 ⊒ F2, Tarkoma and Prehofer §3) if every message that F2 matches is matched by F1, too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import prod

from hushcast_protocol.content.attributes import Attribute, Label, Value, Values
from hushcast_protocol.content.predicates import Between, Condition, Equals, Predicate
from hushcast_protocol.content.tokens import LABEL_SHARE
from hushcast_protocol.content.topics import Interest, Topic

Side = tuple[int, int] | str | None
"""Of a number its lowest and highest place, both included; of a label its value; None: no condition.

A range of the whole grid is not the same as none: a message that lacks the attribute meets none alone.
"""
Sides = tuple[Side, ...]
Source = Hashable
"""A distinct subscriber behind a filter, in any table of filters."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which messages of a topic are wanted; equal filters match the same messages, and no others do.

    `sides` has one for each of the topic's attributes, in their order. All of it is hidden from `repr`.
    """

    topic: Topic = field(repr=False)
    sides: Sides = field(repr=False)

    @classmethod
    def of(cls, interest: Interest) -> Filter:
        """Return the filter of a subscription."""
        named = {condition.attribute.name: condition for condition in interest.predicate.conditions}
        return cls(
            interest.topic,
            tuple(_side(named.get(attribute.name)) for attribute in interest.topic.attributes),
        )

    @property
    def predicate(self) -> Predicate:
        """The condition, as subscriptions have it."""
        pairs = zip(self.topic.attributes, self.sides, strict=True)
        return Predicate(tuple(_condition(*pair) for pair in pairs if pair[1] is not None))

    @property
    def volume(self) -> float:
        """The share of the topic's messages that it is assumed to let through, above 0 and at most 1.

        As `content.tokens` estimates it: the width of a range, a fixed share for a label; attributes are
        taken to be independent.
        """
        return prod(map(_share, self.topic.attributes, self.sides))


@dataclass(frozen=True, slots=True)
class Merger:
    """One filter in place of two; `added` is the share of messages that neither of them lets through."""

    filter: Filter
    added: float
    is_perfect: bool
    """It matches nothing that neither of the two matches."""


def covers(wide: Filter, narrow: Filter) -> bool:
    """Tell whether every message that `narrow` matches is matched by `wide`; each filter covers itself."""
    if wide.topic is not narrow.topic and wide.topic != narrow.topic:
        return False
    return holds(wide.sides, narrow.sides)


def width(one: Filter) -> tuple[float, int]:
    """Order filters of a topic by volume, then by how many conditions are missing: what covers comes last."""
    return one.volume, sum(side is None for side in one.sides)


def size(topic: Topic, sides: Sides) -> int:
    """Return a number by which a box that holds another is larger than it, exactly, unlike a volume."""
    return sum(map(_extent, topic.attributes, sides))


def holds(wide: Sides, narrow: Sides) -> bool:
    """Tell whether one box holds another of the same topic."""
    for out, inside in zip(wide, narrow, strict=True):
        if out is None or out is inside:
            continue
        if isinstance(out, tuple) and isinstance(inside, tuple):
            if out[0] > inside[0] or out[1] < inside[1]:
                return False
        elif out != inside:
            return False
    return True


def point(topic: Topic, values: Values) -> Sides:
    """Return the smallest box that a message with these attributes lies in.

    The filters that match the message are those that cover it: one that names an attribute which the message
    lacks does not, as there is no condition on that side of the point.
    """
    return tuple(_place(values.get(attribute.name)) for attribute in topic.attributes)


def joined(one: Sides, other: Sides) -> Sides:
    """Return the smallest box that holds two of the same topic: ranges joined, conditions dropped."""
    return tuple(map(_join, one, other))


def merge(one: Filter, other: Filter) -> Merger:
    """Return the smallest filter that covers two of the same topic, and what it lets through besides.

    It is perfect if one covers the other, or if they differ in one range alone and leave no gap in it.
    """
    assert one.topic == other.topic, "filters of two topics have no merger"
    both = Filter(one.topic, joined(one.sides, other.sides))
    is_perfect = _is_perfect(one.sides, other.sides)
    common = _met(one.sides, other.sides)
    together = one.volume + other.volume - (Filter(one.topic, common).volume if common is not None else 0.0)
    return Merger(both, 0.0 if is_perfect else max(0.0, both.volume - together), is_perfect)


def _side(condition: Condition | None) -> Side:
    if isinstance(condition, Between):
        return condition.low, condition.high
    return condition.value if condition is not None else None


def _place(value: Value | None) -> Side:
    return (value, value) if isinstance(value, int) else value


def _condition(attribute: Attribute, side: Side) -> Condition:
    if isinstance(attribute, Label):
        assert isinstance(side, str)
        return Equals(attribute, side)
    assert isinstance(side, tuple)
    return Between(attribute, *side)


def _share(attribute: Attribute, side: Side) -> float:
    if side is None:
        return 1.0
    if isinstance(attribute, Label) or isinstance(side, str):
        return LABEL_SHARE
    return attribute.share(*side)


def _join(one: Side, other: Side) -> Side:
    if one == other:
        return one
    if isinstance(one, tuple) and isinstance(other, tuple):
        return min(one[0], other[0]), max(one[1], other[1])
    return None


def _met(one: Sides, other: Sides) -> Sides | None:
    """Return the box that two share, or None if there is none."""
    found: list[Side] = []
    for here, there in zip(one, other, strict=True):
        if here is None or there is None or here == there:
            found.append(there if here is None else here)
            continue
        if isinstance(here, str) or isinstance(there, str):
            return None
        low, high = max(here[0], there[0]), min(here[1], there[1])
        if low > high:
            return None
        found.append((low, high))
    return tuple(found)


def _is_perfect(one: Sides, other: Sides) -> bool:
    if holds(one, other) or holds(other, one):
        return True
    differing = [(here, there) for here, there in zip(one, other, strict=True) if here != there]
    if len(differing) > 1:
        return False
    ((here, there),) = differing
    if not isinstance(here, tuple) or not isinstance(there, tuple):
        return False
    return max(here[0], there[0]) <= min(here[1], there[1]) + 1


def _extent(attribute: Attribute, side: Side) -> int:
    if isinstance(side, tuple):
        return side[1] - side[0] + 1
    if side is not None:
        return 1
    return 2 if isinstance(attribute, Label) else attribute.last + 2
