"""`run node`, `run directory`, `check-config`: a bad configuration is refused in the same words by all."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import pytest
import trio
from running import WITHIN, Running, hushcast

from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed

ONION = onion_address(Seed(bytes(32)).public())
_BOTH = """
state = "{state}"
transport = "{transport}"
[network]
name = "test"
"""
DIRECTORY = 'program = "directory"\n' + _BOTH
NODE = (
    'program = "node"\nrole = "relay"\n'
    + _BOTH
    + f'directory = "{{directory}}"\ndirectory_key = "{Seed(bytes(32)).public().hex()}"\n'
)


def written(tmp_path: Path, text: str, **values: str) -> Path:
    file = tmp_path / "config.toml"
    defaults = {"state": str(tmp_path / "state"), "transport": "tor", "directory": ONION}
    file.write_text(text.format(**defaults | values))
    return file


@pytest.mark.parametrize(
    ("text", "kind"),
    [(NODE, "relay"), (NODE.replace('"relay"', '"client"'), "client"), (DIRECTORY, "directory")],
    ids=["relay", "client", "directory"],
)
async def test_good_configurations(tmp_path: Path, text: str, kind: str) -> None:
    file = written(tmp_path, text)
    outcome = await hushcast("admin", "check-config", file, "--json")
    assert (outcome.code, outcome.objects) == (0, [{"file": str(file), "kind": kind}])
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ('colour = "red"\n' + NODE, {}, "colour"),
        (NODE.replace('"relay"', "7"), {}, "role"),
        (NODE.replace('role = "relay"', ""), {}, "role"),
        (NODE, {"directory": "198.51.100.1:80"}, "network.directory"),
        (NODE, {"directory": "127.0.0.1:80"}, "network.directory"),
        (NODE, {"state": "relative"}, "state"),
        (
            NODE.replace("[network]", '[tor]\nmode = "system"\nsocks = "198.51.100.1:9050"\n[network]'),
            {},
            "tor",
        ),
        ("role = ", {}, "TOML"),
    ],
    ids=["unknown", "type", "missing", "not onion", "loopback", "relative", "remote tor", "not TOML"],
)
async def test_bad_node_configurations(tmp_path: Path, text: str, values: dict[str, str], told: str) -> None:
    file = written(tmp_path, text, **values)
    checked = await hushcast("admin", "check-config", file)
    run = await hushcast("run", "node", "--config", file)
    assert checked.code == run.code == 2
    assert checked.error == run.error
    assert told in checked.error
    assert str(file) in checked.error
    assert not (tmp_path / "state").exists()


async def test_bad_directory_configuration(tmp_path: Path) -> None:
    file = written(tmp_path, "first_roster = 0\n" + DIRECTORY)
    checked = await hushcast("admin", "check-config", file)
    run = await hushcast("run", "directory", "--config", file)
    assert checked.code == run.code == 2
    assert checked.error == run.error
    assert "first_roster" in checked.error


async def test_missing_configuration(tmp_path: Path) -> None:
    outcome = await hushcast("admin", "check-config", tmp_path / "none.toml")
    assert outcome.code == 2
    assert "none.toml" in outcome.error


async def logged(running: Running, word: bytes) -> bytes:
    """Read standard error until it has a word; return what was read."""
    assert running.process.stderr is not None
    read = b""
    with trio.fail_after(WITHIN):
        while word not in read:
            part = await running.process.stderr.receive_some()
            assert part, read
            read += part
    return read


@pytest.mark.slow
async def test_a_signal_applies_what_can_be_applied(tmp_path: Path) -> None:
    file = written(tmp_path, DIRECTORY + '[log]\nlevel = "info"\n', transport="tcp")
    running = await Running.start("run", "directory", "--config", file)
    await logged(running, b"running")
    good = file.read_text()
    file.write_text(good.replace("info", "loud"))
    running.process.send_signal(signal.SIGHUP)
    assert b"log.level" in await logged(running, b"going on with the one before")
    file.write_text("first_roster = 2\n" + good.replace("info", "warning"))
    running.process.send_signal(signal.SIGHUP)
    read = await logged(running, b"settings have changed that a running daemon cannot take")
    assert b"configuration read again" not in read, "info is not told any more"
    file.write_text(good)
    running.process.send_signal(signal.SIGHUP)
    await logged(running, b"configuration read again")
    running.process.terminate()
    assert (await running.outcome()).code == 0


@pytest.mark.slow
async def test_a_daemon_tells_its_service_manager(tmp_path: Path) -> None:
    file = written(tmp_path, DIRECTORY, transport="tcp")
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(tmp_path / "notify"))
    heard.settimeout(WITHIN)
    with heard:
        running = await Running.start(
            "run", "directory", "--config", file, NOTIFY_SOCKET=str(tmp_path / "notify")
        )
        lines: list[str] = []
        while "READY=1" not in lines:
            lines += (await trio.to_thread.run_sync(heard.recv, 4096)).decode().splitlines()
        assert (tmp_path / "state" / "network.toml").exists(), "ready means that relays can join"
        running.process.terminate()
        while lines[-1] != "STATUS=stopping":
            lines += (await trio.to_thread.run_sync(heard.recv, 4096)).decode().splitlines()
    assert (await running.outcome()).code == 0
    assert lines.count("READY=1") == 1
    assert "STOPPING=1" in lines


@pytest.mark.slow
async def test_metrics_of_a_directory(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.sock"
    file = written(tmp_path, f'metrics = "unix:{metrics}"\n' + DIRECTORY, transport="tcp")
    running = await Running.start("run", "directory", "--config", file)
    await logged(running, b"running")
    answers = []
    for path in (b"metrics", b"readyz"):
        async with await trio.open_unix_socket(metrics) as stream:
            await stream.send_all(b"GET /%s HTTP/1.1\r\n\r\n" % path)
            answers.append(b"".join([bytes(part) async for part in stream]))
    assert b"\nhushcast_ready 1.0\n" in answers[0]
    build = rb'\nhushcast_build_info{program="directory",role="directory",version="[0-9.]+"} 1.0\n'
    assert re.search(build, answers[0])
    assert answers[1].startswith(b"HTTP/1.1 200 OK\r\n")
    checked = await hushcast("healthcheck", "--config", file)
    assert (checked.code, checked.stdout[:7]) == (0, b"ready: ")
    running.process.terminate()
    assert (await running.outcome()).code == 0
    assert not metrics.exists()
    assert (await hushcast("healthcheck", "--config", file)).code == 3


@pytest.mark.slow
async def test_directory_runs_until_a_signal(tmp_path: Path) -> None:
    file = written(tmp_path, DIRECTORY, transport="tcp")
    running = await Running.start("run", "directory", "--config", file)
    assert running.process.stderr is not None
    logged = b""
    while b"running" not in logged:
        part = await running.process.stderr.receive_some()
        assert part, logged
        logged += part
    second = await hushcast("run", "directory", "--config", file)
    assert second.code == 2
    assert "another daemon" in second.error
    running.process.terminate()
    outcome = await running.outcome()
    assert (outcome.code, outcome.stdout) == (0, b"")
    assert (tmp_path / "state" / "network.toml").exists()
