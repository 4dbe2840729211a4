"""The proxy between daemons in containers and their tors: it mirrors each side's Unix sockets to the other.

A daemon and its tor see different directories under the same path. The proxy makes tor's sockets (SOCKS and
control) appear at the daemon, and the daemon's (its onion services) at tor. It applies the daemon's faults to
all connections but control.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from hushcast_runtime.files import write_private
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.streams import listen_on_socket
from hushcast_testnet.path_proxy import CONTROL, PathEnd, PathRelay, hear_of_conditions

PAIRS_FILE = "doors.json"
_LOOK_EVERY = 0.1  # seconds between looks at what was opened
_TOR = "tor"  # the other end, which has no faults of its own


class SocketFolders(msgspec.Struct, frozen=True):
    """One daemon's two directories."""

    name: str
    daemons: str
    tors: str


class _Mirror:
    """The sockets of one daemon and its tor."""

    def __init__(self, relay: PathRelay, pair: SocketFolders, nursery: trio.Nursery) -> None:
        self._relay = relay
        self._name = pair.name
        self._daemons, self._tors = Path(pair.daemons), Path(pair.tors)
        self._nursery = nursery
        self._mirrored: set[Path] = set()

    async def look(self) -> None:
        """Open what was opened on the other side since the last look."""
        cookie, copy = self._tors / "cookie", self._daemons / "cookie"
        if cookie.exists() and (not copy.exists() or copy.read_bytes() != cookie.read_bytes()):
            write_private(copy, cookie.read_bytes())
        for name in ("control", "socks"):
            await self._mirror(self._tors / name, self._daemons / name)
        for service in self._daemons.glob("*.sock"):
            await self._mirror(service, self._tors / service.name)

    async def _mirror(self, original: Path, mirror: Path) -> None:
        if mirror in self._mirrored or not original.is_socket():
            return
        host = _TOR if original.name == "control" else self._name

        async def carry(stream: trio.SocketStream) -> None:
            async with stream:
                with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                    async with await trio.open_unix_socket(original) as onward:
                        await self._relay.join(PathEnd(stream, host), PathEnd(onward, _TOR))

        listener = await listen_on_socket(mirror)
        self._mirrored.add(mirror)
        self._nursery.start_soon(trio.serve_listeners, carry, [listener])


async def serve(home: Path) -> None:
    """Mirror the doors of all pairs that a file in `home` names, until cancelled."""
    relay = PathRelay(random.Random())  # noqa: S311 - losses, not secrets
    async with trio.open_nursery() as nursery:
        pairs = msgspec.json.decode((home / PAIRS_FILE).read_bytes(), type=list[SocketFolders])
        mirrors = [_Mirror(relay, pair, nursery) for pair in pairs]
        await nursery.start(hear_of_conditions, relay, home / CONTROL)
        while True:
            for mirror in mirrors:
                with suppress(TransportError, FileNotFoundError):  # gone again while we looked
                    await mirror.look()
            await trio.sleep(_LOOK_EVERY)


if __name__ == "__main__":
    trio.run(serve, Path(sys.argv[1]))
