"""The command `hushcast`. Commands import what they need when they run, so that this module loads at once."""

from __future__ import annotations

import io
import os
import shlex
import sys

import click

from hushcast_cli.choices import Choices
from hushcast_cli.command_groups import SectionedGroup
from hushcast_cli.completion import PROGRAM, VARIABLE
from hushcast_cli.exits import ExitCode, report
from hushcast_cli.options import daemon_options
from hushcast_cli.output import note


@click.group(
    cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="hushcast", prog_name=PROGRAM, message="%(prog)s %(version)s")
@daemon_options
def cli() -> None:
    """Publish and subscribe anonymously, over Tor onion services.

    \b
    Exit codes:
      0 done         1 failed        2 wrong usage or configuration
      3 no daemon    4 refused by the daemon or the network
      124 --timeout passed           130 interrupted

    \b
    Example:
      hushcast subscribe news --count 0
      hushcast publish news 'it rains'
      hushcast subscribe news --count 1
    """


cli.fill(
    {
        "Messages": {
            "publish": "hushcast_cli.messages.publish",
            "subscribe": "hushcast_cli.messages.subscribe",
            "unsubscribe": "hushcast_cli.messages.subscriptions",
            "subscriptions": "hushcast_cli.messages.subscriptions",
            "topic": "hushcast_cli.messages.topic",
            "outbox": "hushcast_cli.messages.outbox",
            "ack": "hushcast_cli.messages.subscriptions",
            "device": "hushcast_cli.devices.device",
        },
        "Your daemon": {
            "status": "hushcast_cli.operate.status",
            "healthcheck": "hushcast_cli.operate.healthcheck",
            "doctor": "hushcast_cli.operate.doctor",
            "coverage": "hushcast_cli.messages.coverage",
            "top": "hushcast_cli.operate.top",
        },
        "Networks": {
            "init": "hushcast_cli.operate.init",
            "join": "hushcast_cli.operate.join",
            "run": "hushcast_cli.operate.run",
            "admin": "hushcast_cli.operate.admin",
        },
        "Try, measure": {"testnet": "hushcast_cli.testnets.testnet", "lab": "hushcast_cli.lab"},
        "More": {
            "gateway": "hushcast_cli.gateways.gateway",
            "located": "hushcast_cli.located.located",
            "purpose": "hushcast_cli.purposes.purpose",
            "completion": "hushcast_cli.completion",
            "help": "hushcast_cli.help",
        },
    }
)


def run(arguments: list[str]) -> int:
    """Run a command line; return the exit code."""
    try:
        if instruction := os.environ.get(VARIABLE):
            from click.shell_completion import shell_complete

            return shell_complete(cli, {}, PROGRAM, VARIABLE, instruction)
        line = shlex.join([PROGRAM, *arguments])
        if __doc__ is None and {"-h", "--help"} & set(arguments):
            note("the texts of help are not there: Python's -OO takes them away")
        with cli.make_context(PROGRAM, arguments) as context:
            context.ensure_object(Choices).line = line
            cli.invoke(context)
    except BaseException as error:
        return report(error)
    return ExitCode.DONE


def main() -> None:
    """Run the command line of this process."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="replace")  # help has characters that no 8-bit locale has
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
