"""The command `hushcast`. Commands import what they need when they run, so that this module loads at once."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Iterable

import click

from hushcast_cli.analysis.lab import lab
from hushcast_cli.command_groups import SectionedGroup
from hushcast_cli.completion import PROGRAM, VARIABLE, completion
from hushcast_cli.devices.device import device
from hushcast_cli.exits import ExitCode, report
from hushcast_cli.gateways.gateway import gateway
from hushcast_cli.help import help_command
from hushcast_cli.located.located import located
from hushcast_cli.messages.coverage import coverage
from hushcast_cli.messages.outbox import outbox
from hushcast_cli.messages.publish import publish
from hushcast_cli.messages.subscribe import subscribe
from hushcast_cli.messages.subscriptions import ack, subscriptions, unsubscribe
from hushcast_cli.messages.topic import topic
from hushcast_cli.operate.admin import admin
from hushcast_cli.operate.doctor import doctor
from hushcast_cli.operate.healthcheck import healthcheck
from hushcast_cli.operate.init import init
from hushcast_cli.operate.join import join
from hushcast_cli.operate.run import run as run_command
from hushcast_cli.operate.status import status
from hushcast_cli.operate.top import top
from hushcast_cli.options import Choices, daemon_options
from hushcast_cli.output import note
from hushcast_cli.purposes.purpose import purpose
from hushcast_cli.testnets.testnet import testnet


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


@lab.add_later
def _more_of_the_lab() -> Iterable[click.Command]:
    from hushcast_cli.located.located_lab import located_lab
    from hushcast_cli.purposes.purpose_rules import purpose_rules
    from hushcast_cli.testnets.directory_simulation import simulate_authorities

    return located_lab, purpose_rules, simulate_authorities


cli.fill(
    {
        "Messages": (publish, subscribe, unsubscribe, subscriptions, topic, outbox, ack, device),
        "Your daemon": (status, healthcheck, doctor, coverage, top),
        "Networks": (init, join, run_command, admin),
        "Try, measure": (testnet, lab),
        "More": (gateway, located, purpose, completion, help_command),
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
