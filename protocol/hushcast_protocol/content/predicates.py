"""Predicates: which messages of a topic a subscription wants (VB §3, "Multi-attribute ranges").

    lat in [60, 61], lon in [24, ], kind = fire

Every attribute that is named must be there and meet its condition; others do not matter. Either end of a
range may be left open. Programs, not people, write `tags [0123…, 4567…]` besides: carriers then bring what
has one of these tags, 16 bytes each, that only the topic's programs understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.attributes import (
    Attribute,
    Label,
    Number,
    Values,
    parse_label,
    parse_number,
)

MAX_WHERE = 3072  # characters; the longest as `write_where` writes it takes about 2,500
MAX_TAGS = 32  # of a subscription, each an element at every relay; and of a message
TAGS = "tags"
_TAG = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, repr=False)
class Equals:
    """A label attribute has this value."""

    attribute: Label
    value: str


@dataclass(frozen=True, repr=False)
class Between:
    """A number's place on its grid lies from `low` to `high`, both included."""

    attribute: Number
    low: int
    high: int


Condition = Equals | Between


@dataclass(frozen=True)
class Predicate:
    """Conditions that all must be met, sorted by attribute; none: everything on the topic.

    All of it is hidden from `repr`, so that no log shows it.
    """

    conditions: tuple[Condition, ...] = field(default=(), repr=False)
    tags: frozenset[str] = field(default=frozenset(), repr=False)
    """Of which carriers look for one, if there are any: they do not travel inside, so nobody else can."""

    def matches(self, values: Values) -> bool:
        """Tell whether a message with these attributes is wanted."""
        return all(_holds(condition, values) for condition in self.conditions)


def _holds(condition: Condition, values: Values) -> bool:
    value = values.get(condition.attribute.name)
    if isinstance(condition, Equals):
        return value == condition.value
    return isinstance(value, int) and condition.low <= value <= condition.high


def check_tags(tags: Iterable[str]) -> frozenset[str]:
    """Return distinct tags; raise `UsageError` where one is none, or there are more than `MAX_TAGS`."""
    found = frozenset(tags)
    if len(found) > MAX_TAGS:
        raise UsageError(f"there are {len(found)} tags, and {MAX_TAGS} are possible")
    if not all(_TAG.fullmatch(tag) for tag in found):
        raise UsageError("a tag has 32 hexadecimal digits, in lower case")
    return found


def parse_where(text: str, attributes: Iterable[Attribute]) -> Predicate:
    """Return the predicate that a person wrote over a topic's attributes.

    Raises `UsageError` that shows the text and points at the spot.
    """
    if len(text) > MAX_WHERE:
        raise UsageError(f"a condition has at most {MAX_WHERE} characters")
    return _Parser(text, {attribute.name: attribute for attribute in attributes}).parse()


def write_where(predicate: Predicate) -> str:
    """Return a predicate as `parse_where` reads it."""
    written = [_write(condition) for condition in predicate.conditions]
    if predicate.tags:
        written.append(f"{TAGS} [{', '.join(sorted(predicate.tags))}]")
    return ", ".join(written)


def _write(condition: Condition) -> str:
    if isinstance(condition, Equals):
        quoted = condition.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{condition.attribute.name} = "{quoted}"'
    number = condition.attribute
    low = "" if condition.low == 0 else f"{number.value(condition.low):f}"
    high = "" if condition.high == number.last else f"{number.value(condition.high):f}"
    return f"{number.name} in [{low}, {high}]"


