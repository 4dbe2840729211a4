"""What a daemon loads: a client no relay, and none outside a testnet what writes traces."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_client_loads_no_relay_and_nothing_that_traces() -> None:
    program = "import sys, hushcast_node.process, hushcast_node.overlay_adapter; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "hushcast_overlay.routes.routes" in loaded
    relay = {name for name in loaded if name.startswith("hushcast_overlay.relay.")}
    few = {"identity", "lease_store", "name_work", "registration"}  # types, and a relay's state of before
    assert {name.rpartition(".")[2] for name in relay} <= few
    assert {"hushcast_node.relay_adapter", "hushcast_node.relay_role"}.isdisjoint(loaded)
    assert {"hushcast_runtime.file_tracer", "hushcast_protocol.base.trace"}.isdisjoint(loaded)
