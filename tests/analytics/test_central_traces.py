"""What server, proxies and daemons write themselves is what the analysis of the central system joins."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate

Line = dict[str, Any]


def read(directory: Path) -> dict[tuple[str, str], list[tuple[str, Line]]]:
    """Return who wrote each line, by its file's kind and its own; servers and proxies by their roles."""
    lines = [
        (kind, json.loads(line))
        for kind in ("truth", "observations")
        for file in sorted(directory.glob(f"*.{kind}.jsonl"))
        for line in file.read_text().splitlines()
    ]
    roles = {line["node"]: line["role"] for _, line in lines if line["kind"] == "started"}
    found = defaultdict(list)
    for kind, line in lines:
        role = roles[line["node"]]
        found[kind, line["kind"]].append((line["node"] if role == "client" else role, line))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["paper", "hardened"])
def test_every_line_finds_its_counterparts(profile: str, tmp_path: Path) -> None:
    simulate(Scenario(6, 2, 12, topics=2, profile=profile, carrier="central", seed=2, traces=tmp_path))
    found = read(tmp_path)
    published = {line["message"]: (who, line["topic"]) for who, line in found["truth", "published"]}
    assert len(published) == 12

    handed = {(line["pseudonym"], line["payload"]): line for _, line in found["truth", "handed"]}
    came = defaultdict(dict)
    for who, line in found["observations", "handed"]:
        came[line["pseudonym"], line["payload"]][who] = line
    assert published.keys() <= {line["message"] for line in handed.values()}
    tokens = defaultdict(set)  # the trunk tokens of each topic's messages
    for key, line in handed.items():
        assert came[key].keys() == {"server", "publications"}
        server, proxy = came[key]["server"], came[key]["publications"]
        assert server["message"] == line["message"]
        assert server["readable"] is (profile == "paper")
        assert not {"message", "readable"} & proxy.keys()
        assert server["tokens"] == proxy["tokens"]
        if line["message"] in published:
            tokens[published[line["message"]][1]].add(server["tokens"][0])

    asked = {(line["pseudonym"], line["serial"]): line for _, line in found["truth", "registered"]}
    for who, line in found["observations", "registered"]:
        assert who in ("server", "deliveries")
        topic = asked[line["pseudonym"], line["serial"]]["topic"]
        # Who wants all of a topic asks for the trunk token.
        assert tokens[topic] == set(line["tokens"])
    assert len(found["observations", "registered"]) == 2 * len(asked) == 2 * 4

    drawn = {line["pseudonym"]: who for who, line in found["truth", "introduced"]}
    sent = defaultdict(set)
    for who, line in found["observations", "dispatched"]:
        sent[who].add((line["pseudonym"], line["payload"]))
        assert line["pseudonym"] in drawn
        assert ("message" in line) is (who == "server")
    assert sent["server"] == sent["deliveries"]
    same = {payload for _, payload in sent["deliveries"]} & {payload for _, payload in came}
    assert bool(same) is (profile == "paper")

    # No line of server or proxies says whose a pseudonym is.
    clients = {who for who, _ in found["truth", "introduced"]}
    for kind, name in found:
        if kind == "observations" and name != "delivered":
            assert not clients & {who for who, _ in found[kind, name]}
