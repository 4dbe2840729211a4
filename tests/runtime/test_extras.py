"""What a command needs beyond a daemon can be had wherever the program was installed."""

from __future__ import annotations

import sys
from pathlib import Path

from hushcast_runtime.extras import PACKAGE_PREFIX, how_to_get


def test_with_pip_it_is_one_command(tmp_path: Path) -> None:
    assert how_to_get("tui", sys.prefix, tmp_path) == "install it with `pip install 'hushcast[tui]'`"


def test_the_debian_package_has_no_pip_and_brings_a_wheel(tmp_path: Path) -> None:
    (tmp_path / "hushcast-1.2.3-py3-none-any.whl").touch()
    told = how_to_get("analytics", PACKAGE_PREFIX, tmp_path)
    assert f"bin/pip install '{tmp_path}/hushcast-1.2.3-py3-none-any.whl[analytics]'" in told
    assert "venv" in told


def test_without_the_wheel_pip_is_named(tmp_path: Path) -> None:
    assert "pip install" in how_to_get("tui", PACKAGE_PREFIX, tmp_path)
