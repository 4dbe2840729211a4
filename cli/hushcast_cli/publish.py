"""`hushcast publish`."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.options import Choices, daemon_options, pass_choices, timeout_option


@click.command()
@click.argument("topic")
@click.argument("payload", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="F",
    help="Publish the bytes of this file.",
)
@timeout_option
@daemon_options
@pass_choices
def publish(
    choices: Choices, topic: str, payload: str | None, file: Path | None, timeout: float | None
) -> None:
    """Publish PAYLOAD on TOPIC.

    Returns once a relay has given its receipt. Without PAYLOAD, or with `-`, the bytes of standard input are
    published; `''` is the empty message. A payload has at most 256 KiB.

    \b
    Examples:
      hushcast publish news 'it rains'
      hushcast publish pictures --file cat.png
      echo it rains | hushcast publish news
      hushcast publish temperatures -- -5
    """
    if payload is not None and file is not None:
        raise click.UsageError("give PAYLOAD or --file, not both", click.get_current_context())
    from hushcast_cli.asking import ask_once, daemon_socket, run
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.payload import read_payload
    from hushcast_cli.progress import shown_when_slow
    from hushcast_node.control.words import Publish, Published
    from hushcast_protocol.topics import parse_topic

    name = parse_topic(topic).name

    async def work() -> Published:
        data = await read_payload(payload, file)
        async with shown_when_slow("waiting for a relay's receipt"):
            return await ask_once(daemon_socket(choices), Publish(name, data), Published)

    done = run(work, timeout, ": no receipt yet, though the message may still be on its way")
    if choices.json:
        write(json_line({"id": done.id, "topic": done.topic, "receipt": done.receipt}))
    else:
        write(text_line(f"{done.receipt} {done.id}"))
