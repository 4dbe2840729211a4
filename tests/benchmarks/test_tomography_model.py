"""The model of tomography runs, gives the same for a seed, and shows what docs/brokers.md says of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    output = tmp_path_factory.mktemp("tomography") / "found.json"
    command = [sys.executable, "-m", "benchmarks.tomography", "--short", "--output", output]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return json.loads(output.read_text())


def test_caches_save_questions_and_transitivity_saves_more_under_definition_2_alone(found):
    asked = found["questions"]["by asking brokers"]
    for ways in asked.values():
        assert ways["cache at brokers"]["reach the service"] < ways["nothing kept"]["reach the service"]
        assert ways["service keeps"]["reach a broker"] < ways["nothing kept"]["reach a broker"]
        assert ways["nothing kept"]["yes, no longer so"] == 0
    two, one = asked["successor"], asked["immediate-successor"]
    assert two["cache and transitivity"] != two["cache at brokers"]
    assert one["cache and transitivity"] == one["cache at brokers"]


def test_strictly_nothing_is_shown_and_ways_out_show_something(found):
    for condition, ways in found["bootstrap"]["ways"].items():
        assert ways["strict"]["shown as wanted"] == ways["strict"]["rows, most"] == 0
        assert ways["bogus"]["shown as wanted"] == found["bootstrap"]["wanted"]
        assert ways["bogus"]["bogus sources, most"] > 0
        is_source = condition == "source"
        assert (ways["probing"]["shown as wanted"] + ways["probing"]["shown wider"] > 0) == is_source
        assert is_source or not ways["together"]["rows, most"]
    together = found["bootstrap"]["ways"]["source"]["together"]
    assert together["shown with fewer than k real"] == together["arrive unwanted"] == 0


def test_vouchers_and_spread_hold_colluding_brokers_down(found):
    rows = {
        (row.get("colluding"), row["vouchers"], row["spread"]): row["claimed where it is not so"]
        for row in found["sybils"]["rows"]
        if "colluding" in row
    }
    assert not any(claimed for (share, *_), claimed in rows.items() if share == 0)
    assert rows[0.3, None, 1] > rows[0.3, 2, 1]
    assert rows[0.3, 8, 1] > rows[0.3, 8, 4]
