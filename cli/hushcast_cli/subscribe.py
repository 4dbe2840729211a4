"""`hushcast subscribe`: subscribes and prints messages until enough have come."""

from __future__ import annotations

import click

from hushcast_cli.options import Choices, daemon_options, pass_choices, timeout_option


@click.command()
@click.argument("topic")
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="End after N messages, with exit code 0."
)
@timeout_option
@daemon_options
@pass_choices
def subscribe(choices: Choices, topic: str, count: int | None, timeout: float | None) -> None:
    """Subscribe to TOPIC and print its messages.

    Messages that came while nobody listened are printed first. The subscription stays in the daemon when this
    command ends: `hushcast unsubscribe` ends it. A message counts as seen once it is printed; every command
    that listens gets every message.

    \b
    Examples:
      hushcast subscribe news
      hushcast subscribe news --json --count 1 --timeout 60
    """
    from hushcast_cli.asking import daemon_socket, run
    from hushcast_cli.listening import JsonPrinter, TextPrinter, listen
    from hushcast_protocol.topics import parse_topic

    name = parse_topic(topic).name
    printer = JsonPrinter() if choices.json else TextPrinter()
    run(lambda: listen(daemon_socket(choices), name, count, printer), timeout)
