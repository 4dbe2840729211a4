"""`hushcast located`: feeds of messages with a place, from a provider that need not be trusted."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.located.batch_publication import feed_option, publish_command, revoke_command
from hushcast_cli.located.feed_subscriptions import subscribe, subscriptions, unsubscribe
from hushcast_cli.located.provide import offer
from hushcast_cli.options import FILE, FOLDER, daemon_options, json_option, number_option, timeout_option


@click.group(
    cls=CommandGroup,
    short_help="Sign, answer and follow feeds of messages with a place.",
)
@json_option
def located() -> None:
    """Match messages with a place and words, so that whoever asked can check the answer.

    `hushcast run` runs a provider. `hushcast lab located` matches and checks by files, without daemons.
    """


@located.group("key")
@json_option
def owner_key() -> None:
    """Make the key that signs a feed."""


@owner_key.command("new")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def new(choices: Choices, file: Path) -> None:
    """Make a feed owner's key in the new file F, and print its public half.

    Subscribers check answers by the public half. Whoever has the file can sign as the owner.

    \b
    Example:
      hushcast located key new shops.key
    """
    import os

    from hushcast_cli.output import json_line, text_line, write
    from hushcast_located.keys import new_owner

    owner = new_owner(file, os.urandom).public().hex()
    write(json_line({"file": str(file), "owner": owner}) if choices.json else text_line(owner))


@located.command()
@click.option("--key", "key_file", type=FILE, required=True, metavar="F", help="The owner's key.")
@click.option(
    "--in", "messages", type=FILE, required=True, metavar="FILE", help="Messages, one JSON object a line."
)
@click.option("--out", type=FOLDER, required=True, metavar="DIR", help="Where the feed's batches lie.")
@number_option(
    "--interval", 1, 7 * 24 * 3600, default=300, metavar="S", help="Seconds that the batch is for."
)
@click.option(
    "--start",
    type=click.IntRange(0, 2**47),
    metavar="UNIX",
    help="When they begin. Default: now, or where the batch before ends.",
)
@number_option("--fan-out", 2, 64, default=4, help="Children of a node of the tree.")
@click.option(
    "--max-distance",
    type=float,
    metavar="KM",
    help="From where on a place counts nothing; signed with the weights. Default: 100, then as before.",
)
@click.option("--new-weights", is_flag=True, help="Weigh words by these messages, as the next version.")
@click.option(
    "--former-key", type=FILE, metavar="F", help="The key that signed so far: it hands over to --key."
)
@feed_option
@timeout_option
@daemon_options
@pass_choices
def batch(
    choices: Choices,
    key_file: Path,
    messages: Path,
    out: Path,
    interval: int,
    start: int | None,
    fan_out: int,
    max_distance: float | None,
    new_weights: bool,
    former_key: Path | None,
    feed: Path | None,
    timeout: float | None,
) -> None:
    """Sign the messages of an interval as the next batch of a feed.

    Each line is a message: {"id": "1", "lat": 60.17, "lon": 24.94, "text": "shoes at half the price"}. Its
    keywords are the words of its text. DIR holds the batches of one owner, each chained to the one before,
    and tables of weights; the first batch makes the first table. With --feed the batch is also published,
    and the table where it is new; without a daemon it is signed all the same. With --former-key another key
    takes the place of that which signed so far, once and for all; subscribers follow and are told.

    \b
    Examples:
      hushcast located batch --key shops.key --in messages.jsonl --interval 300 --out batches
      hushcast located batch --key shops.key --in messages.jsonl --out batches --feed feed.link
    """
    import time

    from hushcast_cli.located.batch_publication import publishing, send_batch
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_located.batch_folder import BatchFolder
    from hushcast_located.keys import read_owner
    from hushcast_located.owner import BatchOptions, add_batch
    from hushcast_runtime.wording import counted

    given = publishing(key_file, out, feed, former_key) if feed is not None else None
    former = None if former_key is None else read_owner(former_key)
    wanted = BatchOptions(interval, start, fan_out, max_distance, new_weights, former)
    file, made = add_batch(read_owner(key_file), BatchFolder(out), messages, wanted, int(time.time()))
    body = made.body
    if choices.json:
        told = {"file": str(file), "number": body.number, "start": body.start, "seconds": body.seconds}
        write(json_line({**told, "messages": body.count, "weights": body.version}))
    else:
        write(text_line(f"{file}: batch {body.number}, {body.count:,} messages, weights {body.version}"))
    if given is not None:
        _, parts = send_batch(choices, given, body.number, None, timeout)
        if not choices.json:
            write(text_line(f"batch {body.number} is in the outbox, {counted(parts, 'message')}"))


for one in (publish_command, revoke_command, offer, subscribe, subscriptions, unsubscribe):
    located.add_command(one)
