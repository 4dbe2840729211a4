"""What is compared: our gateway in each mode with each store, without purposes, and mosquitto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

import trio

from benchmarks.figures import PeerMissing
from benchmarks.gateway import gateway_process
from benchmarks.peers import mosquitto
from benchmarks.peers.mqtt import connected, packet, text
from benchmarks.processes import connect, free_port, running

MODES = {"subscribe": "on subscribe", "publish": "on publish", "hybrid": "hybrid"}
STORES = ("cached", "tree", "flat")


class Side(NamedTuple):
    """A broker with a configuration."""

    name: str
    mode: str = ""
    """Empty for a broker that knows no purposes."""
    store: str = ""
    reserves: bool = True
    """Whether its clients reserve and claim anything."""

    @property
    def speaks(self) -> bool:
        """Whether its clients say anything of purposes."""
        return bool(self.mode) and self.reserves


NONE = Side("no purposes")
MOSQUITTO = Side("mosquitto")
IDLE = Side("nothing reserved", "publish", "cached", reserves=False)
"""It looks for commands and filters nothing: what the paper calls NoF."""
FILTERING = tuple(Side(f"{MODES[mode]}, {store}", mode, store) for mode in MODES for store in STORES)
ALL = (NONE, IDLE, *FILTERING, MOSQUITTO)

_SECTION = """
[purposes]
mode = "{mode}"
store = "{store}"
vocabulary = "{vocabulary}"
"""


class Given(NamedTuple):
    """What a gateway's configuration says of purposes."""

    vocabulary: tuple[str, ...]
    claims: tuple[str, ...]
    reservations: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    """Of the configuration itself: filter, allowed, prohibited."""


class Running:
    """A broker's process, and how clients come to it."""

    def __init__(self, process: Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self._port = port
        self._log = log

    async def connect(self, client: bytes) -> trio.SocketStream:
        """Connect a client; raises `PeerMissing`."""
        return await connected(self._port, client, self.process, self._log)

    def listening(self) -> int:
        """Wait until it listens, and return its port; raises `PeerMissing`."""
        trio.run(self._reached)
        return self._port

    async def _reached(self) -> None:
        await (await connect(self._port, self.process, self._log)).aclose()


@contextmanager
def started(side: Side, place: Path, given: Given) -> Iterator[Running]:
    """Run a side's process with its files in a folder; raises `PeerMissing`."""
    place.mkdir()
    port, log = free_port(), place / "log"
    if side == MOSQUITTO:
        command = mosquitto.command(place, port)
    else:
        command = gateway_process.command(place, port)
        if side.mode:
            _configure(side, place, given)
    with running(command, log) as process:
        yield Running(process, port, log)


def _configure(side: Side, place: Path, given: Given) -> None:
    vocabulary = place / "vocabulary"
    vocabulary.write_text("\n".join(given.vocabulary) + "\n")
    section = _SECTION.format(mode=side.mode, store=side.store, vocabulary=vocabulary)
    if side.reserves:
        for wanted, aip, pip in given.reservations:
            section += (
                f'\n[[purposes.reservation]]\nfilter = "{wanted}"\naip = {_list(aip)}\npip = {_list(pip)}\n'
            )
    claims = f'purposes = {_list(given.claims)}\nreserve = ["#"]\n' if side.reserves else ""
    config = place / "gateway.toml"
    config.write_text(config.read_text().replace("[anonymous]\n", f"{section}\n[anonymous]\n{claims}"))


def _list(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{one}"' for one in texts) + "]"


# What clients say, by the published topics, so that each side hears the same version of the protocol.


def spelled(wanted: str) -> str:
    """Return a filter as commands write it."""
    return wanted.replace("#", "HASH").replace("+", "PLUS")


async def reserve(stream: trio.SocketStream, wanted: str, terms: str) -> None:
    """Reserve: `terms` as between the braces, `a,b|c`, or `!` to take away."""
    topic = f"!RESERVE/{spelled(wanted)}{{{terms}}}"
    await stream.send_all(packet(0x32, text(topic.encode()) + b"\x00\x01"))
    await exactly(stream, 4)


async def subscribe(stream: trio.SocketStream, wanted: str, purpose: str) -> bool:
    """Subscribe at QoS 0, for a purpose if one is given; return whether it was granted."""
    said = f"!AP/{spelled(wanted)}{{{purpose}}}" if purpose else wanted
    await stream.send_all(packet(0x82, b"\x00\x01" + text(said.encode()) + b"\x00"))
    return (await exactly(stream, 5))[-1] == 0


async def exactly(stream: trio.SocketStream, size: int) -> bytes:
    """Read so many bytes; raises `PeerMissing`."""
    found = bytearray()
    while len(found) < size:
        more = await stream.receive_some(size - len(found))
        if not more:
            raise PeerMissing("it closes a connection")
        found += more
    return bytes(found)
