"""What the README tells people to type does what it says; CI itself runs the targets of make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, blocks

README = [
    line.removeprefix("$ ")
    for block in blocks(ROOT / "README.md")
    if block.language == "console"
    for line in block.text.splitlines()
    if line.startswith("$ ")
]
BY_MAKE = [line for line in README if line.startswith("make ")]
AROUND = {
    'export PATH="$PWD/.venv/bin:$PATH"': "the test sets it",
    "hushcast check-config node.toml": "tests/docs/test_settings.py loads every example",
    "hushcast node run --config node.toml": "tests/systemd and every testnet run nodes",
}
TYPED = [line for line in README if line not in BY_MAKE and line not in AROUND]


def test_ci_runs_what_make_does() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    assert set(BY_MAKE) - {"make setup"} <= {line for line in ci.splitlines() if line.startswith("make ")}
    assert set(AROUND) <= set(README), "an exception for what is not there any more"


def script(directory: Path) -> str:
    lines = ["set -euo pipefail"]
    lines += [line.replace("/tmp/hush", str(directory)) for line in TYPED]
    return "\n".join(lines)


@pytest.mark.processes
def test_the_commands_run(tmp_path: Path) -> None:
    directory = tmp_path / "hush"
    # The clean-up that a reader would do by hand, should a line fail.
    text = f"trap 'hushcast testnet down --dir {directory} 2>/dev/null || true' ERR\n{script(directory)}"
    text = text.replace("--transport tcp", "--transport tcp --epoch 20")
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for shown in ("rain at noon", "smoke over the harbour", "lat"):
        assert shown in done.stdout
    assert not directory.exists()
