"""`hushcast subscribe`: subscribes and prints messages until enough have come."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.options import (
    CURSOR,
    Choices,
    check_one_topic,
    daemon_options,
    link_file_option,
    pass_choices,
    timeout_option,
    where_option,
)


@click.command()
@click.argument("topic", required=False)
@link_file_option
@where_option
@click.option(
    "--count",
    type=click.IntRange(min=0),
    metavar="N",
    help="End after N messages, with exit code 0. With 0 as soon as relays route to this daemon.",
)
@click.option(
    "--since",
    type=CURSOR,
    metavar="CURSOR",
    help="Begin behind this message, with all that is kept, printed before or not; 0 is the oldest kept.",
)
@click.option(
    "--ack", is_flag=True, help="Acknowledge each message once it is printed: the daemon forgets it."
)
@timeout_option
@daemon_options
@pass_choices
def subscribe(
    choices: Choices,
    topic: str | None,
    link_file: Path | None,
    where: str | None,
    count: int | None,
    since: int | None,
    ack: bool,
    timeout: float | None,
) -> None:
    """Subscribe to TOPIC, a text or a link, and print its messages.

    Messages that came while nobody listened are printed first. The subscription stays in the daemon when this
    command ends: `hushcast unsubscribe` ends it. A message counts as shown once it is printed; every command
    that listens gets every message. What was shown is kept for --since until it is acknowledged, with --ack
    or `hushcast ack`, or grows too old.

    \b
    Examples:
      hushcast subscribe news
      hushcast subscribe news --json --count 1 --timeout 60
      hushcast subscribe news --json --since 17 --ack
      hushcast subscribe --link-file fires.link --where 'lat in [60, 61], lon in [24, 25], kind = fire'
    """
    check_one_topic(topic, link_file)
    from hushcast.words import Subscribe
    from hushcast_cli.asking import daemon_socket, run
    from hushcast_cli.links import checked_where, choose_topic
    from hushcast_cli.listening import JsonPrinter, TextPrinter, listen

    printer = JsonPrinter() if choices.json else TextPrinter()

    async def work() -> None:
        chosen = await choose_topic(topic, link_file)
        request = Subscribe(chosen.text, checked_where(chosen.topic, where or ""), since)
        await listen(daemon_socket(choices), request, count, printer, ack)

    run(work, timeout)
