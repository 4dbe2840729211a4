"""`hushcast device invite`, `join`, `list`, `remove`, `leave`: one person's devices that share."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import check_one_topic, daemon_options, link_file_option, timeout_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushcast.device_calls import Device

_LOOK_EVERY = 1.0  # seconds between looks whether somebody has joined
_DEVICE = "device"

name_option = click.option(
    "--name", default=_DEVICE, metavar="NAME", help="What you call this device, up to 64 characters."
)


@click.command(short_help="Let one other device of yours join, by a link.")
@name_option
@click.option("--no-wait", is_flag=True, help="End once the link is printed; it is good all the same.")
@timeout_option
@daemon_options
@pass_choices
def invite(choices: Choices, name: str, no_wait: bool, timeout: float | None) -> None:
    """Print a link, and on a terminal a code of it, by which one device joins; wait until it has.

    The link is good once and for ten minutes, and replaces one of before. Whoever follows it shares all that
    you subscribe to, from then on: show it to your own device alone. Compare the fingerprint of what has
    joined with what `hushcast device list` shows there.

    \b
    Examples:
      hushcast device invite --name laptop
      hushcast device invite --no-wait --json
    """
    import trio

    from hushcast_cli.daemon_calls import daemon, run
    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, note, text_line, write

    async def work() -> Sequence[Device]:
        async with daemon(choices) as one:
            known = {device.fingerprint for device in await one.devices()}
            made = await one.invite_device(name)
            if choices.json:
                write(json_line({"link": made.link, "expires": made.expires}))
            else:
                _show(made.link)
            while not no_wait and time.time() < made.expires:
                await trio.sleep(_LOOK_EVERY)
                devices = await one.devices()
                new = [d for d in devices if d.fingerprint not in known and not d.is_this]
                if new:
                    return new
        return []

    new = run(work, timeout)
    if no_wait:
        return
    if not new:
        raise Failure("nobody has joined within ten minutes: `hushcast device invite` prints another link")
    for device in new:
        if choices.json:
            write(json_line(_told(device)))
        else:
            write(text_line(f"joined  {device.name}  {device.fingerprint}"))
            note("another device than yours? `hushcast device remove` it, and begin anew")


@click.command(short_help="Join your other devices, by the link that one of them printed.")
@click.argument("link", required=False)
@link_file_option
@name_option
@timeout_option
@daemon_options
@pass_choices
def join(
    choices: Choices, link: str | None, link_file: Path | None, name: str, timeout: float | None
) -> None:
    """Join the devices that LINK invites to, which `device invite` printed on one of them.

    Returns when that one has answered. What either subscribes to, both do from then on; here each
    subscription begins at a moment of its own. With --link-file the link is read from a file or, with `-`,
    from standard input, where other users of this machine do not see it.

    \b
    Examples:
      hushcast device join --link-file - --name phone
    """
    check_one_topic(link, link_file, "LINK")
    import sys

    from hushcast.secret_files import read_private
    from hushcast_cli.chosen_daemon import ask

    if link is None:
        assert link_file is not None
        if str(link_file) == "-":
            link = sys.stdin.readline(1024)
        else:
            link = read_private(link_file, 1024, "link file")[0].decode("ascii", "replace")
    text = link.strip()
    devices = ask(choices, lambda one: one.join_devices(text, name), timeout, "waiting for the other device")
    _list(choices, devices)


@click.command("list", short_help="List the devices that share.")
@timeout_option
@daemon_options
@pass_choices
def list_devices(choices: Choices, timeout: float | None) -> None:
    """List the devices that share with this one, itself included, and those that were removed.

    \b
    Examples:
      hushcast device list
    """
    from hushcast_cli.chosen_daemon import ask
    from hushcast_cli.output import note

    devices = ask(choices, lambda one: one.devices(), timeout)
    if not devices and not choices.json:
        note("this device shares with no other: `hushcast device invite` or `join` begins that")
    _list(choices, devices)


@click.command(short_help="Remove a device: it learns nothing that comes later.")
@click.argument("device")
@timeout_option
@daemon_options
@pass_choices
def remove(choices: Choices, device: str, timeout: float | None) -> None:
    """Remove DEVICE, a name or the beginning of a fingerprint as `device list` shows them.

    The others go on under a new secret. A device that is still yours forgets what was shared when it hears
    of it; one that is not keeps what it had, links of private topics included, and hears nothing new.
    Remove it on a device that was there: that one vouches for what the removed one has written so far.

    \b
    Examples:
      hushcast device remove phone
    """
    from hushcast_cli.chosen_daemon import ask

    _list(choices, ask(choices, lambda one: one.remove_device(device), timeout))


@click.command(short_help="Share nothing with other devices any more.")
@timeout_option
@daemon_options
@pass_choices
def leave(choices: Choices, timeout: float | None) -> None:
    """Leave the others: forget what was shared, and share nothing. What is subscribed to here stays.

    Then remove this device on another one: its disk may have been copied.

    \b
    Examples:
      hushcast device leave
    """
    from hushcast_cli.chosen_daemon import ask

    ask(choices, lambda one: one.leave_devices(), timeout)


def _show(link: str) -> None:
    """Print a link, on a terminal with a code that a camera reads."""
    from hushcast_cli.output import is_terminal, write

    write(link.encode() + b"\n")
    if is_terminal():
        import segno

        drawn = io.StringIO()
        segno.make(link, error="l").terminal(drawn, compact=True, border=2)
        write(drawn.getvalue().encode())


def _list(choices: Choices, devices: Sequence[Device]) -> None:
    from hushcast_cli.output import json_line, table, write

    if choices.json:
        write(b"".join(json_line(_told(device)) for device in devices))
    elif devices:
        write(table((device.name, f"{device.fingerprint}  {_state(device)}") for device in devices))


def _state(device: Device) -> str:
    if device.is_removed:
        return "removed"
    if device.is_this:
        return "this device"
    if device.heard is None:
        return "not heard since this daemon started"
    return time.strftime("heard %Y-%m-%d %H:%M", time.localtime(device.heard))


def _told(device: Device) -> dict[str, object]:
    return {
        "name": device.name,
        "fingerprint": device.fingerprint,
        "this": device.is_this,
        "removed": device.is_removed,
        "heard": device.heard,
    }
