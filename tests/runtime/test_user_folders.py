"""Where a user's files lie, whatever the environment says, and lacks."""

from __future__ import annotations

import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.user_folders import config_home, state_home


def test_the_variables_of_xdg_come_first() -> None:
    environment = {"HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}
    assert (config_home(environment), state_home(environment)) == (Path("/c"), Path("/s"))
    assert state_home({"HOME": "/h"}) == Path("/h/.local/state")


def test_relative_paths_are_none() -> None:
    environment = {"HOME": "/h", "XDG_STATE_HOME": "states", "XDG_CONFIG_HOME": "./c"}
    assert config_home(environment) == Path("/h/.config")
    assert state_home(environment) == Path("/h/.local/state")


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "somewhere"}])
def test_without_a_home_it_is_the_one_in_passwd(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir="/home/alice"))
    assert config_home(environment) == Path("/home/alice/.config")


def test_a_user_whom_nobody_knows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(UsageError, match="HOME is not set"):
        state_home({})
