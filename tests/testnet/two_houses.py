"""Two houses on a testnet: a gateway beside each of its clients, to be killed and started again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import trio
from gateway_process import wait_for
from mqtt_client import Server

import hushcast
from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet import gateways, processes, testnet
from hushcast_testnet.inventory import GatewayMember
from hushcast_testnet.tor.tor_network import held_ports

ROUTED_WITHIN = 120.0  # seconds until relays route to a daemon


class House:
    """One gateway."""

    def __init__(self, net: Any, member: GatewayMember) -> None:
        self.net = net
        self.member = member
        self.server = Server(member.port)
        self.http = ""
        """Where it speaks HTTP, if it does."""

    @property
    def process(self) -> processes.ProcessRecord:
        pid = holder(Path(self.member.state))
        assert pid is not None, "it is not running"
        process = processes.find(self.member.name, pid)
        assert process is not None
        return process

    @property
    def log(self) -> str:
        return (Path(self.member.config).parent / "log").read_text()

    def start(self) -> None:
        trio.run(gateways.start, [self.member])
        wait_for(self.member.port)

    def kill(self) -> None:
        trio.run(processes.kill, [self.process])

    def subscriptions_ready(self, count: int, among: str = "") -> None:
        """Return when relays route so many subscriptions to this house's daemon, of those to one topic."""

        async def ready() -> None:
            with trio.fail_after(ROUTED_WITHIN):
                async with hushcast.connect(self.net.socket(self.member.daemon)) as daemon:
                    while count > sum(  # noqa: ASYNC110
                        one.is_ready and among in one.topic for one in await daemon.subscriptions()
                    ):
                        await trio.sleep(0.1)

        trio.run(ready)


@contextmanager
def houses(
    net: Any, settings: str = "", more: Mapping[str, str] = MappingProxyType({}), site: str = ""
) -> Iterator[list[House]]:
    """Run a gateway beside each of a testnet's clients; `settings` begin its configuration.

    `more` says what stands there in place of some of its lines. With a `site` they speak HTTP, also with its
    pages.
    """
    daemons = [one for one in testnet.load(net.directory).members if one.role == "client"]
    with (
        gateways.prepared(
            net.directory, daemons
        ) as members,  # killed and started again they keep their ports
        held_ports(len(daemons) if site else 0) as ports,
    ):
        found = [House(net, member) for member in members]
        for number, house in enumerate(found):
            config = Path(house.member.config)
            text = config.read_text()
            for line, instead in more.items():
                assert text.count(line) == 1
                text = text.replace(line, instead)
            if site:
                port = ports[number]
                house.http = f"http://{LOOPBACK}:{port}"
                text += f'\n[[listen]]\nkind = "http"\nport = {port}\norigins = ["{site}"]\n'
            config.write_text(settings + text)
        with running(found):
            yield found


@contextmanager
def running(found: Sequence[House]) -> Iterator[None]:
    """Run the gateways of houses."""
    started: list[House] = []
    try:
        for house in found:
            started.append(house)
            house.start()
        yield
    finally:
        for house in started:
            if holder(Path(house.member.state)) is not None:
                trio.run(processes.stop, [house.process])
    for house in found:
        assert "Traceback" not in house.log
