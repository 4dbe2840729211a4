"""`hushcast device`: links carried from one daemon to another by a sealed file."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from fake_daemon import FakeDaemon
from running import hushcast

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic, write_link
from hushcast_protocol.devices.shared_entries import ReadValue

FAMILY = make_topic("family", ("kind",), TopicSecret(bytes(range(32))))


@pytest.mark.slow
async def test_all_links_go_from_one_daemon_to_another(daemon: FakeDaemon, tmp_path: Path) -> None:
    await daemon.hold("news")
    fires = Interest(FAMILY, parse_where("kind = fire", FAMILY.attributes))
    held = await daemon.service.subscriber.subscribe(fires)
    password, file = tmp_path / "password", tmp_path / "links.sealed"
    password.write_bytes(b"correct horse\n")
    password.chmod(0o600)
    at = ("--socket", daemon.socket, "device")
    exported = await hushcast(*at, "export", file, "--password-file", password)
    assert (exported.code, exported.stdout) == (0, b"")
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"news" not in file.read_bytes()
    again = await hushcast(*at, "export", file, "--password-file", password)
    assert (again.code, "exists" in again.error) == (2, True)
    for topic in (None, "news"):
        if topic is None:
            await daemon.service.unsubscribe(held.interest.topic)
        imported = await hushcast(*at, "import", file, "--at-once", "--json", "--password-file", password)
        assert imported.code == 0
        (told,) = imported.objects
        assert told == ({"planned": 1, "held": 1, "within": 0.0} if topic is None else told)
        while len(daemon.service.subscriptions()) < 2:  # noqa: ASYNC110
            await trio.sleep(0.01)
    found = {(one["topic"], one["where"]) for one in daemon.service.subscriptions()}
    assert found == {("news", ""), ("family", 'kind = "fire"')}
    assert {held.interest for held in daemon.service.subscriber.subscriptions} >= {fires}
    assert write_link(FAMILY) not in imported.stderr


async def test_a_wrong_password_or_file_is_refused_with_the_way_out(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    file, password = tmp_path / "links.sealed", tmp_path / "password"
    file.write_bytes(b"something else")
    password.write_bytes(b"correct horse\n")
    password.chmod(0o644)
    at = ("--socket", daemon.socket, "device", "import", file)
    shown = await hushcast(*at, "--password-file", password)
    assert (shown.code, "chmod 600" in shown.error) == (2, True)
    password.chmod(0o600)
    other = await hushcast(*at, "--password-file", password)
    assert (other.code, "device export" in other.error) == (2, True)
    both = await hushcast(*at, "--at-once", "--within", "1")
    assert both.code == 2


async def test_two_daemons_join_are_listed_and_part(daemon: FakeDaemon, tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        other = FakeDaemon(tmp_path / "other.sock", network=daemon.network)
        await other.start(nursery)
        here, there = ("--socket", daemon.socket, "device"), ("--socket", other.socket, "device")
        alone = await hushcast(*here, "list")
        assert (alone.code, alone.stdout, "device invite" in alone.stderr) == (0, b"", True)
        invited = await hushcast(*here, "invite", "--name", "laptop", "--no-wait", "--json")
        (made,) = invited.objects
        file = tmp_path / "link"
        file.write_text(made["link"] + "\n")
        file.chmod(0o600)
        joined = await hushcast(*there, "join", "--link-file", file, "--name", "phone", "--json")
        assert joined.code == 0
        assert [(one["name"], one["this"]) for one in joined.objects] == [("laptop", False), ("phone", True)]
        listed = await hushcast(*here, "list")
        assert b"laptop  " in listed.stdout
        assert b"this device" in listed.stdout
        again = await hushcast(*there, "join", "--link-file", file)
        assert (again.code, "device leave" in again.error) == (4, True)
        topic = await hushcast("--socket", daemon.socket, "subscribe", made["link"], "--count", "0")
        assert (topic.code, "device join" in topic.error) == (2, True)
        key = tmp_path / "author.key"
        assert (await hushcast("admin", "key", "new", key)).code == 0
        assert (await hushcast(*here, "keys", "pen", "--share", key)).code == 0
        assert (await hushcast(*here, "keys", "pen", "--write", tmp_path / "again.key")).code == 0
        assert (tmp_path / "again.key").read_bytes() == key.read_bytes()
        shared = await hushcast(*here, "keys", "--json")
        assert [one["name"] for one in shared.objects] == ["pen"]
        assert (await hushcast(*here, "keys", "pen", "--forget")).code == 0
        for command in (("keys", "pen", "--forget"), ("keys", "pen", "--write", tmp_path / "no.key")):
            assert (await hushcast(*here, *command)).code == 4
        assert (await hushcast(*here, "keys", "pen")).code == 2
        unknown = await hushcast(*here, "remove", "tablet")
        assert (unknown.code, "device list" in unknown.error) == (2, True)
        removed = await hushcast(*here, "remove", "phone", "--json")
        assert [one["removed"] for one in removed.objects] == [False, True]
        assert (await hushcast(*here, "leave")).code == 0
        assert (await hushcast(*here, "leave")).code == 4
        other.stop()


async def test_once_leaves_out_what_was_read_on_any_device(daemon: FakeDaemon) -> None:
    await daemon.service.devices.invite("laptop")
    first, _, third = [await daemon.put("t", payload) for payload in (b"one", b"two", b"three")]
    circle = daemon.service.devices.circle
    await circle.write(ReadValue(circle.today, (first[:16], third[:16])))
    await daemon.put("t", b"four")
    listen = ("--socket", daemon.socket, "subscribe", "t", "--json", "--since", "0", "--count")
    once = await hushcast(*listen, "2", "--once")
    assert [one["payload"] for one in once.objects if "payload" in one] == ["two", "four"]
    each = await hushcast(*listen, "4")
    assert [one["payload"] for one in each.objects if "payload" in one] == ["one", "two", "three", "four"]
