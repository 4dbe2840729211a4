"""`hushcast lab`: what measures and tries, on files and on this machine alone."""

from __future__ import annotations

import click

from hushcast_cli.analysis.analyze import analyze
from hushcast_cli.analysis.filters import filters
from hushcast_cli.analysis.job import job
from hushcast_cli.analysis.traces import traces
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import json_option


@click.group(cls=CommandGroup, short_help="Attack and measure: traces, filters, proofs, rules.")
@json_option
def lab() -> None:
    """Attack, measure and try, without a daemon."""


for _command in (analyze, job, traces, filters):
    lab.add_command(_command)
