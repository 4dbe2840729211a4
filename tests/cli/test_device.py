"""`hushcast device`: links carried from one daemon to another by a sealed file."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from fake_daemon import FakeDaemon
from running import hushcast

from hushcast_protocol.base.secrets import TopicSecret
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic, write_link

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
