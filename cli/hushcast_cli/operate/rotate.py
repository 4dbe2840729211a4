"""`hushcast key rotate`: a relay's or a directory's keys are replaced, and it is said what follows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli.configuration.state import daemon_config_option
from hushcast_cli.options import Choices, json_option, pass_choices

if TYPE_CHECKING:
    from hushcast_runtime.storage.state_directory import StateKind

_RELAY_KEYS = ("identity", "service", "parcel", "filter")
_DIRECTORY_KEYS = ("signing", "service")
_FOLLOWS = {
    "identity": "It is a new relay now, without leases: subscribers install them when a roster lists it, "
    "within two epochs. The old name falls out of the roster three epochs after its last registration.",
    "service": "Its onion address is new: until the next roster other relays do not reach it.",
    "parcel": "Parcels sealed to the old key are lost: subscribers repeat them at the next roster.",
    "filter": "Nothing else changes: the routing table is built anew from the leases.",
}


@click.command(short_help="Replace a daemon's keys.")
@click.argument("keys", nargs=-1, type=click.Choice([*_RELAY_KEYS, "signing"]), metavar="[KEY]...")
@daemon_config_option
@click.option("--no-hand-over", is_flag=True, help="The old signing key has leaked: nobody is to follow it.")
@json_option
@pass_choices
def rotate(choices: Choices, config: Path, keys: tuple[str, ...], no_hand_over: bool) -> None:
    """Replace the keys of the stopped relay or directory with this configuration.

    Of a relay KEY is identity, service, parcel or filter; without KEY all are replaced, and it becomes a new
    relay. Of a directory KEY is signing, unless service is given: the old signing key signs the new one, and
    daemons follow by themselves. Old keys are moved into a folder beside the new ones, nothing is deleted.
    Run it as the daemon's user, or as root.

    \b
    Examples:
      sudo hushcast key rotate --config /etc/hushcast/node.toml parcel
      sudo hushcast key rotate --config /etc/hushcast-directory/directory.toml
    """
    from hushcast_cli.configuration.state import load_daemon, program_of
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_protocol.base.errors import UsageError

    settings, kind = load_daemon(config)
    if kind.role == "client":
        raise UsageError("a client has no keys but its subscriptions': unsubscribe, and subscribe again")
    if (program := program_of(config)) == "server":
        raise UsageError("a central server's keys are its network: start another one, and have it joined")
    if program == "proxy":
        raise UsageError("a proxy with other keys is another one: empty its state, and have it admitted")
    if program == "tomography":
        raise UsageError(
            "a tomography service with other keys is another one: empty its state, and give out its new "
            "tomography.toml"
        )
    if program == "broker":
        raise UsageError(
            "a root's keys are its network; any other broker with other keys is another one: empty its state,"
            " and have it take the old one's place by `hushcast broker replace`"
        )
    of_role = _RELAY_KEYS if kind.role == "relay" else _DIRECTORY_KEYS
    if wrong := [key for key in keys if key not in of_role]:
        raise UsageError(f"a {kind.role} has no {wrong[0]} key: its keys are {', '.join(of_role)}")
    if no_hand_over and (kind.role == "relay" or (keys and "signing" not in keys)):
        raise UsageError("--no-hand-over is about a directory's signing key")
    state = Path(settings.state)
    if kind.role == "relay":
        _rotate_relay(choices, state, kind, keys or of_role)
    elif keys and set(keys) != {"signing"}:
        if len(set(keys)) > 1:
            raise UsageError("replace one key at a time, so that daemons can follow")
        _rotate_address(choices, state, kind)
    else:
        if isinstance(settings, DirectorySettings) and settings.authorities is not None:
            raise UsageError(
                "one of several directories is known by its key: have a quorum of them vote for a set with"
                " another one (`authorities.next`)"
            )
        _rotate_signing(choices, state, kind, not no_hand_over)


def _rotate_relay(choices: Choices, state: Path, kind: StateKind, keys: Sequence[str]) -> None:
    from hushcast_overlay.relay.identity import RECORDS_OF_ADDRESS, RECORDS_OF_IDENTITY
    from hushcast_runtime.environment import system_environment
    from hushcast_runtime.storage.state_directory import replace_keys, stopped

    forgotten = [
        *(RECORDS_OF_IDENTITY if "identity" in keys else ()),
        *(RECORDS_OF_ADDRESS if "service" in keys else ()),
    ]
    with stopped(state, kind):
        aside = replace_keys(state, [f"{key}.key" for key in keys], forgotten, system_environment().now())
    # A new relay is new in all.
    follows = [_FOLLOWS[key] for key in keys if "identity" not in keys or key == "identity"]
    _tell(choices, {"state": str(state), "keys": list(keys), "aside": str(aside)}, *follows)


def _rotate_address(choices: Choices, state: Path, kind: StateKind) -> None:
    from hushcast_runtime.environment import system_environment
    from hushcast_runtime.processes.own_address import ADDRESS
    from hushcast_runtime.storage.state_directory import replace_keys, stopped

    with stopped(state, kind):
        aside = replace_keys(state, ["service.key"], [ADDRESS], system_environment().now())
    _tell(
        choices,
        {"state": str(state), "keys": ["service"], "aside": str(aside)},
        "The directory has a new address from its next start: every member must set the `directory` of the "
        f"network.toml that it writes into {state} then. Until then they go on with the roster they hold.",
    )


def _rotate_signing(choices: Choices, state: Path, kind: StateKind, signs: bool) -> None:
    from hushcast_directory.server.key_rotation import replace_signing_key
    from hushcast_runtime.environment import system_environment
    from hushcast_runtime.storage.state_directory import stopped

    with stopped(state, kind):
        new, aside = replace_signing_key(state, kind.network, system_environment(), signs)
    key = new.public().hex()
    told = {"state": str(state), "keys": ["signing"], "aside": str(aside)}
    line = f'directory_key = "{key}"'
    if signs:
        follows = (
            "Daemons that know the old key follow by themselves when they next ask for a roster: it has "
            "signed the new one. Give newcomers the network.toml that is written at the next start. In the "
            f"[network] of the others this may stand when it suits: {line}"
        )
    else:
        follows = (
            "No daemon follows: tell every member, out of band, to set this in [network] and to restart. "
            f"Until then they go on with the roster they hold: {line}"
        )
    _tell(choices, told | {"directory_key": key, "handed_over": signs}, follows)


def _tell(choices: Choices, told: dict[str, Any], *follows: str) -> None:
    from hushcast_cli.output import json_line, text_line, write

    if choices.json:
        write(json_line(told))
        return
    write(text_line(f"Replaced: {', '.join(told['keys'])}. What was there is in {told['aside']}."))
    for line in follows:
        write(text_line(line))
