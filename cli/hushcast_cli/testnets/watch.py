"""`hushcast testnet watch`: a local page that shows a running testnet."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import json_option, testnet_option


@click.command()
@testnet_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="P",
    help="Loopback port; one that is free unless given.",
)
@json_option
@pass_choices
def watch(choices: Choices, directory: Path, port: int) -> None:
    """Show a running testnet on a page of this machine, live, until interrupted.

    Prints the page's address. Choose a message there: its way, and what each relay on it learned.

    \b
    Example:
      hushcast testnet watch --dir /tmp/testnet
    """
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_testnet.inventory import is_down, load
    from hushcast_testnet.watch.page_server import watch as serve

    if is_down(load(directory)):
        note(f"note: nothing of the testnet in {directory} runs: the page shows what it left")

    def ready(address: str) -> None:
        write(json_line({"url": address}) if choices.json else text_line(address))

    serve(directory, port, ready, (lambda text: None) if choices.json else note)
