"""The MQTT gateways of a testnet: one for each client daemon, with one private topic between them all."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import trio

from hushcast.keys import new_link
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet import processes
from hushcast_testnet.inventory import GatewayMember, Member, Testnet, deadline, run_by, running_of
from hushcast_testnet.processes import ProcessRecord
from hushcast_testnet.tor.tor_network import held_ports

ALIAS = "home"
"""The alias of the private topic; `home/#` travels by it, whatever gateway a client is at."""
READY_WITHIN = 60.0  # seconds
LOOK_EVERY = 0.1  # seconds between looks at a gateway that starts

_CONFIG = """\
program = "gateway"
state = "{state}"

[[listen]]
kind = "tcp"
address = "{host}"
port = {port}

[[listen]]
kind = "unix"
path = "{socket}"

[anonymous]
publish = ["#"]
subscribe = ["#", "$SYS/#"]

[daemon]
socket = "{daemon}"

[[gateway.alias]]
name = "{alias}"
link_file = "{link}"

[[gateway.map]]
from = "{alias}/#"
to = "{alias}"

[log]
level = "debug"
"""


@contextmanager
def prepared(directory: Path, daemons: Sequence[Member]) -> Iterator[list[GatewayMember]]:
    """Write the configuration of a gateway for each daemon, and the link that they share.

    Their ports are nobody else's until the block ends: start them in it.
    """
    home = private_directory(directory / "gateways")
    link = home / f"{ALIAS}.link"
    write_private(link, new_link(ALIAS, private=True).encode() + b"\n")
    with held_ports(len(daemons)) as ports:
        yield [
            _prepare(home, number, daemon, link, port)
            for number, (daemon, port) in enumerate(zip(daemons, ports, strict=True), 1)
        ]


async def start(gateways: Sequence[GatewayMember]) -> None:
    """Start gateways and return when clients can connect; raises `TransportError`."""
    for gateway in gateways:
        command = [sys.executable, *_arguments(gateway)]
        await processes.launch(gateway.name, command, Path(gateway.config).parent / "log")
    for gateway in gateways:
        await until_ready(gateway)


async def until_ready(gateway: GatewayMember) -> None:
    """Return when clients can connect to a gateway; raises `TransportError`."""
    with deadline(READY_WITHIN, f"{gateway.name} is not ready in time: see its log"):
        while not await _serves(gateway):  # noqa: ASYNC110 - another process makes it
            await trio.sleep(LOOK_EVERY)


async def _serves(gateway: GatewayMember) -> bool:
    """Tell whether a gateway lets clients in; one that was killed has left its socket."""
    try:
        async with await trio.open_unix_socket(gateway.socket):
            return True
    except OSError:
        return False


def running(testnet: Testnet) -> list[ProcessRecord]:
    """Return the processes of a testnet's gateways, those that were started by hand included."""
    return running_of(testnet.gateways, _arguments)


def _prepare(home: Path, number: int, daemon: Member, link: Path, port: int) -> GatewayMember:
    assert daemon.socket is not None
    own = private_directory(home / f"gateway-{number}")
    gateway = GatewayMember(
        own.name,
        daemon.name,
        str(own / "config.toml"),
        str(own / "state"),
        port,
        str(own / "mqtt.sock"),
    )
    config = _CONFIG.format(
        state=gateway.state,
        host=LOOPBACK,
        port=gateway.port,
        socket=gateway.socket,
        daemon=daemon.socket,
        alias=ALIAS,
        link=link,
    )
    write_private(Path(gateway.config), config.encode())
    return gateway


def _arguments(gateway: GatewayMember) -> tuple[str, ...]:
    return ("-m", *run_by("gateway"), gateway.config)
