"""`hushcast subscribe`, `unsubscribe` and `subscriptions`: what is printed when, and how it ends."""

from __future__ import annotations

import base64
import signal
import subprocess
from typing import Any

import pytest
import trio
from fake_carrier import FakeRoute
from fake_daemon import NODES, REFUSAL, FakeDaemon
from running import COMMAND, ENOUGH, WITHIN, Running, Terminal, environment, hushcast

HOSTILE = "\x1b]0;owned\x07\x9b2J\rnew\N{RIGHT-TO-LEFT OVERRIDE}line\nnext"


async def listen(daemon: FakeDaemon, *arguments: str) -> Running:
    """Start a listener that prints JSON, and wait until it is subscribed."""
    running = await Running.start("--json", "--socket", daemon.socket, "subscribe", "t", *arguments)
    assert await running.object() == {"event": "subscribed", "topic": "t", "nodes": NODES}
    return running


@pytest.mark.slow
async def test_prints_the_events_of_the_contract(daemon: FakeDaemon) -> None:
    listener = await listen(daemon, "--count", "3")
    ids = [await daemon.put("t", payload) for payload in (b"hello", b"\xff\x00", b"")]
    outcome = await listener.outcome()
    assert (outcome.code, outcome.stderr) == (0, "")
    for event, message_id in zip(outcome.objects, ids, strict=True):
        assert list(event) == ["event", "topic", "id", "payload", "encoding", "received_at", "cursor"]
        assert (event["event"], event["topic"], event["id"]) == ("message", "t", message_id.hex())
        assert isinstance(event["received_at"], float)
    assert [(event["payload"], event["encoding"]) for event in outcome.objects] == [
        ("hello", "utf-8"),
        (base64.b64encode(b"\xff\x00").decode(), "base64"),
        ("", "utf-8"),
    ]


async def test_count_shows_exactly_what_was_printed(daemon: FakeDaemon) -> None:
    for payload in (b"first", b"second", b"third"):
        await daemon.put("t", payload)
    subscribe = ("--json", "--socket", daemon.socket, "subscribe", "t", "--count")
    earlier = await hushcast(*subscribe, "2")
    later = await hushcast(*subscribe, "1")
    assert [event["payload"] for event in earlier.objects[1:]] == ["first", "second"]
    assert [event["payload"] for event in later.objects[1:]] == ["third"]
    assert daemon.service.shown == [1, 2, 3]


@pytest.mark.slow
async def test_every_listener_gets_every_message(daemon: FakeDaemon) -> None:
    listeners = [await listen(daemon, "--count", "2") for _ in range(2)]
    await daemon.put("t", b"one")
    await daemon.put("t", b"two")
    for listener in listeners:
        outcome = await listener.outcome()
        assert outcome.code == 0
        assert [event["payload"] for event in outcome.objects] == ["one", "two"]


async def test_prints_payloads_for_people(daemon: FakeDaemon) -> None:
    await daemon.put("t", HOSTILE.encode())
    await daemon.put("t", b"\xff\x00")
    outcome = await hushcast("--socket", daemon.socket, "subscribe", "t", "--count", "2")
    assert outcome.code == 0
    assert outcome.stdout == HOSTILE.encode() + b"\n\xff\x00\n", "what is piped is not changed"
    assert outcome.stderr == f"subscribed: {NODES} relays route to this daemon\n"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--json"]])
async def test_payloads_cannot_drive_a_terminal(daemon: FakeDaemon, arguments: list[str]) -> None:
    await daemon.put("t", HOSTILE.encode())
    await daemon.put("t", b"\xff\x1b[2J")
    await daemon.put("t", b"the end")
    command = [*COMMAND, *arguments, "--socket", str(daemon.socket), "subscribe", "t", "--count", "3"]
    with Terminal() as terminal:
        await trio.run_process(command, stdout=terminal.slave, capture_stderr=True)
        await terminal.until(b"the end")
        seen = terminal.seen.replace(b"\r\n", b"\n").decode()
    assert not set(seen) & set("\x1b\x07\x9b\r\N{RIGHT-TO-LEFT OVERRIDE}")
    if not arguments:
        assert "\\x1b]0;owned\\x07\\x9b2J\\rnew\\u202eline\nnext\n" in seen


