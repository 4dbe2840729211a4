"""The frame of a daemon process: what it does with a configuration that changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hushcast_directory.server.settings import DirectorySettings
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.processes.process import Configuration

TEXT = 'state = "/nowhere"\n[network]\nname = "n"\n[log]\nlevel = "info"\n'


def test_what_changed_during_the_start_is_applied_before_it_is_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """systemd merges a reload into a start that is under way, and sends no signal then."""
    file = tmp_path / "directory.toml"
    file.write_text(TEXT)
    settings = load_settings(file, DirectorySettings)
    configuration = Configuration(settings, lambda: load_settings(file, DirectorySettings))
    configuration.catch_up()
    assert capsys.readouterr().err == "", "nothing has changed"
    file.write_text(TEXT.replace("info", "debug"))
    configuration.catch_up()
    assert capsys.readouterr().err.count("configuration read again") == 1
    configuration.catch_up()
    assert capsys.readouterr().err == "", "only once"
    file.write_text(TEXT.replace("info", "loud"))
    configuration.catch_up()
    assert "going on with the one before" in capsys.readouterr().err


def test_a_reload_names_what_only_a_restart_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "directory.toml"
    file.write_text(TEXT)
    configuration = Configuration(
        load_settings(file, DirectorySettings), lambda: load_settings(file, DirectorySettings)
    )
    changed = 'first_roster = 2\nsocket_group = "x"\n' + TEXT.replace('"n"', '"m"').replace("info", "debug")
    file.write_text(changed + '[tor]\nmode = "system"\n')
    configuration.reload()
    told = capsys.readouterr().err
    assert "restart it to use them" in told
    for name in ("first_roster", "socket_group", "network.name", "tor.mode"):
        assert name in told
    assert "log" not in told.partition("settings=")[2]


STOPPED_AND_RELOADED = """
import signal, sys
from pathlib import Path
import trio
from hushcast_directory.server.settings import DirectorySettings
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.processes.process import run_until_signal
from hushcast_runtime.processes.readiness import Health

async def live(nursery: trio.Nursery) -> None:
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGHUP)
    await trio.sleep_forever()

settings = load_settings(Path(sys.argv[1]), DirectorySettings)
run_until_signal(settings, lambda: settings, live, lambda: Health(True, ""))
print("stopped")
"""


@pytest.mark.slow
def test_a_reload_that_comes_with_the_stop_does_not_kill(tmp_path: Path) -> None:
    file = tmp_path / "directory.toml"
    file.write_text(TEXT.replace("/nowhere", str(tmp_path / "state")))
    command = [sys.executable, "-c", STOPPED_AND_RELOADED, str(file)]
    for _ in range(3):  # which of the two signals is looked at first is not told
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
        assert "does not say which program it is of" in done.stderr
        assert 'program = "directory"' in done.stderr
