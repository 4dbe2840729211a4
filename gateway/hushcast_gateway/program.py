"""The MQTT gateway as a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hushcast_runtime.program import Program, ProgramRole

if TYPE_CHECKING:
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_protocol.base.findings import Finding


def _parse(data: bytes, where: str) -> GatewaySettings:
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.processes.config import parse_settings

    return parse_settings(data, where, GatewaySettings)


def _run(load: Callable[[], GatewaySettings]) -> None:
    from hushcast_gateway.process import run_gateway

    run_gateway(load)


async def _examine(settings: GatewaySettings) -> list[Finding]:
    from hushcast_gateway.doctor import GatewayDoctor
    from hushcast_runtime.environment import system_environment

    return await GatewayDoctor(settings, system_environment().now()).examine()


def _summary(settings: GatewaySettings) -> dict[str, list[str]]:
    from hushcast_gateway.summary import summary

    return summary(settings)


GATEWAY = Program(
    name="gateway",
    group="gateway",
    module=("hushcast_gateway",),
    roles=(
        ProgramRole(
            "gateway",
            "A gateway: any MQTT client can use it.",
            kept="Sessions, retained messages and what waits for clients. Private; one gateway alone uses "
            "it.",
            sections="""
# Where clients connect: this machine alone. Other machines need TLS: docs/mqtt.md.
[[listen]]
kind = "tcp"
address = "127.0.0.1"
port = 1883

[[listen]]
kind = "unix"
path = {socket}

# Who may what. Others, with a password: `hushcast gateway passwd NAME --config` and this file.
[users.local]
# At the Unix socket this user of the machine (`id -u` tells the number) needs no password.
uid = [{uid}]
publish = ["#"]
subscribe = ["#", "$SYS/#"]
""",
        ),
    ),
    parse=_parse,
    run=_run,
    examine=_examine,
    summary=_summary,
    socket="mqtt.sock",
    group_help="Members of this group may use the Unix socket.",
    run_help="""Run the MQTT gateway in the foreground until SIGTERM or Ctrl-C.

    It speaks MQTT 3.1.1 and 5 over TCP, TLS, Unix sockets and WebSockets. A configuration that lets in
    strangers is refused, with exit code 2. Logs go to standard error and never show topics, payloads, users
    or client identifiers. SIGHUP makes it read users, certificates, purposes, grants and `log` again.""",
    doctor_help="""Look for what keeps the gateway from working.

    Says what to do about it. Looks at the state, ports, certificates, users, link files and the daemon's
    socket, whether the gateway runs or not. Run it as the gateway's user or as root. Ends with exit code 1 if
    anything is bad.""",
)
PROGRAMS = (GATEWAY,)
