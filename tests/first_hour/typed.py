"""What the README tells a newcomer to type, as a script."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

TYPED = [
    line.removeprefix("$ ")
    for block in _CONSOLE.findall((ROOT / "README.md").read_text())
    for line in block.splitlines()
    if line.startswith("$ ")
]
BY_MAKE = [line for line in TYPED if line.startswith("make ")]
ELSEWHERE = {
    'export PATH="$PWD/.venv/bin:$PATH"': "whoever runs this script has hushcast on the path",
    "hushcast init directory --network example": "tests/systemd types these five, on a private Tor network",
    "hushcast directory run": "the service, and the container",
    "hushcast init relay": "the same",
    "hushcast join network.toml": "the same",
    "hushcast node run": "the same",
}
SHOWN = ("rain at noon", "smoke over the harbour", "lat")
"""What it prints if all goes well."""


def script(directory: Path, transport: str) -> str:
    """Return the README's commands for a testnet in this directory, over `tcp` or `tor`."""
    lines = [line for line in TYPED if line not in BY_MAKE and line not in ELSEWHERE]
    text = "\n".join(lines).replace("/tmp/hush", str(directory))
    text = text.replace(" --transport tcp", " --transport tcp --epoch 20" if transport == "tcp" else "")
    # The clean-up that a reader would do by hand, should a line fail.
    return f"set -euo pipefail\ntrap 'hushcast testnet down --dir {directory} || true' ERR\n{text}\n"
