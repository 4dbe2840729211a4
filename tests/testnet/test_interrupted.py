"""`testnet up` that is ended early leaves nothing running, whenever that is."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

LONG = 60.0  # seconds


def left(directory: Path) -> list[str]:
    """Return the commands that name the testnet's directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_text().replace("\0", " ")
        except OSError:
            continue
        if str(directory) in command:
            found.append(command)
    return found


@pytest.mark.parametrize(
    ("number", "after"),
    [(signal.SIGINT, 0.0), (signal.SIGINT, 0.15), (signal.SIGINT, 0.6), (signal.SIGTERM, 0.3)],
)
def test_nothing_is_left(tmp_path: Path, number: signal.Signals, after: float) -> None:
    directory = tmp_path / "net"
    command = [str(Path(sys.executable).with_name("hushcast")), "testnet", "up", "--dir", str(directory)]
    command += ["--nodes", "8", "--clients", "1", "--transport", "tcp"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as up:
        assert up.stderr is not None
        for line in up.stderr:
            if "starting 8 relays" in line:
                break
        time.sleep(after)
        up.send_signal(number)
        if number == signal.SIGINT:
            up.send_signal(number)  # impatience changes nothing
        assert up.wait(LONG) == 128 + number
    assert left(directory) == []
