"""`subscribe --since`, `subscribe --ack` and `hushcast ack`: what comes again, what never, what was lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from running import Outcome, hushcast

from hushcast_local.settings import InboxSection


async def fill(daemon: FakeDaemon, count: int, size: int = 1) -> None:
    for number in range(1, count + 1):
        await daemon.put("t", str(number).encode().ljust(size))


async def printed(daemon: FakeDaemon, *arguments: str) -> list[tuple[int, str]]:
    """Listen until the arguments end it; return cursor and payload of what was printed."""
    outcome = await hushcast("--json", "--socket", daemon.socket, "subscribe", "t", *arguments)
    assert outcome.code == 0, outcome.stderr
    return messages(outcome)


def messages(outcome: Outcome) -> list[tuple[int, str]]:
    return [(event["cursor"], event["payload"]) for event in outcome.objects if event["event"] == "message"]


async def held(daemon: FakeDaemon) -> dict[str, int]:
    outcome = await hushcast("subscriptions", "--json", "--socket", daemon.socket)
    (listed,) = outcome.objects
    return {name: listed[name] for name in ("cursor", "shown", "acknowledged", "dropped")}


async def test_since_shows_again_what_is_kept(daemon: FakeDaemon) -> None:
    await fill(daemon, 4)
    assert await printed(daemon, "--count", "3") == [(1, "1"), (2, "2"), (3, "3")]
    assert await printed(daemon, "--since", "1", "--count", "2") == [(2, "2"), (3, "3")]
    assert await printed(daemon, "--since", "0", "--count", "1") == [(1, "1")]
    assert await printed(daemon, "--count", "1") == [(4, "4")]
    assert await held(daemon) == {"cursor": 4, "shown": 4, "acknowledged": 0, "dropped": 0}


async def test_ack_while_listening_is_on_disk_when_the_command_returns(daemon: FakeDaemon) -> None:
    await fill(daemon, 4)
    assert await printed(daemon, "--ack", "--count", "2") == [(1, "1"), (2, "2")]
    assert await held(daemon) == {"cursor": 4, "shown": 2, "acknowledged": 2, "dropped": 0}
    assert await printed(daemon, "--since", "0", "--count", "2") == [(3, "3"), (4, "4")]


async def test_ack_up_to_a_cursor(daemon: FakeDaemon) -> None:
    await fill(daemon, 3)
    outcome = await hushcast("ack", "t", "2", "--json", "--socket", daemon.socket)
    assert (outcome.code, outcome.objects) == (0, [{"topic": "t", "cursor": 2}])
    assert await printed(daemon, "--since", "0", "--count", "1") == [(3, "3")]
    people = await hushcast("ack", "t", "3", "--where", "", "--socket", daemon.socket)
    assert (people.code, people.stdout, people.stderr) == (0, b"", "")


async def test_ack_of_what_has_not_come_is_refused(daemon: FakeDaemon) -> None:
    await fill(daemon, 3)
    outcome = await hushcast("ack", "t", "4", "--json", "--socket", daemon.socket)
    assert (outcome.code, outcome.stdout) == (4, b"")
    assert "has come to cursor 3, not yet to 4" in outcome.error
    since = await hushcast("subscribe", "t", "--since", "4", "--json", "--socket", daemon.socket)
    assert (since.code, since.stdout) == (4, b"")


@pytest.mark.parametrize("arguments", [["t"], ["t", "x"], ["t", "-1"], ["t", "--", "-1"], ["t", str(2**63)]])
async def test_impossible_cursors_are_wrong_usage(arguments: list[str]) -> None:
    assert (await hushcast("ack", *arguments)).code == 2


async def test_ack_with_a_link_from_a_file(daemon: FakeDaemon, tmp_path: Path) -> None:
    link = tmp_path / "t.link"
    await hushcast("topic", "new", "t", "--output", link)
    await fill(daemon, 3)
    outcome = await hushcast("ack", "--link-file", link, "3", "--json", "--socket", daemon.socket)
    assert (outcome.code, outcome.objects) == (0, [{"topic": "t", "cursor": 3}])


async def test_what_was_removed_is_told_before_what_is_kept(daemon: FakeDaemon) -> None:
    (await daemon.hold("t")).inbox.retention = InboxSection(max_bytes=2000)
    await fill(daemon, 10, size=500)
    arguments = ("subscribe", "t", "--count", "3", "--socket", daemon.socket)
    outcome = await hushcast(*arguments, "--json")
    assert outcome.objects[1] == {"event": "lost", "topic": "t", "count": 7}
    assert [cursor for cursor, _ in messages(outcome)] == [8, 9, 10]
    people = await hushcast(*arguments, "--since", "3")
    assert "lost: 4 messages" in people.stderr
    listed = await hushcast("subscriptions", "--socket", daemon.socket)
    assert "7 dropped unacknowledged" in listed.stdout.decode()


async def test_a_loss_that_was_told_is_not_told_again(daemon: FakeDaemon) -> None:
    (await daemon.hold("t")).inbox.retention = InboxSection(max_bytes=2000)
    await fill(daemon, 10, size=500)
    arguments = ("--json", "--socket", daemon.socket, "subscribe", "t", "--count")
    first = await hushcast(*arguments, "3")
    assert [event["event"] for event in first.objects] == ["subscribed", "lost"] + ["message"] * 3
    await daemon.put("t", b"11")
    again = await hushcast(*arguments, "1")
    assert [event["event"] for event in again.objects] == ["subscribed", "message"]


@pytest.mark.parametrize("as_json", [True, False])
async def test_what_was_lost_elsewhere_has_no_number(daemon: FakeDaemon, as_json: bool) -> None:
    subscription = await daemon.hold("t")
    subscription.lose(3)
    subscription.lose(None)
    await fill(daemon, 1)
    arguments = ("subscribe", "t", "--socket", daemon.socket, "--count", "1")
    outcome = await hushcast(*arguments, *(["--json"] if as_json else []))
    if as_json:
        assert outcome.objects[1] == {"event": "lost", "topic": "t", "count": None}
    else:
        assert "nobody knows how many" in outcome.stderr
    again = await hushcast(*arguments, "--json", "--since", "0")
    assert [event["event"] for event in again.objects] == ["subscribed", "message"]
