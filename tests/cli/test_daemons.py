"""`node run`, `directory run`, `check-config`: a bad configuration is refused in the same words by all."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Running, hushcast

from hushcast_protocol.addresses import onion_address
from hushcast_protocol.secrets import Seed

ONION = onion_address(Seed(bytes(32)).public())
DIRECTORY = """
state = "{state}"
transport = "{transport}"
[network]
name = "test"
"""
NODE = (
    'role = "relay"\n'
    + DIRECTORY
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
    outcome = await hushcast("check-config", file, "--json")
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
    checked = await hushcast("check-config", file)
    run = await hushcast("node", "run", "--config", file)
    assert checked.code == run.code == 2
    assert checked.error == run.error
    assert told in checked.error
    assert str(file) in checked.error
    assert not (tmp_path / "state").exists()


async def test_bad_directory_configuration(tmp_path: Path) -> None:
    file = written(tmp_path, "first_roster = 0\n" + DIRECTORY)
    checked = await hushcast("check-config", file)
    run = await hushcast("directory", "run", "--config", file)
    assert checked.code == run.code == 2
    assert checked.error == run.error
    assert "first_roster" in checked.error


async def test_missing_configuration(tmp_path: Path) -> None:
    outcome = await hushcast("check-config", tmp_path / "none.toml")
    assert outcome.code == 2
    assert "none.toml" in outcome.error


async def test_directory_runs_until_a_signal(tmp_path: Path) -> None:
    file = written(tmp_path, DIRECTORY, transport="tcp")
    running = await Running.start("directory", "run", "--config", file)
    assert running.process.stderr is not None
    logged = b""
    while b"running" not in logged:
        part = await running.process.stderr.receive_some()
        assert part, logged
        logged += part
    second = await hushcast("directory", "run", "--config", file)
    assert second.code == 2
    assert "another daemon" in second.error
    running.process.terminate()
    outcome = await running.outcome()
    assert (outcome.code, outcome.stdout) == (0, b"")
    assert (tmp_path / "state" / "network.toml").exists()
