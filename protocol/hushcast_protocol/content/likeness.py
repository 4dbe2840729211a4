"""Likeness: of what form probes are, and what attributes they have: those of messages that came lately.

Who knows no topic sees a message's size, how many tokens it has, and which of these other messages of its day
had. So a probe takes size and names of attributes from a message that came, and is as like to the others in
its values as that one is. One in `OTHERS` has any form, as all have while nothing came: what is always lost
never comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.content.attributes import Attribute, Label, Number, Value, Values
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.predicates import Between, Condition, Equals, Predicate

OTHERS = 8  # one probe in so many is of any form
_RARER = 3  # times that a size is rarer than the next smaller one, four times as small: 6.5 KiB in the mean
_LABEL = 8  # random bytes of a label that no message had


class RandomSource(Protocol):
    """What is drawn from."""

    @property
    def randomness(self) -> Randomness:
        """Return random bytes."""

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to `bound` - 1."""


class Likeness(NamedTuple):
    """What a message has in common with others of its kind, whatever its day and content."""

    size: int
    """Bytes of attributes and payload when padded, one of `PADDED_SIZES`."""
    names: frozenset[str]
    """The attributes that are set."""


def draw_likeness(
    came: Sequence[Likeness], attributes: Sequence[Attribute], known: Sequence[Condition], draws: RandomSource
) -> Likeness:
    """Draw what a probe is like, of a topic with these `attributes`: as messages that `came`, or any.

    It has the attributes of the conditions that are `known`, as the messages have that meet them.
    """
    needed = frozenset(condition.attribute.name for condition in known)
    if came and draws.below(OTHERS):
        like = came[draws.below(len(came))]
        return Likeness(like.size, like.names | needed)
    weights = [_RARER ** (len(PADDED_SIZES) - 1 - place) for place in range(len(PADDED_SIZES))]
    point, place = draws.below(sum(weights)), 0
    while point >= weights[place]:
        point, place = point - weights[place], place + 1
    free = sorted({attribute.name for attribute in attributes} - needed)
    # Their number first: most messages set all attributes, few or none, and hardly any half of many.
    set_too = [free.pop(draws.below(len(free))) for _ in range(draws.below(len(free) + 1))]
    return Likeness(PADDED_SIZES[place], needed.union(set_too))


def draw_values(
    names: frozenset[str],
    came: Sequence[Values],
    attributes: Sequence[Attribute],
    known: Sequence[Condition],
    draws: RandomSource,
) -> dict[str, Value]:
    """Draw values of the attributes with some `names`, which meet the conditions that are `known`.

    They are as like to those that `came` on this day as these are to each other: a label is that of a message
    whose label another one has, too, else one that nobody had; a number has the intervals of a message that
    another one lies in, too. Nothing is drawn from conditions that are not `known`.
    """
    meets = Predicate(tuple(known)).matches
    patterns = [place for place, values in enumerate(came) if values.keys() == names and meets(values)]
    pattern: Values = {}
    others: Sequence[Values] = ()
    if patterns:
        chosen = patterns[draws.below(len(patterns))]
        pattern, others = came[chosen], [*came[:chosen], *came[chosen + 1 :]]
    wanted: Mapping[str, Condition] = {condition.attribute.name: condition for condition in known}
    drawn: dict[str, Value] = {}
    for attribute in attributes:
        name = attribute.name
        if name in names:
            elsewhere = [values[name] for values in others if name in values]
            if isinstance(attribute, Label):
                drawn[name] = _label(wanted.get(name), pattern.get(name), elsewhere, draws)
            else:
                drawn[name] = _place(attribute, wanted.get(name), pattern.get(name), elsewhere, draws)
    return drawn


def _label(
    known: Condition | None, value: Value | None, elsewhere: Sequence[Value], draws: RandomSource
) -> Value:
    if isinstance(known, Equals):
        return known.value
    if value is not None and value in elsewhere:
        return value
    return draws.randomness(_LABEL).hex()


def _place(
    number: Number,
    known: Condition | None,
    value: Value | None,
    elsewhere: Sequence[Value],
    draws: RandomSource,
) -> Value:
    low, high = (known.low, known.high) if isinstance(known, Between) else (0, number.last)
    if isinstance(value, int):
        apart = [(value ^ other).bit_length() for other in elsewhere if isinstance(other, int)]
        level = min(apart, default=number.bits)
        low = max(low, value >> level << level)
        high = min(high, (((value >> level) + 1) << level) - 1)
    return low + draws.below(high - low + 1)
