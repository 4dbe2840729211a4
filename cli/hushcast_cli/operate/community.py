"""`hushcast admin community`: who is in a community of a network of brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.configuration.places import config_of, name_option, places
from hushcast_cli.options import FOLDER, GIVEN, config_option, json_option, timeout_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hushcast_brokers.community.keeper_directory import KeeperDirectory
    from hushcast_protocol.brokers.community.charter import Charter

_directory = click.argument("directory", type=FOLDER, metavar="DIR")
_begins_option = click.option(
    "--in",
    "begins_in",
    type=click.IntRange(0, 24 * 3600),
    metavar="S",
    help="Seconds until the epoch begins; 120 unless given, in which all who are there hear of it.",
)


@click.group(cls=CommandGroup, short_help="Say who may read, in a network of brokers with communities.")
@json_option
def community() -> None:
    """Say who may read what is asked for, in a network of brokers with `privacy = "community"`.

    A community has a keeper, who has a directory with its key and the list of members. Each change makes a
    charter, which its keeper sends to the root; from there all hear of it.
    """


@community.command()
@_directory
@click.argument("network", type=GIVEN, metavar="NETWORK")
@json_option
@pass_choices
def new(choices: Choices, directory: Path, network: Path) -> None:
    """Become the keeper of a new community, in the new directory DIR.

    NETWORK is the network.toml that the root wrote; `-` is standard input. Whoever has DIR decides who is in.

    \b
    Example:
      hushcast admin community new club network.toml
    """
    from hushcast_brokers.community import keeper_directory
    from hushcast_cli.configuration.operator_files import read_given
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_runtime.environment import system_environment

    kept = keeper_directory.found(directory, *read_given(network), system_environment().randomness)
    key = kept.key.hex()
    if choices.json:
        write(json_line({"directory": str(directory), "community": key}))
        return
    write(text_line(key))
    note(f'the root\'s operator adds it to the configuration: communities = ["{key}"]')
    note(
        f"next: hushcast admin community admit {directory} KEY, of each broker and daemon that is to be in it"
    )


@community.command()
@_directory
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("--as", "beside", default="", metavar="TEXT", help="What to write beside them in DIR/members.")
@_begins_option
@json_option
@pass_choices
def admit(
    choices: Choices, directory: Path, keys: tuple[str, ...], beside: str, begins_in: int | None
) -> None:
    """Admit members: a new epoch begins, which they can read, and nothing of before.

    KEY is what `admin community join` shows to a daemon's operator, a broker's key or its broker.toml, or
    `root`.

    \b
    Examples:
      hushcast admin community admit club root broker.toml
      hushcast admin community admit club 3b6a27bc… --as 'Alice, laptop'
    """
    from hushcast_brokers.community import keeper_directory

    kept = keeper_directory.load(directory)
    members = keeper_directory.with_more(kept, [_key(text, kept) for text in keys], beside)
    _sign(choices, kept, members, begins_in)


@community.command()
@_directory
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@_begins_option
@json_option
@pass_choices
def expel(choices: Choices, directory: Path, keys: tuple[str, ...], begins_in: int | None) -> None:
    """Expel members: a new epoch begins, of which they read nothing.

    KEY is as for `admit`. Until the epoch begins they read all that is asked for and published. With --in 0
    it begins at once; who has not heard of it then may miss what is published before.

    \b
    Example:
      hushcast admin community expel club 3b6a27bc…
    """
    from hushcast_brokers.community import keeper_directory

    kept = keeper_directory.load(directory)
    members = keeper_directory.without(kept, [_key(text, kept) for text in keys])
    _sign(choices, kept, members, begins_in)


@community.command()
@_directory
@config_option("A daemon's of the network; this user's node's unless given.")
@timeout_option
@json_option
@pass_choices
def send(choices: Choices, directory: Path, config: Path | None, timeout: float | None) -> None:
    """Send the charter in DIR to the root, which hands it out.

    Over a circuit of its own, without a name; --config tells the transport. With `tor.mode = "own"` a second
    tor starts for it, which takes a minute. A charter tells everybody how many members there are, and
    which brokers are among them.

    \b
    Example:
      hushcast admin community send club
    """
    from hushcast_brokers.community import keeper_directory
    from hushcast_brokers.community.charter_sender import send_charter
    from hushcast_cli.daemon_calls import run
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.logs import configure_logs

    configure_logs("warning", False)
    kept = keeper_directory.load(directory)
    charter = kept.charter
    if charter is None:
        raise UsageError(f"{directory} has no charter yet: `hushcast admin community admit` makes one")
    file = config_of("node", config)

    async def work() -> None:
        await send_charter(file, kept.network, charter)
        if choices.json:
            write(json_line({"epoch": charter.epoch, "begins": charter.begins}))
        else:
            write(text_line(f"the root hands out the charter of epoch {charter.epoch}"))

    run(work, timeout)


@community.command()
@_directory
@json_option
@pass_choices
def show(choices: Choices, directory: Path) -> None:
    """Show the community that DIR is the keeper's directory of, and its members.

    \b
    Example:
      hushcast admin community show club
    """
    from hushcast_brokers.community import keeper_directory
    from hushcast_cli.output import json_line, text_line, write

    kept = keeper_directory.load(directory)
    if choices.json:
        members = [{"key": key.hex(), "as": beside} for key, beside in kept.members.items()]
        write(json_line({**_told(kept, kept.charter), "members": members}))
        return
    write(text_line(f"community {kept.key.hex()} of {kept.network.name}"))
    epoch = kept.charter
    told = "no epoch yet" if epoch is None else f"epoch {epoch.epoch}, {len(epoch.members)} members"
    write(text_line(told))
    for key, beside in kept.members.items():
        write(text_line(f"{key.hex()} {beside}".rstrip()))


@community.command()
@click.argument("keeper", metavar="COMMUNITY")
@config_option("The daemon's configuration.")
@name_option
@json_option
@pass_choices
def join(choices: Choices, keeper: str, config: Path | None, name: str | None) -> None:
    """Have a daemon be in COMMUNITY, and show the key that its keeper is to admit.

    COMMUNITY is what `admin community new` showed to the keeper. It becomes the setting `community` of the
    section `brokers`; the daemon takes it up when it is started again. Typed again, it shows the key again.

    \b
    Example:
      hushcast admin community join 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    """
    from hushcast_cli.configuration.community_section import join_community
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_protocol.base.errors import UsageError

    if config is not None and name is not None:
        raise UsageError("give --config or --name, not both")
    target = config or places("node", name).config
    key, is_new = join_community(target, keeper)
    if choices.json:
        write(json_line({"file": str(target), "community": keeper, "key": key, "new": is_new}))
        return
    write(text_line(key))
    note("give this key to the keeper, for `hushcast admin community admit`")
    if is_new:
        note(f"{target} names the community: start the daemon again")


def _key(text: str, kept: KeeperDirectory) -> bytes:
    """Return the key that somebody typed; raise `UsageError`."""
    from hushcast_cli.configuration.broker_positions import read_broker
    from hushcast_protocol.base.errors import UsageError

    if text == "root":
        return bytes.fromhex(kept.network.root_key)
    if len(text) == 64 and set(text.lower()) <= set("0123456789abcdef"):
        return bytes.fromhex(text)
    if Path(text).exists():
        return bytes.fromhex(read_broker(Path(text)).key)
    raise UsageError(f"{text!r} is no key: 64 hexadecimal digits, a broker.toml, or `root`")


def _sign(
    choices: Choices, kept: KeeperDirectory, members: Mapping[bytes, str], begins_in: int | None
) -> None:
    from hushcast_brokers.community import keeper_directory
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_runtime.environment import system_environment

    env = system_environment()
    seconds = keeper_directory.BEGINS_AFTER if begins_in is None else begins_in
    charter = keeper_directory.sign_next(kept, members, int(env.now()) + seconds, env.randomness)
    if choices.json:
        write(json_line(_told(kept, charter)))
        return
    when = "at once" if not seconds else f"in {seconds} seconds"
    write(text_line(f"epoch {charter.epoch}, {len(charter.members)} members, begins {when}"))
    note(f"next: hushcast admin community send {kept.directory}")


def _told(kept: KeeperDirectory, charter: Charter | None) -> dict[str, object]:
    return {
        "community": kept.key.hex(),
        "network": kept.network.name,
        "epoch": charter.epoch if charter is not None else None,
        "begins": charter.begins if charter is not None else None,
        "members": len(kept.members) if charter is None else len(charter.members),
    }
