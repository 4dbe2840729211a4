"""`hushcast publish`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.options import (
    Choices,
    check_one_topic,
    daemon_options,
    link_file_option,
    pass_choices,
    timeout_option,
)

if TYPE_CHECKING:
    from hushcast.words import Published


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
@click.option(
    "--no-wait",
    is_flag=True,
    help="Return as soon as the message is on the daemon's disk; the daemon goes on until a relay takes it.",
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
    no_wait: bool,
    timeout: float | None,
) -> None:
    """Publish PAYLOAD on TOPIC, a text or a link.

    Returns once a relay has given its receipt. If none does in time, the message stays in the daemon's outbox
    and is tried again until its day is over: do not publish it again. Without PAYLOAD, or with `-`, the bytes
    of standard input are published; `''` is the empty message. A payload has at most 256 KiB. With
    --link-file there is no TOPIC.

    \b
    Examples:
      hushcast publish news 'it rains'
      hushcast publish pictures --file cat.png
      echo it rains | hushcast publish news --no-wait
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
    from hushcast.conversation import NoDaemon, ask
    from hushcast.words import Publish, Published
    from hushcast_cli.asking import daemon_socket, expect, run
    from hushcast_cli.exits import TimedOut
    from hushcast_cli.key import read_key
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.payload import read_payload
    from hushcast_cli.progress import shown_when_slow
    from hushcast_protocol.base.errors import Refusal
    from hushcast_protocol.content.topics import parse_values

    told: list[Published] = []  # how far the publication has come

    async def work() -> None:
        chosen = await choose_topic(topic, link_file)
        parse_values(chosen.topic, settings)
        author = read_key(key_file).reveal() if key_file is not None else None
        data = await read_payload(payload, file)
        request = Publish(chosen.text, data, list(settings), author, "queued" if no_wait else "each")
        async with ask(daemon_socket(choices), request) as conversation:
            told.append(await expect(conversation, Published))
            if not no_wait:
                async with shown_when_slow("waiting for a relay's receipt"):
                    try:
                        told.append(await expect(conversation, Published))
                    except NoDaemon as error:
                        raise NoDaemon(f"{error}: {_whereabouts(told)}") from None
                    except Refusal:  # somebody took it back
                        told.clear()
                        raise

    try:
        run(work, timeout)
    except TimedOut as error:
        raise TimedOut(f"{error}: {_whereabouts(told)}") from None
    finally:
        for done in told[-1:]:  # also of a publication that only waits in the outbox a program learns the id
            if choices.json:
                write(json_line({"id": done.id, "topic": done.topic, "receipt": done.receipt}))
            elif done.receipt == "accepted" or no_wait:
                write(text_line(f"{done.receipt} {done.id}"))


def _whereabouts(told: list[Published]) -> str:
    if told:
        return f"the message {told[0].id} stays in the outbox, so do not publish it again"
    return "no receipt yet, though the message may be on its way"
