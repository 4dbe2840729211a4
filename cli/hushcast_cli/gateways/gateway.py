"""`hushcast gateway`: users, clients, retained messages and purposes of an MQTT gateway."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.gateways.gateway_operators import COMMANDS
from hushcast_cli.options import config_option, json_option
from hushcast_cli.purposes.gateway_purposes import gateway_purposes


@click.group(cls=CommandGroup, short_help="Look after an MQTT gateway: users, clients, what is retained.")
@json_option
def gateway() -> None:
    """Look after an MQTT gateway: users, clients, retained messages, purposes.

    `hushcast run gateway` runs one.
    """


@gateway.command("passwd")
@click.argument("user", metavar="USER")
@config_option("Put them into this configuration instead.")
@json_option
@pass_choices
def passwd(choices: Choices, user: str, config: Path | None) -> None:
    """Make a user's password.

    Prints the lines that a configuration needs for USER, with the password's hash. Asks twice, or reads one
    line where standard input is no terminal: arguments are seen by other users of the machine. With --config
    it adds the user or replaces the password there, and leaves all else as it is.

    \b
    Examples:
      hushcast gateway passwd alice
      hushcast gateway passwd alice --config ~/.config/hushcast/gateway.toml
    """
    from hushcast_cli.configuration.user_sections import new_section, put_password
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.typed_password import typed_password
    from hushcast_gateway.passwords import MAX_PASSWORD, hashed

    _check(user, config)
    known = hashed(typed_password(MAX_PASSWORD))
    if config is None:
        write(
            json_line({"user": user, "password": known})
            if choices.json
            else new_section(user, known).encode()
        )
        return
    is_new = put_password(config, user, known)
    if choices.json:
        write(json_line({"user": user, "file": str(config), "new": is_new}))
    else:
        write(text_line(f"{config}: the password of {user} is {'added' if is_new else 'replaced'}"))
    _advise(user, is_new)


@gateway.command("token")
@click.argument("user", metavar="USER")
@config_option("Put its hash into this configuration instead of printing the lines.")
@json_option
@pass_choices
def token(choices: Choices, user: str, config: Path | None) -> None:
    """Make a token of a user's.

    Draws a token that a program shows instead of USER's name and password, and prints it, once: the
    configuration gets its hash. A user may have several, one for each program; to take one back, take its
    hash out.

    \b
    Examples:
      hushcast gateway token alice --config ~/.config/hushcast/gateway.toml
    """
    from hushcast_cli.configuration.user_sections import add_token, token_lines
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_gateway.tokens import new_token, token_hash
    from hushcast_runtime.environment import system_environment

    _check(user, config)
    drawn = new_token(system_environment().randomness)
    known = token_hash(drawn.encode())
    is_new = config is None or add_token(config, user, known)
    if choices.json:
        write(json_line({"user": user, "token": drawn, "hash": known}))
    else:
        write(text_line(drawn))
    if config is None:
        note(f"the configuration gets\n{token_lines(user, known)}")
    else:
        _advise(user, is_new)


def _check(user: str, config: Path | None) -> None:
    from hushcast_gateway.settings import is_user_name
    from hushcast_protocol.base.errors import UsageError

    if not is_user_name(user):
        raise UsageError("a user's name has 1 to 64 characters that can be printed")
    if config is not None and not config.is_file():
        raise UsageError(f"no configuration at {config}: `hushcast init gateway` makes one")


def _advise(user: str, is_new: bool) -> None:
    from hushcast_cli.output import note

    if is_new:
        note(f"{user} may do nothing yet: write topic filters into its `publish` and `subscribe`")
    note("a gateway that runs takes it with SIGHUP (`systemctl reload hushcast-gateway`)")


@gateway.command("bench")
@click.option("--at", required=True, metavar="WHERE", help="127.0.0.1:PORT or unix:/PATH.")
@click.option(
    "--publishers", default="1", show_default=True, metavar="LIST", help="How many: one number, or several."
)
@click.option("--subscribers", default="1", show_default=True, metavar="LIST", help="As many of these.")
@click.option(
    "--messages", type=click.IntRange(1, 1_000_000), default=1_000, show_default=True, help="Of a publisher."
)
@click.option(
    "--size", type=click.IntRange(8, 65_536), default=256, show_default=True, help="Bytes of a message."
)
@click.option(
    "--reservations", type=click.IntRange(0, 1_000), default=0, show_default=True, help="Of a publisher."
)
@click.option("--purpose", metavar="P", help="What they allow, and subscribers claim.")
@json_option
@pass_choices
def bench(choices: Choices, /, at: str, publishers: str, subscribers: str, **plan: object) -> None:
    """Put a load on a gateway of this machine, and measure it.

    Publishers send messages of QoS 1, 16 at once, each on a topic of its own below bench/; each subscriber
    has one of these topics. With several numbers of publishers and subscribers, each pair is measured, a line
    for each: deliveries a second, and their delay. With --reservations each publisher reserves so many
    topics, its own among them, for a purpose that subscribers claim.

    \b
    Examples:
      hushcast gateway bench --at 127.0.0.1:1883 --publishers 1,10,100 --subscribers 100
      hushcast gateway bench --at 127.0.0.1:1883 --reservations 10 --purpose operations --json
    """
    from hushcast_cli.gateways.gateway_bench import measure

    measure(choices, at, (publishers, subscribers), plan)


for _command in (*COMMANDS, gateway_purposes):
    gateway.add_command(_command)
