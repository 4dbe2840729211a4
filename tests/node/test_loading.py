"""What a daemon loads: a client nothing that serves others, and none outside a testnet what writes traces."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_client_loads_nothing_that_serves_others_and_nothing_that_traces() -> None:
    program = "import sys, hushcast_node.process, hushcast_node.overlay_adapter; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "hushcast_overlay.routes.routes" in loaded
    folders = ("boxes", "cover", "keepers")
    serving = ("hushcast_node.relay_role", *(f"hushcast_overlay.relay.{folder}" for folder in folders))
    assert not [name for name in loaded if name.startswith(serving)]
    assert {"hushcast_runtime.file_tracer", "hushcast_protocol.base.trace"}.isdisjoint(loaded)
