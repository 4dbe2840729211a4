"""A gateway of the next release beside a daemon of this one, and its way back: sessions lose nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import next_release
import pytest
import trio
from mqtt_client import Message
from paho_client import PahoClient
from release_change import hushcast_of, program
from two_houses import House, houses

from hushcast_testnet import gateways, processes
from hushcast_testnet.inventory import run_by

pytestmark = pytest.mark.processes

EPOCH = 20  # seconds
WITHIN = 120.0  # seconds; other work may share the machine
READ, RETAINED = "home/read", "home/retained"


def start_as(house: House, release: Path | None) -> None:
    """Start a gateway from the sources of a release, or from these; return when clients can connect."""
    command = program(release, "-m", *run_by("gateway"), house.member.config)

    async def start() -> None:
        await processes.launch(house.member.name, command, Path(house.member.config).parent / "log")
        await gateways.until_ready(house.member)

    trio.run(start)


def reader_at(house: House) -> tuple[PahoClient, bool | None]:
    reader = PahoClient(5, house.server, "reader", lasting=True)
    return reader, reader.connect()


def test_a_gateway_goes_on_to_the_next_release_and_back(
    running_testnet: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    release = next_release.make(tmp_path_factory.mktemp("next"))
    with running_testnet(tmp_path, 3, 2, "tcp", EPOCH) as net, houses(net) as (theirs, ours):
        reader, _ = reader_at(ours)
        reader.subscribe(READ, 1)
        ours.subscriptions_ready(1)
        writer = PahoClient(5, theirs.server, "writer")
        writer.connect()
        at_home = PahoClient(5, ours.server, "at home")
        at_home.connect()
        at_home.publish(RETAINED, "kept", 1, retain=True)
        at_home.close()
        for number, goes in enumerate((release, None)):
            reader.close()
            trio.run(processes.stop, [ours.process])
            writer.publish(READ, f"{number}: while it is away", 1)
            if goes is None:
                trio.run(_step_back, release, ours)
            start_as(ours, goes)
            writer.publish(READ, f"{number}: since", 1)
            reader, was_known = reader_at(ours)
            assert was_known
            heard = [reader.message(WITHIN).payload for _ in range(2)]
            assert sorted(heard) == [f"{number}: since", f"{number}: while it is away"]
            late = PahoClient(5, ours.server, f"late {number}")
            late.connect()
            late.subscribe(RETAINED, 1)
            assert late.message(WITHIN) == Message(RETAINED, "kept", 1, True)
            late.close()
        reader.close()
        writer.close()


async def _step_back(release: Path, house: House) -> None:
    what = await hushcast_of(None, "run", "gateway", "--config", house.member.config, code=2)
    assert "hushcast admin step-back" in " ".join(what.split())
    await hushcast_of(release, "admin", "step-back", "--config", house.member.config)
