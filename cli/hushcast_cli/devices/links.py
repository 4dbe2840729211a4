"""`hushcast device export`, `hushcast device import`: all links in one sealed file, and back again."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FILE, daemon_options, timeout_option
from hushcast_runtime.wording import counted

password_file_option = click.option(
    "--password-file",
    type=FILE,
    metavar="F",
    help="Read the password from the first line of this file, which only you can read.",
)


@click.command(short_help="Write the links of all subscriptions into a sealed file.")
@click.argument("file", type=FILE)
@password_file_option
@timeout_option
@daemon_options
@pass_choices
def export(choices: Choices, file: Path, password_file: Path | None, timeout: float | None) -> None:
    """Write the links of all subscriptions into FILE, with conditions and terms, sealed under a password.

    Whoever has FILE and the password reads all private topics in it. The password has 8 characters at least;
    it is asked for twice, or is the first line of standard input where that is no terminal. What came, what
    was read, and keys of authors are not in FILE.

    \b
    Examples:
      hushcast device export links.sealed
      hushcast device export links.sealed --password-file password.txt
    """
    from hushcast.secret_files import write_new
    from hushcast_cli.daemon_calls import converse
    from hushcast_cli.output import json_line, note, write

    if file.exists():
        raise click.UsageError(f"{file} exists: name another file", click.get_current_context())
    password = _password(password_file, is_new=True)
    sealed = converse(choices, lambda daemon: daemon.export_links(password), timeout)
    write_new(file, sealed, "links")
    if choices.json:
        write(json_line({"file": str(file)}))
    else:
        note(f"{file} has the links of all subscriptions: carry it over, and delete it afterwards")


@click.command("import", short_help="Subscribe to all links of a sealed file.")
@click.argument("file", type=FILE)
@password_file_option
@click.option(
    "--within",
    type=click.FloatRange(0, 168),
    metavar="HOURS",
    help="Begin each subscription at a moment drawn from so many hours; unless given from twelve epochs.",
)
@click.option("--at-once", is_flag=True, help="Begin all now: who sees relays can tell that they are one's.")
@timeout_option
@daemon_options
@pass_choices
def import_(
    choices: Choices,
    file: Path,
    password_file: Path | None,
    within: float | None,
    at_once: bool,
    timeout: float | None,
) -> None:
    """Subscribe to all links in FILE, which `device export` wrote on another device.

    Each subscription begins at a moment of its own, as subscriptions that begin together show relays that
    they are one daemon's; the daemon remembers them meanwhile, and `hushcast status` counts them. What is
    subscribed to already stays as it is.

    \b
    Examples:
      hushcast device import links.sealed
      hushcast device import links.sealed --at-once --password-file password.txt
    """
    from hushcast.secret_files import read_private
    from hushcast_cli.daemon_calls import converse
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.devices.carried_links import MAX_CARRIED_FILE

    if at_once and within is not None:
        raise click.UsageError("give --within or --at-once, not both", click.get_current_context())
    seconds = 0.0 if at_once else None if within is None else within * 3600
    sealed, _ = read_private(file, MAX_CARRIED_FILE, "file of links")
    password = _password(password_file, is_new=False)
    done = converse(choices, lambda daemon: daemon.import_links(sealed, password, within=seconds), timeout)
    if choices.json:
        write(json_line(done._asdict()))
        return
    begin = f"{counted(done.planned, 'subscription begins', 'subscriptions begin')}"
    when = "now" if not done.within else f"at drawn moments, the last within {done.within / 3600:.3g} hours"
    held = f"; {counted(done.held, 'was held', 'were held')} already" if done.held else ""
    write(text_line(f"{begin} {when}{held}"))


def _password(file: Path | None, is_new: bool) -> str:
    """Read a password from the first line of a file, or as it is typed."""
    from hushcast.secret_files import read_private
    from hushcast_cli.typed_password import first_line, typed_password
    from hushcast_protocol.base.errors import UsageError
    from hushcast_protocol.devices.carried_links import MAX_PASSWORD

    if file is None:
        line = typed_password(MAX_PASSWORD, is_new)
    else:
        data, alone = read_private(file, MAX_PASSWORD + 3, "password file")
        if not alone:
            raise UsageError(f"others can read the password in {file}: chmod 600 it")
        line = first_line(data)
    return line.decode("utf-8", "surrogateescape")
