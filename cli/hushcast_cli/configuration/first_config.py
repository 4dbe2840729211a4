"""The configuration that a daemon starts with, explained line by line: as few settings as can be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hushcast_cli.configuration.places import ProgramPlaces
from hushcast_runtime.processes.network_file import toml_text

Role = Literal[
    "relay",
    "client",
    "directory",
    "central-server",
    "publications-proxy",
    "deliveries-proxy",
    "root-broker",
    "inner-broker",
    "edge-broker",
    "tomography-service",
]

_WHAT = {
    "relay": "A relay: it passes on what others publish, and the network lists it.",
    "client": "A client: it publishes and subscribes for the programs of this machine, and is in no list.",
    "directory": "A directory: it signs the list of the network's relays, once an epoch.",
    "central-server": "The server of a central network: it keeps subscriptions, and matches messages.",
    "publications-proxy": "A proxy: it takes what is published to the server of a central network.",
    "deliveries-proxy": "A proxy: it brings subscribers what the server of a central network sends them.",
    "root-broker": "The root of a network of brokers: it signs their tree, and takes what is published.",
    "inner-broker": "An inner broker: it stands between brokers above and below it.",
    "edge-broker": "An edge broker: clients attach to it, and it shows others no more than it must.",
    "tomography-service": "A tomography service: it tells how many a filter hides among.",
}
_MADE = {
    "root-broker": "broker-root",
    "inner-broker": "broker --role inner",
    "edge-broker": "broker",
    "tomography-service": "tomography",
}
_CARRIERS = {"central-server": "central", "root-broker": "brokers"}  # of what founders but a directory make
_SYSTEM_TOR = """
[tor]
# The tor of this machine, which Debian starts.
mode = "system"
control = "unix:/run/tor/control"
socks = "127.0.0.1:9050"
"""
_OWN_TOR = """
[tor]
# A tor of the daemon's own, under its state directory. The program `tor` must be installed.
mode = "own"
"""
_JOIN = """
# What follows is the network, which `hushcast join network.toml` writes here.
"""
_ADMIT = """
# What follows are the proxies that it serves, which `hushcast central server admit proxy.toml` writes here.
"""
_SEATS = """
# What follows are all other brokers of the tree, which `hushcast broker admit broker.toml` writes here.
"""
_LISTS = {"central-server": _ADMIT, "root-broker": _SEATS}
_EDGE = """
# Subscribers that are to stand behind each filter before others are shown it.
# [anonymity]
# k = 5

