"""`hushcast located subscribe`: what is printed of a feed, what is kept, and how it ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from fake_daemon import NODES
from msgspec.structs import replace
from providing import OWNER, Town
from running import WITHIN, Running, environment, hushcast

from hushcast_cli.located.feed_listener import printer_for
from hushcast_located import OwnerKeyChange

WANTED = ("--at", "60.17,24.94", "--keywords", "shoe,discount")


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with trio.open_nursery() as nursery:
        town = Town(tmp_path, nursery, "trio")
        await town.start()
        yield town
        await town.end()
        nursery.cancel_scope.cancel()


class Shell:
    """Commands of a user whose files lie below a folder."""

    def __init__(self, town: Town, home: Path) -> None:
        self.town = town
        self.variables = {"XDG_STATE_HOME": str(home), "HUSHCAST_SOCKET": str(town.socket)}
        (home / "shops.offer").write_text(town.offer + "\n")
        self.offer = str(home / "shops.offer")

    async def start(self, *arguments: str) -> Running:
        """Start a listener, and wait until answers reach the daemon."""
        running = await Running.start("located", "subscribe", "--json", *arguments, **self.variables)
        told = await running.object()
        assert (told["event"], told["nodes"]) == ("subscribed", NODES)
        return running

    async def run(self, *arguments: str) -> tuple[int, list[dict[str, object]], str]:
        done = await hushcast("located", *arguments, "--json", env=environment(**self.variables))
        return done.code, done.objects, done.stderr


@pytest.fixture
def shell(town: Town, tmp_path: Path) -> Shell:
    return Shell(town, tmp_path)


@pytest.mark.slow
async def test_from_an_offer_to_what_is_near(shell: Shell) -> None:
    one = await shell.start("--provider", shell.offer, *WANTED, "--owner", OWNER.public().hex())
    assert (await one.object())["event"] == "accepted"
    await shell.town.interval(said=["shoe discount today", "fish at the market"])
    message, interval = [await one.object() for _ in range(2)]
    assert (message["text"], message["number"]) == ("shoe discount today", 1)
    assert (interval["number"], interval["late"], interval["complete"]) == (1, False, True)
    with trio.fail_after(WITHIN):
        while (await shell.run("subscriptions"))[1][0]["interval"] != 1:  # noqa: ASYNC110
            await trio.sleep(0.01)
    one.process.terminate()
    await one.outcome()
    code, (kept,), _ = await shell.run("subscriptions")
    assert (code, kept["name"], kept["taken"]) == (0, "feed-1", True)
    assert kept["owner"] == OWNER.public().hex()
    await shell.town.interval()
    code, objects, err = await shell.run("subscribe", "--name", "feed-1", "--count", "1")
    shown = [one["number"] for one in objects if one["event"] == "interval"]
    assert (code, shown[-1], err) == (0, 2, "")
    code, objects, _ = await shell.run("unsubscribe", "feed-1")
    assert (code, objects) == (0, [{"event": "unsubscribed", "name": "feed-1"}])
    await shell.town.provider.until(lambda: len(shell.town.provider.withdrawn) == 1)
    assert (await shell.run("subscriptions"))[:2] == (0, [])
    code, _, err = await shell.run("unsubscribe", "feed-1")
    assert code == 2
    assert "located subscriptions" in err


@pytest.mark.slow
async def test_a_problem_ends_it_with_4_where_that_was_asked(shell: Shell) -> None:
    one = await shell.start("--provider", shell.town.offer, *WANTED, "--stop-on-problem", "missing interval")
    assert (await one.object())["event"] == "accepted"
    await shell.town.interval(seconds=1)
    await shell.town.interval(lambda _: None, seconds=1)
    await shell.town.interval(lambda one: replace(one, proof=None), seconds=1)
    await shell.town.interval(seconds=1)
    outcome = await one.outcome()
    problems = [one for one in outcome.objects if one["event"] == "problem"]
    assert outcome.code == 4
    assert {"event": "problem", "problem": "left out", "first": 3, "last": 3} in problems
    assert problems[-1] == {"event": "problem", "problem": "missing interval", "first": 2, "last": 2}
    assert "stopped at a problem: missing interval, interval 2" in outcome.stderr


@pytest.mark.slow
async def test_people_read_messages_alone_on_standard_output(shell: Shell) -> None:
    one = await Running.start("located", "subscribe", "--provider", shell.offer, *WANTED, "--count", "1",
                              **shell.variables)  # fmt: skip
    await shell.town.held()
    await shell.town.interval(said=["Shoe\x1b[2J discount"])
    outcome = await one.outcome()
    assert outcome.code == 0
    (line,) = outcome.stdout.decode().splitlines()
    assert line.endswith("24.94000  Shoe\\x1b[2J discount")
    assert f"kept as feed-1: {NODES} nodes route to this daemon" in outcome.stderr
    assert "asked the provider" in outcome.stderr
    assert "the provider has taken the subscription" in outcome.stderr


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        (("--at", "60.17"), "'60.17' is no place"),
        (("--at", "91,0", "--keywords", "a"), "are no place"),
        (("--at", "nan,0", "--keywords", "a"), "are no place"),
        (("--at", "60,24"), "'keywords' has no word"),
        (("--keywords", "a"), "no place is named"),
        ((*WANTED, "--alpha", "2"), "'alpha' is 2.0"),
        ((*WANTED, "--threshold", "nan"), "'threshold' is nan"),
        ((*WANTED, "--owner", "00"), "another owner"),
        ((*WANTED, "--blur", "-3"), "kilometres"),
        ((*WANTED, "--blur-keywords", "3"), "3 of 2 keywords"),
        ((*WANTED, "--name", "a/b"), "cannot be a name"),
        ((*WANTED, "--stop-on-problem", "no"), "stop-on-problem"),
    ],
)
async def test_what_was_typed_is_told(shell: Shell, typed: tuple[str, ...], wrong: str) -> None:
    code, objects, err = await shell.run("subscribe", "--provider", shell.offer, *typed)
    assert (code, objects) == (2, [])
    assert wrong in err


async def test_what_goes_with_what(shell: Shell) -> None:
    for typed, wrong in (
        (("subscribe", *WANTED), "--at goes with --provider"),
        (("subscribe",), "give --provider OFFER"),
        (("subscribe", "--name", "none"), "no subscription 'none'"),
        (("subscribe", "--provider", "/nowhere", *WANTED), "cannot be read"),
        (("subscribe", "--provider", "hushcast-provider:x", *WANTED), "cut off"),
    ):
        code, _, err = await shell.run(*typed)
        assert code == 2
        assert wrong in err


def test_another_key_of_the_owner_is_told_to_programs_and_people(capsys: pytest.CaptureFixture[str]) -> None:
    event = OwnerKeyChange(3, "07e5")
    assert json.loads(printer_for(json=True).event(event)) == {"event": "key", "number": 3, "owner": "07e5"}
    assert printer_for(json=False).event(event) == b""
    assert "from interval 3 on another key of the owner signs: 07e5" in capsys.readouterr().err
