"""Attributes of a topic: labels, and numbers on a grid with a range and a resolution.

Numbers are exact decimals (integers, fixed point) and travel as their place on the grid, 0 for the lowest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from functools import cached_property

from hushcast_protocol.base.errors import UsageError

MAX_ATTRIBUTES = 8  # of one topic
MAX_LABEL = 64  # bytes of UTF-8 of a label's value
MAX_BITS = 32  # of a number's grid: a metre on the equator takes 26
MAX_NUMBER = 32  # characters of a number as written
MAX_WHOLE, MAX_FRACTION = 15, 12  # digits before and behind the point: all sums are exact in 28 digits

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}\Z")

Value = str | int
"""A label, or the place of a number on its grid."""
Values = Mapping[str, Value]
"""Attributes of one message, by name."""


@dataclass(frozen=True)
class Label:
    """An attribute that is equal to a text, or not."""

    name: str


@dataclass(frozen=True)
class Number:
    """An attribute with values from `low` to `high` in steps of `resolution`."""

    name: str
    low: Decimal
    high: Decimal
    resolution: Decimal

    @cached_property
    def last(self) -> int:
        """The place of `high`; the place of `low` is 0."""
        return int((self.high - self.low) / self.resolution)

    @property
    def bits(self) -> int:
        """The number of bits of a place on the grid: how many times the grid can be halved."""
        return self.last.bit_length()

    def share(self, low: int, high: int) -> float:
        """Return the share of the grid's places that lie from `low` to `high`, both included."""
        return (high - low + 1) / (self.last + 1)

    def place(self, value: Decimal) -> int:
        """Return the place on the grid nearest to `value`, which may lie outside of it."""
        return int(((value - self.low) / self.resolution).to_integral_value(ROUND_HALF_EVEN))

    def value(self, place: int) -> Decimal:
        """Return the number at a place."""
        return self.low + place * self.resolution


Attribute = Label | Number


def parse_attribute(spec: str) -> Attribute:
    """Return the attribute that a person specified as `NAME` or `NAME:LOW..HIGH[:RESOLUTION]`.

    Raises `UsageError`, which shows what was written.
    """
    name, colon, rest = spec.partition(":")
    if not _NAME.match(name):
        raise UsageError(
            f"attribute {spec!r}: a name is 1 to 32 letters, digits, '_' or '-', and begins with no digit"
        )
    if not colon:
        return Label(name)
    span, _, step = rest.partition(":")
    low, dots, high = span.partition("..")
    if not dots:
        raise UsageError(
            f"attribute {spec!r}: a number is written NAME:LOW..HIGH or NAME:LOW..HIGH:RESOLUTION"
        )
    number = Number(name, parse_number(low, spec), parse_number(high, spec), parse_number(step or "1", spec))
    if number.low >= number.high:
        raise UsageError(f"attribute {spec!r}: the range is upside down or empty")
    if number.resolution <= 0:
        raise UsageError(f"attribute {spec!r}: the resolution is not above 0")
    if number.bits > MAX_BITS:
        raise UsageError(f"attribute {spec!r}: 2^{MAX_BITS} steps or more: take a coarser resolution")
    if (number.high - number.low) % number.resolution:
        raise UsageError(f"attribute {spec!r}: the range is no whole number of steps of the resolution")
    return number


def write_attribute(attribute: Attribute) -> str:
    """Return the specification that `parse_attribute` reads."""
    if isinstance(attribute, Label):
        return attribute.name
    return f"{attribute.name}:{attribute.low:f}..{attribute.high:f}:{attribute.resolution:f}"


def parse_number(text: str, shown: str) -> Decimal:
    """Return the decimal written as `text`, in normal form; `shown` is what a person wrote it in."""
    try:
        number = Decimal(text.strip()) if len(text) <= MAX_NUMBER else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if number.is_finite() and not number:
        return Decimal(0)
    if number.is_finite() and number.adjusted() < MAX_WHOLE:
        number = number.normalize()
        if -int(number.as_tuple().exponent) <= MAX_FRACTION:
            return number
    raise UsageError(
        f"{shown!r}: {text.strip()!r} is not a number of at most {MAX_WHOLE} digits before and {MAX_FRACTION}"
        " behind the point: write it like 60.17"
    )


def parse_label(text: str, shown: str) -> str:
    """Return the label written as `text`, in Unicode normal form C."""
    label = unicodedata.normalize("NFC", text)
    try:
        size = len(label.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{shown!r}: a label is valid Unicode") from None
    if not 1 <= size <= MAX_LABEL:
        raise UsageError(f"{shown!r}: a label has 1 to {MAX_LABEL} bytes")
    return label


def parse_value(attribute: Attribute, text: str) -> Value:
    """Return what a message's attribute is set to by `text`; raises `UsageError`."""
    shown = f"{attribute.name}={text}"
    if isinstance(attribute, Label):
        return parse_label(text, shown)
    place = attribute.place(parse_number(text, shown))
    if not 0 <= place <= attribute.last:
        raise UsageError(f"{shown!r}: outside of {attribute.low:f} to {attribute.high:f}")
    return place


def fits(attribute: Attribute, value: object) -> bool:
    """Tell whether a value that came in a message is one of the attribute's."""
    if isinstance(attribute, Label):
        return isinstance(value, str) and 1 <= len(value.encode(errors="replace")) <= MAX_LABEL
    return type(value) is int and 0 <= value <= attribute.last


def as_json(attribute: Attribute, value: Value) -> str | int | float:
    """Return a value as JSON shows it: labels as texts, numbers as numbers."""
    if isinstance(attribute, Label) or isinstance(value, str):
        return value
    number = attribute.value(value)
    return int(number) if number == number.to_integral_value() else float(number)
