"""Which release a daemon is of stays on its machine: by that others could tell daemons apart."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DAEMONS = (
    *("protocol", "runtime", "directory", "client", "local", "overlay"),
    *("central", "brokers", "node", "gateway", "located"),
)
KNOWS = re.compile(
    r"importlib\.metadata|^import (platform|sysconfig)|sys\.version|python_version", re.MULTILINE
)
ON_THIS_MACHINE = {
    "runtime/hushcast_runtime/extras.py": "tells who types a command where it was installed from",
    "runtime/hushcast_runtime/processes/process_frame.py": "a metric",
    "gateway/hushcast_gateway/process.py": "tells the house's own MQTT clients, in $SYS",
}


def test_only_what_stays_on_the_machine_knows_the_release() -> None:
    found = {
        str(file.relative_to(ROOT))
        for room in DAEMONS
        for file in (ROOT / room).rglob("*.py")
        if KNOWS.search(file.read_text())
    }
    assert found == ON_THIS_MACHINE.keys()
