"""Alerts as agencies publish them: what becomes of them, and what is not read."""

from __future__ import annotations

import pytest
from alert_examples import ATOM, CAP, RSS, documents
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.alert_documents import (
    MAX_DOCUMENT,
    MAX_NESTED,
    is_document,
    read_document,
)
from hushcast_protocol.spatial.located_messages import MAX_ID, MAX_PAYLOAD
from hushcast_protocol.spatial.places import degrees_of


def cap(status: str = "Actual", kind: str = "Alert") -> bytes:
    return CAP.format(status=status, kind=kind).encode()


def test_an_alert_is_a_message_for_each_language_that_has_a_place() -> None:
    found = read_document(cap())
    assert (found.without_place, found.not_for_all) == (1, 0)
    first, second = found.messages
    assert first.id == "2.49.0.1.246.0.2026.11.27"
    assert second.id == first.id + "/1"
    said = first.payload.decode().splitlines()
    assert said == [
        "Myrskyvaroitus",
        "Kova tuuli & aallokko",
        "Puuskia 30 m/s.",
        "Uusimaa",
        "2026-11-27T21:00:00+02:00",
    ]
    assert degrees_of(first.place) == pytest.approx((60.5, 25.0), abs=0.01)
    assert degrees_of(second.place) == pytest.approx((60.17, 24.94), abs=1e-6)


def test_exercises_are_for_nobody_and_what_is_cancelled_says_so() -> None:
    assert read_document(cap("Exercise")).messages == []
    assert read_document(cap("Test")).not_for_all == 1
    assert read_document(cap(kind="Cancel")).messages[0].payload.startswith(b"Cancel\n")


def test_entries_of_atom_have_places_as_georss_and_gml_say_them() -> None:
    found = read_document(ATOM.encode())
    assert [one.id for one in found.messages] == ["urn:quake:1", "urn:quake:2"]
    assert found.messages[0].payload.decode() == "M 4.6 - near Fiji\nDepth 10 km"
    north, east = degrees_of(found.messages[1].place)  # across 180 degrees
    assert (north, abs(east)) == pytest.approx((11, 180), abs=0.01)
    assert found.without_place == 2


def test_items_of_rss_are_told_apart_by_what_they_have() -> None:
    found = read_document(RSS.format(guid="g" * 100).encode())
    first, second = found.messages
    assert len(first.id) == MAX_ID
    assert degrees_of(first.place) == pytest.approx((10.5, 76.2), abs=1e-6)
    assert second.id == "https://example.org/2"
    assert degrees_of(second.place) == pytest.approx((2, 3), abs=0.01)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"<a>", "no whole XML: line 1"),
        (b"<html/>", "neither CAP 1.2 nor RSS 2.0 nor Atom"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type"),
        (b"<a>" * (MAX_NESTED + 1), "in each other"),
        (b"<a>" + b"<b/>" * 200_000 + b"</a>", "200,000 elements"),
        (b" " * (MAX_DOCUMENT + 1), "above 4,194,304"),
        (b'<?xml version="1.0" encoding="nonsense"?><a/>', "encoding"),
        (CAP.replace("<identifier>2.49.0.1.246.0.2026.11.27</identifier>", "").format(
            status="Actual", kind="Alert").encode(), "no identifier"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(data: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_document(data)


def test_long_texts_are_cut_between_characters() -> None:
    (found, *_) = read_document(cap().replace(b"Puuskia", "ä".encode() * MAX_PAYLOAD)).messages
    assert MAX_PAYLOAD - 1 <= len(found.payload) <= MAX_PAYLOAD
    found.payload.decode()


@settings(max_examples=200)
@given(st.sampled_from(documents()), st.data())
def test_whatever_is_cut_or_changed_ends_in_messages_or_in_an_error(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 1))
    for changed in (
        data[:at],
        data[:at] + bytes([data[at] ^ draw.draw(st.integers(1, 255))]) + data[at + 1 :],
    ):
        try:
            read_document(changed)
        except UsageError:
            continue


def test_xml_is_told_from_lines() -> None:
    assert is_document(b"\xef\xbb\xbf \n<alert/>")
    assert not is_document(b'{"id": "1"}')
