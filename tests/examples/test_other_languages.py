"""The control socket from another language, by the page that describes it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import get_args

import pytest
from example_runs import Place

import hushcast
from hushcast.control_messages import (
    ApplicationMessage,
    FailureKind,
    Hello,
    decode_answer,
    decode_application_message,
    decode_hello,
    encode_line,
)

PAGE = Path(__file__).parents[2] / "docs" / "control-socket.md"


def test_each_line_of_the_page_is_one_that_the_ends_say() -> None:
    said = re.findall(r"^([<>]) (.*)$", PAGE.read_text(), re.MULTILINE)
    assert said[0][1] == said[1][1] == encode_line(Hello()).decode()
    assert decode_hello(said[0][1].encode()) == Hello()
    for way, line in said[2:]:
        decode = decode_application_message if way == ">" else decode_answer
        decoded = decode(line.encode())
        assert set(re.findall(r'"(\w+)":', line)) <= {"op", "event", *type(decoded).__struct_fields__}


def test_the_page_names_each_request_and_each_kind_of_failure() -> None:
    page = PAGE.read_text()
    lines = page.partition("| `op` |")[2].splitlines()[2:]
    named = {name for line in lines for name in re.findall(r"`([\w-]+)`", line.split("|")[1])}
    assert named == {one.__struct_config__.tag for one in get_args(ApplicationMessage)}
    for kind in get_args(FailureKind):
        assert f"`{kind}`" in page


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="NOT TESTED: there is no node")
async def test_a_program_in_node_publishes_and_acknowledges_what_it_prints(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.start()
    listening = await place.run("listen.mjs", "garden")
    assert await listening.line() == "listening: 7 relays route here"
    publishing = await place.run("listen.mjs", "garden", "it rains ☂")
    assert re.fullmatch("a relay has taken [0-9a-f]{64}", await publishing.line())
    assert await publishing.end() == 0
    assert await listening.line() == '"it rains ☂"'
    for payload in (b"\x1b[2J", b"\xff"):
        await place.daemon.put("garden", payload)
    assert [await listening.line() for _ in range(2)] == [r'"\u001b[2J"', '"\ufffd"']
    for number in range(40):
        await place.daemon.put("garden", b"%d" % number)
    assert [await listening.line() for _ in range(40)] == [f'"{number}"' for number in range(40)]

    async def all_are() -> bool:
        return await place.acknowledged("garden") == 43

    await place.until(all_are)
    monkeypatch.setenv("LINK", hushcast.new_link("hidden", private=True))
    private = await place.run("listen.mjs", "-", "x")
    assert "taken" in await private.line()
    assert place.daemon.published[-1] == ("hidden", b"x")
    wrong = await place.run("listen.mjs", "hushcast:nothing", "x")
    assert "link" in await wrong.line()
    assert await wrong.end() == 1
    await place.stop()
    assert await listening.line() == "the daemon went away"
    assert await listening.end() == 1
