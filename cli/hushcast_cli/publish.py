"""`hushcast publish`."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.options import (
    Choices,
    check_one_topic,
    daemon_options,
    link_file_option,
    pass_choices,
    timeout_option,
)


@click.command()
@click.argument("topic", required=False)
@click.argument("payload", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="F",
    help="Publish the bytes of this file.",
)
@link_file_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an attribute of the topic, `lat=60.17`. May be repeated.",
)
@click.option(
    "--as",
    "key_file",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="Sign as the author whose key `hushcast key new` wrote into this file.",
)
@timeout_option
@daemon_options
@pass_choices
def publish(
    choices: Choices,
    topic: str | None,
    payload: str | None,
    file: Path | None,
    link_file: Path | None,
    settings: tuple[str, ...],
    key_file: Path | None,
    timeout: float | None,
) -> None:
    """Publish PAYLOAD on TOPIC, a text or a link.

    Returns once a relay has given its receipt. Without PAYLOAD, or with `-`, the bytes of standard input are
    published; `''` is the empty message. A payload has at most 256 KiB. With --link-file there is no TOPIC.

    \b
    Examples:
      hushcast publish news 'it rains'
      hushcast publish pictures --file cat.png
      echo it rains | hushcast publish news
      hushcast publish temperatures -- -5
      hushcast publish --link-file fires.link --set lat=60.17 --set kind=fire 'smoke'
    """
    from hushcast_cli.links import choose_topic, is_link

    usage = click.get_current_context()
    if link_file is not None:
        if payload is not None or (topic is not None and is_link(topic)):
            raise click.UsageError("give TOPIC or --link-file, not both", usage)
        topic, payload = None, topic
    check_one_topic(topic, link_file)
    if payload is not None and file is not None:
        raise click.UsageError("give PAYLOAD or --file, not both", usage)
    if str(link_file) == "-" and (payload if file is None else str(file)) in (None, "-"):
        raise click.UsageError("standard input holds the link: give PAYLOAD or --file F", usage)
    from hushcast_cli.asking import ask_once, daemon_socket, run
    from hushcast_cli.key import read_key
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.payload import read_payload
    from hushcast_cli.progress import shown_when_slow
    from hushcast_node.control.words import Publish, Published
    from hushcast_protocol.topics import parse_values

    async def work() -> Published:
        chosen = await choose_topic(topic, link_file)
        parse_values(chosen.topic, settings)
        author = read_key(key_file).reveal() if key_file is not None else None
        data = await read_payload(payload, file)
        request = Publish(chosen.text, data, list(settings), author)
        async with shown_when_slow("waiting for a relay's receipt"):
            return await ask_once(daemon_socket(choices), request, Published)

    done = run(work, timeout, ": no receipt yet, though the message may still be on its way")
    if choices.json:
        write(json_line({"id": done.id, "topic": done.topic, "receipt": done.receipt}))
    else:
        write(text_line(f"{done.receipt} {done.id}"))
