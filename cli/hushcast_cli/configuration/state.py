"""Which daemon a configuration is of, and what its state directory holds: for commands that work on that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hushcast_cli.options import config_option
from hushcast_runtime.toml import read_toml

if TYPE_CHECKING:
    from hushcast_protocol.base.roster import Network
    from hushcast_runtime.processes.config import DaemonSettings
    from hushcast_runtime.storage.state_directory import StateKind

daemon_config_option = config_option("The daemon's configuration, TOML.", required=True)

Program = Literal[
    "node", "directory", "gateway", "server", "proxy", "broker", "tomography", "located provider"
]


def load_daemon(file: Path) -> tuple[DaemonSettings, StateKind]:
    """Read the configuration of a daemon of a network; raise `UsageError` if it cannot be used."""
    from hushcast_protocol.base.errors import UsageError

    program = program_of(file)
    if program in ("gateway", "located provider"):
        daemons = "nodes, directories, central servers, proxies, brokers and tomography services"
        raise UsageError(f"{file} is a {program}'s: this command is for {daemons}")
    if program in ("server", "proxy"):
        return _load_central(file, program)
    if program == "broker":
        return _load_broker(file)
    if program == "tomography":
        return _load_tomography(file)
    return _load_directory(file) if program == "directory" else _load_node(file)


def _load_directory(file: Path) -> tuple[DaemonSettings, StateKind]:
    from hushcast_directory.server.process import KEY_FILES
    from hushcast_directory.server.restoration import note_restored
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_directory.server.upgrade import VERSION
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.storage.state_directory import StateKind

    directory = load_settings(file, DirectorySettings)
    network = directory.network.network()
    return directory, StateKind("directory", network, KEY_FILES, VERSION, note_restored)


def _load_node(file: Path) -> tuple[DaemonSettings, StateKind]:
    from hushcast_brokers.keys import COMMUNITY_KEY
    from hushcast_node import upgrade
    from hushcast_node.settings import NodeSettings
    from hushcast_overlay.relay.identity import KEY_FILES
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.storage.state_directory import StateKind

    node = load_settings(file, NodeSettings)
    keys = KEY_FILES if node.role == "relay" else (COMMUNITY_KEY,) if node.has_communities else ()
    return node, StateKind(node.role, _network(node.network), keys, upgrade.VERSION)


def _load_central(file: Path, program: Program) -> tuple[DaemonSettings, StateKind]:
    from hushcast_central import keys
    from hushcast_central.settings import ProxySettings, ServerSettings
    from hushcast_central.upgrade import VERSION
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.storage.state_directory import StateKind

    if program == "server":
        server = load_settings(file, ServerSettings)
        return server, StateKind("central-server", _network(server.network), keys.SERVER_KEYS, VERSION)
    proxy = load_settings(file, ProxySettings)
    return proxy, StateKind(f"{proxy.role}-proxy", _network(proxy.network), keys.PROXY_KEYS, VERSION)


def _load_broker(file: Path) -> tuple[DaemonSettings, StateKind]:
    from hushcast_brokers.broker.settings import load_broker
    from hushcast_brokers.keys import BROKER_KEYS
    from hushcast_brokers.upgrade import VERSION
    from hushcast_runtime.storage.state_directory import StateKind

    broker = load_broker(file)
    return broker, StateKind(f"{broker.role}-broker", _network(broker.network), BROKER_KEYS, VERSION)


def _load_tomography(file: Path) -> tuple[DaemonSettings, StateKind]:
    from hushcast_brokers.keys import BROKER_KEYS
    from hushcast_brokers.tomography.settings import TomographySettings
    from hushcast_brokers.upgrade import VERSION
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.storage.state_directory import StateKind

    service = load_settings(file, TomographySettings)
    return service, StateKind("tomography-service", _network(service.network), BROKER_KEYS, VERSION)


def _network(section: Any) -> Network:
    """Return what tells networks apart in a backup, whatever the carrier."""
    from hushcast_brokers.network_file import BrokersTerms
    from hushcast_protocol.base.roster import Network

    profile = section.settled().text if isinstance(section, BrokersTerms) else section.profile
    return Network(section.name, profile, section.epoch_seconds)


def noun_of(role: str) -> str:
    """Return what a person calls a daemon of this role."""
    return role.replace("-", " ")


def one_of(role: str) -> str:
    """Return what a person calls a daemon of this role, with its article."""
    return f"{'an' if role[0] in 'ei' else 'a'} {noun_of(role)}"


def program_of(file: Path) -> Program:
    """Tell which program a file configures; where that cannot be told, `load_settings` will say why."""
    keys = _keys(file)
    network = keys.get("network")
    network = network if isinstance(network, dict) else {}
    if "role" in keys:
        return _PROGRAMS.get(str(keys["role"]), "node")
    if not keys or not network.keys().isdisjoint(_OF_JOINED):
        return "node"
    if "proxies" in keys or network.get("carrier") == "central":
        return "server"
    if "network" not in keys and not keys.keys().isdisjoint(_OF_PROVIDER):
        return "located provider"
    is_gateway = "network" not in keys and not keys.keys().isdisjoint(_OF_GATEWAY)
    return "gateway" if is_gateway else "directory"


_PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(("publications", "deliveries"), "proxy"),
    **dict.fromkeys(("root", "inner", "edge"), "broker"),
    "tomography": "tomography",
}
"""By the roles of whoever is no node."""
_OF_GATEWAY = {"listen", "users", "anonymous"}
_OF_PROVIDER = {"owner", "feed", "difficulty"}
_OF_JOINED = {"authorities", "directory", "directory_key", "quorum", "server", "server_key"}


def _keys(file: Path) -> dict[str, Any]:
    from hushcast_brokers.broker.settings import MAX_ROOT_CONFIG
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.files import read_most

    try:
        return read_toml(read_most(file, MAX_ROOT_CONFIG).decode())
    except (UsageError, ValueError, RecursionError):
        return {}
