"""`hushcast subscriptions`, `ack` and `unsubscribe`: list subscriptions, acknowledge messages, end them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli import completion_values
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import (
    CURSOR,
    check_one_topic,
    daemon_options,
    link_file_option,
    timeout_option,
    where_option,
)
from hushcast_runtime.wording import counted

if TYPE_CHECKING:
    from hushcast.questions import Questions


@click.command(short_help="List the daemon's subscriptions, with their handles.")
@timeout_option
@daemon_options
@pass_choices
def subscriptions(choices: Choices, timeout: float | None) -> None:
    """List the daemon's subscriptions, each behind the handle that other commands take in place of TOPIC.

    \b
    Example:
      hushcast subscriptions --json
    """
    from hushcast_cli.chosen_daemon import ask
    from hushcast_cli.output import json_line, note, text_line, write

    found = ask(choices, lambda daemon: daemon.subscriptions(), timeout)
    if not found and not choices.json:
        note("there is no subscription: `hushcast subscribe TOPIC` makes one")
    for listed in found:
        held = listed.described
        if choices.json:
            write(json_line(held))
        else:
            nodes = counted(held.get("nodes", 0), held.get("by", "relay"))
            state = nodes if held.get("ready", True) else "not yet ready"
            if held.get("ready", True) and held.get("by") == "host":
                state += ", no tree: messages come when it asks for them"
            if not held.get("ready", True) and "outlook" in held:
                state = f"not yet ready: {held['outlook']}"
            kind = "private, " if held.get("private") else ""
            where = f"  where {held['where']}" if held.get("where") else ""
            dropped = f", {held['dropped']} dropped unacknowledged" if held.get("dropped") else ""
            named = f"{held['handle']}  {held['topic']}{where}"
            write(text_line(f"{named}  ({kind}{state}{anonymity(held)}{dropped})"))
    shown = next((one.described["presence"] for one in found if one.described.get("presence")), None)
    if shown and not choices.json:  # it is the same of all
        note(shown)


def anonymity(held: Mapping[str, Any]) -> str:
    """Say how many subscribers a condition is to hide among, and whether it is shown outside."""
    if "outside" not in held:
        return ""
    if held["outside"] is None:
        return f", not yet known whether it is shown among {held['k']}"
    if not held["outside"]:
        return f", held back: fewer than {held['k']} stand behind it"
    if held.get("otherwise") == "bogus":
        return f", shown outside: whoever is missing of {held['k']} is made up{_price(held)}"
    return f", shown outside among {held['k']} or more{_price(held)}"


def _price(held: Mapping[str, Any]) -> str:
    """Say what it costs at most that something else is shown with a filter, or in its place."""
    rows = counted(held.get("rows", 0), "bogus filter")
    excess = held.get("excess", 0.0)
    told = [rows] if held.get("rows") else []
    told += [f"up to {100 * excess:.2g} % of the topic's messages in excess"] if excess else []
    return f"; {', '.join(told)}" if told else ""


@click.command(short_help="Acknowledge messages: the daemon forgets them.")
@click.argument("topic", required=False, shell_complete=completion_values.topics)
@click.argument("cursor", required=False, type=CURSOR)
@link_file_option
@where_option
@timeout_option
@daemon_options
@pass_choices
def ack(
    choices: Choices,
    topic: str | None,
    cursor: int | None,
    link_file: Path | None,
    where: str | None,
    timeout: float | None,
) -> None:
    """Acknowledge all messages of TOPIC, a text, a link or a handle, up to CURSOR: the daemon forgets them.

    On return this is on disk; they are never shown again. With --where only the subscription with just this
    condition is meant, without it all to the topic; a handle means the one that has it. With --link-file
    there is no TOPIC.

    \b
    Examples:
      hushcast ack news 17
      hushcast ack --link-file fires.link 17 --where 'kind = fire'
    """
    usage = click.get_current_context()
    if link_file is not None and topic is not None and cursor is None:
        argument = next(one for one in usage.command.params if one.name == "cursor")
        topic, cursor = None, CURSOR.convert(topic, argument, usage)
    check_one_topic(topic, link_file)
    if cursor is None:
        raise click.UsageError("give CURSOR, as a message has it", usage)
    from hushcast import control_messages
    from hushcast_cli.daemon_calls import daemon, run
    from hushcast_cli.messages.topic_arguments import checked_where, choose_topic
    from hushcast_cli.output import json_line, write

    async def work() -> str:
        chosen = await choose_topic(topic, link_file)
        only = None if where is None else checked_where(chosen, where)
        async with daemon(choices) as one:
            return (
                await one.ask(
                    control_messages.AcknowledgeRequest(chosen.text, cursor, only),
                    control_messages.AcknowledgeAnswer,
                )
            ).topic

    name = run(work, timeout)
    if choices.json:
        write(json_line({"topic": name, "cursor": cursor}))


@click.command(short_help="End subscriptions of the daemon.")
@click.argument("topic", required=False, shell_complete=completion_values.topics)
@link_file_option
@where_option
@click.option("--all", "of_all", is_flag=True, help="End all subscriptions of the daemon, to whatever topic.")
@timeout_option
@daemon_options
@pass_choices
def unsubscribe(
    choices: Choices,
    topic: str | None,
    link_file: Path | None,
    where: str | None,
    of_all: bool,
    timeout: float | None,
) -> None:
    """End the daemon's subscriptions to TOPIC, a text or a link, or the one with a handle.

    With --where the one with just this condition ends, without it all to the topic. It is no error if none
    has this name; it is one where `hushcast subscriptions` shows the name, and what is given is another's.
    Commands that listen to what ends end, too.

    \b
    Examples:
      hushcast unsubscribe news
      hushcast unsubscribe %3f9a01c2
      hushcast unsubscribe --link-file fires.link --where 'kind = fire'
      hushcast unsubscribe --all
    """
    if of_all:
        if (topic, link_file, where) != (None, None, None):
            raise click.UsageError(
                "--all ends all subscriptions: leave TOPIC, --link-file and --where away",
                click.get_current_context(),
            )
        _end_all(choices, timeout)
        return
    if (topic, link_file) == (None, None):
        raise click.UsageError("give TOPIC, --link-file or --all", click.get_current_context())
    check_one_topic(topic, link_file)
    from hushcast import control_messages
    from hushcast_cli.awaited_progress import shown_when_slow
    from hushcast_cli.daemon_calls import daemon, run
    from hushcast_cli.messages.topic_arguments import checked_where, choose_topic
    from hushcast_cli.output import json_line, note, write

    async def work() -> control_messages.UnsubscribeAnswer:
        chosen = await choose_topic(topic, link_file)
        only = None if where is None else checked_where(chosen, where)
        async with daemon(choices) as one, shown_when_slow("ending the subscription"):
            return await one.ask(
                control_messages.TopicUnsubscribeRequest(chosen.text, only),
                control_messages.UnsubscribeAnswer,
            )

    over = run(work, timeout)
    if choices.json:
        write(json_line({"topic": over.topic, "existed": over.existed}))
    elif not over.existed:
        note("there was no subscription to this topic")


def _end_all(choices: Choices, timeout: float | None) -> None:
    """End whatever the daemon is subscribed to when it is asked, oldest first."""
    from hushcast_cli.chosen_daemon import ask
    from hushcast_cli.output import json_line, note, write

    async def end(daemon: Questions) -> int:
        ended = 0
        for held in await daemon.subscriptions():
            existed = await daemon.unsubscribe(held.handle)
            ended += existed
            if choices.json:
                write(json_line({"topic": held.topic, "existed": existed}))
        return ended

    ended = ask(choices, end, timeout, "ending all subscriptions")
    if not choices.json:
        note(f"{counted(ended, 'subscription')} ended" if ended else "there was no subscription")
