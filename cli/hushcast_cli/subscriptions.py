"""`hushcast subscriptions` and `hushcast unsubscribe`: what the daemon holds, and how to end it."""

from __future__ import annotations

import click

from hushcast_cli.options import Choices, daemon_options, pass_choices, timeout_option


@click.command()
@timeout_option
@daemon_options
@pass_choices
def subscriptions(choices: Choices, timeout: float | None) -> None:
    """List the daemon's subscriptions.

    \b
    Example:
      hushcast subscriptions --json
    """
    from hushcast_cli.asking import ask_once, daemon_socket, run
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_node.control.words import Listed, Subscriptions

    listed = run(lambda: ask_once(daemon_socket(choices), Subscriptions(), Listed), timeout)
    for held in listed.subscriptions:
        if choices.json:
            write(json_line(held))
        else:
            state = f"{held.get('nodes', 0)} relays" if held.get("ready", True) else "not yet ready"
            write(text_line(f"{held['topic']}  ({state})"))


@click.command()
@click.argument("topic")
@timeout_option
@daemon_options
@pass_choices
def unsubscribe(choices: Choices, topic: str, timeout: float | None) -> None:
    """End the daemon's subscription to TOPIC.

    It is no error if there is none. Commands that listen to the topic end.

    \b
    Example:
      hushcast unsubscribe news
    """
    from hushcast_cli.asking import ask_once, daemon_socket, run
    from hushcast_cli.output import json_line, note, write
    from hushcast_cli.progress import shown_when_slow
    from hushcast_node.control.words import Unsubscribe, Unsubscribed
    from hushcast_protocol.topics import parse_topic

    name = parse_topic(topic).name

    async def work() -> Unsubscribed:
        async with shown_when_slow("ending the subscription"):
            return await ask_once(daemon_socket(choices), Unsubscribe(name), Unsubscribed)

    done = run(work, timeout)
    if choices.json:
        write(json_line({"topic": done.topic, "existed": done.existed}))
    elif not done.existed:
        note("there was no subscription to this topic")
