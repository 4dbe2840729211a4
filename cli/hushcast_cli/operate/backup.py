"""`hushcast admin backup`, `hushcast admin restore`: a daemon's state in one file, and back again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.state import daemon_config_option
from hushcast_cli.options import json_option

if TYPE_CHECKING:
    from hushcast_runtime.storage.backup_format import BackupHeader

_file = click.argument("file", type=click.Path(path_type=Path))


@click.command(short_help="Copy a daemon's state into one file.")
@_file
@daemon_config_option
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@json_option
@pass_choices
def backup(choices: Choices, file: Path, config: Path, force: bool) -> None:
    """Copy the state of the daemon with this configuration into FILE, while it runs or not.

    FILE holds the daemon's keys and all it knows, in clear: whoever reads it can be that daemon. Only you can
    read it; keep it as safe as the state itself, and encrypt what leaves the machine. The configuration is
    not in it. Run it as the daemon's user, or as root.

    \b
    Example:
      sudo hushcast admin backup --config /etc/hushcast/node.toml /root/hushcast.backup
    """
    from hushcast_cli.configuration.state import load_daemon
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_runtime.environment import system_environment
    from hushcast_runtime.storage.backup import make_backup

    _, settings, kind = load_daemon(config)
    header = make_backup(Path(settings.state), kind, system_environment().now(), file.absolute(), force)
    if choices.json:
        told = {"file": str(file), "role": header.role, "version": header.version, "made": header.made}
        write(json_line({**told, "bytes": file.stat().st_size}))
        return
    write(text_line(f"{file}: the state of this {_what(header)}"))
    write(text_line("It holds keys and messages in clear: keep it as safe as the state itself."))


@click.command(short_help="Put a daemon's state back out of a file.")
@_file
@daemon_config_option
@click.option("--force", is_flag=True, help="Move a state that is there aside, into a folder where it is.")
@json_option
@pass_choices
def restore(choices: Choices, file: Path, config: Path, force: bool) -> None:
    """Put the state in FILE, which `admin backup` made, into the state directory of this configuration.

    The daemon must be stopped; when it starts, it brings an older state to its own version. Nothing is
    written unless the whole FILE is as it was made, and fits role and network; nothing is ever deleted. Never
    run two daemons with the same state: each gets a part of the messages. Run it as the daemon's user, or as
    root.

    \b
    Example:
      sudo hushcast admin restore --config /etc/hushcast/node.toml /root/hushcast.backup
    """
    from hushcast_cli.configuration.state import load_daemon
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_runtime.environment import system_environment
    from hushcast_runtime.storage.backup import restore_backup

    program, settings, kind = load_daemon(config)
    state = Path(settings.state)
    header, aside = restore_backup(file, state, kind, system_environment().now(), force)
    if choices.json:
        told = {"state": str(state), "role": header.role, "version": header.version, "made": header.made}
        write(json_line({**told, "aside": str(aside) if aside is not None else None}))
        return
    write(text_line(f"{state}: the state of a {_what(header)}"))
    if aside is not None:
        write(text_line(f"What was there is in {aside}: it holds keys, remove it when you are sure."))
    write(text_line(program.role(settings).restore_note))
    write(text_line("Never start two daemons with this state: each would get a part of the messages."))


def _what(header: BackupHeader) -> str:
    from hushcast_cli.configuration.state import noun_of

    at = f"{datetime.fromtimestamp(header.made, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{noun_of(header.role)}, version {header.version}, made {at}"
