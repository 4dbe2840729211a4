"""`gateway bench`: what it measures of a real gateway, and what it refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from running import Outcome, Running, hushcast, until

CONFIG = """program = "gateway"
state = "{0}/state"
[[listen]]
kind = "unix"
path = "{0}/mqtt.sock"
[purposes]
vocabulary = "{0}/purposes"
[anonymous]
publish = ["bench/#"]
subscribe = ["bench/#"]
reserve = ["bench/#"]
purposes = ["operations"]
"""


@pytest.fixture
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """Where a gateway listens that lets anybody reserve, and claim one purpose of two."""
    folder = tmp_path_factory.mktemp("g")
    (folder / "purposes").write_text("operations/billing\nmarketing\n")
    (folder / "gateway.toml").write_text(CONFIG.format(folder))
    gateway = await Running.start("run", "gateway", "--config", folder / "gateway.toml")
    await until((folder / "mqtt.sock").exists)
    yield f"unix:{folder}/mqtt.sock"
    gateway.process.terminate()
    await gateway.outcome()


async def bench(at: str | Path, *more: str) -> Outcome:
    return await hushcast("gateway", "bench", "--at", str(at), "--messages", "50", *more)


@pytest.mark.processes
async def test_each_number_of_clients_is_measured_with_reservations_and_without(place: str) -> None:
    done = await bench(place, "--publishers", "1,3", "--subscribers", "2,6", "--json")
    assert (done.code, done.stderr) == (0, "")
    found = [(one["publishers"], one["subscribers"], one["due"], one["came"]) for one in done.objects]
    assert found == [(1, 2, 100, 100), (1, 6, 300, 300), (3, 2, 100, 100), (3, 6, 300, 300)]
    assert all(0 < one["median_ms"] <= one["p99_ms"] for one in done.objects)
    terms = "--reservations", "5", "--purpose", "operations/billing"
    done = await bench(place, "--publishers", "2", "--subscribers", "4", *terms)
    assert done.code == 0
    assert b"2 publishers, 4 subscribers: 200 messages, " in done.stdout
    refused = await bench(place, "--reservations", "1", "--purpose", "marketing")
    assert refused.code == 1
    assert "refuses a subscription (0x87)" in refused.stderr


@pytest.mark.parametrize(
    ("at", "more", "code", "told"),
    [
        ("10.0.0.1:1883", (), 2, "no place on this machine"),
        ("example.org:1883", (), 2, "no place on this machine"),
        ("127.0.0.1:1", (), 1, "nothing answers"),
        ("127.0.0.1:1", ("--publishers", "1,x"), 2, "no list of numbers"),
        ("127.0.0.1:1", ("--publishers", "0"), 2, "no list of numbers"),
        ("127.0.0.1:1", ("--subscribers", "1000"), 2, "1,001 clients are above 1,000"),
        ("127.0.0.1:1", ("--messages", "10000", "--subscribers", "200"), 2, "more than 1,000,000 messages"),
        ("127.0.0.1:1", ("--purpose", "operations"), 2, "go together"),
    ],
)
async def test_what_is_no_load_for_ones_own_gateway_is_refused(
    at: str, more: tuple[str, ...], code: int, told: str
) -> None:
    done = await bench(at, *more)
    assert done.code == code
    assert told in done.stderr
