"""Layout of a private Tor network: its ports, its keys, and a torrc for every process.

Every setting here trades anonymity for speed and is for testing networks alone.
"""

from __future__ import annotations

import itertools
import math
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.tor.tor_process import OLD_CIRCUITS
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet.tor.distance import NEAR, Distance
from hushcast_testnet.tor.distance_proxy import FOLDER, TorDoor
from hushcast_testnet.tor.tor_keys import make_authority

AUTHORITIES = 3  # the fewest that can outvote a missing one
RELAYS = 5  # with the authorities 8: enough for paths of 3 that differ, and for HSDirs of a service
CLIENT_SNIPPET = "client.torrc"

# A consensus holds for VALID_INTERVALS of VOTING_INTERVAL seconds, and Tor derives the life of onion
# descriptors from the interval (24 rounds): with 5 minutes they rotate every 2 hours, not in mid-test.
VOTING_INTERVAL = 300
VALID_INTERVALS = 24
_LEAST_DELAY = 2  # seconds that authorities wait for votes, and for signatures: the least tor allows
_ONE_WAYS = 12  # and at a distance: a round trip to connect and one to hand in, at three times the mean

_NETWORK = """\
TestingTorNetwork 1
UseDefaultFallbackDirs 0
PathsNeededToBuildCircuits 0.67
"""

_NODE = """\
AssumeReachable 1
ContactInfo nobody
ExitPolicy reject *:*
SocksPort 0
PublishHidServDescriptors 0
"""

# Fewer copies of a descriptor (1 replica on 3 of 8 relays) and no spare introduction circuits: a service
# costs its tor a small part of the work, and 25 of them are up in 3 seconds.
_AUTHORITY = f"""\
AuthoritativeDirectory 1
V3AuthoritativeDirectory 1
TestingDirAuthVoteExit *
TestingDirAuthVoteHSDir *
TestingDirAuthVoteGuard *
V3AuthVotingInterval {VOTING_INTERVAL}
V3AuthNIntervalsValid {VALID_INTERVALS}
TestingV3AuthInitialVotingInterval {VOTING_INTERVAL}
ConsensusParams hsdir_n_replicas=1 hsdir_spread_store=3 hsdir_spread_fetch=3 hs_intro_num_extra=0 \
circpad_padding_disabled=1
"""
_DELAYS = (
    "V3AuthVoteDelay",
    "V3AuthDistDelay",
    "TestingV3AuthInitialVoteDelay",
    "TestingV3AuthInitialDistDelay",
)

_CLIENT = f"""\
ConnectionPadding 0
MaxClientCircuitsPending 1024
{OLD_CIRCUITS}
VanguardsLiteEnabled 0
UseEntryGuards 0
LearnCircuitBuildTimeout 0
CircuitBuildTimeout 30
"""


@dataclass(frozen=True, slots=True)
class TorNode:
    """One tor process to be: its name and its directory, which holds `torrc`, `log`, `pid` and `data`."""

    name: str
    directory: Path


@dataclass(frozen=True, slots=True)
class TorClient:
    """The endpoints of a client tor that daemons share, each `127.0.0.1:PORT`."""

    control: str
    socks: str

    def endpoints(self) -> tuple[Endpoint, Endpoint]:
        """Return the control endpoint and the SOCKS endpoint."""
        control, socks = (door.rpartition(":") for door in (self.control, self.socks))
        return Endpoint(host=control[0], port=int(control[2])), Endpoint(host=socks[0], port=int(socks[2]))


@dataclass(frozen=True, slots=True)
class PreparedNetwork:
    """A network on disk that can be started while its ports are held."""

    directory: Path
    authorities: tuple[TorNode, ...]
    relays: tuple[TorNode, ...]
    client_nodes: tuple[TorNode, ...]
    clients: tuple[TorClient, ...]
    doors: tuple[TorDoor, ...]
    """At which authorities and relays are found."""
    voting: int
    """Seconds from the first vote to a consensus."""

    @property
    def nodes(self) -> tuple[TorNode, ...]:
        """Authorities and relays."""
        return (*self.authorities, *self.relays)

    @property
    def snippet(self) -> Path:
        """A file of torrc lines by which any other tor joins the network as a client."""
        return self.directory / CLIENT_SNIPPET


@contextmanager
def held_ports(count: int) -> Iterator[list[int]]:
    """Hold `count` loopback ports of the kernel's choice until the block ends.

    A held socket is bound and does not listen; tor, which sets SO_REUSEADDR as we do, can listen on its port
    meanwhile, and the kernel gives it to nobody else. So there is no moment in which another could take it.
    """
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sockets.append(held)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
        yield [int(held.getsockname()[1]) for held in sockets]
    finally:
        for held in sockets:
            held.close()


def ports_needed(clients: int, distance: Distance = NEAR) -> int:
    """Return how many ports a network with this many client tors listens on, with a proxy if there is one."""
    doors = 2 * AUTHORITIES + RELAYS
    return doors * (2 if distance.ms else 1) + 2 * clients


