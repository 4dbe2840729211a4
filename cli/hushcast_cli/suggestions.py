"""What a shell suggests behind a command: topics that the daemon is subscribed to, faults, attacks."""

from __future__ import annotations

from contextlib import suppress

import click

from hushcast_cli.options import Choices

_PATIENCE = 1.0  # seconds that a person waits for suggestions


def topics(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Suggest topics of the daemon's subscriptions, but none that only a link names."""
    from hushcast.words import SubscriptionList, Subscriptions
    from hushcast_cli.asking import ask_once, daemon_socket, run
    from hushcast_protocol.base.errors import HushcastError

    async def ask() -> list[str]:
        socket = daemon_socket(context.ensure_object(Choices))
        listed = await ask_once(socket, Subscriptions(), SubscriptionList)
        named = [held for held in listed.subscriptions if not held["private"] and not held["attributes"]]
        return [held["topic"] for held in named]

    with suppress(HushcastError, OSError):
        found = dict.fromkeys(run(ask, _PATIENCE))
        return [topic for topic in found if topic.startswith(incomplete)]
    return []


def faults(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Suggest the next of a list with commas."""
    from hushcast_testnet.chaos.plan import KINDS

    before, comma, last = incomplete.rpartition(",")
    named = before.split(",")
    return [before + comma + kind for kind in KINDS if kind.startswith(last) and kind not in named]


def attacks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Suggest attacks by their names."""
    from hushcast_analytics.report.words import ATTACKS

    return [name for name in ATTACKS if name.startswith(incomplete)]