@pytest.mark.slow
async def test_timeout(daemon: FakeDaemon) -> None:
    await daemon.put("t", b"early")
    command = ("--json", "--socket", daemon.socket, "subscribe", "t", "--count", "2", "--timeout", ENOUGH)
    outcome = await hushcast(*command)
    assert outcome.code == 124
    assert outcome.error == f"{ENOUGH} seconds have passed, waiting for messages"
    assert [event["event"] for event in outcome.objects] == ["subscribed", "message"]
    assert daemon.service.shown == [1]


async def test_timeout_before_routes_are_installed(daemon: FakeDaemon) -> None:
    daemon.network.installed = trio.Event()
    outcome = await hushcast("--socket", daemon.socket, "subscribe", "t", "--timeout", "1")
    assert outcome.code == 124
    assert outcome.error == (
        "1 second has passed, waiting until relays or a server route to this daemon; "
        "`hushcast doctor` looks for what is wrong"
    )
    assert outcome.stdout == b""


@pytest.mark.slow
async def test_timeout_while_nobody_reads_on(daemon: FakeDaemon) -> None:
    """The pipe is full and the command sits in a write; time runs on."""
    await daemon.put("t", bytes(200_000))
    listener = await listen(daemon, "--timeout", "1")
    with trio.fail_after(WITHIN):
        assert await listener.process.wait() == 124
    await listener.outcome()
    assert daemon.service.shown == [], "what was not printed is not shown"


async def test_timeout_where_nobody_routes_any_more(daemon: FakeDaemon) -> None:
    daemon.network.nodes = 0
    outcome = await hushcast("--json", "--socket", daemon.socket, "subscribe", "t", "--timeout", "1")
    assert outcome.error == (
        "1 second has passed, waiting for messages, which no relay passes on to this daemon; "
        "`hushcast doctor` looks for what is wrong"
    )


@pytest.mark.slow
async def test_waiting_is_shown_on_a_terminal(daemon: FakeDaemon) -> None:
    daemon.network.installed, daemon.network.nodes = trio.Event(), 0
    with Terminal() as terminal:
        process = await trio.lowlevel.open_process(
            [*COMMAND, "--socket", str(daemon.socket), "subscribe", "t", "--count", "1"],
            stdout=subprocess.DEVNULL,
            stderr=terminal.slave,
            env=environment(TERM="xterm"),
        )
        await terminal.until(b"waiting until relays or a server route to this daemon: 0 do; if that")
        daemon.network.nodes = NODES
        await terminal.until(f"waiting until relays or a server route to this daemon: {NODES} do".encode())
        daemon.network.installed.set()
        await terminal.until(b"subscribed: ")
        await daemon.put("t", b"done")
        with trio.fail_after(WITHIN):
            assert await process.wait() == 0


@pytest.mark.slow
async def test_a_daemon_that_is_restarted_is_waited_for(daemon: FakeDaemon, nursery: trio.Nursery) -> None:
    listener = await listen(daemon, "--count", "2")
    await daemon.put("t", b"one")
    assert (await listener.object())["payload"] == "one"
    daemon.stop()
    await trio.sleep(1)
    await daemon.start(nursery)
    await daemon.put("t", b"two")
    outcome = await listener.outcome()
    assert (outcome.code, outcome.stderr.count("waiting for it")) == (0, 1)
    assert [event["event"] for event in outcome.objects] == ["subscribed", "message"]
    assert outcome.objects[1]["payload"] == "two"


@pytest.mark.slow
async def test_a_daemon_that_dies_is_not_waited_for_longer_than_asked(daemon: FakeDaemon) -> None:
    listener = await listen(daemon, "--timeout", "2")
    daemon.stop()
    assert (await listener.outcome()).code == 124


