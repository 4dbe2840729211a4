"""`hushcast gateway purposes`: why a client gets something or not, and who reserved what."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.options import Choices, config_option, json_option, pass_choices
from hushcast_cli.places import config_of

_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init gateway` wrote unless given."
)


@click.group("purposes")
@json_option
def gateway_purposes() -> None:
    """Look at what messages may be used for at an MQTT gateway."""


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
      hushcast gateway purposes explain dashboard cars/7/position
      hushcast gateway purposes explain x cars/7/position --user bob --purpose marketing
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_gateway.purposes.explaining import explain as explained
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.config import load_settings
    from hushcast_runtime.files import acting_as_owner

    settings = load_settings(config_of("gateway", config), GatewaySettings)
    with acting_as_owner(settings.state_path()):
        found = explained(settings, client, topic, user, purpose)
    for one in found:
        if choices.json:
            told = {"filter": one.filter or None, "purpose": one.purpose}
            write(json_line({"user": one.user, **told, "allowed": one.allowed, "because": one.because}))
            continue
        whose = f"{one.user or 'anybody'}, {one.filter or 'supposed'}, "
        whose += f"for {one.purpose}" if one.purpose is not None else "for no purpose"
        write(text_line(f"{whose}: {'allowed' if one.allowed else 'not allowed'}, because {one.because}"))


@gateway_purposes.command()
@click.option("--last", metavar="N", type=click.IntRange(1), help="The last N entries alone.")
@_config_option
@json_option
@pass_choices
def audit(choices: Choices, last: int | None, config: Path | None) -> None:
    """Show who reserved, presubscribed or claimed what, and what was refused.

    The oldest first; no payloads. Run it as the gateway's user or as root.

    \b
    Example:
      hushcast gateway purposes audit --last 20
    """
    from collections import deque

    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_gateway.purposes.audit_lines import as_json, as_text
    from hushcast_gateway.purposes.explaining import read_log
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.config import load_settings
    from hushcast_runtime.files import acting_as_owner

    settings = load_settings(config_of("gateway", config), GatewaySettings)
    with acting_as_owner(settings.state_path()):
        entries = deque(read_log(settings), last)
    for entry in entries:
        write(json_line(as_json(entry)) if choices.json else text_line(as_text(entry)))
    if not entries:
        note("note: nothing was reserved or refused yet")
