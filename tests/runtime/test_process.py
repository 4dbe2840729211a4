"""The frame of a daemon process: what it does with a configuration that changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from hushcast_directory.settings import DirectorySettings
from hushcast_runtime.config import load_settings
from hushcast_runtime.process import _Configuration

TEXT = 'state = "/nowhere"\n[network]\nname = "n"\n[log]\nlevel = "info"\n'


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_what_changed_during_the_start_is_applied_before_it_is_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """systemd merges a reload into a start that is under way, and sends no signal then."""
    file = tmp_path / "directory.toml"
    file.write_text(TEXT)
    settings = load_settings(file, DirectorySettings)
    configuration = _Configuration(settings, lambda: load_settings(file, DirectorySettings))
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
