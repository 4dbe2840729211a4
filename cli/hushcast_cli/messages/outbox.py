"""`hushcast outbox`: what waits for a relay's receipt, and how to take it back."""

from __future__ import annotations

import time
from typing import Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import daemon_options, timeout_option
from hushcast_runtime.wording import counted


@click.command(short_help="List messages that no relay has taken over yet.")
@click.option("--cancel", metavar="ID", help="Take the message with this id out of the outbox.")
@timeout_option
@daemon_options
@pass_choices
def outbox(choices: Choices, cancel: str | None, timeout: float | None) -> None:
    """List the messages that wait in the daemon's outbox for a relay's receipt.

    A message waits there, through restarts, until a relay has taken it over or its day is over; one that no
    relay took in time stays listed as given up. A message that is cancelled while it is being dropped may
    still have reached a relay.

    \b
    Examples:
      hushcast outbox --json
      hushcast outbox --cancel 126c5f89…
    """
    from hushcast_cli.chosen_daemon import ask
    from hushcast_cli.output import json_line, note, text_line, write

    if cancel is not None:
        done = ask(choices, lambda daemon: daemon.cancel(cancel), timeout)
        if choices.json:
            write(json_line({"id": cancel, "topic": done, "cancelled": True}))
        return
    listed = ask(choices, lambda daemon: daemon.outbox(), timeout)
    if not listed and not choices.json:
        note("the outbox is empty: relays have taken all that was published")
    for waiting in listed:
        told = waiting.described
        write(json_line(told) if choices.json else text_line(_for_people(told)))


def _for_people(waiting: dict[str, Any]) -> str:
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(waiting["since"]))
    state = waiting["state"]
    if waiting["next_attempt"] is not None:
        state += f", again in {max(0, waiting['next_attempt'] - time.time()):.0f} s"
    reason = f": {waiting['reason']}" if waiting["reason"] else ""
    attempts = counted(waiting["attempts"], "attempt")
    return f"{waiting['id']}  {waiting['topic']}  ({since}, {attempts}, {state}{reason})"
