"""`hushcast admin broker`: gives the brokers of a network their seats, and shows their tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_brokers.program import BROKER
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.configuration.places import config_of, config_of_any, places
from hushcast_cli.options import GIVEN, config_option, json_option

if TYPE_CHECKING:
    from hushcast_brokers.broker.settings import RootSettings

_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init` wrote for a broker unless given."
)
_root_option = config_option(
    "The root's configuration; the one that `hushcast init broker-root` wrote unless given."
)


@click.group(cls=CommandGroup)
@json_option
def broker() -> None:
    """Give brokers their seats in the tree, and show it."""


@broker.command("admit")
@click.argument("file", type=GIVEN, metavar="FILE")
@click.option(
    "--parent",
    metavar="KEY",
    help="Place it below the broker whose key begins so, or below `root`, whatever it asks for.",
)
@_root_option
@json_option
@pass_choices
def admit(choices: Choices, file: Path, parent: str | None, config: Path | None) -> None:
    """Give a broker a seat in the tree.

    FILE is what the broker wrote as `broker.toml`; `-` is standard input. It is checked with all the tree,
    and becomes a section `brokers` of the root's configuration, where all else stays as it is. A root that
    runs signs the new tree at once. To take a seat away, take its lines out and reload.

    \b
    Examples:
      hushcast admin broker admit broker.toml
      ssh broker.example cat broker.toml | hushcast admin broker admit - --parent 9f86d081
    """
    from hushcast_brokers.broker.summary import short
    from hushcast_cli.configuration.broker_positions import admit_broker, read_broker

    target = config_of("broker-root", config)
    admitted = read_broker(file)
    settings, is_new = admit_broker(target, admitted, parent)
    seat = next(one for one in settings.listed if one.key == admitted.key)
    above = "the root" if seat.parent is None else short(seat.parent)
    line = f"{target}: {'lists' if is_new else 'listed already'} the {seat.role} broker {short(seat.key)}"
    told = {"file": str(target), "role": seat.role, "key": seat.key, "parent": seat.parent, "new": is_new}
    _tell_applied(choices, settings, config, told, f"{line}, below {above}")


@broker.command("replace")
@click.argument("old", metavar="KEY")
@click.argument("file", type=GIVEN, metavar="FILE")
@_root_option
@json_option
@pass_choices
def replace(choices: Choices, old: str, file: Path, config: Path | None) -> None:
    """Give a broker's seat to another one.

    KEY is the old one's, or its first digits, and FILE what the new one wrote as `broker.toml`; `-` is
    standard input. The new one stands where the old one stood, and all brokers below that are below it. A
    root that runs signs the new tree at once, and the brokers move by themselves.

    \b
    Example:
      hushcast admin broker replace 9f86d081 broker.toml
    """
    from hushcast_brokers.broker.summary import short
    from hushcast_cli.configuration.broker_positions import read_broker, replace_broker

    target = config_of("broker-root", config)
    fresh = read_broker(file)
    settings, former = replace_broker(target, old, fresh)
    moved = sum(one.parent == fresh.key for one in settings.listed)
    line = f"{target}: {short(fresh.key)} has the place of {short(former.key)}"
    told = {"file": str(target), "role": fresh.role, "key": fresh.key, "old": former.key, "below": moved}
    _tell_applied(choices, settings, config, told, f"{line}, with {moved} below it")


def _tell_applied(
    choices: Choices, settings: RootSettings, config: Path | None, told: Mapping[str, object], line: str
) -> None:
    """Have a root that runs read its configuration, and say what was done and what is left to do."""
    from hushcast_brokers.broker_sections import NETWORK_FILE
    from hushcast_cli.configuration.reload import how_to_apply, tell_daemon
    from hushcast_cli.output import json_line, note, text_line, write

    read = tell_daemon(settings.state_path())
    after = how_to_apply(places("broker-root"), "hushcast run broker", config, read)
    has_edges = any(one.role == "edge" for one in settings.listed)
    if choices.json:
        write(json_line({**told, "edges": has_edges, "next": after}))
        return
    write(text_line(line))
    for command in after:
        write(text_line(f"next: {command}"))
    if has_edges:
        note(f"whoever is to join needs {settings.state_path() / NETWORK_FILE}")
    else:
        note("nobody can subscribe yet: an edge broker is missing")


@broker.command("tree")
@_config_option
@json_option
@pass_choices
def tree(choices: Choices, config: Path | None) -> None:
    """Show the tree of brokers, and who is connected.

    Asks the broker that runs here for the tree that it holds. It sees the links to its own neighbours, so
    nothing is said of those further away. Of a root that does not run the configuration is shown. Run it as
    the broker's user or as root.

    \b
    Example:
      sudo hushcast admin broker tree
    """
    import trio
    from msgspec import to_builtins

    from hushcast_brokers.broker.settings import RootSettings, load_broker
    from hushcast_brokers.broker.tree_report import ask_tree, tree_listed
    from hushcast_cli.exits import Failure
    from hushcast_cli.operate.tree_picture import draw
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_runtime.storage.state_directory import check_access
    from hushcast_runtime.storage.state_lock import holder

    settings = load_broker(config_of_any(BROKER, config))
    check_access(settings.state_path())
    told = trio.run(ask_tree, settings.state_path())
    if told is None and isinstance(settings, RootSettings) and holder(settings.state_path()) is None:
        told = tree_listed(settings)
    if told is None:
        raise Failure("this broker does not run, or holds no tree yet: `hushcast doctor broker` says why")
    if choices.json:
        write(json_line(to_builtins(told)))
        return
    for line in draw(told):
        write(text_line(line))