class _Parser:
    """Reads conditions separated by commas, from left to right."""

    def __init__(self, text: str, attributes: dict[str, Attribute]) -> None:
        self._text = text
        self._attributes = attributes
        self._at = 0

    def parse(self) -> Predicate:
        conditions: dict[str, Condition] = {}
        tags: frozenset[str] = frozenset()
        self._skip_space()
        while self._at < len(self._text):
            start = self._at
            if self._is_tags():
                if tags:
                    raise self._error("tags are named twice", start)
                tags = self._tags(start)
            else:
                condition = self._condition()
                if condition.attribute.name in conditions:
                    raise self._error("is named twice: give one condition an attribute", start)
                conditions[condition.attribute.name] = condition
            self._skip_space()
            if self._at < len(self._text):
                self._expect(",")
                self._skip_space()
                if self._at == len(self._text):
                    raise self._error("a condition is missing here", self._at)
        return Predicate(tuple(conditions[name] for name in sorted(conditions)), tags)

    def _is_tags(self) -> bool:
        # An attribute of this name is followed by `=` or `in`.
        return re.compile(rf"{TAGS}\s*\[").match(self._text, self._at) is not None

    def _tags(self, start: int) -> frozenset[str]:
        self._until("[")
        self._expect("[")
        listed = self._until("]").split(",")
        self._expect("]")
        try:
            return check_tags(tag.strip() for tag in listed)
        except UsageError as error:
            raise self._error(str(error), start) from None

    def _condition(self) -> Condition:
        start = self._at
        name = self._word()
        attribute = self._attributes.get(name)
        if attribute is None:
            known = ", ".join(self._attributes) or "none"
            raise self._error(f"is no attribute of this topic: it has {known}", start)
        self._skip_space()
        if self._take("="):
            return self._equals(attribute)
        if self._word() == "in":
            return self._range(attribute)
        raise self._error("write NAME = VALUE, or NAME in [LOW, HIGH]", start)

    def _equals(self, attribute: Attribute) -> Condition:
        self._skip_space()
        start = self._at
        text = self._quoted() if self._take('"') else self._until(",").strip()
        if isinstance(attribute, Label):
            return Equals(attribute, parse_label(text, self._text))
        place = attribute.place(parse_number(text, self._text))
        if not 0 <= place <= attribute.last:
            raise self._error(f"lies outside of {attribute.low:f} to {attribute.high:f}", start)
        return Between(attribute, place, place)

    def _range(self, attribute: Attribute) -> Condition:
        start = self._at
        if isinstance(attribute, Label):
            raise self._error("is a label: write NAME = VALUE", start)
        self._skip_space()
        self._expect("[")
        low_at = self._at
        low = self._end(attribute, self._until(","), 0)
        self._expect(",")
        high = self._end(attribute, self._until("]"), attribute.last)
        self._expect("]")
        if low > high:
            raise self._error("the range is upside down", low_at)
        # Ends outside of the attribute's range are no mistake; a range that misses it altogether is one.
        if high < 0 or low > attribute.last:
            raise self._error(f"lies outside of {attribute.low:f} to {attribute.high:f}", low_at)
        return Between(attribute, max(low, 0), min(high, attribute.last))

    def _end(self, attribute: Number, text: str, otherwise: int) -> int:
        return attribute.place(parse_number(text, self._text)) if text.strip() else otherwise

    def _word(self) -> str:
        self._skip_space()
        start = self._at
        while self._at < len(self._text) and (self._text[self._at].isalnum() or self._text[self._at] in "_-"):
            self._at += 1
        return self._text[start : self._at]

    def _quoted(self) -> str:
        start, found = self._at - 1, []
        while self._at < len(self._text) and self._text[self._at] != '"':
            self._at += self._text[self._at] == "\\"
            found.append(self._text[self._at : self._at + 1])
            self._at += 1
        if not self._take('"'):
            raise self._error("a quotation mark is not closed", start)
        return "".join(found)

    def _until(self, end: str) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] != end:
            self._at += 1
        return self._text[start : self._at]

    def _take(self, mark: str) -> bool:
        if self._text[self._at : self._at + 1] != mark:
            return False
        self._at += 1
        return True

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._error(f"a {mark!r} is missing here", self._at)

    def _skip_space(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _error(self, reason: str, at: int) -> UsageError:
        # One line, with a mark at the spot.
        return UsageError(f"{self._text[:at] + '▸' + self._text[at:]!r}: {reason}")
