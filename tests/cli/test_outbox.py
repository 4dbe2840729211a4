"""`hushcast publish --no-wait`, `hushcast outbox`, and what a publisher learns where no receipt comes."""

from __future__ import annotations

import math
import time

import pytest
import trio
from fake_daemon import REFUSAL, FakeDaemon
from running import ENOUGH, Running, hushcast

from hushcast_local import outbox

STAYS = "stays in the outbox"
SILENCE = "no relay gave a receipt: it fell silent"


def fall_silent(daemon: FakeDaemon) -> None:
    """No receipt comes for now."""
    daemon.network.lost_receipts, daemon.network.silence = math.inf, SILENCE


async def test_no_wait_returns_once_it_is_queued(daemon: FakeDaemon) -> None:
    daemon.network.receipts = trio.Event()
    outcome = await hushcast("publish", "t", "x", "--no-wait", "--json", "--socket", daemon.socket)
    assert (outcome.code, outcome.stderr) == (0, "")
    (queued,) = outcome.objects
    assert list(queued) == ["id", "topic", "receipt"]
    assert (queued["topic"], queued["receipt"]) == ("t", "queued")
    assert [held["id"] for held in daemon.service.outbox()] == [queued["id"]]


async def test_no_wait_for_people(daemon: FakeDaemon) -> None:
    outcome = await hushcast("publish", "t", "x", "--no-wait", "--socket", daemon.socket)
    assert outcome.code == 0
    assert outcome.stdout.startswith(b"queued ")


async def test_no_wait_is_taken_where_waiting_is_refused(daemon: FakeDaemon) -> None:
    daemon.network.closed = REFUSAL
    publish = ("publish", "unreachable", "x", "--json", "--socket", daemon.socket)
    assert (await hushcast(*publish)).code == 4
    assert daemon.service.outbox() == []
    assert (await hushcast(*publish, "--no-wait")).code == 0
    assert len(daemon.service.outbox()) == 1


async def test_without_a_receipt_it_fails_and_says_where_the_message_is(daemon: FakeDaemon) -> None:
    fall_silent(daemon)
    outcome = await hushcast("publish", "silent", "x", "--json", "--socket", daemon.socket)
    assert outcome.code == 1
    assert outcome.error.startswith(f"{SILENCE}: ")
    assert STAYS in outcome.error
    assert "do not publish it again" in outcome.error
    (queued,) = outcome.objects
    assert queued["receipt"] == "queued"
    assert [held["id"] for held in daemon.service.outbox()] == [queued["id"]]


@pytest.mark.slow
async def test_timeout_says_where_the_message_is(daemon: FakeDaemon) -> None:
    daemon.network.receipts = trio.Event()
    publish = ("publish", "t", "x", "--timeout", ENOUGH, "--socket", daemon.socket)
    outcome = await hushcast(*publish, "--json")
    (queued,) = outcome.objects
    assert (outcome.code, queued["receipt"]) == (124, "queued")
    assert outcome.error == (
        f"{ENOUGH} seconds have passed, waiting for a relay's receipt: the message {queued['id']} {STAYS}, "
        "so do not publish it again"
    )
    people = await hushcast(*publish)
    assert (people.code, people.stdout) == (124, b"")
    assert STAYS in people.error


@pytest.mark.slow
async def test_a_daemon_that_goes_away_says_where_the_message_is(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.network.receipts = trio.Event()
    heard = trio.Event()  # the command asks for the receipt once it has heard that the message is there
    taken = daemon.service.taken

    async def asked(token: bytes) -> object:
        heard.set()
        return await taken(token)

    monkeypatch.setattr(daemon.service, "taken", asked)
    running = await Running.start("--json", "--socket", daemon.socket, "publish", "t", "x")
    with trio.fail_after(30):
        await heard.wait()
    daemon.stop()
    outcome = await running.outcome()
    assert outcome.code == 3
    assert STAYS in outcome.error
    assert [queued["receipt"] for queued in outcome.objects] == ["queued"]


@pytest.mark.slow
async def test_who_waits_hears_that_it_was_taken_back(daemon: FakeDaemon) -> None:
    daemon.network.receipts = trio.Event()
    running = await Running.start("--json", "--socket", daemon.socket, "publish", "t", "x")
    with trio.fail_after(30):
        while not (waiting := daemon.service.outbox()):  # noqa: ASYNC110 - another process makes it true
            await trio.sleep(0.01)
    outcome = await hushcast("outbox", "--cancel", waiting[0]["id"], "--socket", daemon.socket)
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, b"", "")
    daemon.network.receipts.set()
    taken_back = await running.outcome()
    assert (taken_back.code, taken_back.stdout) == (4, b"")
    assert "taken back" in taken_back.error


async def test_a_full_outbox_refuses(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_PUBLICATIONS", 0)
    outcome = await hushcast("publish", "t", "x", "--no-wait", "--json", "--socket", daemon.socket)
    assert (outcome.code, outcome.stdout) == (4, b"")
    assert "the outbox is full" in outcome.error


async def test_what_waits_is_listed(daemon: FakeDaemon) -> None:
    listing = ("outbox", "--socket", daemon.socket)
    empty = await hushcast(*listing)
    assert (empty.stdout, empty.stderr) == (
        b"",
        "the outbox is empty: relays have taken all that was published\n",
    )
    assert (await hushcast(*listing, "--json")).stderr == ""
    fall_silent(daemon)
    before = time.time()
    await hushcast("publish", "silent", "x", "--socket", daemon.socket)
    outcome = await hushcast(*listing, "--json")
    assert outcome.code == 0
    (held,) = outcome.objects
    assert before - 1 <= held.pop("since") <= time.time()
    assert time.time() < held.pop("next_attempt")
    assert len(bytes.fromhex(held.pop("id"))) == 32
    assert held == {
        "topic": "silent",
        "state": "waiting",
        "receipts": 0,
        "attempts": 3,
        "reason": SILENCE,
    }
    people = (await hushcast(*listing)).stdout.decode()
    assert people.count("\n") == 1
    assert "silent" in people
    assert "3 attempts, waiting, again in " in people


async def test_what_waits_is_taken_back(daemon: FakeDaemon) -> None:
    daemon.network.receipts = trio.Event()
    publish = await hushcast("publish", "t", "x", "--no-wait", "--json", "--socket", daemon.socket)
    message_id = publish.objects[0]["id"]
    cancel = ("outbox", "--cancel", message_id, "--json", "--socket", daemon.socket)
    outcome = await hushcast(*cancel)
    assert (outcome.code, outcome.objects) == (0, [{"id": message_id, "topic": "t", "cancelled": True}])
    assert daemon.service.outbox() == []
    again = await hushcast(*cancel)
    assert (again.code, again.stdout) == (4, b"")
    assert "no such message" in again.error


async def test_an_impossible_id_is_wrong_usage(daemon: FakeDaemon) -> None:
    outcome = await hushcast("outbox", "--cancel", "news", "--socket", daemon.socket)
    assert outcome.code == 2
    assert "hexadecimal" in outcome.error
