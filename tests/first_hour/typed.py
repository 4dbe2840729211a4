"""What the README and the first hour tell a newcomer to type, as a script."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PAGES = ("README.md", "docs/first-hour.md")
"""The second goes on where the first ends, in the same network."""

TYPED = [
    line.removeprefix("$ ")
    for page in PAGES
    for block in _CONSOLE.findall((ROOT / page).read_text())
    for line in block.splitlines()
    if line.startswith("$ ")
]
ELSEWHERE = {
    'make setup && export PATH="$PWD/.venv/bin:$PATH"': "whoever runs this script has hushcast on the path",
    "hushcast testnet watch --dir /tmp/hush": "until Ctrl-C; tests/testnet/test_watch.py looks at the page",
}
BY_MAKE = [line for line in TYPED if line.startswith("make ") and line not in ELSEWHERE]
SHOWN = ("accepted ", "rain at noon", "smoke over the harbour", "lat")
"""What it prints if all goes well."""


def script(directory: Path, transport: str) -> str:
    """Return the pages' commands for a testnet in this directory, over `tcp` or `tor`."""
    lines = [line for line in TYPED if line not in BY_MAKE and line not in ELSEWHERE]
    text = "\n".join(lines).replace("/tmp/hush", str(directory))
    text = text.replace(" --transport tcp", " --transport tcp --epoch 20" if transport == "tcp" else "")
    # The clean-up that a reader would do by hand, should a line fail.
    return f"set -euo pipefail\ntrap 'hushcast testnet down --dir {directory} || true' ERR\n{text}\n"
