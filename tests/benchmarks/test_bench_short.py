"""The harness itself: what it writes can be read by others; nothing timed is asserted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"figure", "ours", "peer", "peer_value", "ratio", "target", "met"}


@pytest.mark.slow
def test_a_short_run_writes_figures_beside_their_peers(tmp_path):
    output = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks.bench", "--short", "--only", "3", "11", "--output", output]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    machine, *figures = json.loads(output.read_text())
    assert machine["figure"].startswith("machine: ")
    assert "cores" in machine["figure"]
    assert any("transformations" in figure["figure"] for figure in figures)
    assert any("subscription" in figure["figure"] for figure in figures)
    for figure in figures:
        assert set(figure) == KEYS
        assert figure["ours"] > 0
        assert figure["figure"] in done.stdout
        if figure["peer_value"] is None:
            assert "missing" in figure["peer"]
            assert figure["ratio"] is None
            assert figure["met"] is None
        else:
            assert figure["ratio"] > 0
            assert (figure["met"] is None) == (figure["target"] is None)


def test_a_missed_or_unmeasured_target_fails_the_check(tmp_path, monkeypatch, capsys):
    from benchmarks import bench
    from benchmarks.figures import at_least, at_most, missing

    def run(*figures):
        module = type("Figures", (), {"figures": staticmethod(lambda effort: iter(figures))})
        monkeypatch.setattr(bench.importlib, "import_module", lambda name: module)
        return bench.main(["--check", "--only", "1", "--output", str(tmp_path / "results.json")])

    met, information = at_least("fast", 3, "peer", 1, 3), at_most("slow", 3, "peer", 1, None)
    assert run(met, information) == 0
    assert run(met, at_most("small", 3, "peer", 1, 2)) == 1
    assert run(met, missing("fast", 3, "peer", "not installed", 2)) == 1
    assert "missing: not installed" in capsys.readouterr().out
    assert run(missing("fast", 3, "peer", "not installed", None)) == 0
