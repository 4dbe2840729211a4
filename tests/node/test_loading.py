"""What a daemon loads: a client no relay, a relay no desks of cover, none outside a testnet what traces."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded_with(modules: str) -> list[str]:
    """Return all modules of a program that loads some."""
    program = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_a_client_loads_no_relay_and_nothing_that_traces() -> None:
    loaded = loaded_with("hushcast_node.process, hushcast_node.overlay_adapter")
    assert "hushcast_overlay.routes.routes" in loaded
    relay = {name for name in loaded if name.startswith("hushcast_overlay.relay.")}
    few = {"identity", "lease_store", "name_work", "registration"}  # types, and a relay's state of before
    assert {name.rpartition(".")[2] for name in relay} <= few
    assert {"hushcast_node.relay_adapter", "hushcast_node.relay_role"}.isdisjoint(loaded)
    assert {"hushcast_runtime.file_tracer", "hushcast_protocol.base.trace"}.isdisjoint(loaded)


@pytest.mark.slow
def test_a_relay_of_a_network_without_cover_loads_none_of_its_desks() -> None:
    modules = loaded_with("hushcast_node.process, hushcast_node.relay_adapter")
    loaded = {name for name in modules if name.startswith("hushcast_overlay.relay.cover.")}
    assert {name.rpartition(".")[2] for name in loaded} == {"cover_means", "cover_role", "cover_sends"}
