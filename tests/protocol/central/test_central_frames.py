"""Frames of the central system: what is said is read, and damaged bytes end in a value or a `DecodeError`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from central_examples import PUBLISH, SPOKEN, SUBSCRIBE
from core_examples import bit_flips, truncations

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Wire, encode
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    MAX_SUBSCRIBED,
    Pong,
    decode_from_proxy,
    decode_from_server,
    decode_from_user,
    decode_to_user,
)
from hushcast_protocol.central.rerouting import MAX_INSIDE
from hushcast_protocol.content.messages import MAX_TOKENS

Read = Callable[[bytes], object]
EXAMPLES = [(read, value) for read, values in SPOKEN.values() for value in values]
NAMES = [
    f"{name}-{type(value).__name__}-{at}"
    for name, (_, all_of) in SPOKEN.items()
    for at, value in enumerate(all_of)
]
each_example = pytest.mark.parametrize(("read", "value"), EXAMPLES, ids=NAMES)
SHORT = 600  # bytes of a frame that is damaged at every bit


def is_read(read: Read, data: bytes) -> bool:
    """Any error but `DecodeError` fails the test."""
    try:
        read(data)
    except DecodeError:
        return False
    return True


@each_example
def test_what_is_said_is_read(read: Read, value: Wire) -> None:
    assert read(encode(value)) == value


@each_example
def test_truncations_and_bytes_behind_the_end_are_refused(read: Read, value: Wire) -> None:
    whole = encode(value)
    for prefix in truncations(whole) if len(whole) < SHORT else [whole[:-1], whole[:SHORT]]:
        assert not is_read(read, prefix)
    assert not is_read(read, whole + b"\x00")


@each_example
def test_flipped_bits_end_in_a_value_or_a_refusal(read: Read, value: Wire) -> None:
    for damaged in bit_flips(encode(value)[:SHORT]):
        is_read(read, damaged)


@pytest.mark.parametrize("read", [read for read, _ in SPOKEN.values()])
def test_nobody_is_heard_on_another_ones_link(read: Read) -> None:
    for other, values in SPOKEN.values():
        if other is not read:
            for value in values:
                known = {type(one) for one in SPOKEN_BY[read]}
                assert is_read(read, encode(value)) == (type(value) in known)


SPOKEN_BY = dict(SPOKEN.values())


@pytest.mark.parametrize("read", [decode_from_user, decode_to_user, decode_from_proxy, decode_from_server])
def test_more_bytes_than_a_frame_has_are_refused(read: Read) -> None:
    with pytest.raises(DecodeError, match="over the limit"):
        read(bytes(MAX_CENTRAL_FRAME + 1))


@pytest.mark.parametrize("count", [0, MAX_SUBSCRIBED + 1])
def test_a_subscription_has_so_many_tokens(count: int) -> None:
    frame = msgspec.structs.replace(SUBSCRIBE, tokens=SUBSCRIBE.tokens[:1] * count)
    assert not is_read(decode_from_user, encode(frame))


@pytest.mark.parametrize("count", [0, MAX_TOKENS + 1])
def test_a_publication_has_so_many_tokens(count: int) -> None:
    frame = msgspec.structs.replace(PUBLISH, tokens=PUBLISH.tokens[:1] * count)
    assert not is_read(decode_from_user, encode(frame))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_points_have_32_bytes(length: int) -> None:
    assert not is_read(decode_from_user, encode(msgspec.structs.replace(SUBSCRIBE, tokens=(bytes(length),))))
    for field in ("mask", "masked"):
        wrapped = msgspec.structs.replace(PUBLISH.wrapped, **{field: bytes(length)})
        assert not is_read(decode_from_user, encode(msgspec.structs.replace(PUBLISH, wrapped=wrapped)))


def test_a_payload_is_bounded() -> None:
    wrapped = msgspec.structs.replace(PUBLISH.wrapped, payload=bytes(MAX_INSIDE + 17))
    assert not is_read(decode_from_user, encode(msgspec.structs.replace(PUBLISH, wrapped=wrapped)))


@pytest.mark.parametrize("read", [decode_to_user, decode_from_server])
def test_a_sign_of_life_that_has_grown_is_read(read: Read) -> None:
    """By who is too old for what was added: a server may say there which wire comes."""
    said = Pong(3, True)
    grown = [*msgspec.msgpack.decode(encode(said)), ["a wire to come", 2]]
    assert read(encode(grown)) == said
