"""`hushcast filters`: how anonymous subscriptions would be among each other, without a network."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.options import Choices, json_option, pass_choices
from hushcast_protocol.brokers.conditions import Condition


@click.group()
@json_option
def filters() -> None:
    """See how many subscribers a filter hides among, before brokers are told of it."""


@filters.command()
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path), metavar="FILE"
)
@click.option("--k", type=click.IntRange(min=1), metavar="K", help="How many subscribers are enough.")
@click.option(
    "--condition",
    type=click.Choice([str(condition) for condition in Condition]),
    help="Whose subscribers count, for --k.",
)
@json_option
@pass_choices
def levels(choices: Choices, file: Path, k: int | None, condition: str | None) -> None:
    """Tell the levels of anonymity of the filters in FILE, or with `-` of those on standard input.

    Each line is a subscription: {"source": "alice", "topic": LINK or TEXT, "where": CONDITION}. A text has
    attributes if "attributes" lists their SPECs as `hushcast topic new` takes them. With --k and --condition
    it tells which filter would be shown in place of each. No daemon is asked.

    \b
    Example:
      hushcast filters levels subscriptions.jsonl --k 5 --condition successor
    """
    if (k is None) != (condition is None):
        raise click.UsageError("give --k and --condition, or neither", click.get_current_context())
    from hushcast_cli.filter_levels import Asked, tell

    tell(file, None if k is None else Asked(k, Condition(str(condition))), choices.json)