# Whom it serves: anybody, unless told otherwise.
# [edge]
# open = false
# clients = []
"""
_OWN = {"edge-broker": _EDGE}


@dataclass(frozen=True)
class NetworkFoundation:
    """What a directory, a central server or a root decides for its network, and can never change."""

    name: str
    epoch_seconds: int
    more: str = ""
    """Further lines."""


def first_config(
    role: Role, places: ProgramPlaces, tor: Path | None, network: NetworkFoundation | None
) -> str:
    """Return the file; `tor` is the directory of sockets of a tor beside, `network` that of who makes one."""
    is_node, (own_role, _, kind) = role in ("relay", "client"), role.partition("-")
    made = _MADE.get(role, role)
    text = (
        f"# {_WHAT[role]}\n"
        f"# Made by `hushcast init {made}`. All settings: docs/configuration.md. After a change:\n"
        f"#   hushcast check-config {places.config}\n\n"
    )
    if is_node or kind in ("proxy", "broker", "service"):
        text += f'role = "{own_role}"\n'
    text += (
        "# Keys and everything else that is kept. Private; one daemon alone uses it.\n"
        f"state = {toml_text(str(places.state))}\n"
    )
    if role == "tomography-service":
        text += "# For how many clients on one topic an edge broker may vouch.\ncap = 8\n"
    if places.socket is not None:
        text += f"# Where `hushcast` finds the daemon.\nsocket = {toml_text(str(places.socket))}\n"
    if is_node and places.unit is not None:
        text += '# Members of this group may use it, and read all that it reads.\nsocket_group = "hushcast"\n'
    if role == "directory":
        text += (
            "# Relays that must have registered before the first list: the number that you start with.\n"
            "first_roster = 1\n"
        )
    text += _tor(places, tor)
    text += '\n[log]\n# debug, info, warning or error; `systemctl reload` applies it.\nlevel = "info"\n'
    text += _OWN.get(role, "")
    if network is None:
        return text + _JOIN
    text += "\n[network]\n"
    if role in _CARRIERS:
        text += f'carrier = "{_CARRIERS[role]}"\n'
    text += (
        "# Name and epoch keep networks apart: neither can be changed later.\n"
        f"name = {toml_text(network.name)}\n"
        f"epoch_seconds = {network.epoch_seconds}\n"
        f"{network.more}"
    )
    return text + _LISTS.get(role, "")


def _tor(places: ProgramPlaces, sockets: Path | None) -> str:
    if sockets is None:
        return _SYSTEM_TOR if places.unit is not None else _OWN_TOR
    return (
        "\n[tor]\n# A tor beside, reached by sockets alone: this daemon needs no network.\n"
        'mode = "system"\n'
        f"control = {toml_text(f'unix:{sockets}/control')}\n"
        f"socks = {toml_text(f'unix:{sockets}/socks')}\n"
        f"services = {toml_text(str(sockets))}\n"
    )


def first_gateway_config(places: ProgramPlaces, uid: int) -> str:
    """Return a gateway's file: one user, who is a user of this machine at the Unix socket."""
    socket = places.socket or places.state / "mqtt.sock"
    text = (
        "# A gateway: any MQTT client can use it. Made by `hushcast init gateway`. All settings:\n"
        "# docs/configuration.md. After a change:\n"
        f"#   hushcast gateway check-config {places.config}\n\n"
        "# Sessions, retained messages and what waits for clients. Private; one gateway alone uses it.\n"
        f"state = {toml_text(str(places.state))}\n"
    )
    if places.unit is not None:
        text += '# Members of this group may use the Unix socket.\nsocket_group = "hushcast-gateway"\n'
    return text + (
        "\n# Where clients connect: this machine alone. Other machines need TLS: docs/mqtt.md.\n"
        '[[listen]]\nkind = "tcp"\naddress = "127.0.0.1"\nport = 1883\n\n'
        f'[[listen]]\nkind = "unix"\npath = {toml_text(str(socket))}\n'
        "\n# Who may what. Others, with a password: `hushcast gateway passwd NAME --config` and this file.\n"
        "[users.local]\n"
        "# At the Unix socket this user of the machine (`id -u` tells the number) needs no password.\n"
        f"uid = [{uid}]\n"
        'publish = ["#"]\nsubscribe = ["#", "$SYS/#"]\n'
        '\n[log]\n# debug, info, warning or error; a reload applies it.\nlevel = "info"\n'
    )


def first_provider_config(places: ProgramPlaces, daemon: Path | None) -> str:
    """Return the file of a provider of a located feed; `daemon` is the socket of the daemon beside."""
    text = (
        "# A provider: it answers those who subscribe to a located feed. Made by `hushcast init\n"
        "# located-provider`. All settings: docs/configuration.md. After a change:\n"
        f"#   hushcast located check-config {places.config}\n\n"
        "# Two things come from the feed's owner. Take the `#` away from both.\n"
        "# The public key that `hushcast located key new` printed:\n"
        '# owner = "…"\n'
        "# A file that only the provider's user can read, with the link of the feed's topic:\n"
        f"# feed = {toml_text(str(places.config.with_name('feed.link')))}\n\n"
        "# The key, subscriptions, and what waits. Private; one provider alone uses it.\n"
        f"state = {toml_text(str(places.state))}\n"
        "# Subscriptions that it answers at most, and bits of work that each costs.\n"
        "most = 1000\ndifficulty = 16\n"
    )
    socket = daemon or Path("/run/hushcast/control.sock")
    return text + (
        "\n[daemon]\n"
        "# The daemon by which everything travels; the provider's user must be in its `socket_group`.\n"
        f"socket = {toml_text(str(socket))}\n"
        '\n[log]\n# debug, info, warning or error; a reload applies it.\nlevel = "info"\n'
    )
