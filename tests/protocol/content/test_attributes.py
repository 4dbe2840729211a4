"""Attributes: one grammar, exact numbers in one normal form, values on a grid."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st
from topic_examples import EVENTS, labels, names, numbers

from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.content.attributes import (
    MAX_BITS,
    MAX_LABEL,
    Label,
    Number,
    as_json,
    fits,
    parse_attribute,
    parse_number,
    parse_value,
    write_attribute,
)
from hushcast_protocol.content.topics import check_values, parse_values

LAT = parse_attribute("lat:-90..90:0.001")
KIND = parse_attribute("kind")

MALFORMED = {
    "": "a name is",
    "1st": "a name is",
    "-x": "a name is",
    "ä": "a name is",
    "a b": "a name is",
    "x" * 33: "a name is",
    "a\n": "a name is",
    "a:": "LOW..HIGH",
    "a:1": "LOW..HIGH",
    "a:1-2": "LOW..HIGH",
    "a:..": "is not a number",
    "a:1..": "is not a number",
    "a:..2": "is not a number",
    "a:x..2": "'x' is not a number",
    "a:0..NaN": "'NaN' is not a number",
    "a:sNaN..1": "'sNaN' is not a number",
    "a:0..Infinity": "'Infinity' is not a number",
    "a:-inf..1": "'-inf' is not a number",
    "a:0..1e999": "'1e999' is not a number",
    "a:0..1e999999999999999999": "is not a number",
    "a:0..1:1e-999": "'1e-999' is not a number",
    "a:0..1:0.0000000000001": "is not a number",
    "a:0..1000000000000000": "is not a number",
    "a:0.." + "1" * 40: "is not a number",
    "a:0..1:0.1:2": "'0.1:2' is not a number",
    "a:2..1": "upside down",
    "a:1..1": "upside down",
    "a:0..1:0": "resolution is not above 0",
    "a:0..1:-1": "resolution is not above 0",
    "a:0..1:0.3": "whole number of steps",
    "a:0..1:2": "whole number of steps",
    "a:0..4294967296": "coarser",
    "a:0..1:0.000000000001": "coarser",
}


@pytest.mark.parametrize("spec", MALFORMED)
def test_malformed_attributes_are_usage_errors_that_show_them(spec):
    with pytest.raises(UsageError) as caught:
        parse_attribute(spec)
    assert repr(spec) in str(caught.value)
    assert MALFORMED[spec] in str(caught.value)


@pytest.mark.slow
@properties(300)
@given(st.text(max_size=40) | st.from_regex(r"[a-z]{1,3}:[-0-9.e]{0,8}\.\.[-0-9.e]{0,8}(:[-0-9.e]{0,8})?"))
def test_any_text_is_an_attribute_in_normal_form_or_a_usage_error(text):
    try:
        attribute = parse_attribute(text)
    except UsageError as error:
        shown = str(error)
    else:
        written = write_attribute(attribute)
        assert parse_attribute(written) == attribute
        assert write_attribute(parse_attribute(written)) == written
        return
    assert repr(text) in shown


@pytest.mark.slow
@properties(300)
@given(numbers())
def test_numbers_are_written_and_read_back(number):
    assert parse_attribute(write_attribute(number)) == number
    assert 1 <= number.bits <= MAX_BITS
    assert number.place(number.low) == 0
    assert number.place(number.high) == number.last
    assert number.value(number.last) == number.high


@pytest.mark.slow
@given(names)
def test_labels_are_written_and_read_back(name):
    assert parse_attribute(write_attribute(Label(name))) == Label(name)


@pytest.mark.parametrize(
    "spec",
    [
        "a:-90.0..90:0.001",
        "a:-90..+90.000:1e-3",
        "a:-9e1..9e1:0.0010",
        "a: -90 .. 90 :.001",
        "a:-90..90:1E-3",
    ],
)
def test_one_attribute_has_one_form_however_it_is_typed(spec):
    """The form goes into the topic's key: two ways to write it must not be two topics."""
    assert write_attribute(parse_attribute(spec)) == "a:-90..90:0.001"


@pytest.mark.parametrize("zero", ["0", "-0", "0.000", "0e9", "-0e-9", "0e-999999999", "0e999999"])
def test_zero_is_zero(zero):
    assert write_attribute(parse_attribute(f"a:{zero}..1")) == "a:0..1:1"
    assert str(parse_number(zero, zero)) == "0"


def test_the_resolution_is_1_if_none_is_given():
    assert parse_attribute("level:0..65535") == Number("level", Decimal(0), Decimal(65535), Decimal(1))
    assert parse_attribute("level:0..65535").bits == 16
    assert parse_attribute("level:0..65536").bits == 17


