"""A daemon and an application of different releases agree on the newest version that both speak."""

from __future__ import annotations

import msgspec
import pytest

from hushcast.control_messages import OLDEST, VERSION, Hello, decode_hello, encode_line
from hushcast.conversation import check_hello
from hushcast.errors import OtherVersion


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        (Hello(), VERSION),
        (Hello(VERSION, msgspec.UNSET), VERSION),
        (Hello(VERSION + 1, VERSION), VERSION),
        (Hello(VERSION + 9, 1), VERSION),
        (Hello(VERSION + 1, VERSION + 1), None),
        (Hello(VERSION + 1), None),
        (Hello(VERSION, VERSION + 1), None),
        (Hello(OLDEST - 1, 0), None),
        (Hello(OLDEST - 1), None),
    ],
)
def test_the_newest_that_both_speak_is_chosen(said: Hello, chosen: int | None) -> None:
    assert decode_hello(encode_line(said)).chosen() == chosen


@pytest.mark.parametrize("version", [OLDEST - 1, VERSION + 1])
def test_what_a_program_does_not_speak_is_refused(version: int) -> None:
    check_hello(encode_line(Hello(VERSION)))
    with pytest.raises(OtherVersion):
        check_hello(encode_line(Hello(version)))
