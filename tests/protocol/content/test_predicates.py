"""Conditions: read strictly, written as they are read, and met as VB §3 says."""

from __future__ import annotations

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st
from topic_examples import EVENTS, labels, numbers, where

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.attributes import Label
from hushcast_protocol.content.predicates import (
    MAX_WHERE,
    Between,
    Equals,
    Predicate,
    parse_where,
    write_where,
)
from hushcast_protocol.content.topics import make_topic

KIND, LAT, LON = EVENTS.attributes

READ = {
    "": (),
    "  ": (),
    "kind = fire": (Equals(KIND, "fire"),),
    "kind=fire": (Equals(KIND, "fire"),),
    'kind = "fire"': (Equals(KIND, "fire"),),
    "kind =  a b ": (Equals(KIND, "a b"),),
    'kind = " a, b "': (Equals(KIND, " a, b "),),
    r'kind = "a\"b\\"': (Equals(KIND, 'a"b\\'),),
    "kind = cafe\u0301": (Equals(KIND, "caf\u00e9"),),
    "lat in [60, 61]": (Between(LAT, 150_000, 151_000),),
    "lat in[60,61]": (Between(LAT, 150_000, 151_000),),
    "lat in [60, ]": (Between(LAT, 150_000, 180_000),),
    "lat in [ , 61]": (Between(LAT, 0, 151_000),),
    "lat in [,]": (Between(LAT, 0, 180_000),),
    "lat in [60, 60]": (Between(LAT, 150_000, 150_000),),
    "lat = 60.17": (Between(LAT, 150_170, 150_170),),
    "lat in [-1000, 1000]": (Between(LAT, 0, 180_000),),
    "lat in [60.0004, 60.0006]": (Between(LAT, 150_000, 150_001),),
    "lon in [24,25] ,lat in [60,61],  kind = fire": (
        Equals(KIND, "fire"),
        Between(LAT, 150_000, 151_000),
        Between(LON, 204_000, 205_000),
    ),
}


@pytest.mark.parametrize("text", READ)
def test_conditions_are_read_and_sorted(text):
    assert where(EVENTS, text) == Predicate(READ[text])


MALFORMED = {
    "lat in [61, 60]": ("upside down", "lat in [▸61, 60]"),
    "kind = fire, lat in [61, 60]": ("upside down", "kind = fire, lat in [▸61, 60]"),
    "lat in [91, 95]": ("outside of -90 to 90", "lat in [▸91, 95]"),
    "lat in [-95, -90.1]": ("outside of", "lat in [▸-95, -90.1]"),
    "lat = 91": ("outside of -90 to 90", "lat = ▸91"),
    "alt in [1, 2]": ("it has kind, lat, lon", "▸alt in"),
    "kind = fire, alt = 2": ("no attribute of this topic", "kind = fire, ▸alt"),
    "Lat = 1": ("no attribute of this topic", "▸Lat"),
    ", kind = fire": ("no attribute of this topic", "▸, kind"),
    "= 3": ("no attribute of this topic", "▸= 3"),
    "lat in [60, 61], lat in [62, 63]": ("named twice", "61], ▸lat in [62"),
    "kind = a, kind = a": ("named twice", "a, ▸kind"),
    "lat": ("NAME = VALUE", "▸lat"),
    "lat > 60": ("NAME = VALUE", "▸lat > 60"),
    "lat IN [60, 61]": ("NAME = VALUE", "▸lat"),
    "lat in 60, 61": ("'[' is missing", "lat in ▸60"),
    "lat in [60 61]": ("is not a number", "60 61"),
    "lat in [60": ("',' is missing", "lat in [60▸"),
    "lat in [60,": ("']' is missing", "lat in [60,▸"),
    "lat in [60, 61": ("']' is missing", "lat in [60, 61▸"),
    "lat in [60, 61]]": ("',' is missing", "61]▸]"),
    "lat in [60, 61] lon in [1, 2]": ("',' is missing", "61] ▸lon"),
    "lat in [60, 61],": ("missing here", "61],▸"),
    "lat in [60, 61], ,": ("no attribute", "61], ▸,"),
    "lat in [60, 61, 62]": ("is not a number", "61, 62"),
    "lat in [NaN, 61]": ("'NaN' is not a number", "lat in [NaN, 61]"),
    "lat in [60, Infinity]": ("'Infinity' is not a number", "Infinity]"),
    "lat in [-inf, 60]": ("'-inf' is not a number", "[-inf"),
    "lat in [60, 1e999]": ("'1e999' is not a number", "1e999]"),
    "lat = 1e999": ("'1e999' is not a number", "lat = 1e999"),
    "lat = NaN": ("'NaN' is not a number", "lat = NaN"),
    "lat = ": ("is not a number", "lat = "),
    "lat = fire": ("'fire' is not a number", "lat = fire"),
    "lat in [sixty, 61]": ("'sixty' is not a number", "sixty"),
    "kind in [a, b]": ("is a label", "kind in▸ [a, b]"),
    "kind = ": ("a label has", "kind = "),
    'kind = ""': ("a label has", 'kind = ""'),
    'kind = "fire': ("not closed", 'kind = ▸"fire'),
    'kind = "fire\\"': ("not closed", 'kind = ▸"fire'),
    'kind = "fire\\': ("not closed", 'kind = ▸"fire'),
    'kind = "fire" x': ("',' is missing", '"fire" ▸x'),
    "kind = " + "x" * 65: ("a label has", "kind = xxx"),
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_conditions_are_usage_errors_that_show_text_and_place(text):
    reason, shown = MALFORMED[text]
    with pytest.raises(UsageError) as caught:
        where(EVENTS, text)
    assert reason in str(caught.value)
    assert repr(shown)[1:-1] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_conditions_on_a_topic_without_attributes_are_usage_errors():
    with pytest.raises(UsageError, match="it has none"):
        parse_where("kind = fire", ())


def test_very_long_conditions_are_usage_errors():
    with pytest.raises(UsageError, match=str(MAX_WHERE)):
        where(EVENTS, "kind = " + " " * MAX_WHERE + "x")


PIECES = [
    "kind",
    "lat",
    "lon",
    "in",
    "=",
    "[",
    "]",
    ",",
    '"',
    "\\",
    " ",
    "60",
    "-1.5",
    "1e5",
    "NaN",
    "fire",
    "é",
]


@pytest.mark.slow
@properties(1000)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=40))
def test_any_text_is_a_predicate_or_a_usage_error(text):
    try:
        predicate = where(EVENTS, text)
    except UsageError:
        return
    assert where(EVENTS, write_where(predicate)) == predicate


