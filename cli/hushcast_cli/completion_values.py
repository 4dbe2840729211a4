"""What a shell suggests: topics that the daemon is subscribed to, nodes of a testnet, faults, attacks."""

from __future__ import annotations

from contextlib import suppress

import click

from hushcast_cli.choices import Choices

_PATIENCE = 1.0  # seconds that a person waits for suggestions


def topics(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Suggest topics of the daemon's subscriptions, and the handles of those that only a link names."""
    from hushcast_cli.chosen_daemon import ask
    from hushcast_protocol.base.errors import HushcastError

    with suppress(HushcastError, OSError):
        listed = ask(context.ensure_object(Choices), lambda daemon: daemon.subscriptions(), _PATIENCE)
        named = [held.handle if held.is_private or held.attributes else held.topic for held in listed]
        return [topic for topic in dict.fromkeys(named) if topic.startswith(incomplete)]
    return []


def nodes(incomplete: str) -> list[str]:
    """Suggest daemons of the testnet that runs."""
    from hushcast_cli.last_testnet import node_names
    from hushcast_protocol.base.errors import HushcastError

    with suppress(HushcastError, OSError):
        return [name for name in node_names() if name.startswith(incomplete)]
    return []


def faults(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Suggest the next of a list with commas."""
    from hushcast_testnet.chaos.fault_plan import KINDS

    before, comma, last = incomplete.rpartition(",")
    named = before.split(",")
    return [before + comma + kind for kind in KINDS if kind.startswith(last) and kind not in named]


def attacks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Suggest attacks by their names."""
    from hushcast_analytics.report.phrases import ATTACKS

    return [name for name in ATTACKS if name.startswith(incomplete)]
