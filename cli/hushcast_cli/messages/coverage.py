"""`hushcast coverage`: how much of the network reaches a subscription, and who loses messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hushcast_cli import completion_values
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import (
    check_one_topic,
    daemon_options,
    link_file_option,
    timeout_option,
    where_option,
)
from hushcast_runtime.wording import counted


@click.command(short_help="Show how much of the network reaches this daemon.")
@click.argument("topic", required=False, shell_complete=completion_values.topics)
@link_file_option
@where_option
@timeout_option
@daemon_options
@pass_choices
def coverage(
    choices: Choices, topic: str | None, link_file: Path | None, where: str | None, timeout: float | None
) -> None:
    """Show how much of the network reaches this daemon on TOPIC, a text, a link or a handle.

    The daemon drops probes on its own topics at random relays, as publishers do. It tells the share of these
    relays whose copy arrived, with a 95 % interval; the share of probes of which any copy did, which is what
    publications meet; and the relays that seem to lose messages. Rates of probes: `coverage.probes_an_epoch`.
    In a central network all probes go to the one server.

    \b
    Example:
      hushcast coverage news --json
    """
    check_one_topic(topic, link_file)
    from hushcast.events import Coverage
    from hushcast_cli.daemon_calls import daemon, run
    from hushcast_cli.messages.topic_arguments import checked_where, choose_topic
    from hushcast_cli.output import json_line, text_line, write

    async def work() -> list[Coverage]:
        chosen = await choose_topic(topic, link_file)
        only = None if where is None else checked_where(chosen, where)
        async with daemon(choices) as one:
            return await one.coverage(chosen.text, where=only)

    for covered in run(work, timeout):
        told = covered.described
        write(json_line(told) if choices.json else b"".join(map(text_line, _for_people(told))))


def _for_people(covered: dict[str, Any]) -> list[str]:
    """Return the lines that tell it."""
    where = f"  where {covered['where']}" if covered["where"] else ""
    if covered.get("by") == "host":
        return [f"{covered['topic']}{where}  (nothing is probed: a host asks for messages, without a tree)"]
    if not covered["probes"]:
        return [f"{covered['topic']}{where}  (no probe has had time to arrive yet)"]
    share = f"{covered['share']:.1%} of {counted(covered['probes'], 'drop')} arrived"
    spread = f"95 %: {covered['low']:.1%} to {covered['high']:.1%}"
    suspects = [f"  loses messages: {relay}" for relay in covered["suspects"]]
    whole = f"; {covered['delivered']:.1%} of probes by one drop or another" if "delivered" in covered else ""
    return [f"{covered['topic']}{where}  ({share}; {spread}{whole})", *suspects]
