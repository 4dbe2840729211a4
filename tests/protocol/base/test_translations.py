"""What a wire says otherwise is translated both ways, and nothing that it does not have is taken in it."""

from __future__ import annotations

import drilled_wire
import pytest
from core_examples import small_message
from drilled_wire import COLOUR, DRILL, Ack2, Forward2

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.versions.translations import UNCHANGED, Translation
from hushcast_protocol.base.versions.wires import LASTING, WIRES, OtherWire
from hushcast_protocol.base.wire import Counter, Wire, encode
from hushcast_protocol.overlay.frames import Ack, Drop, Forward, Ping, Receipt, decode_overlay

MESSAGE = small_message()
SAID: list[tuple[Wire, Wire]] = [
    (Forward(MESSAGE), Forward2(MESSAGE, COLOUR)),  # a field was added
    (Ack(6, (2,)), Ack2(7, (2,))),  # a field has another meaning
    (Ping(), Forward2(None, COLOUR)),  # a kind is gone
    (Drop(MESSAGE, None), Drop(MESSAGE, None)),
    (Receipt("quota"), Receipt("quota")),
]


class Gone(Wire, frozen=True, tag="gone"):
    """Only the older wire has it."""

    number: Counter


class New(Wire, frozen=True, tag="new"):
    """Only the newest has it."""


def translated(data: bytes, by: Translation = DRILL) -> Wire:
    said = by.up(data)
    assert said is not None
    return decode_overlay(said)


@pytest.mark.parametrize(("newest", "other"), SAID)
def test_what_is_said_comes_back_the_same(newest: Wire, other: Wire) -> None:
    assert DRILL.down(newest) == other
    assert translated(encode(other)) == newest
    data = encode(newest)
    assert UNCHANGED.up(data) is data, "the newest is not even looked at"
    assert UNCHANGED.down(newest) is newest


@pytest.mark.parametrize("newest", [Forward(MESSAGE), Ack(6, ()), Ping()])
def test_the_newest_is_refused_in_a_wire_that_has_it_otherwise(newest: Wire) -> None:
    """However it is encoded: else who calls could tell which release answers."""
    data = encode(newest)
    longer = b"\xdc\0" + bytes([data[0] & 0x0F]) + b"\xd9" + bytes([data[1] & 0x1F]) + data[2:]
    assert decode_overlay(longer) == newest
    for one in (data, longer):
        with pytest.raises(DecodeError, match="another wire"):
            DRILL.up(one)


def test_what_has_no_words_is_passed_over_both_ways() -> None:
    between = Translation({Gone: lambda said: None}, {New: lambda said: None})
    assert between.up(encode(Gone(1))) is None
    assert between.down(New()) is None
    with pytest.raises(DecodeError):
        between.up(encode(New()))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x90",
        b"\xc0",
        b"\x91\x01",
        b"\x92\xa5ack/2\x01",
        b"\x93\xa5ack/2\xff\x90",
        b"\x81\xa5ack/2\x01",
        b"\xdd\xff\xff\xff\xff",
        encode(Forward2(MESSAGE, COLOUR + 1)),
        encode(Forward2(MESSAGE, COLOUR)) + b"\0",
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        translated(data)


def test_a_translation_gives_what_the_newest_would_refuse_to_be_refused() -> None:
    with pytest.raises(DecodeError):
        translated(encode(Ack2(0, ())))  # of a number before the first


def test_each_wire_in_the_table_has_its_translation() -> None:
    spoken = WIRES.spoken
    assert list(WIRES.rows) == list(spoken.numbers()), "without a gap"
    assert WIRES.translation(spoken.highest) is UNCHANGED, "the program knows the newest kinds"
    assert all(isinstance(WIRES.translation(number), Translation) for number in WIRES.rows)
    assert WIRES.translation(LASTING) is UNCHANGED
    for number in (spoken.lowest - 2, spoken.highest + 1):
        with pytest.raises(OtherWire):
            WIRES.translation(number)
    assert drilled_wire.BOTH.translation(2) is DRILL
