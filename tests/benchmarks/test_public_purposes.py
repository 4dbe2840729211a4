"""The runner of the public benchmark: what it hands over and reads; a stand-in plays the benchmark."""

import sys

import pytest

from benchmarks.gateway import public_purposes
from benchmarks.purpose_experiments.sides import ALL

CONFIG = """
operational_purpose: "DAP_op"
monitor_broker: true
test:
    duration_ms: 180100 # 3 minutes
    device_instances:
        - device_def_id: sensor
          purpose_filter: p1
    scheduled_events:
        - new_purpose: "p7"
"""
STAND_IN = """
import socket, sys
verb, first, *rest = sys.argv[1:]
if verb == "run":
    config = open(first).read()
    with socket.create_connection((rest[0], int(rest[2]))) as connection:
        connection.sendall(bytes.fromhex("100c00044d5154540402000000"))
    open(rest[4], "w").write(config)
else:
    config = open(first).read()
    value = str("duration_ms: 5000" in config and "monitor_broker: false" in config)
    names = {names!r}
    open(rest[1], "w").write("".join(f"x,{name},{value}\\n" for name in names))
"""


def test_its_configuration_is_made_fit():
    found = public_purposes.adapted(CONFIG, None)
    assert "monitor_broker: false" in found
    assert "DAP_op" not in found
    assert "duration_ms: 180100" in found
    assert "duration_ms: 7000 #" in public_purposes.adapted(CONFIG, 7)


@pytest.mark.processes
def test_it_is_run_against_a_gateway_with_its_purposes(tmp_path):
    program = tmp_path / "Benchmark.py"
    program.write_text(STAND_IN.replace("{names!r}", repr(public_purposes._SHOWN)))
    side = next(one for one in ALL if one.name == "on publish, cached")
    found = dict(public_purposes.run([sys.executable, str(program)], CONFIG, side, 5, tmp_path))
    assert [found[name] for name in public_purposes._SHOWN] == ["True"] * len(public_purposes._SHOWN)
    gateway = (tmp_path / "side" / "gateway.toml").read_text()
    assert 'purposes = ["dap_op", "p1", "p7"]' in gateway
    assert (tmp_path / "side" / "vocabulary").read_text().split() == ["dap_op", "p1", "p7"]
