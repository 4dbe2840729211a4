"""The ports of a testnet's gateways are nobody else's from the moment at which they are written down."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from hushcast_runtime.transports.streams import LOOPBACK, listen_on_loopback
from hushcast_testnet import builder as building
from hushcast_testnet import processes
from hushcast_testnet.builder import Builder
from hushcast_testnet.inventory import CarrierName, Member, Transport, load

CLIENTS = ("client-1", "client-2")


class Daemons:
    """Implements `Backend` and `Layout` with clients that are there already."""

    transport: Transport = "tcp"
    longest_socket = "s"
    carrier: CarrierName = "overlay"

    def members(self, directory: Path) -> list[Member]:
        homes = [directory / name for name in CLIENTS]
        return [Member(home.name, "client", f"{home}/c", f"{home}/d", f"{home}/s") for home in homes]

    async def prepare(self, *_: object) -> None:
        pass

    async def start(self, builder: Builder, members: list[Member]) -> None:
        builder._keep(members=members)

    def place(self, member: Member) -> Member:
        return member

    def is_ready(self, _: object) -> bool:
        return True

    async def check(self, _: object) -> None:
        pass


async def test_no_port_is_free_for_others_before_its_gateway_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening: list[str] = []

    async def launch(name: str, command: Sequence[str], log: Path) -> None:
        for gateway in load(tmp_path).gateways:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind((LOOPBACK, gateway.port))
        (gateway,) = [one for one in load(tmp_path).gateways if one.name == name]
        await (await listen_on_loopback(gateway.port)).aclose()
        serves = servers.enter_context(socket.socket(socket.AF_UNIX))
        serves.bind(gateway.socket)
        serves.listen()
        listening.append(name)

    async def describe(member: Member) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        return {}

    monkeypatch.setattr(processes, "launch", launch)
    monkeypatch.setattr(building, "describe", describe)
    daemons: Any = Daemons()
    with ExitStack() as servers:
        await Builder(tmp_path, daemons, daemons, 60, False, lambda _: None, with_gateways=True).build()
    assert listening == ["gateway-1", "gateway-2"]
