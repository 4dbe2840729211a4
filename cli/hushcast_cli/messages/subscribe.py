"""`hushcast subscribe`: subscribes and prints messages until enough have come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli import completion_values
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.messages.since import SINCE
from hushcast_cli.options import (
    check_one_topic,
    daemon_options,
    link_file_option,
    open_option,
    terms_options,
    timeout_option,
    where_option,
)
from hushcast_cli.purposes.purpose_options import purpose_options

if TYPE_CHECKING:
    from datetime import datetime

    from hushcast.control_messages import Terms
    from hushcast.purposes.keys import ReadFor


@click.command(short_help="Subscribe to topics, and print their messages.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=completion_values.topics)
@link_file_option
@open_option
@where_option
@click.option(
    "--count",
    type=click.IntRange(min=0),
    metavar="N",
    help="End after N messages, with exit code 0. With 0 as soon as relays route to this daemon.",
)
@click.option(
    "--since",
    type=SINCE,
    metavar="CURSOR|TIME",
    help="Begin behind this message, with all that is kept, printed before or not; 0 is the oldest kept. Or "
    "with what was published since a time, as whole days (UTC), where it is kept: `3d`, `12h`, a date.",
)
@click.option(
    "--ack", is_flag=True, help="Acknowledge each message once it is printed: the daemon forgets it."
)
@click.option(
    "--format",
    "line",
    metavar="TEXT",
    help="Print such a line for each message: `{time} {topic}: {payload}`; also {id}, {cursor}, {author}, "
    "{attributes}, {past}, {path}.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Leave out what was shown or acknowledged on any of your devices, as far as they have told.",
)
@purpose_options
@terms_options
@timeout_option
@daemon_options
@pass_choices
def subscribe(
    choices: Choices,
    topics: tuple[str, ...],
    link_file: Path | None,
    is_open: bool,
    where: str | None,
    count: int | None,
    since: int | datetime | None,
    ack: bool,
    line: str | None,
    once: bool,
    purpose: ReadFor | None,
    terms: Terms | None,
    timeout: float | None,
) -> None:
    """Subscribe to each TOPIC, a text, a link or a handle, and print the messages.

    Messages that came while nobody listened are printed first. The subscription stays in the daemon when this
    command ends: `hushcast unsubscribe` ends it. A message counts as shown once it is printed; every command
    that listens gets every message. What was shown is kept for --since until it is acknowledged, with --ack
    or `hushcast ack`, or grows too old. A daemon that is restarted is waited for.

    In a network of brokers, --k asks that topic and condition are shown outside of the edge broker only while
    so many subscribers stand behind them.
    With --purpose come messages that may be used for that, opened; what comes and does not open is counted.

    \b
    Examples:
      hushcast subscribe news
      hushcast subscribe news --json --since 3d --count 1 --timeout 60
      hushcast subscribe news --json --since 17 --ack
      hushcast subscribe --link-file fires.link --where 'lat in [60, 61], lon in [24, 25], kind = fire'
      hushcast subscribe --link-file fires.link --where 'kind = fire' --k 5 --otherwise generalise
      hushcast subscribe --link-file car.link --purpose operations --vocabulary fleet.vocabulary \\
        --key reader.key --grant 1.grant
    """
    if not topics or link_file is not None:
        check_one_topic(topics[0] if topics else None, link_file)
    if isinstance(since, int) and len(topics) > 1:
        raise click.UsageError("--since CURSOR counts in one topic: name one", click.get_current_context())
    if choices.json and line is not None:
        raise click.UsageError("--json has its own lines: leave --format away", click.get_current_context())
    from hushcast_cli.daemon_calls import daemon, run
    from hushcast_cli.messages.message_listener import ListenOptions, listen
    from hushcast_cli.messages.printers import FormatPrinter, JsonPrinter, TextPrinter
    from hushcast_cli.messages.topic_arguments import checked_where, choose_topic, warn_of_wildcards

    printer = JsonPrinter() if choices.json else FormatPrinter(line) if line else TextPrinter(len(topics) > 1)

    async def work() -> None:
        wanted = []
        for topic in dict.fromkeys(topics) or [None]:
            chosen = await choose_topic(topic, link_file)
            warn_of_wildcards(chosen.topic)
            checked = checked_where(chosen, where or "")
            wanted.append(ListenOptions(chosen.text, checked, since, terms, purpose, is_open, once))
        async with daemon(choices, waits=True) as one:
            await listen(one, wanted, count, printer, ack)

    run(work, timeout)
