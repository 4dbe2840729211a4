"""A local user without any right to a daemon connects to all that listens here, to learn its onion services.

Whoever answers a handshake proves its key, and a service's key may be its address. The user may even know the
key that it looks for: any answer at all tells that the service is on this machine.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener, TransportError
from hushcast_runtime.transports.channel import accept_channel
from hushcast_runtime.transports.endpoints import Endpoint, open_endpoint
from hushcast_testnet.tor.private_tor import TorNetwork

pytestmark = pytest.mark.processes

NETWORK = b"n" * 32
NOBODY = 65534
CLOSED = Endpoint(host="127.0.0.1", port=9)
PUBLISHED_WITHIN = 120.0

# Tries a handshake at every loopback port that listens, and at every Unix socket in a directory.
SCAN = """
import json, os, sys
from pathlib import Path
import trio
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_protocol.base.link.links import Link
from hushcast_runtime.transports.channel import accept_channel
network, key = map(bytes.fromhex, sys.argv[1:3])
user, directory = int(sys.argv[3]), sys.argv[4]
if os.getuid() != user:
    os.setgroups([]); os.setgid(user); os.setuid(user)
lines = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
ports = {int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A"}
lines = Path("/proc/self/net/unix").read_text().splitlines()
sockets = {line.split()[-1] for line in lines if directory in line}
found = []
async def look(what, connect, at):
    with trio.move_on_after(10):
        try:
            link = Link.initiate(network, key, os.urandom, MAX_OVERLAY_FRAME)
            await accept_channel(await connect(at), link, decode_overlay)
            found.append(what)
        except Exception:
            pass
async def main():
    async with trio.open_nursery() as nursery:
        for port in ports:
            nursery.start_soon(look, "port", lambda port: trio.open_tcp_stream("127.0.0.1", port), port)
        for socket in sockets:
            nursery.start_soon(look, "socket", trio.open_unix_socket, socket)
trio.run(main)
print(json.dumps({"found": found, "sockets": len(sockets)}))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hush-") as directory:
        yield Path(directory)


@pytest.fixture
def stranger() -> int:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: playing another user of the machine takes root")
    return NOBODY


async def scanned(seed: Seed, user: int, directory: Path) -> dict:
    arguments = [NETWORK.hex(), seed.public().hex(), str(user), str(directory)]
    done = await trio.run_process([sys.executable, "-c", SCAN, *arguments], capture_stdout=True)
    answer: dict = json.loads(done.stdout)
    return answer


@asynccontextmanager
async def service(seed: Seed, listener: Listener) -> AsyncIterator[None]:
    """Answer handshakes as a relay does."""

    async def answer(stream: trio.abc.Stream) -> None:
        link = Link.respond(NETWORK, seed, os.urandom, MAX_OVERLAY_FRAME)
        with suppress(HushcastError):
            await accept_channel(stream, link, decode_overlay)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, answer)
        yield
        nursery.cancel_scope.cancel()


async def test_with_a_tor_of_our_own_nothing_answers(home: Path, stranger: int) -> None:
    state = home / "tor"
    state.mkdir(mode=0o700)
    seed = Seed.draw(os.urandom)
    listener = await TorTransport(TorSettings(state_directory=state)).listen(seed)
    async with service(seed, listener):
        assert await scanned(seed, stranger, home) == {"found": [], "sockets": 1}
        assert (await scanned(seed, os.getuid(), home))["found"] == ["socket"]  # the scan would notice


async def test_with_the_systems_tor_only_tor_is_answered(
    home: Path, stranger: int, log_lines: list[dict[str, Any]]
) -> None:
    seed = Seed.draw(os.urandom)
    transport = TorTransport(TorSettings(control=CLOSED, socks=CLOSED))
    listener = await transport.listen(seed)
    async with service(seed, listener):
        assert (await scanned(seed, os.getuid(), home))["found"] == []  # who tor is is not known yet
        transport._user_of_tor = os.getuid()
        assert (await scanned(seed, stranger, home))["found"] == []
        assert (await scanned(seed, os.getuid(), home))["found"] == ["port"]
    assert [line["event"] for line in log_lines if line["level"] == "warning"] == [
        "a stream for an onion service did not come from tor: refused"
    ]


async def test_a_directory_for_the_systems_tor_is_its_groups_alone(home: Path, stranger: int) -> None:
    home.chmod(0o711)
    shared = home / "services"
    shared.mkdir()
    os.chown(shared, os.getuid(), 1)  # as if tor were in the group daemon
    shared.chmod(0o2710)
    seed = Seed.draw(os.urandom)
    settings = TorSettings(control=CLOSED, socks=CLOSED, services=shared)
    listener = await TorTransport(settings).listen(seed)
    (socket,) = shared.iterdir()
    assert (socket.stat().st_mode & 0o777, socket.stat().st_gid) == (0o660, 1)
    async with service(seed, listener):
        assert await scanned(seed, stranger, home) == {"found": [], "sockets": 1}
        assert (await scanned(seed, 1, home))["found"] == ["socket"]  # a user in that group


async def test_a_directory_that_others_may_enter_is_refused(home: Path) -> None:
    home.chmod(0o755)
    transport = TorTransport(TorSettings(control=CLOSED, socks=CLOSED, services=home))
    with pytest.raises(HushcastError, match="open to other users"):
        await transport.run()


def ports_of(pid: int) -> set[str]:
    """Return the inodes of the TCP ports that a process listens on."""
    table = Path(f"/proc/{pid}/net/tcp").read_text() + Path(f"/proc/{pid}/net/tcp6").read_text()
    listening = {line.split()[9] for line in table.splitlines() if " 0A " in line}
    held = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    return {inode for inode in listening if f"socket:[{inode}]" in held}


@pytest.mark.tor
async def test_a_real_tor_of_our_own_opens_no_port(
    tor_network: TorNetwork, home: Path, stranger: int
) -> None:
    settings = TorSettings(state_directory=home / "tor", torrc_include=Path(tor_network.snippet))
    transport = TorTransport(settings)
    seed = Seed.draw(os.urandom)
    ours = ports_of(os.getpid())  # Spark's, where its tests ran before
    async with trio.open_nursery() as nursery:
        await nursery.start(transport.run)
        listener = await transport.listen(seed)
        async with service(seed, listener):
            with trio.fail_after(PUBLISHED_WITHIN):
                await listener.published()
                link = Link.initiate(NETWORK, seed.public(), os.urandom, MAX_OVERLAY_FRAME)
                stream = await transport.connect(listener.address, "a")
                channel, _ = await accept_channel(stream, link, decode_overlay)
                await channel.aclose()
            tor = int(await transport.getinfo("process/pid"))
            assert ports_of(tor) == set()
            assert ports_of(os.getpid()) == ours
            assert await scanned(seed, stranger, home) == {"found": [], "sockets": 3}
        for name in ("control", "socks"):
            assert (home / "tor" / name).is_socket()
        nursery.cancel_scope.cancel()
    with pytest.raises(TransportError):
        await open_endpoint(Endpoint(path=str(home / "tor" / "control")))
