"""`directory probe`: hidden subscriptions at a daemon, over its real control socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from fake_daemon import FakeDaemon
from running import Running, hushcast, until

CONFIG = """
program = "directory"
state = "{folder}/state"
transport = "tcp"
expelled = "{list}"
[network]
name = "{network}"
epoch_seconds = 5
"""


class OfNetwork(FakeDaemon):
    """A daemon that says which network it is of."""

    def status(self) -> dict[str, Any]:
        return super().status() | {"network": "test"}


def config(tmp_path: Path, network: str = "test", list_: str = "probe/expelled") -> Path:
    file = tmp_path / "directory.toml"
    file.write_text(CONFIG.format(folder=tmp_path, list=tmp_path / list_, network=network))
    return file


@pytest.mark.slow
async def test_a_daemon_is_given_hidden_subscriptions(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        daemon = OfNetwork(tmp_path / "control.sock")
        running = await Running.start(
            "directory",
            "probe",
            "--config",
            config(tmp_path),
            "--socket",
            daemon.socket,
            "--subscriptions",
            "6",
        )
        await daemon.start(nursery)  # it is waited for
        await until(lambda: len(daemon.service.subscriptions()) == 6)
        topics = {held["topic"] for held in daemon.service.subscriptions()}
        assert all(len(bytes.fromhex(topic)) == 16 for topic in topics)
        assert (tmp_path / "probe/expelled").read_text().startswith("# Relays that this directory leaves")
        evidence = tmp_path / "probe/expelled.evidence"
        assert all(topic in evidence.read_text() for topic in topics)
        assert (evidence.stat().st_mode & 0o777, evidence.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        running.process.terminate()
        outcome = await running.outcome()
        assert outcome.code == 0, outcome.stderr
        assert not any(topic in outcome.stderr for topic in topics)
        assert not (tmp_path / "state").exists()
        daemon.stop()


async def test_a_daemon_of_another_network_is_refused(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        daemon = OfNetwork(tmp_path / "control.sock")
        await daemon.start(nursery)
        file = config(tmp_path, network="another")
        outcome = await hushcast("admin", "directory", "probe", "--config", file, "--socket", daemon.socket)
        assert outcome.code == 2
        assert "the daemon is of the network test, and the directory of another" in outcome.stderr
        daemon.stop()


@pytest.mark.parametrize(
    ("list_", "told"), [("state/expelled", "a folder of its own"), ("", "name the file")]
)
async def test_the_list_has_a_place_of_its_own(tmp_path: Path, list_: str, told: str) -> None:
    file = config(tmp_path, list_=list_)
    if not list_:
        file.write_text(file.read_text().replace("expelled =", "# expelled ="))
    outcome = await hushcast("admin", "directory", "probe", "--config", file)
    assert outcome.code == 2
    assert told in outcome.error


async def test_coverage_tells_losses_where_it_is_asked_for_them(daemon: FakeDaemon) -> None:
    from hushcast.daemon import connect

    await daemon.hold("t")
    async with connect(daemon.socket) as asked:
        (plain,) = await asked.coverage("t")
        (told,) = await asked.coverage("t", losses=True)
    assert "losses" not in plain.described
    assert told.described == plain.described | {"losses": {}}


async def test_coverage_names_each_relay_that_loses_messages_in_a_line(daemon: FakeDaemon) -> None:
    route = (await daemon.hold("t")).route
    found = {"probes": 4, "share": 0.5, "low": 0.1, "high": 0.9, "suspects": ["ab" * 32, "cd" * 32]}

    async def coverage() -> dict[str, Any]:
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(route, "coverage", coverage)
        outcome = await hushcast("coverage", "t", "--socket", daemon.socket)
    assert outcome.stdout.decode().splitlines() == [
        "t  (50.0% of 4 drops arrived; 95 %: 10.0% to 90.0%)",
        f"  loses messages: {'ab' * 32}",
        f"  loses messages: {'cd' * 32}",
    ]
