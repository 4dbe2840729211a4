"""Traces of daemons over a real Tor network, analysed end to end by the program, and counted again."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import trio

# Under `--import-mode=importlib` tests cannot import their neighbours else.
sys.path.insert(0, str(Path(__file__).parents[1] / "analytics"))

from recount import recount

pytestmark = [pytest.mark.tor, pytest.mark.processes, pytest.mark.spark]

ANALYSED_WITHIN = 600  # seconds; other work may share the machine
TOLD_WITHIN = 120  # seconds: a drop at an origin that does not answer ends after this at the latest
PUBLISHERS = ("client-2", "relay-1")


async def test_figures_of_real_traces_over_tor_agree_with_a_recount(
    tor_testnet, tmp_path: Path, quick_spark: dict[str, str]
) -> None:
    net, topic, ids = tor_testnet, "to be analysed", set()
    async with net.listening("client-1", topic) as one, net.listening("relay-3", topic) as other:
        for number in range(8):
            ids.add(await net.publish(PUBLISHERS[number % 2], topic, str(number)))
        for listening in (one, other):
            await listening.until(ids)
    await all_told(net, ids)
    # The daemons write on: both counts are of one moment.
    traces = tmp_path / "traces"
    shutil.copytree(net.directory / "traces", traces)
    options = ["--out", str(tmp_path / "out"), "--colluding", "0.3", "--attack", "first-spy", "--json"]
    analyze = [sys.executable, "-m", "hushcast_cli.main", "analyze", str(traces), *options]
    with trio.fail_after(ANALYSED_WITHIN):
        done = await trio.run_process(
            analyze, capture_stdout=True, capture_stderr=True, check=False, env=quick_spark
        )
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    expected, found = recount(traces), summary["network"]
    latencies, _ = expected.pop("latencies"), expected.pop("lengths")
    expected |= {f"latency_p{100 * share:.0f}": seconds for share, seconds in latencies.items()}
    expected["to_ideal"] = expected["transmissions"] / expected["ideal"]
    expected["runs"] = 1
    cut_off = sum(not line.endswith("}") for line in lines_of(traces))
    assert found.pop("rejected_lines") == cut_off
    assert found == pytest.approx(expected, rel=1e-9)
    assert found["publications"] >= len(ids)
    assert found["pairs"] >= 2 * len(ids)
    (attack,) = summary["attacks"]
    assert (attack["attack"], attack["profile"]) == ("first-spy", "hardened")
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()


async def all_told(net, ids: set[str]) -> None:
    """Wait for the publishers' truths: each is written when the last drop of its round has ended."""
    with trio.fail_after(TOLD_WITHIN):
        while ids - published(net):  # noqa: ASYNC110 - other processes make it true
            await trio.sleep(0.1)


def published(net) -> set[str]:
    truths = [truth for name in PUBLISHERS for truth in net.truths(name)]
    return {truth["message"] for truth in truths if truth["kind"] == "published"}


def lines_of(traces: Path) -> list[str]:
    return [line for file in traces.glob("*.jsonl") for line in file.read_text().splitlines()]
