"""Options that several commands share. Those of all commands work before and after a command's name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from hushcast_cli.choices import Choices
from hushcast_protocol.base.shard_count import MIN_SHARD_SIZE, SHARD_SIZE
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.overlay.profile import HARDENED, MAX_DEPTH, PROFILES

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


CURSOR: click.ParamType[int] = click.IntRange(0, 2**63 - 1)  # as the control socket has it

FILE: click.Path = click.Path(path_type=Path)
GIVEN: click.Path = click.Path(path_type=Path, allow_dash=True)
"""A file, or `-` for standard input."""
FOLDER: click.Path = click.Path(file_okay=False, path_type=Path)

_CHOSEN_AT = "hushcast daemon chosen at"


def _check_seconds(context: click.Context, parameter: click.Parameter, seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds < math.inf:
        raise click.BadParameter(f"{seconds} is not a number of seconds above 0", context, parameter)
    return seconds


def _choose(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    # Each place that has the option may set it; the one nearest to the command comes last and wins.
    if value:
        setattr(context.ensure_object(Choices), str(parameter.name), value)


def _choose_daemon(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if not value:
        return
    choices = context.ensure_object(Choices)
    if context.meta.get(_CHOSEN_AT) is context:
        raise click.UsageError("give --socket or --node, not both", context)
    context.meta[_CHOSEN_AT] = context
    choices.socket, choices.node = None, None
    setattr(choices, str(parameter.name), value)


def _nodes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from hushcast_cli.completion_values import nodes

    return nodes(incomplete)


# The environment is asked where nothing was chosen: asked here, it would win over a configuration.
socket_option = click.option(
    "--socket",
    type=click.Path(path_type=Path),
    metavar="PATH",
    expose_value=False,
    callback=_choose_daemon,
    help="The daemon's control socket; also HUSHCAST_SOCKET. Otherwise "
    "hushcast/control.sock below $XDG_RUNTIME_DIR, ~/.local/state or /run, the first that exists.",
)
node_option = click.option(
    "--node",
    metavar="NAME",
    expose_value=False,
    callback=_choose_daemon,
    shell_complete=_nodes,
    help="Instead of --socket: the daemon of this name in the testnet that runs, such as client-1.",
)


json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_choose,
    help="Print one JSON object a line and nothing else on standard output.",
)


def _last_testnet(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path:
    if value is not None:
        return value
    from hushcast_cli.last_testnet import last_testnet

    if (last := last_testnet()) is None:
        raise click.UsageError("which testnet? Name its directory with --dir", context)
    return last


def _testnet_option(remembers: bool) -> Callable[[Any], Any]:
    others = {"callback": _last_testnet} if remembers else {"required": True}
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="D",
        envvar="HUSHCAST_TESTNET",
        help="The testnet's directory; also HUSHCAST_TESTNET."
        + (" Otherwise that of the last `testnet up`." if remembers else ""),
        **others,
    )


testnet_option = _testnet_option(remembers=True)
new_testnet_option = _testnet_option(remembers=False)


def config_option(help_: str, required: bool = False) -> Callable[[CommandT], CommandT]:
    """Return the option that names a configuration."""
    return click.option("--config", type=FILE, metavar="F", required=required, help=help_)


def daemon_options(command: CommandT) -> CommandT:
    """Add the options of every command that speaks to a daemon."""
    return socket_option(node_option(json_option(command)))


def number_option(
    name: str,
    least: int,
    most: int | None = None,
    *,
    default: int | None = None,
    metavar: str = "N",
    help: str,
) -> Callable[[CommandT], CommandT]:
    """Return the option of a whole number from `least` on, to `most` if that is given; a default is shown."""
    shown: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    return click.option(name, type=click.IntRange(least, most), metavar=metavar, help=help, **shown)


seed_option = click.option(
    "--seed", type=int, default=1, show_default=True, metavar="S", help="The same gives the same."
)


link_file_option = click.option(
    "--link-file",
    type=click.Path(path_type=Path),
    metavar="F",
    help="Read the topic's link from this file, or with `-` from standard input: other users of the machine "
    "can see what stands on a command line.",
)


def check_one_topic(text: str | None, link_file: Path | None, name: str = "TOPIC") -> None:
    """Raise `click.UsageError` unless a topic is given in exactly one of the two ways."""
    if (text is None) == (link_file is None):
        but = "not both" if text is not None else "one of them is missing"
        raise click.UsageError(f"give {name} or --link-file, {but}", click.get_current_context())


open_option = click.option(
    "--open",
    "is_open",
    is_flag=True,
    help="TOPIC means the open topic of this name, though the daemon is subscribed to a private one.",
)


where_option = click.option(
    "--where",
    metavar="COND",
    help="Only messages whose attributes meet this: `lat in [60, 61], lon in [24, ], kind = fire`.",
)


def terms_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--k`, `--condition` and `--otherwise`, which the command gets as `terms`."""

    @click.option(
        "--k",
        type=click.IntRange(1, 1_000_000),
        metavar="K",
        help="Show brokers what is wanted only while K subscribers stand behind it.",
    )
    @click.option(
        "--condition",
        type=click.Choice([str(condition) for condition in AnonymityCondition]),
        help="Whose subscribers count, for --k. Default: source, those who want just the same.",
    )
    @click.option(
        "--otherwise",
        type=click.Choice(get_args(Fallback)),
        help="What to do while they are fewer than K. Default: refuse.",
    )
    @functools.wraps(command)
    def wrapped(*given: Any, k: int | None, condition: Any, otherwise: Any, **named: Any) -> None:
        if k is None and (condition or otherwise):
            raise click.UsageError("--condition and --otherwise go with --k", click.get_current_context())
        from hushcast.control_messages import Terms

        terms = None if k is None else Terms(k, condition or "source", otherwise or "refuse")
        command(*given, terms=terms, **named)

    return wrapped


def _check_shard_size(context: click.Context, parameter: click.Parameter, size: int | None) -> int | None:
    if size is not None and 0 < size < MIN_SHARD_SIZE:
        raise click.BadParameter(
            f"{size} is too small: {MIN_SHARD_SIZE} or more, or 0 for no shards", context, parameter
        )
    return size


def shard_size_option(default: int | None = None) -> Callable[[CommandT], CommandT]:
    """Return the option that says how large shards are: 0, or 4 to 500 relays in the mean."""
    return click.option(
        "--shard-size",
        type=click.IntRange(0, SHARD_SIZE),
        default=default,
        callback=_check_shard_size,
        metavar="N",
        help="Relays of a shard in the mean; a network of more than 1.41 times as many is cut. 0: never."
        f"  [default: {SHARD_SIZE}]",
    )


timeout_option = click.option(
    "--timeout",
    type=float,
    callback=_check_seconds,
    metavar="S",
    help="Give up after S seconds, with exit code 124.",
)


depth_option = number_option(
    "--depth", 1, MAX_DEPTH, metavar="R", help="Levels of a tree; the profile's unless given."
)


profile_option = click.option(
    "--profile",
    type=click.Choice(sorted(PROFILES)),
    default=HARDENED.name,
    show_default=True,
    help="Behaviour.",
)


carrier_option = click.option(
    "--carrier",
    type=click.Choice(["overlay", "central", "brokers"]),
    default="overlay",
    show_default=True,
    help="A network of relays, one server with proxies, or a tree of brokers.",
)