@pytest.mark.slow
async def test_several_topics_at_once(daemon: FakeDaemon) -> None:
    await daemon.put("one", b"1")
    await daemon.put("two", b"2")
    outcome = await hushcast("--socket", daemon.socket, "subscribe", "one", "two", "--count", "2", "--ack")
    assert outcome.code == 0
    lines = outcome.stdout.decode().splitlines()
    assert sorted(zip(lines[::2], lines[1::2], strict=True)) == [("[topic=one]", "1"), ("[topic=two]", "2")]
    assert await daemon.store.scan("inbox") == [], "all are acknowledged"


async def test_count_is_of_all_topics_together(daemon: FakeDaemon) -> None:
    for payload in (b"1", b"2", b"3"):
        await daemon.put("one", payload)
        await daemon.put("two", payload)
    outcome = await hushcast("--json", "--socket", daemon.socket, "subscribe", "one", "two", "--count", "4")
    assert len([event for event in outcome.objects if event["event"] == "message"]) == 4
    listed = await hushcast("subscriptions", "--json", "--socket", daemon.socket)
    assert sum(held["shown"] for held in listed.objects) == 4


async def test_count_0_ends_when_all_topics_are_routed(daemon: FakeDaemon) -> None:
    outcome = await hushcast("--json", "--socket", daemon.socket, "subscribe", "one", "two", "--count", "0")
    assert outcome.code == 0
    assert sorted(event["topic"] for event in outcome.objects) == ["one", "two"]


async def test_a_format(daemon: FakeDaemon) -> None:
    await daemon.put("t", b"\xffrain")
    outcome = await hushcast(
        "--socket", daemon.socket, "subscribe", "t", "--count", "1", "--format", "{time} {topic}: {payload}|"
    )
    moment, _, rest = outcome.stdout.partition(b" ")
    assert (len(moment), moment[-1:], rest) == (20, b"Z", b"t: \xffrain|\n")


async def test_a_format_may_have_any_bytes(daemon: FakeDaemon) -> None:
    await daemon.put("t", b"rain")
    outcome = await hushcast(
        "--socket", daemon.socket, "subscribe", "t", "--count", "1", "--format", b"\xff {payload}"
    )
    assert (outcome.code, outcome.stdout) == (0, b"\xff rain\n")


async def test_a_format_that_names_what_there_is_not(daemon: FakeDaemon) -> None:
    outcome = await hushcast(
        "--socket", daemon.socket, "subscribe", "t", "--format", "{payload.__class__} {what}"
    )
    assert outcome.code == 2
    assert "no {what}" in outcome.error
    assert "{payload}" not in outcome.stdout.decode()


async def test_wildcards_are_told_to_be_none(daemon: FakeDaemon) -> None:
    outcome = await hushcast("--socket", daemon.socket, "subscribe", "news/#", "--count", "0")
    assert outcome.code == 0
    assert "no wildcards" in outcome.stderr


@pytest.mark.slow
async def test_interrupt_ends_without_words(daemon: FakeDaemon) -> None:
    listener = await listen(daemon)
    listener.process.send_signal(signal.SIGINT)
    outcome = await listener.outcome()
    assert (outcome.code, outcome.stdout, outcome.stderr) == (130, b"", "")


@pytest.mark.slow
async def test_ends_as_soon_as_nobody_reads(daemon: FakeDaemon) -> None:
    """As in `hushcast subscribe t | head -1`: not only when the next message comes."""
    listener = await listen(daemon)
    assert listener.process.stdout is not None
    await listener.process.stdout.aclose()
    with trio.fail_after(WITHIN):
        assert await listener.process.wait() == 0
    assert listener.process.stderr is not None
    assert await listener.process.stderr.receive_some() == b""
    await listener.process.stderr.aclose()


@pytest.mark.slow
async def test_pipe_into_head(daemon: FakeDaemon) -> None:
    for number in range(20):
        await daemon.put("t", f"message {number}".encode())
    script = 'set -o pipefail; "$@" | head -1'
    with trio.fail_after(WITHIN):
        done = await trio.run_process(
            ["bash", "-c", script, "bash", *COMMAND, "--socket", daemon.socket, "subscribe", "t"],
            capture_stdout=True,
            capture_stderr=True,
        )
    assert done.stdout == b"message 0\n"
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
async def test_unsubscribing_ends_listeners(daemon: FakeDaemon) -> None:
    endless = await listen(daemon)
    counting = await listen(daemon, "--count", "1")
    outcome = await hushcast("--json", "--socket", daemon.socket, "unsubscribe", "t")
    assert (outcome.code, outcome.objects) == (0, [{"topic": "t", "existed": True}])
    assert (await endless.outcome()).code == 0
    cut = await counting.outcome()
    assert cut.code == 1
    assert "0 of 1" in cut.error


