"""`hushcast admin step-back`: a stopped program's state becomes one of the version before."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import hushcast
from stopped_state import give_state
from test_daemons import DIRECTORY, NODE, written

from hushcast_runtime.storage.state_layout import kept_version
from hushcast_runtime.storage.state_lock import locked


@pytest.mark.parametrize("text", [NODE, DIRECTORY], ids=["relay", "directory"])
async def test_a_state_is_of_the_version_before(tmp_path: Path, text: str) -> None:
    file, state = written(tmp_path, text), tmp_path / "state"
    give_state(state)
    done = await hushcast("admin", "step-back", "--config", file, "--json")
    assert (done.code, done.objects) == (0, [{"state": str(state), "version": 0}])
    assert kept_version(state) == 0
    again = await hushcast("admin", "step-back", "--config", file)
    assert again.code == 2
    assert "the state is of version 0: there is none before that" in again.error


async def test_a_program_that_runs_keeps_its_state(tmp_path: Path) -> None:
    file, state = written(tmp_path, NODE), tmp_path / "state"
    give_state(state)
    with locked(state):
        refused = await hushcast("admin", "step-back", "--config", file)
    assert refused.code == 2
    assert "another daemon is running" in refused.error
    assert kept_version(state) == 1


async def test_a_newer_state_is_not_touched(tmp_path: Path) -> None:
    file, state = written(tmp_path, NODE), tmp_path / "state"
    give_state(state, version=3)
    refused = await hushcast("admin", "step-back", "--config", file)
    assert refused.code == 2
    assert "hushcast admin step-back" in refused.error, "of the program that wrote it"
    assert kept_version(state) == 3


async def test_where_there_is_no_state_none_is_made(tmp_path: Path) -> None:
    file, state = written(tmp_path, NODE), tmp_path / "state"
    assert "there is no state" in (await hushcast("admin", "step-back", "--config", file)).error
    assert not state.exists()
    state.mkdir(mode=0o700)
    assert "there is no state.db" in (await hushcast("admin", "step-back", "--config", file)).error