# Values


@pytest.mark.slow
@properties(300)
@given(
    numbers(), st.integers(0, 10**9), st.fractions(Fraction(-49, 100), Fraction(49, 100), max_denominator=100)
)
def test_values_are_rounded_to_the_nearest_place(number, drawn, off):
    place = drawn % (number.last + 1)
    written = Fraction(number.value(place)) + off * Fraction(number.resolution)
    exact = Decimal(written.numerator) / Decimal(written.denominator)
    assert number.place(exact) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [("0.4", 0), ("0.5", 0), ("0.51", 1), ("1.5", 2), ("2.5", 2), ("-0.5", 0), ("10.5", 10), ("10", 10)],
)
def test_halves_are_rounded_to_the_even_place(text, place):
    assert parse_value(parse_attribute("a:0..10"), text) == place


@pytest.mark.parametrize("text", ["90.001", "-90.001", "90.0006", "1e9", "-99999999999999"])
def test_values_out_of_range_are_usage_errors(text):
    with pytest.raises(UsageError, match="outside of -90 to 90") as caught:
        parse_value(LAT, text)
    assert f"lat={text}" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", " ", "NaN", "-NaN", "sNaN", "Infinity", "-inf", "1e999", "6O", "1,5", "0x1"]
)
def test_values_that_are_no_numbers_are_usage_errors(text):
    with pytest.raises(UsageError, match="is not a number") as caught:
        parse_value(LAT, text)
    assert repr(f"lat={text}") in str(caught.value)


@properties(200)
@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_usage_error(text):
    for attribute in (LAT, KIND):
        try:
            value = parse_value(attribute, text)
        except UsageError:
            continue
        assert fits(attribute, value)


@properties(200)
@given(labels)
def test_labels_are_values_in_normal_form(text):
    value = parse_value(KIND, text)
    assert parse_value(KIND, str(value)) == value


@pytest.mark.parametrize("text", ["", "x" * (MAX_LABEL + 1), "é" * (MAX_LABEL // 2) + "x", "a\udc80"])
def test_labels_too_short_too_long_or_of_no_unicode_are_usage_errors(text):
    with pytest.raises(UsageError, match="a label"):
        parse_value(KIND, text)


SETTINGS = {
    ("lat",): "write NAME=VALUE",
    ("",): "write NAME=VALUE",
    ("=1",): "no such attribute",
    ("alt=1",): "it has kind, lat, lon",
    ("LAT=1",): "no such attribute",
    ("lat=1", "lat=1"): "set twice",
    ("kind=a", "lat=1", "kind=b"): "set twice",
    ("lat=fire",): "is not a number",
    ("lat=91",): "outside of",
    ("kind=",): "a label",
}


@pytest.mark.parametrize("settings", SETTINGS, ids=" ".join)
def test_settings_that_do_not_fit_the_topic_are_usage_errors_that_show_them(settings):
    with pytest.raises(UsageError, match=SETTINGS[settings]) as caught:
        parse_values(EVENTS, settings)
    assert repr(settings[-1]) in str(caught.value)


def test_settings_are_read():
    assert parse_values(EVENTS, ["lat=60.17", "kind=a=b"]) == {"lat": 150_170, "kind": "a=b"}
    assert parse_values(EVENTS, []) == {}


# From the network


@pytest.mark.parametrize(
    "carried",
    [
        {"alt": 1},
        {"lat": -1},
        {"lat": 180_001},
        {"lat": "60"},
        {"lat": True},
        {"lat": 1.0},
        {"lat": None},
        {"kind": 1},
        {"kind": ""},
        {"kind": "x" * 65},
        {"kind": "é" * 33},
        {"kind": b"fire"},
        {"kind": "fire", "lat": 1, "lon": 1, "more": 1},
    ],
    ids=repr,
)
def test_attributes_that_do_not_belong_to_the_topic_are_decode_errors(carried):
    with pytest.raises(DecodeError) as caught:
        check_values(EVENTS, carried)
    assert not any(str(value) in str(caught.value) for value in carried.values() if value)


def test_attributes_of_the_topic_are_taken():
    for carried in ({}, {"lat": 0}, {"lat": 180_000, "lon": 360_000, "kind": "x" * 64}):
        check_values(EVENTS, carried)


def test_json_shows_numbers_as_numbers():
    assert (as_json(LAT, 150_170), as_json(LAT, 90_000), as_json(KIND, "fire")) == (60.17, 0, "fire")
    assert type(as_json(LAT, 90_000)) is int
