"""Take-over: a few kills of what `make soak` does twenty of, and what a gateway does that stands by."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from soak.take_over import Pair, watch_take_overs

pytestmark = pytest.mark.processes


def test_nothing_acknowledged_is_lost_when_another_gateway_takes_over(tmp_path: Path) -> None:
    figures = watch_take_overs(tmp_path / "pair", 2, 1, lambda text: None)
    assert figures["ok"], figures
    assert figures["acknowledged"] > 100


def test_one_that_stands_by_hears_signals_and_reads_its_configuration_when_it_begins(tmp_path: Path) -> None:
    pair = Pair(tmp_path / "pair")
    try:
        pair.start("running")
        pair.start("standing by")
        second = pair.processes[1]
        second.send_signal(signal.SIGHUP)
        second.terminate()
        assert second.wait(10) == 0
        pair.processes.remove(second)
        for _ in range(2):
            pair.start("standing by")
        with pair.config.open("a") as config:
            config.write("[users.")
        pair.kill()
        assert pair.count("going on with the one before") == 1
        assert pair.count("taking over") == 1, "one of two that wait"
        assert pair.count("running") == 2
    finally:
        pair.stop()


def test_a_gateway_with_another_state_directory_does_not_wait(tmp_path: Path) -> None:
    one, other = Pair(tmp_path / "one"), Pair(tmp_path / "other")
    try:
        for pair in (one, other):
            pair.start("running")
            assert not pair.count("standing by")
    finally:
        one.stop()
        other.stop()


def test_one_that_does_not_stand_by_is_refused(tmp_path: Path) -> None:
    pair = Pair(tmp_path / "pair")
    try:
        pair.start("running")
        pair.config.write_text(pair.config.read_text().replace("standby = true", ""))
        command = [sys.executable, "-m", "hushcast_gateway", str(pair.config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1
        assert "another daemon is running" in done.stderr
    finally:
        pair.stop()
