"""Handles, and names that do not say which topic is meant, on the command line."""

from __future__ import annotations

from pathlib import Path

from fake_daemon import FakeDaemon
from running import hushcast

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.topics import make_topic, write_link

FAMILY = write_link(make_topic("family", ("kind",), TopicSecret(bytes(range(32)))))


async def test_a_private_topic_named_by_its_name_does_not_go_out(daemon: FakeDaemon, tmp_path: Path) -> None:
    handle = (await daemon.hold(FAMILY)).handle
    for arguments in (("publish", "family", "secret"), ("subscribe", "family", "--count", "0")):
        refused = await hushcast("--socket", daemon.socket, *arguments)
        assert refused.code == 4
        assert "private" in refused.error
        assert handle in refused.error
        assert "--open" in refused.error
    assert daemon.published == []
    assert (await hushcast("--socket", daemon.socket, "publish", handle, "--set", "kind=x", "us")).code == 0
    assert (await hushcast("--socket", daemon.socket, "publish", "--open", "family", "all")).code == 0
    assert daemon.published == [("family", b"us"), ("family", b"all")]
    assert len(daemon.service.subscriptions()) == 1


async def test_a_subscription_is_ended_by_what_is_listed(daemon: FakeDaemon) -> None:
    handle = (await daemon.hold(FAMILY)).handle
    listed = await hushcast("--socket", daemon.socket, "subscriptions")
    assert listed.stdout.decode().startswith(f"{handle}  family  (private, ")
    for command in (("unsubscribe", "family"), ("coverage", "family"), ("ack", "family", "0")):
        refused = await hushcast("--socket", daemon.socket, *command)
        assert refused.code == 4
        assert handle in refused.error
    assert (await hushcast("--socket", daemon.socket, "ack", handle, "0", "--json")).objects == [
        {"topic": "family", "cursor": 0}
    ]
    assert (await hushcast("--socket", daemon.socket, "coverage", handle)).code == 0
    ended = await hushcast("--socket", daemon.socket, "unsubscribe", handle, "--json")
    assert ended.objects == [{"topic": "family", "existed": True}]
    assert daemon.service.subscriptions() == []


async def test_all_subscriptions_are_ended_at_once(daemon: FakeDaemon) -> None:
    end = ("--socket", daemon.socket, "unsubscribe", "--all")
    nothing = await hushcast(*end)
    assert (nothing.code, nothing.stdout) == (0, b"")
    assert "there was no subscription" in nothing.stderr
    for topic in ("news", FAMILY):
        await daemon.hold(topic)
    assert (await hushcast(*end, "--json")).objects == [
        {"topic": "news", "existed": True},
        {"topic": "family", "existed": True},
    ]
    assert daemon.service.subscriptions() == []
    await daemon.hold(FAMILY)
    assert "1 subscription ended" in (await hushcast(*end)).stderr
    for more in (["news"], ["--where", "kind=x"]):
        refused = await hushcast(*end, *more)
        assert refused.code == 2
        assert "leave TOPIC, --link-file and --where away" in refused.error
    nowhere = await hushcast("--socket", daemon.socket, "unsubscribe")
    assert (nowhere.code, "or --all" in nowhere.error) == (2, True)


async def test_who_reads_and_is_away_at_times_is_told_what_that_shows(daemon: FakeDaemon) -> None:
    presence = "this daemon was away: leave it on"
    daemon.network.said = {"outlook": "under cover letters tell relays of it", "presence": presence}
    begun = await hushcast("--socket", daemon.socket, "subscribe", "news", "--count", "0")
    assert f"under cover letters tell relays of it; {presence}" in begun.stderr
    await daemon.hold("weather")
    listed = await hushcast("--socket", daemon.socket, "subscriptions")
    assert listed.stderr.count(presence) == 1, "it is the same of all"
    told = await hushcast("--socket", daemon.socket, "subscriptions", "--json")
    assert [one["presence"] for one in told.objects] == [presence, presence]
    assert not told.stderr
    daemon.network.said = {}
    listed = await hushcast("--socket", daemon.socket, "subscriptions")
    assert presence not in listed.stderr
