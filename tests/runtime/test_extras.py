"""What a command needs beyond a daemon can be had wherever the program was installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hushcast_runtime.extras import PACKAGE_PREFIX, how_to_get

ROOT = Path(__file__).parents[2]
OF_AN_INDEX = re.compile(r"pip3? install\b[^`\n]*\s['\"]?hushcast\b|\bhushcast\[")
"""What has pip look on an index for a name that is not ours, or reads as if it should."""


def record(path: Path, **more: object) -> str:
    return json.dumps({"url": path.as_uri(), **more})


def test_it_is_added_to_the_wheel_that_is_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "my wheels" / "hushcast-1.2.3-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    told = how_to_get("tui", "/srv/venv", tmp_path, record(wheel))
    assert told == f"add it with `/srv/venv/bin/pip install '{wheel}[tui]'`"


def test_it_is_added_to_the_checkout(tmp_path: Path) -> None:
    told = how_to_get("tui", "/srv/venv", tmp_path, record(tmp_path, dir_info={"editable": True}))
    assert told == f"add it with `/srv/venv/bin/pip install --editable '{tmp_path}[tui]'`"


def test_the_debian_package_has_no_pip_and_brings_a_wheel(tmp_path: Path) -> None:
    (tmp_path / "hushcast-1.2.3-py3-none-any.whl").touch()
    told = how_to_get("analytics", PACKAGE_PREFIX, tmp_path)
    assert f"bin/pip install '{tmp_path}/hushcast-1.2.3-py3-none-any.whl[analytics]'" in told
    assert "venv" in told


@pytest.mark.parametrize("told", ["{}", record(Path("/gone.whl")), '{"url": "https://example.org/x.whl"}'])
def test_what_is_gone_is_named_by_a_path_all_the_same(tmp_path: Path, told: str) -> None:
    assert "pip install './WHEEL[tui]'" in how_to_get("tui", PACKAGE_PREFIX, tmp_path, told)


def test_no_message_and_no_page_names_the_package_as_an_index_would() -> None:
    assert OF_AN_INDEX.search("pip install 'hushcast[tui]'")
    assert OF_AN_INDEX.search("pip install --quiet hushcast")
    files = [
        file
        for kind in ("*.py", "*.md", "*.toml")
        for file in ROOT.glob(f"*/**/{kind}")
        if not file.relative_to(ROOT).parts[0].startswith((".", "tests"))
    ]
    files += ROOT.glob("*.md")
    assert len(files) > 900
    found = [f"{file.relative_to(ROOT)}" for file in files if OF_AN_INDEX.search(file.read_text())]
    assert found == []
