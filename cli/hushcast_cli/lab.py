"""`hushcast lab`: what measures and tries, on files and on this machine alone."""

from __future__ import annotations

from collections.abc import Iterable

import click

from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import json_option


@click.group(cls=CommandGroup, short_help="Attack and measure: traces, filters, proofs, rules.")
@json_option
def lab() -> None:
    """Attack, measure and try, without a daemon."""


@lab.add_later
def _commands() -> Iterable[click.Command]:
    from hushcast_cli.analysis.analyze import analyze
    from hushcast_cli.analysis.filters import filters
    from hushcast_cli.analysis.job import job
    from hushcast_cli.analysis.traces import traces
    from hushcast_cli.located.located_lab import located_lab
    from hushcast_cli.purposes.purpose_rules import purpose_rules
    from hushcast_cli.testnets.cover_lab import cover_lab
    from hushcast_cli.testnets.directory_simulation import simulate_authorities

    return analyze, job, traces, filters, located_lab, purpose_rules, simulate_authorities, cover_lab
