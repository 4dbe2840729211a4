"""The broker and the tomography service as programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hushcast_runtime.program import Program, ProgramRole

if TYPE_CHECKING:
    from hushcast_brokers.broker.settings import AnyBrokerSettings
    from hushcast_brokers.tomography.settings import TomographySettings
    from hushcast_protocol.base.findings import Finding
    from hushcast_runtime.storage.state_directory import StateKind


def _parse_broker(data: bytes, where: str) -> AnyBrokerSettings:
    from hushcast_brokers.broker.settings import parse_broker

    return parse_broker(data, where)


def _parse_tomography(data: bytes, where: str) -> TomographySettings:
    from hushcast_brokers.tomography.settings import TomographySettings
    from hushcast_runtime.processes.config import parse_settings

    return parse_settings(data, where, TomographySettings)


def _complete(text: str) -> str:
    from hushcast_brokers.network_file import brokers_section
    from hushcast_protocol.base.addresses import onion_address
    from hushcast_protocol.base.secrets import Seed
    from hushcast_protocol.brokers.network import BrokersNetwork

    somebody = Seed(bytes(32)).public()
    any_tree = BrokersNetwork("any", "clear", 3600, somebody)
    return text + brokers_section(any_tree, onion_address(somebody))


def _run_broker(load: Callable[[], AnyBrokerSettings]) -> None:
    from hushcast_brokers.broker.process import run_broker

    run_broker(load)


def _run_tomography(load: Callable[[], TomographySettings]) -> None:
    from hushcast_brokers.tomography.process import run_tomography

    run_tomography(load)


async def _examine_broker(settings: AnyBrokerSettings) -> list[Finding]:
    from hushcast_brokers.broker.process import kind_of
    from hushcast_runtime.processes.doctor import examine_from_outside

    return await examine_from_outside(settings, kind_of(settings))


async def _examine_tomography(settings: TomographySettings) -> list[Finding]:
    from hushcast_brokers.tomography.process import TOMOGRAPHY
    from hushcast_runtime.processes.doctor import examine_from_outside

    return await examine_from_outside(settings, TOMOGRAPHY)


def _state_of_broker(settings: AnyBrokerSettings) -> StateKind:
    return _state(f"{settings.role}-broker", settings, BROKER.version)


def _state_of_tomography(settings: TomographySettings) -> StateKind:
    return _state("tomography-service", settings, TOMOGRAPHY.version)


def _state(role: str, settings: AnyBrokerSettings | TomographySettings, version: int) -> StateKind:
    from hushcast_brokers.keys import BROKER_KEYS
    from hushcast_protocol.base.roster import Network
    from hushcast_runtime.storage.state_directory import StateKind

    section = settings.network
    network = Network(section.name, section.settled().text, section.epoch_seconds)
    return StateKind(role, network, BROKER_KEYS, version)


def _broker_summary(settings: AnyBrokerSettings) -> dict[str, list[str]]:
    from hushcast_brokers.broker.summary import broker_summary

    return broker_summary(settings)


def _tomography_summary(settings: TomographySettings) -> dict[str, list[str]]:
    from hushcast_brokers.broker.summary import tomography_summary

    return tomography_summary(settings)


_RESTORED = (
    "It is as it was then: brokers and clients below show it what they want again by themselves; messages "
    "acknowledged since and not passed on are lost."
)

BROKER = Program(
    name="broker",
    group="broker",
    module=("hushcast_brokers",),
    roles=(
        ProgramRole(
            "root-broker",
            "The root of a network of brokers: it signs their tree, and takes what is published.",
            made="broker-root",
            word="root",
            founds="brokers",
            restored="It is as it was then: it takes the newest tree that it signed from brokers below, and "
            "signs the next one, with the brokers that its configuration lists; publications taken since and "
            "not passed on are lost.",
            admits="\n# What follows are all other brokers of the tree, which `hushcast broker admit "
            "broker.toml` writes here.\n",
        ),
        ProgramRole(
            "edge-broker",
            "An edge broker: clients attach to it, and it shows others no more than it must.",
            made="broker",
            word="edge",
            restored=_RESTORED,
            ending="""
# Subscribers that are to stand behind each filter before others are shown it.
# [anonymity]
# k = 5

# Whom it serves: anybody, unless told otherwise.
# [edge]
# open = false
# clients = []
""",
        ),
        ProgramRole(
            "inner-broker",
            "An inner broker: it stands between brokers above and below it.",
            made="broker",
            word="inner",
            restored=_RESTORED,
        ),
    ),
    parse=_parse_broker,
    complete=_complete,
    run=_run_broker,
    examine=_examine_broker,
    state=_state_of_broker,
    summary=_broker_summary,
    role_of=lambda settings: f"{settings.role}-broker",
    rotate="a root's keys are its network; any other broker with other keys is another one: empty its state, "
    "and have it take the old one's place by `hushcast broker replace`",
    are_apart=True,
    run_help="""Run a broker in the foreground until SIGTERM or Ctrl-C.

    The root writes `network.toml`, the section that brokers and daemons of the network need, into its state
    directory. Any other broker writes `broker.toml`, the lines that the root's operator needs, and waits
    until the root lists it. SIGHUP makes the root sign the tree that its configuration lists then, and an
    edge broker serve the clients that its own lists then.""",
    doctor_help="""Look for what keeps a broker from working.

    Says what to do about it. Looks at the state, and asks a broker that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, whether its parent is reached, and
    which brokers below it are connected. Takes two minutes at most. Run it as the broker's user or as root.
    Ends with exit code 1 if anything is bad.""",
)
TOMOGRAPHY = Program(
    name="tomography",
    group="tomography",
    module=("hushcast_brokers.tomography",),
    roles=(
        ProgramRole(
            "tomography-service",
            "A tomography service: it tells how many a filter hides among.",
            made="tomography",
            word="tomography",
            restored="It is as it was then: brokers state all that they hold again by themselves.",
            below="# For how many clients on one topic an edge broker may vouch.\ncap = 8\n",
        ),
    ),
    parse=_parse_tomography,
    complete=_complete,
    run=_run_tomography,
    examine=_examine_tomography,
    state=_state_of_tomography,
    summary=_tomography_summary,
    rotate="a tomography service with other keys is another one: empty its state, and give out its new "
    "tomography.toml",
    run_help="""Run the tomography service in the foreground until SIGTERM or Ctrl-C.

    It writes `tomography.toml`, the section that brokers and whoever asks need, into its state directory.""",
    doctor_help="""Look for what keeps the tomography service from working.

    Says what to do about it, as `broker doctor` does, and which part of the brokers states. Ends with exit
    code 1 if anything is bad.""",
)
PROGRAMS = (BROKER, TOMOGRAPHY)