async def prepare(
    directory: Path,
    ports: Iterable[int],
    clients: int = 1,
    host: Callable[[str], str] = lambda name: LOOPBACK,
    distance: Distance = NEAR,
) -> PreparedNetwork:
    """Write keys and configuration of a network into `directory`, which must not exist yet.

    `ports` are `ports_needed(clients, distance)` ports from `held_ports`, held until the network is started;
    where each node, and the proxy by the name of its folder, has a `host` of its own, any will do. Raises
    `UsageError` when tor is missing or the directory exists, `TransportError` when its key programs fail.
    """
    left = iter(ports)
    directory = _made(directory)
    authorities = [make_node(directory, f"authority{number}") for number in range(AUTHORITIES)]
    relays = [make_node(directory, f"relay{number}") for number in range(RELAYS)]
    client_nodes = [make_node(directory, f"client{number}") for number in range(clients)]

    def door(node: TorNode, kind: str) -> TorDoor:
        own_host, own_port = host(node.name), next(left)
        found = (host(FOLDER), next(left)) if distance.ms else (own_host, own_port)
        return TorDoor(f"{node.name} {kind}", *found, own_host, own_port)

    found = {node: [door(node, "ORPort"), door(node, "DirPort")] for node in authorities}
    network = _NETWORK + "".join(await _authority_lines(found))
    delay = _LEAST_DELAY + math.ceil(_ONE_WAYS * distance.ms / 1000)
    authority = _AUTHORITY + "".join(f"{name} {delay}\n" for name in _DELAYS)
    found |= {node: [door(node, "ORPort")] for node in relays}
    for node, doors in found.items():
        own = f"Address {doors[0].host}\n" + "".join(map(_door_lines, doors))
        _write_torrc(node, network + _NODE + (authority if node in authorities else "") + own)
    shared = []
    for node in client_nodes:
        client = TorClient(control=f"{LOOPBACK}:{next(left)}", socks=f"{LOOPBACK}:{next(left)}")
        write_client(node, network + _CLIENT, client.control, client.socks)
        shared.append(client)
    (directory / CLIENT_SNIPPET).write_text(network + _CLIENT)
    return PreparedNetwork(
        directory,
        tuple(authorities),
        tuple(relays),
        tuple(client_nodes),
        tuple(shared),
        tuple(itertools.chain.from_iterable(found.values())),
        2 * delay,
    )


def _door_lines(door: TorDoor) -> str:
    """Return how a torrc says where a door is advertised and where it is, which may be the same."""
    kind = door.name.split()[-1]
    found, own = f"{door.host}:{door.port}", f"{door.own_host}:{door.own_port}"
    return f"{kind} {own}\n" if found == own else f"{kind} {found} NoListen\n{kind} {own} NoAdvertise\n"


def write_client(node: TorNode, snippet: str, control: str, socks: str) -> None:
    """Write the torrc of a client tor that joins by a `snippet`; its doors as a torrc names them."""
    doors = f"ControlPort {control}\nSocksPort {socks} ExtendedErrors\n"
    _write_torrc(node, snippet + "ClientOnly 1\nCookieAuthentication 1\n" + doors)


def _made(directory: Path) -> Path:
    directory = directory.absolute()
    try:
        directory.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise UsageError(f"a network cannot be made in {directory}: {error.strerror}") from None
    return directory


def make_node(directory: Path, name: str) -> TorNode:
    """Make the directories of one tor process to be."""
    node = TorNode(name, directory / name)
    for made in (node.directory, node.directory / "data"):
        made.mkdir(mode=0o700)
    return node


async def _authority_lines(found: dict[TorNode, list[TorDoor]]) -> list[str]:
    lines = dict.fromkeys(found, "")

    async def make(node: TorNode) -> None:
        relay, directory = found[node]
        data = node.directory / "data"
        identity, fingerprint = await make_authority(data, relay.host, relay.port, directory.port)
        lines[node] = (
            f"DirAuthority {node.name} orport={relay.port} no-v2 v3ident={identity} "
            f"{directory.host}:{directory.port} {fingerprint}\n"
        )

    async with trio.open_nursery() as nursery:
        for node in found:
            nursery.start_soon(make, node)
    return list(lines.values())


def _write_torrc(node: TorNode, lines: str) -> None:
    nickname = "".join(filter(str.isalnum, node.name))
    own = (
        f"Nickname {nickname}\n"
        f'DataDirectory "{node.directory / "data"}"\n'
        f'PidFile "{node.directory / "pid"}"\n'
        f"Log notice file {node.directory / 'log'}\n"  # the rest of this line is the path, unquoted
        "RunAsDaemon 1\n"
        "NumCPUs 1\n"
        "ShutdownWaitLength 0\n"
    )
    (node.directory / "torrc").write_text(own + lines)
