"""`hushcast admin key rotate`: a relay's or a directory's keys are replaced, and it is said what follows."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.state import daemon_config_option
from hushcast_cli.options import json_option
from hushcast_runtime.processes.program import programs

_KEYS = list(dict.fromkeys(key for program in programs() for key in program.key_names))


@click.command(short_help="Replace a daemon's keys.")
@click.argument("keys", nargs=-1, type=click.Choice(_KEYS), metavar="[KEY]...")
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
      sudo hushcast admin key rotate --config /etc/hushcast/node.toml parcel
      sudo hushcast admin key rotate --config /etc/hushcast-directory/directory.toml
    """
    from hushcast_cli.configuration.state import load_daemon
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.errors import UsageError

    program, settings, kind = load_daemon(config)
    if isinstance(program.rotate, str):
        raise UsageError(program.rotate)
    if no_hand_over and "signing" not in (keys or program.key_names):
        raise UsageError("--no-hand-over is about a directory's signing key")
    change = program.rotate.load()(settings, kind, keys, not no_hand_over)
    if choices.json:
        told = {"state": str(settings.state_path()), "keys": list(change.keys), "aside": str(change.aside)}
        write(json_line(told | dict(change.more)))
        return
    write(text_line(f"Replaced: {', '.join(change.keys)}. What was there is in {change.aside}."))
    for line in change.follows:
        write(text_line(line))