async def test_unsubscribing_from_nothing_is_no_error(daemon: FakeDaemon) -> None:
    outcome = await hushcast("unsubscribe", "t", "--socket", daemon.socket)
    assert (outcome.code, outcome.stdout) == (0, b"")
    assert "no subscription" in outcome.stderr


@pytest.mark.slow
async def test_subscriptions_are_listed(daemon: FakeDaemon) -> None:
    assert (await hushcast("subscriptions", "--json", "--socket", daemon.socket)).stdout == b""
    for topic in ("news", "größe"):
        await daemon.put(topic, b"")
    outcome = await hushcast("subscriptions", "--json", "--socket", daemon.socket)
    assert outcome.code == 0
    assert [held["topic"] for held in outcome.objects] == ["news", "größe"]
    people = await hushcast("subscriptions", "--socket", daemon.socket)
    news, size = [held["handle"] for held in outcome.objects]
    assert people.stdout.decode().splitlines() == [
        f"{news}  news  ({NODES} relays)",
        f"{size}  größe  ({NODES} relays)",
    ]


@pytest.mark.slow
async def test_without_trees_it_is_said_when_messages_come(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"nodes": 1, "by": "host", "outlook": "messages come within 2 hours, as a host asks for them"}

    async def covered(_: FakeRoute) -> dict[str, Any]:
        return {"probes": 0, "share": None, "low": 0.0, "high": 1.0, "suspects": [], "by": "host"}

    monkeypatch.setattr(FakeRoute, "describe", lambda _: told)
    monkeypatch.setattr(FakeRoute, "coverage", covered)
    begun = await hushcast("--socket", daemon.socket, "subscribe", "news", "--count", "0")
    assert "subscribed: 1 host asks for this daemon" in begun.stderr
    assert told["outlook"] in begun.stderr
    listed = (await hushcast("--socket", daemon.socket, "subscriptions")).stdout.decode()
    assert "(1 host, no tree: messages come when it asks for them)" in listed
    (held,) = (await hushcast("--socket", daemon.socket, "subscriptions", "--json")).objects
    assert (held["by"], held["outlook"]) == ("host", told["outlook"])
    coverage = await hushcast("--socket", daemon.socket, "coverage", "news")
    assert "nothing is probed" in coverage.stdout.decode()


async def test_refused_by_the_network(daemon: FakeDaemon) -> None:
    daemon.network.closed = REFUSAL
    outcome = await hushcast("subscribe", "unreachable", "--json", "--socket", daemon.socket)
    assert (outcome.code, outcome.error, outcome.stdout) == (4, REFUSAL, b"")


@pytest.mark.parametrize("since", ["3d", "2026-11-25"])
async def test_the_past_is_refused_where_nobody_keeps_it(daemon: FakeDaemon, since: str) -> None:
    outcome = await hushcast("--socket", daemon.socket, "subscribe", "t", "--since", since)
    assert outcome.code == 4
    assert "keeps nothing of what was published" in outcome.stderr


async def test_terms_are_refused_where_there_are_no_brokers(daemon: FakeDaemon) -> None:
    outcome = await hushcast("--socket", daemon.socket, "subscribe", "t", "--k", "5", "--otherwise", "wait")
    assert outcome.code == 4
    assert "need a network of brokers" in outcome.stderr


@pytest.mark.parametrize("given", [("--condition", "successor"), ("--otherwise", "wait"), ("--k", "0")])
async def test_terms_that_say_nothing_are_refused(daemon: FakeDaemon, given: tuple[str, ...]) -> None:
    outcome = await hushcast("--socket", daemon.socket, "subscribe", "t", *given)
    assert outcome.code == 2
    assert "--k" in outcome.stderr
