"""`hushcast lab filters`: how anonymous subscriptions would be among each other, without a network."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import json_option, number_option, seed_option
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

_positive = click.IntRange(min=1)
_AT_ONCE = 1000  # lines that are written together


@click.group(cls=CommandGroup, short_help="See how many subscribers a filter hides among.")
@json_option
def filters() -> None:
    """See how many subscribers a filter hides among, before brokers are told of it."""


@filters.command()
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path), metavar="FILE"
)
@number_option("--k", 1, metavar="K", help="How many subscribers are enough.")
@click.option(
    "--condition",
    type=click.Choice([str(condition) for condition in AnonymityCondition]),
    help="Whose subscribers count, for --k.",
)
@click.option(
    "--preload",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="OTHER",
    help="A file of subscriptions that count besides, as of a typical day.",
)
@json_option
@pass_choices
def levels(choices: Choices, file: Path, k: int | None, condition: str | None, preload: Path | None) -> None:
    """Tell the levels of anonymity of the filters in FILE, or with `-` of those on standard input.

    Each line is a subscription: {"source": "alice", "topic": LINK or TEXT, "where": CONDITION}. A text has
    attributes if "attributes" lists their SPECs as `hushcast topic new` takes them. With --k and --condition
    it tells which filter would be shown in place of each, and what that brings besides. No daemon is asked.

    \b
    Example:
      hushcast lab filters levels subscriptions.jsonl --k 5 --condition successor
    """
    if (k is None) != (condition is None):
        raise click.UsageError("give --k and --condition, or neither", click.get_current_context())
    from hushcast_cli.analysis.filter_levels import AnonymityDemand, tell

    asked = None if k is None else AnonymityDemand(k, AnonymityCondition(str(condition)))
    tell(file, asked, choices.json, preload)


@filters.command()
@click.option("--subscriptions", type=_positive, required=True, metavar="N", help="Lines.")
@click.option("--subscribers", type=_positive, required=True, metavar="S", help="Who they are drawn among.")
@click.option("--topics", type=_positive, default=1, show_default=True, metavar="T", help="Topics.")
@click.option("--towns", is_flag=True, help="Conditions around three towns; evenly spread unless given.")
@seed_option
@json_option
def generate(subscriptions: int, subscribers: int, topics: int, towns: bool, seed: int) -> None:
    """Print subscriptions that nobody made, for `filters levels` and `analyze`.

    Each has conditions on one to four attributes. A few topics are popular, most are not.

    \b
    Example:
      hushcast lab filters generate --subscriptions 10000 --subscribers 2000 --topics 10 > made.jsonl
    """
    from hushcast_cli.analysis.filter_workload import FilterWorkload, lines
    from hushcast_cli.output import write

    drawn = lines(FilterWorkload(subscriptions, subscribers, topics, towns, seed))
    while some := list(islice(drawn, _AT_ONCE)):
        write("".join(f"{line}\n" for line in some).encode())
