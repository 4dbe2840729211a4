"""`hushcast testnet`: simulations, and networks of processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from running import WITHIN, Running, hushcast

from hushcast_cli.testnets.simulation_output import rows

COUNTS = ["pairs", "delivered", "duplicates", "transmissions", "ideal"]
FAULTS = ["receipts", "lost_with_receipt", "gaps_reported", "repaired", "told"]
FOUND = ["companions", "conditions", "hidden"]
MACHINE = ("seconds", "cpu_seconds", "megabytes")
FIELDS = ["nodes", *COUNTS, "virtual_seconds", "seconds", *FAULTS, *FOUND, "costs", *MACHINE[1:]]
SIMULATE = ("testnet", "simulate", "--nodes", "8", "--subscribers", "2", "--publications", "3")


async def test_simulate_prints_the_line_of_the_contract(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    outcome = await hushcast(*SIMULATE, "--topics", "2", "--depth", "2", "--traces", traces, "--json")
    assert outcome.code == 0
    (result,) = outcome.objects
    assert list(result) == FIELDS
    assert (result["nodes"], result["pairs"], result["delivered"], result["duplicates"]) == (8, 6, 6, 0)
    assert list(traces.iterdir())


async def test_simulate_replays_from_its_seed() -> None:
    first, second = [await hushcast(*SIMULATE, "--seed", "7", "--profile", "paper", "--json") for _ in "ab"]
    elsewhere = dict.fromkeys(MACHINE, 0)
    assert first.objects[0] | elsewhere == second.objects[0] | elsewhere


async def test_simulate_for_people() -> None:
    outcome = await hushcast(*SIMULATE)
    assert outcome.code == 0
    lines = dict(line.split("  ", 1) for line in outcome.stdout.decode().splitlines())
    assert list(lines) == ["relays", "deliveries", "shown twice", "receipts", "transmissions", "time"]
    assert lines["deliveries"].strip() == "6 of 6"
    assert "subscribing 2 times to 1 topic" in outcome.stderr.splitlines()
    assert "publishing 3 messages" in outcome.stderr.splitlines()


def test_what_a_simulation_was_asked_for_is_shown_without_python_words() -> None:
    told = {"share": 0.93, "bad": 2}
    conditions = {"trials": 5, "by_chance": 0.2, "named": {"lat": 0.25, "lon": 0.5}}
    result = {"nodes": 1_000, "pairs": 10, "delivered": 9, "duplicates": 0, "transmissions": 30, "ideal": 20}
    result |= {"virtual_seconds": 3_600.0, "seconds": 1.25, "receipts": 5, "lost_with_receipt": 1}
    found = {
        "repaired": {"pairs": 4, "delivered": 4},
        "told": told,
        "companions": {},
        "conditions": conditions,
        "hidden": {},
        "costs": {},
    }
    lines = dict(rows(result | {"gaps_reported": 1} | found))
    assert lines["relays"] == "1,000"
    assert lines["receipts"] == "5; 1 delivery lost in spite of one"
    assert lines["transmissions"] == "30; the paths add up to 20 (1.50 times that)"
    assert lines["time"] == "3,600 s in the network, 1.2 s here"
    assert lines["gaps"] == "1 message reported missing"
    assert lines["after repair"] == "4 of 4 deliveries"
    assert lines["coverage: share"] == "0.93"
    assert lines["conditions: by chance"] == "0.2"
    assert lines["conditions: named"] == "lat 0.25, lon 0.5"
    assert "companions" not in " ".join(lines)


def test_what_a_network_in_shards_costs_is_shown() -> None:
    spread = {"least": 1, "mean": 2.4, "most": 1_500}
    costs = {"shards": 4, "leases": spread, "links": spread, "installed": 48}
    costs["bytes_fetched"] = {"relay": spread, "client": {}}
    result = {"nodes": 9, "pairs": 1, "delivered": 1, "duplicates": 0, "transmissions": 1, "ideal": 1}
    result |= {"virtual_seconds": 1.0, "seconds": 1.0, "receipts": 1, "lost_with_receipt": 0}
    found = {"told": {}, "companions": {}, "conditions": {}, "hidden": {}}
    machine = {"cpu_seconds": 12.34, "megabytes": 445.4, "repaired": {"pairs": 0}, "gaps_reported": 0}
    lines = dict(rows(result | found | machine | {"costs": costs}))
    assert lines["machine"] == "12.3 s of CPU, 445 MB at most"
    assert lines["shards"] == "4"
    assert lines["leases a relay"] == "2 in the mean, 1 to 1,500"
    assert lines["installed"] == "48 parcels opened by relays"
    assert lines["bytes a relay fetched"] == "2 in the mean, 1 to 1,500"
    assert "bytes a client fetched" not in lines


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--shard-size", "10"], "give --authorities"),
        (["--shard-size", "3", "--authorities", "3"], "--shard-size"),
        (["--authorities", "10"], "--authorities"),
        (["--authorities", "3", "--shard-size", "10", "--profile", "paper"], "has no shards"),
        (["--authorities", "3", "--carrier", "central"], "--authorities is about relays"),
        (["--authorities", "3", "--delay-rosters", "1", "--minutes", "60", "--topics", "2"], "--authorities"),
        (["--nodes", "2001", "--authorities", "3", "--shard-size", "0"], "at most 2000 relays"),
        (["--nodes", "16385", "--authorities", "3"], "at most 16384 relays"),
        (["--nodes", "0"], "--nodes"),
        (["--nodes", "2001"], "2000"),
        (["--subscribers", "9", "--profile", "paper"], "--subscribers"),
        (["--nodes", "1", "--profile", "paper"], "--nodes 1: under --profile paper"),
        (["--k", "3"], "--k goes with --carrier brokers"),
        (["--subscribers", "0"], "--subscribers"),
        (["--publications", "-1"], "--publications"),
        (["--topics", "0"], "--topics"),
        (["--depth", "0"], "--depth"),
        (["--depth", "7"], "--depth"),
        (["--origins", "9"], "--origins"),
        (["--nodes", "2", "--origins", "3"], "--origins"),
        (["--profile", "other"], "--profile"),
        (["--seed", "x"], "--seed"),
        (["--select"], "--droppers"),
        (["--delay-rosters", "1.1"], "--delay-rosters"),
        (["--delay-rosters", "0.6", "--topics", "2"], "--minutes"),
        (["--delay-rosters", "0.6", "--minutes", "60"], "--topics"),
        (["--delay-rosters", "0.6", "--minutes", "60", "--topics", "2", "--nodes", "1"], "--nodes"),
        (["--delay-rosters", "0.6", "--minutes", "60", "--topics", "2", "--profile", "paper"], "paper"),
        (["--delay-rosters", "0.6", "--minutes", "60", "--topics", "2", "--churn", "0.1"], "--churn"),
        (["--delay-rosters", "0.6", "--read-probes", "0.1", "--minutes", "60", "--topics", "2"], "two"),
        (["--read-probes", "0.1", "--topics", "2"], "--minutes"),
        (["--read-probes", "0.1", "--topics", "2", "--minutes", "60"], "--subscribers"),
        (["--read-probes", "0.1", "--subscribers", "1", "--minutes", "60"], "--topics"),
        (["--read-probes", "0.1", "--topics", "2", "--minutes", "60", "--droppers", "0.1"], "--droppers"),
        (["--clients", "1"], "only --clients 1"),
        (["--clients", "0", "--subscribers", "9"], "with --clients 0 relays subscribe"),
        (["--clients", "3", "--profile", "paper"], "relays subscribe"),
        (["--carrier", "central", "--clients", "3"], "all --nodes are clients"),
        (["--proxies", "3"], "--carrier central"),
        (["--carrier", "central", "--nodes", "2", "--subscribers", "3"], "--subscribers"),
        (["--carrier", "central", "--droppers", "0.1"], "--droppers"),
        (["--carrier", "central", "--depth", "2"], "--depth"),
        (["--carrier", "central", "--proxies", "33"], "32"),
    ],
)
async def test_simulate_refuses_nonsense(arguments: list[str], told: str) -> None:
    outcome = await hushcast(*SIMULATE, *arguments, "--json")
    assert outcome.code == 2
    assert told in outcome.error
    assert outcome.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--faults", "kill,flood"], "flood"),
        (["--minutes", "0"], "--minutes"),
        (["--every", "0"], "--every"),
        (["--longest", "-1"], "--longest"),
        (["--rate", "0"], "--rate"),
        (["--seed", "x"], "--seed"),
    ],
)
async def test_chaos_refuses_nonsense(arguments: list[str], told: str, tmp_path: Path) -> None:
    outcome = await hushcast("testnet", "chaos", "--dir", tmp_path, *arguments, "--json")
    assert outcome.code == 2
    assert told in outcome.error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["demo", "--carrier", "central", "--gateway"], "--gateway"),
        (["up", "--dir", "D", "--carrier", "central", "--clients", "1"], "--nodes"),
        (["up", "--dir", "D", "--proxies", "2"], "--carrier central"),
        (["up", "--dir", "D", "--carrier", "ring"], "overlay"),
    ],
)
async def test_what_does_not_go_with_a_carrier_is_wrong_usage(
    arguments: list[str], told: str, tmp_path: Path
) -> None:
    outcome = await hushcast("testnet", *[tmp_path / "net" if one == "D" else one for one in arguments])
    assert outcome.code == 2
    assert told in outcome.error
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["up", "--dir", "D", "--distance", "40ms"], "'40ms' is not a whole number"),
        (["up", "--dir", "D", "--distance", "-1"], "give 0 to 500 milliseconds"),
        (["up", "--dir", "D", "--distance", "40", "--transport", "tcp"], "a distance is between tors"),
        (["up", "--dir", "D", "--seed", "3"], "give --distance"),
        (["demo", "--distance", "501"], "give 0 to 500 milliseconds"),
        (["demo", "--gateway", "--seed", "3"], "give --distance"),
    ],
)
async def test_a_distance_that_cannot_be_is_wrong_usage(
    arguments: list[str], told: str, tmp_path: Path
) -> None:
    outcome = await hushcast("testnet", *[tmp_path / "net" if one == "D" else one for one in arguments])
    assert outcome.code == 2
    assert told in outcome.error
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("command", ["status", "down", "chaos"])
async def test_no_testnet_there(command: str, tmp_path: Path) -> None:
    outcome = await hushcast("testnet", command, "--dir", tmp_path, "--json")
    assert outcome.code == 2
    assert "testnet up" in outcome.error


@pytest.mark.processes
async def test_up_status_down(tmp_path: Path) -> None:
    place = ("--dir", tmp_path / "testnet")
    shape = ("--nodes", "2", "--clients", "1", "--transport", "tcp", "--epoch", "10")
    with trio.fail_after(60):
        up = await hushcast("testnet", "up", *place, *shape, "--json")
    try:
        assert up.code == 0, up.stderr
        (status,) = (await hushcast("--json", "testnet", "status", *place)).objects
        assert up.objects == [status]
        assert list(status) == ["ready", "transport", "distance", "epoch", "nodes", "gateways", "directory"]
        assert (status["ready"], status["transport"], status["epoch"]) == (True, "tcp", 10)
        assert status["distance"] is None
        assert [node["role"] for node in status["nodes"]] == ["relay", "relay", "client"]
        assert set(status["nodes"][0]) == {"name", "role", "socket", "pid", "address", "config"}
        assert set(status["directory"]) == {"pid", "address", "config"}
        people = (await hushcast("testnet", "status", *place)).stdout.decode()
        assert len(people.splitlines()) == 3 + 1 + 3
        await one_message(status["nodes"][0]["socket"], status["nodes"][2]["socket"])
        unable = await hushcast("testnet", "chaos", *place, "--faults", "kill,cut", "--json")
        assert (unable.code, unable.stdout) == (2, b"")
        assert "cut" in unable.error
        assert "--breakable" in unable.error
        await chaos(place)
    finally:
        down = await hushcast("testnet", "down", *place)
    assert (down.code, down.stdout) == (0, b"")
    (after,) = (await hushcast("testnet", "status", *place, "--json")).objects
    assert after["ready"] is False
    assert {node["pid"] for node in after["nodes"]} == {None}


async def chaos(place: tuple[str, Path]) -> None:
    short = ("--minutes", "0.05", "--faults", "pause", "--every", "2", "--longest", "1", "--rate", "5")
    outcome = await hushcast("testnet", "chaos", *place, *short, "--json")
    (figures,) = outcome.objects
    assert (outcome.code, figures["ok"], figures["lost"], figures["unhealthy"]) == (0, True, 0, {})
    assert set(figures["faults"]) == {"pause"}
    assert figures["delivered"] == figures["receipts"] > 0


async def one_message(publisher: str, subscriber: str) -> None:
    listener = await Running.start("subscribe", "t", "--count", "1", "--json", "--socket", subscriber)
    with trio.fail_after(WITHIN):
        assert (await listener.object())["event"] == "subscribed"
        assert (await hushcast("publish", "t", "hello", "--socket", publisher)).code == 0
        assert (await listener.object())["payload"] == "hello"
        assert (await listener.outcome()).code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--nodes", "1"], "--nodes"),
        (["--nodes", "2001"], "2000"),
        (["--nodes", "9", "--subscribers", "3,10"], "--subscribers"),
        (["--nodes", "9", "--publishers", "10"], "--publishers"),
        (["--subscribers", "3;4"], "commas"),
        (["--subscribers", "0,4"], "at least 1"),
        (["--seeds", "0"], "--seeds"),
    ],
)
async def test_compare_refuses_nonsense(arguments: list[str], told: str, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    outcome = await hushcast("testnet", "compare", "--out", out, *arguments, "--json")
    assert outcome.code == 2
    assert told in outcome.error
    assert not out.exists()
