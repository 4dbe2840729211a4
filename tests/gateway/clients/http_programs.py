"""Programs that others wrote and that publish over HTTP: curl, Apprise, and npm's client of ntfy."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mqtt_client import WITHIN

HERE = Path(__file__).parent
NTFY = HERE.parents[2] / ".node" / "node_modules" / "ntfy" / "dist" / "index.js"
"""Where `tools/require-mqtt-clients` puts it."""
MISSING = "NOT TESTED: clients of HTTP are missing: `tools/require-mqtt-clients` says which"

with_curl = pytest.mark.skipif(not shutil.which("curl"), reason=MISSING)
with_apprise = pytest.mark.skipif(importlib.util.find_spec("apprise") is None, reason=MISSING)
with_npm = pytest.mark.skipif(not NTFY.exists() or not shutil.which("node"), reason=MISSING)
with_chromium = pytest.mark.skipif(not shutil.which("chromium"), reason=MISSING)

_APPRISE = (
    "import apprise, sys; it = apprise.Apprise(); it.add(sys.argv[1]); "
    "assert it.notify(sys.argv[2], title=sys.argv[3])"
)


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=WITHIN).stdout


def by_curl(*given: str) -> Any:
    """Return what a gateway answers."""
    return json.loads(run("curl", "-s", *given))


def by_apprise(address: str, message: str, title: str) -> None:
    """Notify an address `ntfy://…`."""
    run(sys.executable, "-c", _APPRISE, address, message, title)


def by_npm(server: str, **message: Any) -> Any:
    """Return what a gateway answers."""
    return json.loads(run("node", str(HERE / "ntfy_client.mjs"), str(NTFY), server, json.dumps(message)))