@st.composite
def schemas(draw):
    attributes = [draw(numbers(f"n{at}")) for at in range(draw(st.integers(0, 2)))]
    return [*attributes, *(Label(f"l{at}") for at in range(draw(st.integers(0, 2))))]


@pytest.mark.slow
@properties(300)
@given(schemas(), st.data())
def test_predicates_are_written_as_they_are_read(attributes, data):
    conditions = []
    for one in attributes:
        if isinstance(one, Label):
            text = where(
                make_topic("t", ["l"]),
                f'l = "{data.draw(labels.filter(lambda t: not set(t) & set(chr(34) + chr(92))))}"',
            )
            conditions.append(Equals(one, text.conditions[0].value))
        else:
            low, high = sorted(data.draw(st.tuples(*[st.integers(0, one.last)] * 2)))
            conditions.append(Between(one, low, high))
    predicate = Predicate(tuple(sorted(conditions, key=lambda condition: condition.attribute.name)))
    assert parse_where(write_where(predicate), attributes) == predicate


def test_the_longest_predicate_is_written_short_enough_to_be_read():
    """Subscriptions are kept as text: one that could be made must be read after a restart."""
    topic = make_topic("t", [f"{letter * 32}" for letter in "abcdefgh"])
    typed = ", ".join(f"{one.name} = a{chr(34) * 63}" for one in topic.attributes)
    predicate = where(topic, typed)
    assert len(write_where(predicate)) > len(typed) + 300
    assert where(topic, write_where(predicate)) == predicate


# What is met


@pytest.mark.parametrize(
    ("text", "carried", "met"),
    [
        ("", {}, True),
        ("", {"kind": "fire"}, True),
        ("kind = fire", {"kind": "fire"}, True),
        ("kind = fire", {"kind": "Fire"}, False),
        ("kind = fire", {}, False),
        ("kind = fire", {"lat": 1}, False),
        ("kind = fire", {"kind": "fire", "lat": 1}, True),
        ("lat in [60, 61]", {"lat": 150_000}, True),
        ("lat in [60, 61]", {"lat": 151_000}, True),
        ("lat in [60, 61]", {"lat": 149_999}, False),
        ("lat in [60, 61]", {"lat": 151_001}, False),
        ("lat in [60, 61]", {"lon": 150_000}, False),
        ("lat in [,]", {"lat": 0}, True),
        ("lat in [,]", {}, False),
        ("lat in [60, 61], kind = fire", {"lat": 150_000, "kind": "fire"}, True),
        ("lat in [60, 61], kind = fire", {"lat": 150_000}, False),
        ("lat in [60, 61], kind = fire", {"kind": "fire"}, False),
        ("lat in [60, 61], kind = fire", {"lat": 1, "kind": "fire"}, False),
    ],
)
def test_every_attribute_that_is_named_must_be_there_and_meet_its_condition(text, carried, met):
    assert where(EVENTS, text).matches(carried) is met


def test_a_predicate_is_hidden_in_print():
    predicate = where(EVENTS, "kind = wildfire, lat in [60.125, 61.375]")
    shown = f"{predicate} {predicate!r} {[predicate]} {predicate.conditions}"
    for hidden in ("wildfire", "150125", "151375", "60.125", "kind", "lat"):
        assert hidden not in shown
