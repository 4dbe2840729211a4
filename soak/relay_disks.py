"""What the disks of a testnet's relays hold, and whose it is by the traces: what no adversary has."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from hushcast_testnet.inventory import Testnet


def owners(testnet: Testnet) -> dict[bytes, str]:
    """Return by the key of each box the name of the daemon that subscribed with it."""
    top = Path(testnet.nodes[0].config).parents[2]
    return {
        bytes.fromhex(row["mailbox"]): file.name.split(".")[0]
        for file in (top / "traces").glob("*.truth.jsonl")
        for row in map(json.loads, file.read_text().splitlines())
        if row["kind"] == "subscribed"
    }


def relay_records(testnet: Testnet, kind: str) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield each record of a kind that a relay has on disk, with the relay's name: name, key, value."""
    for member in testnet.nodes:
        if member.role == "relay":
            with closing(sqlite3.connect(f"file:{member.state}/state.db?mode=ro", uri=True)) as disk:
                for key, value in disk.execute("select key, value from records where kind = ?", (kind,)):
                    yield member.name, key, value
