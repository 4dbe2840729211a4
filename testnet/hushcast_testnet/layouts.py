"""Layouts: which daemons a testnet of each carrier consists of, in which order they start, and with what."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hushcast_brokers.broker_sections import BROKER_FILE
from hushcast_brokers.network_file import privacy_lines
from hushcast_brokers.tomography.section import SERVICE_FILE
from hushcast_central.proxy.process import PROXY_FILE
from hushcast_directory.server.process import NETWORK_FILE
from hushcast_protocol.base.cover_terms import LEAST_ROUND, LEAST_WIDTH
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.broker_tree import MAX_CHILDREN, BrokerRole
from hushcast_protocol.brokers.privacy import DEFAULT_AGGREGATION, DEFAULT_LAYERS, Privacy
from hushcast_protocol.central.network import MAX_PROXIES, PROXY_ROLES, ProxyRole
from hushcast_runtime.processes.network_file import toml_text
from hushcast_runtime.wording import counted
from hushcast_testnet.builder import Builder, Layout
from hushcast_testnet.inventory import CONTROL_SOCKET, CarrierName, Member
from hushcast_testnet.keeper import Keeper

Profile = Literal["hardened", "paper"]
BrokersModel = Literal["clear", "community", "full"]
_CLEAR = Privacy()
INNER = 2  # inner brokers
SETTLE = 5  # seconds for which a filter is to be anonymous: people look on
TOGETHER = 4  # nodes at the first edge broker: what sank below k = 3 is shown again at 4


@dataclass(frozen=True)
class OverlayLayout:
    """Implements `Layout`: a directory or several that agree, relays, and clients."""

    relays: int
    clients: int
    profile: Profile = "hardened"
    directories: int = 1
    shard_size: int | None = None
    """Relays of a shard, where several directories are to cut the network."""
    keepers: int | None = None
    """How many relays keep what is published, where several directories agree on that."""
    cover: bool = False
    """Whether daemons may have cover, where several directories agree on that."""
    carrier: CarrierName = "overlay"

    def members(self, directory: Path) -> list[Member]:
        """Return the directories, then relays, then clients."""
        numbers = range(1, self.directories + 1)
        names = ["directory"] if self.directories == 1 else [f"directory-{number}" for number in numbers]
        return [
            *(_member(name, "directory", directory / name) for name in names),
            *_numbered(directory, "relay", self.relays),
            *_numbered(directory, "client", self.clients),
        ]

    async def start(self, builder: Builder, members: list[Member]) -> None:
        """Start the directories, and all others once their network is known."""
        heads, nodes = members[: self.directories], members[self.directories :]
        builder.progress(f"starting {counted(self.directories, 'directory', 'directories')}")
        keys = [f"first_roster = {self.relays}"]
        network = ["[network]", 'name = "testnet"', f"epoch_seconds = {builder.testnet.epoch}"]
        network += [f'profile = "{self.profile}"']
        for head in heads:
            await builder.start(head, keys, network)
        written = [await builder.written(head, NETWORK_FILE) for head in heads]
        joined = written[0]
        if self.directories > 1:
            # Each draws its key and address at its first start; only then can it be told of the others.
            agreed = self.shard_size, self.keepers, self.cover
            listed = authorities_lines(written, self.directories // 2 + 1, *agreed)
            for head in heads:
                await builder.restart(head, keys, [*network, *listed])
            joined = await builder.written(heads[0], NETWORK_FILE, ["network.authorities"])
        builder.progress(f"starting {counted(self.relays, 'relay')} and {counted(self.clients, 'client')}")
        for member in nodes:
            await builder.start_node(member, joined)

    def is_ready(self, described: dict[str, Any]) -> bool:
        """Tell whether a node is ready, and holds a roster of all relays."""
        roster = described.get("roster") or {}
        return bool(described.get("ready")) and roster.get("relays") == self.relays


def authorities_lines(
    written: Iterable[str],
    quorum: int,
    shard_size: int | None = None,
    keepers: int | None = None,
    cover: bool = False,
) -> list[str]:
    """Return the settings of directories that agree, from what each wrote as `network.toml` alone."""
    lines = ["[authorities]", f"quorum = {quorum}"]
    lines += [] if shard_size is None else [f"shard_size = {shard_size}"]
    lines += [] if keepers is None else [f"keepers = {keepers}"]
    lines += [f"cover = {{ round = {LEAST_ROUND}, width = {LEAST_WIDTH}, listed_days = 0 }}"] if cover else []
    for text in written:
        network = tomllib.loads(text)["network"]
        lines += ["[[authorities.members]]", f"key = {toml_text(network['directory_key'])}"]
        lines += [f"address = {toml_text(network['directory'])}"]
    return lines


@dataclass(frozen=True)
class CentralLayout:
    """Implements `Layout`: a server, proxies of both roles in turn, and nodes, which are all clients."""

    nodes: int
    proxies: int
    profile: Profile = "hardened"
    carrier: CarrierName = "central"

    def members(self, directory: Path) -> list[Member]:
        """Return the server, then proxies, then nodes."""
        proxies = [
            _member(name, "proxy", directory / "proxies" / name) for name, _ in proxy_names(self.proxies)
        ]
        server = _member("server", "server", directory / "server")
        return [server, *proxies, *_numbered(directory, "client", self.nodes)]

    async def start(self, builder: Builder, members: list[Member]) -> None:
        """Start the server, the proxies, which it has to list, and the nodes once it lists them all."""
        server, proxies = members[0], members[1 : 1 + self.proxies]
        builder.progress("starting the server")
        network = ["[network]", 'carrier = "central"', 'name = "testnet"']
        network += [f"epoch_seconds = {builder.testnet.epoch}", f'profile = "{self.profile}"']
        await builder.start(server, [], [*network, *builder.traced(server)])
        known = await builder.written(server, NETWORK_FILE)
        builder.progress(f"starting {counted(self.proxies, 'proxy', 'proxies')}")
        for member, (_, role) in zip(proxies, proxy_names(self.proxies), strict=True):
            await builder.start(member, [f'role = "{role}"'], [known, *builder.traced(member)])
        listed = [await builder.written(member, PROXY_FILE) for member in proxies]
        await builder.change(server, [], [*network, *builder.traced(server), *listed])
        joined = await builder.written(server, NETWORK_FILE, [_key(text) for text in listed])
        builder.progress(f"starting {counted(self.nodes, 'node')}")
        for member in members[1 + self.proxies :]:
            await builder.start_node(member, joined)

    def is_ready(self, described: dict[str, Any]) -> bool:
        """Tell whether a node is ready."""
        return bool(described.get("ready"))


@dataclass(frozen=True)
class BrokersLayout:
    """Implements `Layout`: a root, inner brokers, edge brokers below them in turn, and nodes at these."""

    nodes: int
    edges: int
    privacy: Privacy = _CLEAR
    with_tomography: bool = False
    carrier: CarrierName = "brokers"

    def members(self, directory: Path) -> list[Member]:
        """Return the brokers from the root down, then the tomography service if there is one, then nodes."""
        home = directory / "brokers"
        brokers = [_member(name, role, home / name) for name, role, _ in broker_names(self.edges)]
        service = [_member("tomography", "tomography", directory / "tomography")] * self.with_tomography
        return [*brokers, *service, *_numbered(directory, "client", self.nodes)]

    async def start(self, builder: Builder, members: list[Member]) -> None:
        """Start the root, then brokers from above down, which it has to list, then nodes."""
        names = broker_names(self.edges)
        root, below = members[0], members[1 : len(names)]
        nodes = [member for member in members if member.is_node]
        builder.progress("starting the root")
        network = ["[network]", 'carrier = "brokers"', 'name = "testnet"']
        network += [f"epoch_seconds = {builder.testnet.epoch}", privacy_lines(self.privacy)]
        network += builder.traced(root)
        head = ['role = "root"']
        await builder.start(root, head, network)
        known = await builder.written(root, NETWORK_FILE)
        service = ""
        keeper = None
        if self.privacy.model == "community":
            keeper = Keeper(builder.directory / "keeper", known)
            head.append(keeper.listed)
            await builder.restart(root, head, network)
        if self.with_tomography:
            (own,) = (member for member in members if member.role == "tomography")
            builder.progress("starting the tomography service")
            await builder.start(own, ['role = "tomography"', f"settle = {SETTLE}"], [known])
            service = await builder.written(own, SERVICE_FILE)
            network = [*network, service]
            await builder.restart(root, head, network)
        listed: dict[str, str] = {}
        for role, what in (("inner", "inner broker"), ("edge", "edge broker")):
            level = [(one, parent) for one, (_, _, parent) in zip(below, names[1:], strict=True)]
            level = [(one, parent) for one, parent in level if one.role == role]
            builder.progress(f"starting {counted(len(level), what)}")
            for member, parent in level:
                above = [f'parent = "{_key(listed[parent])}"'] if parent in listed else []
                await builder.start(
                    member, [f'role = "{role}"', *above], [known, service, *builder.traced(member)]
                )
            listed |= {member.name: await builder.written(member, BROKER_FILE) for member, _ in level}
        await builder.change(root, head, [*network, *listed.values()])
        if keeper is not None:
            builder.progress("admitting all to the community")
            keys = {member.name: _key(listed[member.name]) for member in below}
            await keeper.begin({"root": keeper.root, **keys}, nodes, Path(below[0].config))
        builder.progress(f"starting {counted(self.nodes, 'node')}")
        edges = [_key(listed[member.name]) for member in below if member.role == "edge"]
        for number, member in enumerate(nodes):
            edge = edges[edge_of(number, self.edges)]
            lines = [known, "[brokers]", f'edge = "{edge}"', *([keeper.named] if keeper is not None else [])]
            await builder.start_node(member, "\n".join(lines))

    def is_ready(self, described: dict[str, Any]) -> bool:
        """Tell whether a node is ready, holds the tree of all brokers, and is in the community if any is."""
        tree, community = described.get("tree") or {}, described.get("community") or {}
        is_in = self.privacy.model != "community" or community.get("epoch") is not None
        return is_in and bool(described.get("ready")) and tree.get("brokers") == len(broker_names(self.edges))


def broker_names(edges: int) -> list[tuple[str, BrokerRole, str]]:
    """Return the names of all brokers from the root down, with roles and parents: edges take turns."""
    inner = [f"inner-{number + 1}" for number in range(INNER)]
    return [
        ("root", "root", ""),
        *((name, "inner", "root") for name in inner),
        *((f"edge-{number + 1}", "edge", inner[number % INNER]) for number in range(edges)),
    ]


def edge_of(number: int, edges: int) -> int:
    """Return at which edge a node is, both counted from 0: enough for k at the first, the rest in turn."""
    return 0 if number < TOGETHER or edges == 1 else 1 + (number - TOGETHER) % (edges - 1)


def proxy_names(count: int) -> list[tuple[str, ProxyRole]]:
    """Return the names of so many proxies with their roles, which take turns."""
    turns = (divmod(number, len(PROXY_ROLES)) for number in range(count))
    return [(f"{PROXY_ROLES[role]}-{turn + 1}", PROXY_ROLES[role]) for turn, role in turns]


def _key(section: str) -> str:
    """Return the key of a proxy or broker out of the lines that it wrote."""
    ((one,),) = tomllib.loads(section).values()
    return str(one["key"])


def layout_of(
    carrier: CarrierName,
    nodes: int | None,
    clients: int | None,
    proxies: int | None,
    edges: int | None = None,
    profile: Profile | None = None,
    privacy: BrokersModel | None = None,
    layers: int | None = None,
    aggregation: bool | None = None,
    with_tomography: bool = False,
    directories: int | None = None,
    shard_size: int | None = None,
    keepers: int | None = None,
    cover: bool = False,
) -> Layout:
    """Return the layout with these numbers, the usual ones where none is given; raises `UsageError`."""
    if edges is not None and carrier != "brokers":
        raise UsageError("edge brokers are a network of brokers': --edges goes with --carrier brokers")
    if (privacy, layers, aggregation) != (None, None, None) and carrier != "brokers":
        raise UsageError(
            "--privacy, --layers and --aggregation are a network of brokers': they go with --carrier brokers"
        )
    if with_tomography and carrier != "brokers":
        raise UsageError(
            "only brokers state to a tomography service: --tomography goes with --carrier brokers"
        )
    if directories is not None and carrier != "overlay":
        raise UsageError("directories are the overlay's: --authorities goes without --carrier")
    if shard_size is not None and (directories is None or directories < 2):
        raise UsageError("one directory cuts no network: --shard-size goes with --authorities 2 or more")
    if keepers is not None and (directories is None or directories < 2):
        raise UsageError("directories agree on who keeps: --keepers goes with --authorities 2 or more")
    if cover and (directories is None or directories < 2):
        raise UsageError("directories agree on cover: --cover goes with --authorities 2 or more")
    if carrier == "overlay":
        if proxies is not None:
            raise UsageError("the overlay has no proxies: --proxies goes with --carrier central")
        clients = 2 if clients is None else clients
        relays = 10 if nodes is None else nodes
        if cover and relays < 3 * LEAST_WIDTH:
            raise UsageError(f"cover needs {3 * LEAST_WIDTH} relays: give --nodes {3 * LEAST_WIDTH} or more")
        agreed = (directories or 1, shard_size, keepers, cover)
        return OverlayLayout(relays, clients, profile or "hardened", *agreed)
    if clients is not None:
        system = "the central system" if carrier == "central" else "a network of brokers"
        raise UsageError(f"nodes of {system} are all clients: give their number as --nodes")
    if carrier == "brokers":
        learnt = _privacy(privacy or "clear", layers, profile, aggregation)
        edges = 3 if edges is None else edges
        return _brokers_layout(6 if nodes is None else nodes, proxies, edges, learnt, with_tomography)
    count = len(PROXY_ROLES) if proxies is None else proxies
    if not len(PROXY_ROLES) <= count <= MAX_PROXIES:
        raise UsageError(
            f"--proxies {count}: a network has one of each role at least, and {MAX_PROXIES} at most"
        )
    return CentralLayout(6 if nodes is None else nodes, count, profile or "hardened")


def _privacy(
    model: BrokersModel, layers: int | None, profile: Profile | None, aggregation: bool | None
) -> Privacy:
    options = {"layers": layers, "profile": profile, "aggregation": aggregation}
    if model != "full" and (
        given := next((name for name, value in options.items() if value is not None), "")
    ):
        raise UsageError(
            f"--{given} is for networks of brokers with --privacy full: add that, or leave --{given} away"
        )
    settled = profile or "hardened"
    aggregates = DEFAULT_AGGREGATION[settled] if aggregation is None else aggregation
    return Privacy(model, layers or DEFAULT_LAYERS, settled, aggregates)


def _brokers_layout(
    nodes: int, proxies: int | None, edges: int, privacy: Privacy, with_tomography: bool
) -> Layout:
    if proxies is not None:
        raise UsageError("a network of brokers has no proxies: --proxies goes with --carrier central")
    if not 1 <= edges <= MAX_CHILDREN:
        raise UsageError(f"--edges {edges}: there are between 1 and {MAX_CHILDREN}")
    if with_tomography and privacy.model != "clear":
        raise UsageError("brokers state filters that they can read: --tomography goes with --privacy clear")
    return BrokersLayout(nodes, edges, privacy, with_tomography)


def _numbered(directory: Path, role: str, count: int) -> Iterable[Member]:
    for number in range(1, count + 1):
        name = f"{role}-{number}"
        yield _member(name, role, directory / "nodes" / name)


def _member(name: str, role: str, home: Path) -> Member:
    member = Member(name, role, str(home / "config.toml"), str(home / "state"), None)
    if not member.is_node:
        return member
    return Member(name, role, member.config, member.state, str(home / CONTROL_SOCKET))
