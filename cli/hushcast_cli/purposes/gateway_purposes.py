"""`hushcast gateway purpose`: what is reserved, why a client gets something or not, and who did what."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import config_option, json_option, number_option

_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init gateway` wrote unless given."
)

_TAKEN_WITHIN = 10.0  # seconds until a gateway that runs has taken it away, as a rule one


@click.group("purpose", cls=CommandGroup)
@json_option
def gateway_purposes() -> None:
    """Look at what messages may be used for at an MQTT gateway."""


@gateway_purposes.command("list")
@click.option("--user", metavar="U", help="What this user reserved alone; '' is for anybody.")
@_config_option
@json_option
@pass_choices
def list_reservations(choices: Choices, user: str | None, config: Path | None) -> None:
    """List what is reserved: whose it is, and what for.

    Those of the configuration come, too, and of users that it has not any more, which are told. What is
    reserved stays so until its user, or `drop`, takes it away. Run it as the gateway's user or as root.

    \b
    Examples:
      hushcast gateway purpose list
      hushcast gateway purpose list --user car7 --json
    """
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_gateway.purposes.standing_reservations import as_json, as_text, standing
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.files import acting_as_owner
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(config_of("gateway", config), GatewaySettings)
    with acting_as_owner(settings.state_path()):
        found = standing(settings, user)
    for one in found:
        write(json_line(as_json(one)) if choices.json else text_line(as_text(one)))
    if not found:
        note("note: nothing is reserved")


@gateway_purposes.command()
@click.argument("user", metavar="USER")
@click.argument("filter_", metavar="[FILTER]", required=False)
@_config_option
@json_option
@pass_choices
def drop(choices: Choices, user: str, filter_: str | None, config: Path | None) -> None:
    """Take away what USER reserved for FILTER, or all that USER reserved.

    For users that are gone, or cannot do it themselves: others then may get what USER kept from them. USER is
    '' for anybody. A gateway that runs does so within a second, another when it starts, and notes it in its
    audit log. Run it as the gateway's user or as root.

    \b
    Examples:
      hushcast gateway purpose drop car7 'cars/car7/#'
      hushcast gateway purpose drop car7
    """
    import time

    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_gateway.purposes.reservation_removal import ReservationRemoval, ask_to_drop
    from hushcast_gateway.purposes.standing_reservations import to_drop
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.files import acting_as_owner
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.storage.state_lock import holder

    settings = load_settings(config_of("gateway", config), GatewaySettings)
    with acting_as_owner(settings.state_path()):
        found = to_drop(settings, user, filter_)
        asked = ask_to_drop(settings.state_path(), ReservationRemoval(user, filter_))
        until = time.monotonic() + _TAKEN_WITHIN
        while (runs := holder(settings.state_path()) is not None) and asked.exists():
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        is_done = not asked.exists()
    for one in found:
        told = {"owner": one.owner, "filter": one.filter, "dropped": is_done}
        write(json_line(told) if choices.json else text_line(f"{one.owner or 'anybody'}: {one.filter}"))
    if not is_done:
        note("note: the gateway takes it away " + ("as soon as it can" if runs else "when it starts"))


@gateway_purposes.command()
@click.argument("client", metavar="CLIENT")
@click.argument("topic", metavar="TOPIC")
@click.option("--user", metavar="U", help="Suppose a subscription of this user's; '' is for anybody.")
@click.option("--purpose", metavar="P", help="What the supposed subscription is for.")
@_config_option
@json_option
@pass_choices
def explain(
    choices: Choices, client: str, topic: str, user: str | None, purpose: str | None, config: Path | None
) -> None:
    """Say why CLIENT gets messages of TOPIC, or why not.

    CLIENT is a client identifier. Each of its subscriptions that matches is looked at, as the configuration
    and the gateway's disk have it, whether the gateway runs or not. Subscriptions that end with their
    connection are not on disk: suppose one with --user. Run it as the gateway's user or as root.

    \b
    Examples:
      hushcast gateway purpose explain dashboard cars/7/position
      hushcast gateway purpose explain x cars/7/position --user bob --purpose marketing
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_gateway.purposes.explanation import explain as explained
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.files import acting_as_owner
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(config_of("gateway", config), GatewaySettings)
    with acting_as_owner(settings.state_path()):
        found = explained(settings, client, topic, user, purpose)
    for one in found:
        if choices.json:
            told = {"user": one.user, "filter": one.filter or None, "purpose": one.purpose}
            write(json_line({**told, "allowed": one.allowed, "opens": one.opens, "because": one.because}))
            continue
        whose = f"{one.user or 'anybody'}, {one.filter or 'supposed'}, "
        whose += f"for {one.purpose}" if one.purpose is not None else "for no purpose"
        write(text_line(f"{whose}: {'allowed' if one.allowed else 'not allowed'}, because {one.because}"))


@gateway_purposes.command()
@number_option("--last", 1, help="The last N entries alone.")
@_config_option
@json_option
@pass_choices
def audit(choices: Choices, last: int | None, config: Path | None) -> None:
    """Show who reserved, presubscribed or claimed what, and what was refused.

    The oldest first; no payloads. Run it as the gateway's user or as root.

    \b
    Example:
      hushcast gateway purpose audit --last 20
    """
    from collections import deque

    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_gateway.purposes.audit_lines import as_json, as_text
    from hushcast_gateway.purposes.explanation import read_log
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.files import acting_as_owner
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(config_of("gateway", config), GatewaySettings)
    with acting_as_owner(settings.state_path()):
        entries = deque(read_log(settings), last)
    for entry in entries:
        write(json_line(as_json(entry)) if choices.json else text_line(as_text(entry)))
    if not entries:
        note("note: nothing was reserved or refused yet")
