"""The server and the proxies of a central network as programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hushcast_runtime.program import Program, ProgramRole

if TYPE_CHECKING:
    from hushcast_central.settings import ProxySettings, ServerSettings
    from hushcast_protocol.base.findings import Finding
    from hushcast_runtime.storage.state_directory import StateKind


def _parse_server(data: bytes, where: str) -> ServerSettings:
    from hushcast_central.settings import ServerSettings
    from hushcast_runtime.processes.config import parse_settings

    return parse_settings(data, where, ServerSettings)


def _parse_proxy(data: bytes, where: str) -> ProxySettings:
    from hushcast_central.settings import ProxySettings
    from hushcast_runtime.processes.config import parse_settings

    return parse_settings(data, where, ProxySettings)


def _complete(text: str) -> str:
    from hushcast_central.network_file import central_section
    from hushcast_protocol.base.addresses import onion_address
    from hushcast_protocol.base.secrets import Seed
    from hushcast_protocol.central.introduction import SealingKey
    from hushcast_protocol.central.network import CentralNetwork

    somebody, sealing = Seed(bytes(32)).public(), SealingKey(bytes(32)).public()
    any_network = CentralNetwork("any", "hardened", 3600, somebody, sealing)
    return text + central_section(any_network, onion_address(somebody), ())


def _needs(section: Any) -> Any:
    """A proxy knows no others, so that these may change."""
    from msgspec import structs

    from hushcast_central.network_file import CentralNetworkSection

    return structs.replace(section, listed=()) if isinstance(section, CentralNetworkSection) else section


def _run_server(load: Callable[[], ServerSettings]) -> None:
    from hushcast_central.process import run_server

    run_server(load)


def _run_proxy(load: Callable[[], ProxySettings]) -> None:
    from hushcast_central.process import run_proxy

    run_proxy(load)


async def _examine_server(settings: ServerSettings) -> list[Finding]:
    from hushcast_central.process import SERVER
    from hushcast_runtime.processes.doctor import examine_from_outside

    return await examine_from_outside(settings, SERVER)


async def _examine_proxy(settings: ProxySettings) -> list[Finding]:
    from hushcast_central.process import PROXY
    from hushcast_runtime.processes.doctor import examine_from_outside

    return await examine_from_outside(settings, PROXY)


def _state_of_server(settings: ServerSettings) -> StateKind:
    from hushcast_central.keys import SERVER_KEYS

    return _state("central-server", settings, SERVER_KEYS, SERVER.version)


def _state_of_proxy(settings: ProxySettings) -> StateKind:
    from hushcast_central.keys import PROXY_KEYS

    return _state(f"{settings.role}-proxy", settings, PROXY_KEYS, PROXY.version)


def _state(
    role: str, settings: ServerSettings | ProxySettings, keys: tuple[str, ...], version: int
) -> StateKind:
    from hushcast_protocol.base.roster import Network
    from hushcast_runtime.storage.state_directory import StateKind

    section = settings.network
    return StateKind(role, Network(section.name, section.profile, section.epoch_seconds), keys, version)


def _server_summary(settings: ServerSettings) -> dict[str, list[str]]:
    from hushcast_central.summary import server_summary

    return server_summary(settings)


def _proxy_summary(settings: ProxySettings) -> dict[str, list[str]]:
    from hushcast_central.summary import proxy_summary

    return proxy_summary(settings)


_PROXY_RESTORED = (
    "It is as it was then: users whose pseudonyms were made since introduce them again by themselves."
)

SERVER = Program(
    name="central-server",
    group="central server",
    module=("hushcast_central", "server"),
    roles=(
        ProgramRole(
            "central-server",
            "The server of a central network: it keeps subscriptions, and matches messages.",
            founds="central",
            restored="It is as it was then: subscriptions made since are missing until users' daemons make "
            "them again by themselves; deliveries acknowledged since come again and are shown once; what was "
            "taken since and waited for somebody is lost.",
            admits="\n# What follows are the proxies that it serves, which `hushcast central server admit "
            "proxy.toml` writes here.\n",
        ),
    ),
    parse=_parse_server,
    run=_run_server,
    examine=_examine_server,
    state=_state_of_server,
    summary=_server_summary,
    rotate="a central server's keys are its network: start another one, and have it joined",
    run_help="""Run the server in the foreground until SIGTERM or Ctrl-C.

    It writes `network.toml`, the section that the network's proxies and daemons need, into its state
    directory. SIGHUP makes it serve the proxies that the configuration lists then, and write that file
    anew.""",
    doctor_help="""Look for what keeps a central server from working.

    Says what to do about it. Looks at the state, and asks a server that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, and which proxies are connected.
    Takes two minutes at most. Run it as the server's user or as root. Ends with exit code 1 if anything is
    bad.""",
)
PROXY = Program(
    name="central-proxy",
    group="central proxy",
    module=("hushcast_central", "proxy"),
    roles=(
        ProgramRole(
            "publications-proxy",
            "A proxy: it takes what is published to the server of a central network.",
            word="publications",
            restored=_PROXY_RESTORED,
        ),
        ProgramRole(
            "deliveries-proxy",
            "A proxy: it brings subscribers what the server of a central network sends them.",
            word="deliveries",
            restored=_PROXY_RESTORED,
        ),
    ),
    parse=_parse_proxy,
    complete=_complete,
    needs=_needs,
    run=_run_proxy,
    examine=_examine_proxy,
    state=_state_of_proxy,
    summary=_proxy_summary,
    role_of=lambda settings: f"{settings.role}-proxy",
    rotate="a proxy with other keys is another one: empty its state, and have it admitted",
    are_apart=True,
    run_help="""Run a proxy in the foreground until SIGTERM or Ctrl-C.

    It writes `proxy.toml`, the lines that the server's operator needs, into its state directory, and waits
    until the server lists it.""",
    doctor_help="""Look for what keeps a proxy from working.

    Says what to do about it. Looks at the state, and asks a proxy that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, and whether the server is reached
    and lists it. Takes two minutes at most. Run it as the proxy's user or as root. Ends with exit code 1 if
    anything is bad.""",
)
PROGRAMS = (SERVER, PROXY)
