"""What the front page and the first hour tell to type does what they say; CI runs the targets of make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT
from typed import BY_MAKE, ELSEWHERE, SHOWN, TYPED, script


def test_ci_runs_what_make_does() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    lines = [line.split()[1:] for line in ci.splitlines() if line.startswith("make ")]
    assert set(BY_MAKE) <= {f"make {target}" for line in lines for target in line}
    assert set(ELSEWHERE) <= set(TYPED), "an exception for what is not there any more"


@pytest.mark.parametrize(
    "transport",
    [pytest.param("tcp", marks=pytest.mark.processes), pytest.param("tor", marks=pytest.mark.tor)],
)
def test_the_commands_run(tmp_path: Path, transport: str) -> None:
    directory = tmp_path / "hush"
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", script(directory, transport)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for shown in SHOWN:
        assert shown in done.stdout
    assert not directory.exists()
