"""Each example does what it says: what it prints, publishes and acknowledges."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from example_runs import EXAMPLES, Place

import hushcast

NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))


def link_in(place: Place, attributes: Iterable[str], private: bool = False) -> tuple[str, Path]:
    """Return a link, and a file that holds it."""
    file = place.directory / "topic.link"
    link = hushcast.new_link("observed", attributes, private)
    file.touch(0o600)
    file.write_text(link)
    return link, file


@pytest.mark.slow
async def test_two_people_chat(place: Place) -> None:
    await place.start()
    ada = await place.run("chat.py", "garden", "--name", "ada")
    bob = await place.run("chat.py", "garden", "--name", "bob", "--socket", place.daemon.socket)
    for one in (ada, bob):
        assert "garden" in await one.line()
    await ada.say("hello\x1b[2J")
    assert await bob.line() == await ada.line() == "ada: hello?[2J"
    await place.daemon.put("garden", b"\xff stranger")
    assert await bob.line() == "\ufffd stranger", "bytes that are no text end nobody's chat"
    await bob.say("bye")
    assert (await ada.until("bye"))[-1] == "bob: bye"
    assert place.daemon.published[0] == ("garden", b"ada: hello\x1b[2J")
    assert bob.process.stdin is not None
    await bob.process.stdin.aclose()
    assert (await bob.end(), await ada.end(signal.SIGINT)) == (0, 0)


@pytest.mark.slow
async def test_a_sensor_waits_for_its_daemon_and_for_the_network(place: Place) -> None:
    _, file = link_in(place, ["place", "celsius:-40..60:0.1"], private=True)
    sensor = await place.run("sensor.py", file, "--place", "shed", "--every", 0, "--count", 2)
    await place.start()
    for _ in range(2):
        assert re.match(r"-?\d+\.\d °C is [0-9a-f]{64}", await sensor.line())
    assert await sensor.end() == 0

    async def both() -> bool:
        return len(place.daemon.published) == 2

    await place.until(both)
    (topic, payload), _ = place.daemon.published
    assert (topic, json.loads(payload).keys()) == ("observed", {"at", "celsius"})
    assert [values.keys() for values in place.daemon.published_values] == [{"place", "celsius"}] * 2


@pytest.mark.slow
async def test_alerts_come_from_the_box_alone_and_absences_are_told(place: Place) -> None:
    await place.start()
    link, file = link_in(place, ["lat:-90..90:0.001", "lon:-180..180:0.001"])
    alerts = await place.run("alerts.py", file, -35, 61, 24, 25)
    assert "nothing is known yet" in await alerts.line()
    async with hushcast.connect(place.daemon.socket) as daemon:
        await daemon.publish(link, "elsewhere", attributes={"lat": -35.1, "lon": 24.5})
        await daemon.publish(link, "\x1b]smoke", attributes={"lat": -34.9, "lon": 24.5})
    assert await alerts.line() == "-34.900 24.500: ?]smoke"
    await place.stop()
    assert await alerts.line() == "-- the daemon went away; it is waited for"
    await place.start()
    assert "is back" in (await alerts.until("is back"))[-1]
    assert await alerts.end(signal.SIGINT) == 0


@pytest.mark.slow
async def test_a_bot_answers_and_ends_in_order(place: Place) -> None:
    await place.start()
    bot = await place.run("bot.py", "garden")
    fingerprint = (await bot.line()).rpartition(" ")[2]
    async with hushcast.connect(place.daemon.socket) as daemon, daemon.subscribe("garden") as messages:
        for said, wanted in (
            ("!echo !time", "time"),
            ("!time", r"it is \d\d:\d\d UTC"),
            ("!coverage", "I hear .+"),
        ):
            await daemon.publish("garden", said)
            assert (await anext(messages)).text == said
            answer = await anext(messages)
            assert re.fullmatch(wanted, answer.text)
            assert answer.author == fingerprint
    assert hushcast.read_author(place.directory / "bot.key").fingerprint == fingerprint
    assert await bot.end(signal.SIGTERM) == 0
    assert await place.acknowledged("garden") == 6


@pytest.mark.slow
async def test_a_notebook_shows_the_same_each_time(place: Place) -> None:
    await place.start()
    await place.daemon.put("weather", b"it rains")
    await place.daemon.put("weather", b"\x00" * 50)
    for _ in range(2):
        notebook = await place.run("notebook.py", "--count", 3, "--seconds", 0.2, "-f", "kernel.json")
        head, first, second, short = [await notebook.line() for _ in range(4)]
        assert head.split() == ["cursor", "received", "bytes", "text"]
        assert re.fullmatch(r" +1  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d +8  'it rains'", first)
        assert second.split()[3] == "50"
        assert short == "2 messages, signed by nobody (2)"
        assert await notebook.end() == 0
    assert await place.acknowledged("weather") == 0


@pytest.mark.slow
async def test_the_first_program_of_the_page_runs(place: Place) -> None:
    page = (EXAMPLES.parent / "docs" / "python.md").read_text()
    program = place.directory / "first.py"
    program.write_text(page.partition("```python\n")[2].partition("```")[0])
    await place.start()
    first = await place.run(str(program))
    assert await first.line() == "it rains"
    assert await first.end() == 0
    assert await place.acknowledged("weather") == 1


def test_there_are_those_that_are_told_of() -> None:
    told = re.findall(r"\[`(\w+\.py)`\]\(\1\)", (EXAMPLES / "README.md").read_text())
    assert sorted(told) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_says_how_it_is_run_and_needs_nothing_else(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert f"    python examples/{name}" in text.partition('"""\n\n')[0]
    modules = set(re.findall(r"^(?:import|from) ([\w]+)", text, re.MULTILINE))
    ours = {"hushcast_analytics", "pandas", "pyspark"} if name == "research.py" else {"hushcast", "trio"}
    assert modules <= sys.stdlib_module_names | {"__future__", "hushcast_located"} | ours
    assert len(text.splitlines()) < 100, "read in two minutes"


@pytest.mark.slow
def test_one_without_a_daemon_says_so_in_a_line(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLES / "chat.py", "garden", "--socket", tmp_path / "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"chat: no daemon at .*nothing: No such file or directory\n", done.stderr)
