"""The node as a program: a relay or a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hushcast_runtime.program import Program, ProgramRole

if TYPE_CHECKING:
    from hushcast_node.settings import NodeSettings
    from hushcast_runtime.storage.state_directory import KeyChange, StateKind
    from hushcast_runtime.storage.state_layout import Migration


def _parse(data: bytes, where: str) -> NodeSettings:
    from hushcast_node.settings import NodeSettings
    from hushcast_runtime.processes.config import parse_settings

    return parse_settings(data, where, NodeSettings)


def _complete(text: str) -> str:
    from hushcast_protocol.base.addresses import onion_address
    from hushcast_protocol.base.secrets import Seed
    from hushcast_runtime.processes.config import NetworkSection
    from hushcast_runtime.processes.network_file import network_section

    somebody = Seed(bytes(32)).public()
    return text + network_section(NetworkSection(name="any"), onion_address(somebody), somebody.hex())


def _run(load: Callable[[], NodeSettings]) -> None:
    from hushcast_node.process import run_node

    run_node(load)


def _migrations() -> tuple[Migration, ...]:
    from hushcast_node.upgrade import MIGRATIONS

    return MIGRATIONS


def _state(settings: NodeSettings) -> StateKind:
    from hushcast_brokers.keys import COMMUNITY_KEY
    from hushcast_brokers.network_file import BrokersNetworkSection
    from hushcast_overlay.relay.identity import KEY_FILES
    from hushcast_protocol.base.roster import Network
    from hushcast_runtime.storage.state_directory import StateKind

    keys = KEY_FILES if settings.role == "relay" else (COMMUNITY_KEY,) if settings.has_communities else ()
    section = settings.network
    profile = section.settled().text if isinstance(section, BrokersNetworkSection) else section.profile
    return StateKind(settings.role, Network(section.name, profile, section.epoch_seconds), keys, NODE.version)


def _rotate(settings: NodeSettings, kind: StateKind, keys: tuple[str, ...], signs: bool) -> KeyChange:
    from hushcast_node.relay_keys import rotate_relay

    return rotate_relay(settings, kind, keys)


NODE = Program(
    name="node",
    group="node",
    module=("hushcast_node",),
    roles=(
        ProgramRole(
            "relay",
            "A relay: it passes on what others publish, and the network lists it.",
            word="relay",
            restored="It is as it was then: leases given since are missing until subscribers repeat them, "
            "within an epoch; those withdrawn since are back until their day ends.",
        ),
        ProgramRole(
            "client",
            "A client: it publishes and subscribes for the programs of this machine, and is in no list.",
            word="client",
            restored="It is as it was then: messages received since are not in it, those acknowledged since "
            "come again, cursors told since are given to other messages, subscriptions made since are gone, "
            "those ended since are back.",
        ),
    ),
    parse=_parse,
    complete=_complete,
    run=_run,
    state=_state,
    migrations=_migrations,
    role_of=lambda settings: settings.role,
    rotate=_rotate,
    keys=("identity", "service", "parcel", "filter"),
    home="hushcast",
    unit="hushcast-node",
    socket="control.sock",
    socket_help="Where `hushcast` finds the daemon.",
    group_help="Members of this group may use it, and read all that it reads.",
    has_instances=True,
    run_help="""Run a relay or a client in the foreground until SIGTERM or Ctrl-C.

    A configuration that could reach anything outside Tor is refused, with exit code 2. Logs go to standard
    error and never show topics, payloads, keys or onion addresses.""",
)
PROGRAMS = (NODE,)
