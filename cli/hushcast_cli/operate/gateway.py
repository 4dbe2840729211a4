"""`hushcast gateway`: runs the MQTT gateway, makes its users, and looks for what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hushcast_cli.configuration.config_summary import tell_summary
from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import FILE, Choices, config_option, json_option, pass_choices
from hushcast_cli.purposes.gateway_purposes import gateway_purposes

_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init gateway` wrote unless given."
)


@click.group()
@json_option
def gateway() -> None:
    """Run an MQTT gateway, which any MQTT client can use."""


gateway.add_command(gateway_purposes)


@gateway.command("run")
@_config_option
def run_gateway_command(config: Path | None) -> None:
    """Run the MQTT gateway in the foreground until SIGTERM or Ctrl-C.

    It speaks MQTT 3.1.1 and 5 over TCP, TLS, Unix sockets and WebSockets. A configuration that lets in
    strangers is refused, with exit code 2. Logs go to standard error and never show topics, payloads, users
    or client identifiers. SIGHUP makes it read users, certificates, purposes, grants and `log` again.

    \b
    Example:
      hushcast gateway run --config gateway.toml
    """
    from hushcast_gateway.process import run_gateway
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.processes.config import load_settings

    file = config_of("gateway", config)
    run_gateway(lambda: load_settings(file, GatewaySettings))


@gateway.command("check-config")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def check_gateway_config(choices: Choices, file: Path) -> None:
    """Show what a gateway's configuration says.

    Nothing is started. A configuration that cannot be used ends with exit code 2, the key that is wrong and
    why; `gateway run` refuses to start with the same words.

    \b
    Example:
      hushcast gateway check-config gateway.toml
    """
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_gateway.summary import summary
    from hushcast_runtime.processes.config import load_settings

    tell_summary(choices, file, "gateway", summary(load_settings(file, GatewaySettings)))


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
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_gateway.passwords import hashed
    from hushcast_gateway.settings import is_user_name
    from hushcast_protocol.base.errors import UsageError

    if not is_user_name(user):
        raise UsageError("a user's name has 1 to 64 characters that can be printed")
    if config is not None and not config.is_file():
        raise UsageError(f"no configuration at {config}: `hushcast init gateway` makes one")
    known = hashed(_password())
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
    if is_new:
        note(f"{user} may do nothing yet: write topic filters into its `publish` and `subscribe`")
    note("a gateway that runs takes it with SIGHUP (`systemctl reload hushcast-gateway`)")


@gateway.command("doctor")
@_config_option
@json_option
@pass_choices
def gateway_doctor(choices: Choices, config: Path | None) -> None:
    """Look for what keeps the gateway from working.

    Says what to do about it. Looks at the state, ports, certificates, users, link files and the daemon's
    socket, whether the gateway runs or not. Run it as the gateway's user or as root. Ends with exit code 1 if
    anything is bad.

    \b
    Example:
      sudo hushcast gateway doctor --config /etc/hushcast-gateway/gateway.toml
    """
    import time

    import trio

    from hushcast_cli.operate.doctor import tell_findings
    from hushcast_gateway.doctor import GatewayDoctor
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(config_of("gateway", config), GatewaySettings)
    tell_findings(choices, trio.run(GatewayDoctor(settings, time.time()).examine))


def _password() -> bytes:
    """Ask a person twice, or read one line from a program."""
    from hushcast_gateway.passwords import MAX_PASSWORD

    if sys.stdin is not None and sys.stdin.isatty():
        text: str = click.prompt("Password", hide_input=True, confirmation_prompt="Again", err=True)
        return text.encode()
    line = sys.stdin.buffer.readline(MAX_PASSWORD + 3) if sys.stdin is not None else b""
    return line.removesuffix(b"\n").removesuffix(b"\r")
