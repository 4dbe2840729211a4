"""What the doctor of a gateway finds, one thing wrong at a time."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from made_certificates import Certificates
from ports import free_port

from hushcast.control_messages import Finding
from hushcast_gateway.doctor import FILES_BESIDE, GatewayDoctor
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.mqtt.mqtt_broker import MqttBroker
from hushcast_runtime.processes.config import parse_settings
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import SqliteStore

NOBODY = 65_534  # a user that every machine has
FILES = FILES_BESIDE + GatewaySettings().limits.clients
ANONYMOUS = '[anonymous]\npublish = ["#"]\n'


async def findings(tmp_path: Path, text: str, now: float | None = None) -> dict[str, Finding]:
    text = f'state = "{tmp_path}/state"\n' + text
    settings = parse_settings(text.encode(), "gateway.toml", GatewaySettings)
    found = await GatewayDoctor(settings, time.time() if now is None else now).examine()
    return {finding.check: finding for finding in found}


def tls(certificates: Certificates, name: str, port: int) -> str:
    return (
        f'[[listen]]\nkind = "tls"\nport = {port}\ncertificate = "{certificates.path(name + ".pem")}"\n'
        f'key = "{certificates.path(name + ".key")}"\n'
    )


async def test_certificates(certificates: Certificates, tmp_path: Path) -> None:
    port = free_port()
    check = "certificate of listen #1"
    good = await findings(tmp_path, ANONYMOUS + tls(certificates, "gateway", port))
    assert good[check].verdict == "good"
    soon = await findings(tmp_path, ANONYMOUS + tls(certificates, "gateway", port), time.time() + 20 * 86_400)
    assert (soon[check].verdict, "9 days left" in soon[check].found) == ("warning", True)
    key = Path(certificates.path("gateway.key"))
    key.chmod(0o644)
    readable = await findings(tmp_path, ANONYMOUS + tls(certificates, "gateway", port))
    key.chmod(0o600)
    assert (readable[check].verdict, readable[check].advice) == ("bad", f"chmod o= {key}")
    old = await findings(tmp_path, ANONYMOUS + tls(certificates, "old", port))
    assert (old[check].verdict, "expired" in old[check].found) == ("bad", True)


async def test_a_state_that_others_may_enter(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o755)
    assert (await findings(tmp_path, ANONYMOUS))["state"].verdict == "bad"
    (tmp_path / "state").chmod(0o700)
    assert (await findings(tmp_path, ANONYMOUS))["state"].verdict == "good"


async def test_users_who_may_do_nothing(tmp_path: Path) -> None:
    found = await findings(tmp_path, "[users.bob]\nuid = [1]\n" + ANONYMOUS)
    assert found["users"].verdict == "warning"
    assert "bob may do nothing" in found["users"].found
    assert (await findings(tmp_path, ANONYMOUS))["users"].verdict == "good"


async def test_unix_sockets(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    text = ANONYMOUS + f'[[listen]]\nkind = "unix"\npath = "{path}"\n'
    assert (await findings(tmp_path, text))["listen #1"].verdict == "good"
    no_group = await findings(tmp_path, 'socket_group = "no-such-group"\n' + text)
    assert (no_group["listen #1"].verdict, "no-such-group" in no_group["listen #1"].found) == ("bad", True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        assert (await findings(tmp_path, text))["listen #1"].verdict == "bad"


async def test_the_daemons_socket(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    text = ANONYMOUS + f'[daemon]\nsocket = "{path}"\n'
    absent = (await findings(tmp_path, text))["daemon"]
    assert (absent.verdict, "No such file" in absent.found) == ("bad", True)
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(path))
        daemon.listen()
        assert (await findings(tmp_path, text))["daemon"].verdict == "good"


async def test_links(tmp_path: Path) -> None:
    link = tmp_path / "house.link"
    text = ANONYMOUS + f'[daemon]\nsocket = "/s"\n[[gateway.alias]]\nname = "house"\nlink_file = "{link}"\n'
    absent = await findings(tmp_path, text)
    assert absent["link of house"].verdict == "bad"
    link.write_text("a link")
    link.chmod(0o644)
    assert (await findings(tmp_path, text))["link of house"].advice == f"chmod 600 {link}"
    link.chmod(0o600)
    assert (await findings(tmp_path, text))["link of house"].verdict == "good"


@pytest.mark.parametrize(
    ("alias", "daemon", "count"), [("house", True, 0), ("other", True, 2), ("house", False, 2)]
)
async def test_messages_whose_topics_do_not_travel_any_more(
    tmp_path: Path, alias: str, daemon: bool, count: int
) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    store = SqliteStore(tmp_path / "state" / DATABASE)
    broker = MqttBroker(os.urandom, 0.0)
    for topic in ("hush/house/lock", "hush/house/lamp", "lamp"):
        broker.arrived(topic, b"x", 1, True, {}, 0.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await store.write(*(Change(*one) for one in broker.ledger.take()))
        nursery.cancel_scope.cancel()
    store.close()
    text = f'[daemon]\nsocket = "/s"\n[[gateway.alias]]\nname = "{alias}"\nlink_file = "/l"\n'
    found = await findings(tmp_path, ANONYMOUS + (text if daemon else ""))
    assert ("kept back" in found) == bool(count)
    if count:
        assert f"{count} messages" in found["kept back"].found


async def test_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda which: (FILES - 1, FILES))
    assert (await findings(tmp_path, ANONYMOUS))["open files"].verdict == "bad"


@pytest.fixture
def with_few_files() -> Iterator[int]:
    """Return the pid of a process that may open 64 files."""
    command = ["/bin/sh", "-c", "ulimit -n 64; echo; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started.pid


async def test_open_files_of_a_gateway_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_few_files: int
) -> None:
    """They are what counts: a shell of root's may open fewer than the unit, or more."""
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setattr("resource.getrlimit", lambda which: (FILES, FILES))
    monkeypatch.setattr("hushcast_runtime.processes.doctor.holder", lambda state: with_few_files)
    assert (await findings(tmp_path, ANONYMOUS))["open files"].found.startswith("64 allowed")


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """A folder that every user may enter, as pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="hushcast-doctor-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root looks with another's eyes")
async def test_a_link_that_is_not_the_gateways(anybodys: Path) -> None:
    """Its user cannot read what root made; root could."""
    tmp_path = anybodys
    (tmp_path / "state").mkdir(mode=0o700)
    os.chown(tmp_path / "state", NOBODY, NOBODY)
    link = tmp_path / "house.link"
    link.write_text("a link")
    link.chmod(0o600)
    text = ANONYMOUS + f'[daemon]\nsocket = "/s"\n[[gateway.alias]]\nname = "house"\nlink_file = "{link}"\n'
    found = (await findings(tmp_path, text))["link of house"]
    assert (found.verdict, found.advice) == ("bad", f"give it to the gateway's user: chown nobody {link}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter any directory")
async def test_a_state_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o000)
    assert (await findings(tmp_path, ANONYMOUS))["state"].verdict == "bad"
